"""Losses on the score difference t = s_i − s_j of a pair, as sums of hinge pieces.

A loss is ℓ(t) = Σ_m a_m · max(0, θ_m − t)^{e_m} with e_m ∈ {1, 2}. That is all the native kernels
know of it, so a new loss is a new entry of :data:`LOSSES`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Piece:
    """One hinge term a · max(0, θ − t)^e."""

    coefficient: float
    theta: float
    power: int


@dataclass(frozen=True)
class Loss:
    """A convex loss made of hinge pieces.

    Parameters
    ----------
    name : str
        What users write.
    pieces : tuple of Piece
        The terms of the sum.

    Examples
    --------
    >>> from marginrank.losses import LOSSES
    >>> LOSSES["squared_hinge"].value([0.0, 0.5, 2.0])
    array([1.  , 0.25, 0.  ])
    """

    name: str
    pieces: tuple[Piece, ...]

    @property
    def smooth(self) -> bool:
        """Whether the loss is differentiable, as Newton methods need."""
        return all(piece.power == 2 for piece in self.pieces)

    def as_array(self) -> Floats:
        """Return the pieces as rows (a, θ, e), as the native kernels take them."""
        return np.array([(p.coefficient, p.theta, p.power) for p in self.pieces], dtype=np.float64)

    def value(self, t: ArrayLike) -> Floats:
        """Return ℓ(t)."""
        return self._sum(t, lambda p, slack: p.coefficient * slack**p.power)

    def derivative(self, t: ArrayLike) -> Floats:
        """Return ℓ'(t); at a kink, the derivative from the right."""
        return self._sum(
            t, lambda p, slack: -p.power * p.coefficient * slack ** (p.power - 1) * (slack > 0)
        )

    def curvature(self, t: ArrayLike) -> Floats:
        """Return ℓ''(t); at a kink, the value from the right."""
        return self._sum(t, lambda p, slack: (p.power == 2) * 2.0 * p.coefficient * (slack > 0))

    @property
    def largest_curvature(self) -> float:
        """The maximum of ℓ'', which is taken left of a kink."""
        kinks = np.array([piece.theta for piece in self.pieces])
        below = np.nextafter(kinks, -np.inf)
        return float(np.max(self.curvature(below)))

    def squared_derivative(self) -> "Loss":
        """Return ℓ'(t)² as a sum of pieces, for a smooth loss.

        Left of a kink θ with coefficient a, ℓ'' is larger by 2a. So (ℓ'²)' = 2ℓ'ℓ'' jumps by
        4a ℓ'(θ), and (ℓ'²)'' = 2ℓ''² by the difference of its values on both sides.
        """
        pieces = []
        curvature = 0.0
        for piece in sorted(self.pieces, key=lambda p: -p.theta):
            slope = float(self.derivative(piece.theta))
            left = curvature + 2.0 * piece.coefficient
            pieces.append(Piece(left**2 - curvature**2, piece.theta, 2))
            if slope != 0.0:
                pieces.append(Piece(-4.0 * piece.coefficient * slope, piece.theta, 1))
            curvature = left
        return Loss(f"{self.name}'²", tuple(pieces))

    def _sum(self, t: ArrayLike, term) -> Floats:  # type: ignore[no-untyped-def]
        t = np.asarray(t, dtype=np.float64)
        total = np.zeros_like(t)
        for piece in self.pieces:
            total += term(piece, np.maximum(0.0, piece.theta - t))
        return total


LOSSES = {
    loss.name: loss
    for loss in (
        Loss("squared_hinge", (Piece(1.0, 1.0, 2),)),
        # Quadratic on [0, 1], linear below 0 (paper 2, section 4.1).
        Loss("huber", (Piece(1.0, 1.0, 2), Piece(-1.0, 0.0, 2))),
    )
}
