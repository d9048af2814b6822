"""The result of a solver."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from marginrank._utils.types import Floats, Integers
from marginrank.models.fit_report import Iteration, StopReason
from marginrank.objective.protocols import Scores

Callback = Callable[[Iteration], None]


class Curvature(NamedTuple):
    """The Hessian of the loss in some features, reused for problems with nearly the same Hessian.

    Attributes
    ----------
    features : ndarray of int64, shape (m,)
        Numbers of the features, ascending.
    hessian : ndarray of shape (m, m)
        The Hessian, without a ridge.
    cost : float
        Number of sweeps that computing it took.
    """

    features: Integers
    hessian: Floats
    cost: float

    def scaled(self, weight: float, sizes: Floats | None = None) -> "Curvature":
        """Return the Hessian of `weight` times the loss, with features multiplied by `sizes`."""
        hessian = weight * self.hessian
        if sizes is not None:
            own = sizes[self.features]
            hessian *= own * own[:, None]
        return self._replace(hessian=hessian)


@dataclass
class SolverResult:
    """The best point that a solver found.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The weights.
    scores : Scores
        Xw, for a warm start on the same documents.
    accumulated_update : ndarray of shape (n_features,)
        Sum of |change| of each weight over the steps along which scores were updated.
    objective, gap, estimate : float
        F(w); a certified upper bound on F(w) − F*; the solver's estimate of it.
    n_iter : int
        Number of iterations on the full data.
    stop : StopReason
        Why the solver stopped.
    history : list of Iteration
        One entry per iteration, including iterations on samples.
    curvature : Curvature or None
        For a warm start of a similar problem.
    """

    w: Floats
    scores: Scores
    accumulated_update: Floats
    objective: float
    gap: float
    estimate: float
    n_iter: int
    stop: StopReason
    history: list[Iteration] = field(default_factory=list)
    curvature: Curvature | None = None

    @property
    def stop_reason(self) -> StopReason:
        """The name of `stop` in a FitReport."""
        return self.stop

    def times(self, factor: float) -> "SolverResult":
        """Return the same result with the objective multiplied by `factor`."""
        return replace(
            self,
            objective=factor * self.objective,
            gap=factor * self.gap,
            estimate=factor * self.estimate,
            history=[line.times(factor) for line in self.history],
        )
