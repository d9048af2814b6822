"""What every solver returns."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from marginrank._utils.types import Floats
from marginrank.models.fit_report import Iteration, StopReason
from marginrank.objective.curvature import Curvature
from marginrank.objective.protocols import Scores

Callback = Callable[[Iteration], None]


@dataclass
class SolverResult:
    """The best point a solver found.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The weights.
    scores : Scores
        Xw, for a warm start on the same documents.
    accumulated_update : ndarray of shape (n_features,)
        How far each weight has gone in steps along which the scores were updated.
    objective, gap, estimate : float
        F(w); a certified upper bound on F(w) − F*; the solver's estimate of it.
    n_iter : int
        Iterations on the full data.
    stop : StopReason
        Why the solver stopped.
    history : list of Iteration
        One entry per iteration, those on samples included.
    curvature : Curvature or None
        For a warm start of a problem that has nearly the same.
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

    def times(self, factor: float) -> "SolverResult":
        """Return the same result with the objective multiplied by a number."""
        return replace(
            self,
            objective=factor * self.objective,
            gap=factor * self.gap,
            estimate=factor * self.estimate,
            history=[line.times(factor) for line in self.history],
        )

    @property
    def stop_reason(self) -> StopReason:
        """Why the solver stopped, as a report of a fit calls it."""
        return self.stop
