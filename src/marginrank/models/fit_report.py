"""How a fit ended: one record for every learner, and the lines of its log."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from marginrank._utils.parameters import Mention, Message


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


class StreamFacts(NamedTuple):
    """What a fit has read of X that was left on disk.

    Attributes
    ----------
    n_parts : int
        Parts of whole queries that X is computed with in.
    bytes_read : int
        Bytes of X read from disk, in all sweeps.
    pinned_bytes : int
        Memory of the parts that stayed in it from the first sweep on.
    """

    n_parts: int
    bytes_read: int
    pinned_bytes: int


@dataclass(frozen=True)
class FitReport:
    """How a fit ended.

    Attributes
    ----------
    objective, gap, estimate : float
        F of the model; a certified upper bound on F − F*; the solver's estimate of it, NaN if the
        model comes from a file.
    stop_reason : StopReason
        Why the fit stopped.
    n_iter, n_pairs : int
        Number of iterations (of passes, for an online fit) and of pairs learned from.
    n_rounds : int or None
        Number of problems that were solved, if one was weighted by the rankings of others.
    C, smoothness : float or None
        Weight of the loss and of the roughness of curves, if the parameters may leave them to the
        data.
    history : list of Iteration, list of Pass, or None
        One line per iteration or pass.
    without_effect : tuple of int
        Features that are constant inside every query, so that no pair depends on them; empty if
        the features were not scaled.
    stream : StreamFacts or None
        What was read, if X was left on disk.
    error : OSError or None
        Why the fit could not go on; the model is the best one up to then.
    note : str or None
        What the fit could not do as asked for.
    """

    objective: float
    gap: float
    stop_reason: StopReason
    n_iter: int
    n_pairs: int
    n_rounds: int | None = None
    C: float | None = None
    smoothness: float | None = None
    history: list[Iteration] | list[Pass] | None = None
    estimate: float = math.nan
    without_effect: tuple[int, ...] = ()
    stream: StreamFacts | None = None
    error: OSError | None = None
    note: str | None = None


class Reported(Protocol):
    """A model that may come from a fit."""

    @property
    def report(self) -> FitReport | None:
        """How the fit ended."""


def report_of(model: Reported) -> FitReport:
    """Return the report of a model that comes from a fit."""
    if model.report is None:
        raise ValueError("the model has no report: it does not come from a fit.")
    return model.report


class Closeness(Protocol):
    """How close to the optimum a fit, or a solver, came; see FitReport."""

    @property
    def objective(self) -> float:
        """F of the model."""

    @property
    def gap(self) -> float:
        """A certified bound on F − F*."""

    @property
    def estimate(self) -> float:
        """An estimate of F − F*."""

    @property
    def stop_reason(self) -> StopReason:
        """Why it stopped."""


def relative_distance(result: Closeness) -> float:
    """Return the distance to the optimal objective, relative to an objective that may be zero."""
    distance = min(result.estimate, result.gap)
    if result.objective > 0.0:
        return distance / result.objective
    return 0.0 if distance == 0.0 else math.inf


def is_close(result: Closeness, tol: float) -> bool:
    """Whether a fit came as close to the optimum as asked for."""
    at_limit = result.stop_reason is StopReason.PRECISION
    return result.stop_reason.converged or (at_limit and relative_distance(result) <= tol)


def convergence_message(result: Closeness, tol: float) -> Message | None:
    """Return the warning that a fit did not come as close to the optimum as asked for, or None."""
    if is_close(result, tol):
        return None
    return Message(
        "The solver did not converge (",
        result.stop_reason.value,
        f"); the objective is within a relative {relative_distance(result):.1e} of the optimum. "
        "Increase ",
        Mention("max_iter"),
        " or ",
        Mention("tol"),
        ", or scale the features.",
    )


def unfinished_message(
    n_unfinished: int, n_fits: int, fits: str = "fits", *, has_tol: bool = True
) -> Message | None:
    """Return the warning that some of many fits did not come close enough, or None.

    `fits` is what they are called, and `has_tol` whether the reader can change `tol`.
    """
    if not n_unfinished:
        return None
    told = f"{n_unfinished} of {n_fits} {fits} did not reach the tolerance. Increase "
    or_tol = (" or ", Mention("tol")) if has_tol else ()
    return Message(told, Mention("max_iter"), *or_tol, ", or scale the features.")


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
