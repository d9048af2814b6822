"""The Hessian of a loss in some features, kept for problems that have nearly the same."""

from typing import NamedTuple

from marginrank._utils.types import Floats, Integers


class Curvature(NamedTuple):
    """The Hessian of the loss, without a ridge, in some features at some w.

    Attributes
    ----------
    features : ndarray of int64, shape (m,)
        Numbers of the features, ascending.
    hessian : ndarray of shape (m, m)
        The Hessian.
    cost : float
        What it took to make it, in sweeps.
    """

    features: Integers
    hessian: Floats
    cost: float

    def scaled(self, weight: float, sizes: Floats | None = None) -> "Curvature":
        """Return that of a loss times a weight, of features times some sizes."""
        hessian = weight * self.hessian
        if sizes is not None:
            own = sizes[self.features]
            hessian *= own * own[:, None]
        return self._replace(hessian=hessian)
