"""FitReport, the record of a fit: result, convergence, history, warnings and log lines."""

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.types import Floats


class StopReason(Enum):
    """Why a solver stopped; the value of each member is a phrase for messages.

    Examples
    --------
    >>> from marginrank import RankSVM, StopReason
    >>> RankSVM().fit([[0.0], [1.0]], [0, 1]).stop_reason_ is StopReason.CERTIFIED
    True
    """

    CERTIFIED = Message("the certified gap is below ", Mention("tol"))
    ESTIMATED = Message("the estimated distance to the optimum is below ", Mention("tol"))
    PRECISION = Message("no further progress is possible in floating point")
    STALLED = Message("the objective no longer improves by ", Mention("tol"))
    VALIDATED = Message("the validation metric no longer improves by ", Mention("tol"))
    MAX_ITER = Message(Mention("max_iter"), " was reached")
    INTERRUPTED = Message("the fit was interrupted")
    FAILED = Message("the data could no longer be read")

    @property
    def converged(self) -> bool:
        """Whether the fit reached the requested accuracy."""
        return self in (StopReason.CERTIFIED, StopReason.ESTIMATED, StopReason.VALIDATED)


class Iteration(NamedTuple):
    """One iteration of a solver, as listed in the history of a fit.

    `objective` is the objective F at this iteration. `gap` is a certified upper bound on F − F*,
    with the minimum F*, and `estimate` the solver's estimate of F − F*. `inner_iterations` counts
    the conjugate gradient steps of the iteration, and `sweeps` the passes over X since the start of
    the fit. `fraction` is the share of the documents that the iteration used; solvers may begin
    with a sample.

    Examples
    --------
    >>> from marginrank import RankSVM
    >>> history = RankSVM().fit([[0.0], [1.0]], [0, 1]).history_
    >>> history[-1].fraction, history[-1].gap < 1e-6
    (1.0, True)
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
        """Return a copy for an objective that is `factor` times as large."""
        scaled = ("objective", "gap", "estimate", "gradient_norm")
        return self._replace(**{name: factor * getattr(self, name) for name in scaled})


class Pass(NamedTuple):
    """One pass over the data, as listed in the history of an online fit.

    `objective` is the objective at the end of the pass. For streamed text, which is not read again,
    it is an estimate from the losses of the queries during the pass. `metric` is the metric on
    validation data, or NaN if there are none. `steps` is the number of steps since the start of the
    fit.
    """

    iteration: int
    seconds: float
    objective: float
    metric: float
    steps: int


class StreamFacts(NamedTuple):
    """Statistics of disk reads during a fit that read X from disk."""

    n_parts: int  # number of parts of X, each with whole queries
    bytes_read: int  # bytes read in all passes
    pinned_bytes: int  # memory of the parts that stay in memory after the first pass


@dataclass(frozen=True)
class FitReport:
    """The record of a fit: objective, convergence, counts and history.

    Attributes
    ----------
    objective, gap, estimate : float
        The objective F of the model; a certified upper bound on F − F*, where F* is the minimum;
        the solver's estimate of F − F*, which is NaN for a model read from a file.
    stop_reason : StopReason
        Why the fit stopped.
    n_iter, n_pairs : int
        Number of iterations (of passes, for an online fit) and of pairs.
    support_pairs : int or None
        Number of support pairs, whose score difference is less than their margin; with the logistic
        loss on listed pairs, the number of all pairs. None for an online fit, a fit on a cluster
        and a model read from a file.
    loss_error : float or None
        Largest error of the computed loss of a pair. It is 0 for every loss except the logistic
        loss on pairs from labels, which is approximated by a sum of hinge terms. None for a model
        read from a file.
    n_rounds : int or None
        For an NDCG objective, the number of consecutive fits: the ranking by each fit determines
        the pair weights of the next one.
    C, smoothness : float or None
        The weight of the loss in a sparse or additive model, and the weight of the roughness of
        curves in an additive model, also if they were chosen from the data. None for other models.
    history : list of Iteration, list of Pass, or None
        One entry per iteration or pass.
    without_effect : tuple of int
        Columns of features that are constant within every query, so no pair depends on them; empty
        if the features were not scaled.
    position_effect : ndarray or None
        Effect of each position on the score of a click, or one row of effects per context.
    contexts : ndarray or None
        The contexts, such as devices, in the order of the rows of `position_effect`.
    stream : StreamFacts or None
        Reads from disk, if X was not in memory.
    error : OSError or None
        The error that ended the fit; the model is the best one found before the error.
    note : str or None
        A sentence about how the fit deviated from the request, for a warning.
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
    support_pairs: int | None = None
    loss_error: float | None = None
    position_effect: Floats | None = field(default=None, compare=False)
    contexts: NDArray[Any] | None = field(default=None, compare=False)


def report_of(model: Any) -> FitReport:
    """Return the fit report of a model; raise ValueError if the model has none."""
    report: FitReport | None = model.report
    if report is None:
        raise ValueError("the model has no report, because it does not come from a fit.")
    return report


class Closeness(Protocol):
    """Protocol of fit results with a bound on the distance to the optimum, such as FitReport."""

    @property
    def objective(self) -> float:
        """The objective F of the fitted model."""

    @property
    def gap(self) -> float:
        """Certified upper bound on F − F*, the objective minus its minimum."""

    @property
    def estimate(self) -> float:
        """The solver's estimate of F − F*, the objective minus its minimum."""

    @property
    def stop_reason(self) -> StopReason:
        """Why the solver stopped."""


def relative_distance(result: Closeness) -> float:
    """Return the estimated distance to the optimum divided by the objective, (F − F*) / F.

    F is the objective and F* its minimum. F − F* is the smaller one of `estimate` and the certified
    `gap`. If F is 0, the result is 0 or infinity.
    """
    distance = min(result.estimate, result.gap)
    if result.objective > 0.0:
        return distance / result.objective
    return 0.0 if distance == 0.0 else math.inf


def is_close(result: Closeness, tol: float) -> bool:
    """Return whether a fit reached the tolerance `tol` of the relative distance to the optimum."""
    at_limit = result.stop_reason is StopReason.PRECISION
    return result.stop_reason.converged or (at_limit and relative_distance(result) <= tol)


def convergence_message(result: Closeness, tol: float) -> Message | None:
    """Return the warning that a fit did not reach the tolerance `tol`, or None."""
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
    """Return the warning that some of several fits did not reach `tol`, or None.

    `fits` is the plural noun in the message. `has_tol` is whether the user can change `tol`.
    """
    if not n_unfinished:
        return None
    failed = f"{n_unfinished} of {n_fits} {fits} did not reach the tolerance. Increase "
    or_tol = (" or ", Mention("tol")) if has_tol else ()
    return Message(failed, Mention("max_iter"), *or_tol, ", or scale the features.")


def print_iteration(line: Iteration) -> None:
    """Print one line about an iteration; fits call this function if `verbose` is positive."""
    print(iteration_text(line))


def iteration_text(line: Iteration) -> str:
    """Return the log line of an iteration: number, objective, gap and more."""
    return (
        f"iter {line.iteration:3d}  {line.seconds:8.3f} s  F {line.objective:.10e}  "
        f"|g| {line.gradient_norm:.2e}  gap {line.gap:.1e}  est {line.estimate:.1e}  "
        f"cg {line.inner_iterations:3d}  passes {line.sweeps:6.1f}  data {line.fraction:.1%}"
    )


def print_pass(line: Pass) -> None:
    """Print one line about a pass; online fits call this function if `verbose` is positive."""
    print(
        f"pass {line.iteration:3d}  {line.seconds:8.3f} s  F {line.objective:.6e}  "
        f"metric {line.metric:.4f}  steps {line.steps}"
    )
