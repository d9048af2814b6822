"""What every solver returns."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.types import Floats
from marginrank.objective.curvature import Curvature
from marginrank.objective.protocols import Scores


class StopReason(Enum):
    """Why a solver stopped."""

    CERTIFIED = Message("the certified gap is below ", Mention("tol"))
    ESTIMATED = Message("the estimated distance to the optimum is below ", Mention("tol"))
    PRECISION = Message("no further progress is possible in floating point")
    STALLED = Message("the objective no longer improves by ", Mention("tol"))
    VALIDATED = Message("the validation metric no longer improves by ", Mention("tol"))
    MAX_ITER = Message(Mention("max_iter"), " iterations were made")
    INTERRUPTED = Message("the fit was interrupted")
    FAILED = Message("the data could not be read any more")

    @property
    def converged(self) -> bool:
        """Whether the result is as good as was asked for."""
        return self in (StopReason.CERTIFIED, StopReason.ESTIMATED, StopReason.VALIDATED)


class Iteration(NamedTuple):
    """One line of a fit's history.

    `gap` is the certified bound on F − F*, `estimate` the solver's own estimate of it; `sweeps`
    counts sweeps over X since the start; `fraction` is the share of the documents in use.
    """

    iteration: int
    seconds: float
    objective: float
    gap: float
    estimate: float
    gradient_norm: float
    inner_iterations: int
    sweeps: float
    fraction: float

    def times(self, factor: float) -> "Iteration":
        """Return the same line with the objective multiplied by a number."""
        return self._replace(
            objective=factor * self.objective,
            gap=factor * self.gap,
            estimate=factor * self.estimate,
            gradient_norm=factor * self.gradient_norm,
        )


Callback = Callable[[Iteration], None]


class Pass(NamedTuple):
    """One line of the history of an online fit.

    `objective` is F of the weights at the end of the pass; of text, which is not read once more for
    it, an estimate from the losses that queries had when their turn came. `metric` is that of the
    validation data, NaN without any; `steps` counts from the start.
    """

    iteration: int
    seconds: float
    objective: float
    metric: float
    steps: int


def print_iteration(line: Iteration) -> None:
    """Print an iteration on a line; a callback."""
    print(iteration_text(line))


def iteration_text(line: Iteration) -> str:
    """Return an iteration on a line."""
    return (
        f"iter {line.iteration:3d}  {line.seconds:8.3f} s  F {line.objective:.10e}  "
        f"|g| {line.gradient_norm:.2e}  gap {line.gap:.1e}  est {line.estimate:.1e}  "
        f"cg {line.inner_iterations:3d}  sweeps {line.sweeps:6.1f}  data {line.fraction:.1%}"
    )


def print_pass(line: Pass) -> None:
    """Print a pass on a line; a callback."""
    print(
        f"pass {line.iteration:3d}  {line.seconds:8.3f} s  F {line.objective:.6e}  "
        f"metric {line.metric:.4f}  steps {line.steps}"
    )


@dataclass
class SolverResult:
    """The best point a solver found.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        The weights.
    scores : Scores
        Xw, for a warm start on the same documents.
    travelled : ndarray of shape (n_features,)
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
    travelled: Floats
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
