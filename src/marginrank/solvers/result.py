"""The result of a solver, and a Hessian that similar problems can reuse."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from marginrank._utils.types import Floats, Integers
from marginrank.models.fit_report import Iteration, StopReason
from marginrank.objective.protocols import Scores

Callback = Callable[[Iteration], None]


class Curvature(NamedTuple):
    """The Hessian of the loss with respect to some weights, for reuse in similar problems."""

    features: Integers  # ascending
    hessian: Floats  # shape (m, m), without a ridge
    cost: float  # number of sweeps spent on computing it

    def scaled(self, weight: float, sizes: Floats | None = None) -> "Curvature":
        """Return the Hessian for the loss times `weight` and each feature j times sizes[j]."""
        hessian = weight * self.hessian
        if sizes is not None:
            own = sizes[self.features]
            hessian *= own * own[:, None]
        return self._replace(hessian=hessian)


@dataclass
class SolverResult:
    """The weights that a solver found, with error bounds and the history of its iterations."""

    w: Floats
    scores: Scores  # Xw, for a warm start on the same documents
    accumulated_update: Floats  # Σ |change| of each weight over steps that updated the scores
    objective: float  # F(w)
    gap: float  # certified upper bound on F(w) − F*
    estimate: float  # the solver's estimate of F(w) − F*
    n_iter: int  # iterations on the full data
    stop: StopReason
    history: list[Iteration] = field(default_factory=list)  # includes iterations on samples
    curvature: Curvature | None = None  # curvature for a warm start of a similar problem

    @property
    def stop_reason(self) -> StopReason:
        return self.stop

    def times(self, factor: float) -> "SolverResult":
        """Return this result for the objective times `factor`; the weights are the same."""
        return replace(
            self,
            objective=factor * self.objective,
            gap=factor * self.gap,
            estimate=factor * self.estimate,
            history=[line.times(factor) for line in self.history],
        )
