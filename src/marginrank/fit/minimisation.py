"""From an objective to weights: what all fits of linear weights share."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats
from marginrank.fit.scaling import Scale, to_raw, to_scaled, with_scale
from marginrank.fit.streams import facts_of
from marginrank.models.fit_report import StopReason, StreamFacts
from marginrank.objective.backends.interface import Scores
from marginrank.objective.gram import GramStore
from marginrank.objective.losses import Loss
from marginrank.objective.objective import Objective
from marginrank.solvers.progress import closeness
from marginrank.solvers.result import Callback, SolverResult


class Fit(NamedTuple):
    """What came out of a fit; the weights are those of the features as they are.

    Attributes
    ----------
    result : SolverResult
        The weights.
    n_pairs : int
        Number of pairs that they were learned from.
    scale : Scale or None
        What the features were divided by.
    error : OSError or None
        Why the fit could not go on; the weights are the best ones up to then.
    stream : StreamFacts or None
        What was read, if X was left on disk.
    n_rounds : int or None
        Number of problems that were solved, if one was weighted by the rankings of others.
    C : float or None
        The weight of the loss that was used, if the parameters may leave it to the data.
    smoothness : float or None
        The weight of the roughness of curves that was used, if there are any.
    """

    result: SolverResult
    n_pairs: int
    scale: Scale | None = None
    error: OSError | None = None
    stream: StreamFacts | None = None
    n_rounds: int | None = None
    C: float | None = None
    smoothness: float | None = None


class Minimised(Protocol):
    """Parameters of a fit that a solver makes."""

    @property
    def tol(self) -> float:
        """How close to the optimum."""

    @property
    def max_iter(self) -> int:
        """In how many iterations."""

    def penalty(self, w: Floats) -> float:
        """Return what is added to the objective."""

    def minimiser(self, loss: Loss) -> Callable[..., SolverResult]:
        """Return the solver, as a function of an objective."""


def minimise(
    objective: Objective,
    parameters: Minimised,
    *,
    scale: Scale | None,
    seed: int,
    w0: Floats | None,
    callback: Callback | None,
    solve: Callable[..., SolverResult] | None = None,
) -> Fit:
    """Solve a problem on scaled features, and return the weights of those as they are.

    `solve` is the solver, which the parameters name by default.
    """
    error = None
    scaled = with_scale(objective, scale)
    with serial_blas():
        try:
            result = (solve or parameters.minimiser(objective.loss))(
                scaled,
                w0=to_scaled(w0, scale),
                tol=parameters.tol,
                max_iter=parameters.max_iter,
                seed=seed,
                callback=callback,
            )
            result = _judged(scaled, parameters, result)
        except OSError as reason:
            so_far = _so_far(objective)
            if so_far is None:
                raise
            result = so_far
            error = reason.with_traceback(None)  # its frames would keep all of this alive
    stream = facts_of(objective.matrix)
    return Fit(to_raw(result, scale), objective.n_pairs, scale, error, stream)


def _judged(objective: Objective, parameters: Minimised, result: SolverResult) -> SolverResult:
    """Let the native kernels have the last word on what was found elsewhere; a sweep.

    A gap that is no matter of the gradient alone is what the solver has proved of the optimum,
    seen from the value that they find.
    """
    matrix = objective.matrix.on_host()
    if matrix is None:
        return result
    point = replace(objective, matrix=matrix, grams=GramStore()).at(result.w)
    value = point.value + parameters.penalty(result.w)
    if objective.loss.smooth and objective.ridge > 0:
        return replace(result, objective=value, gap=point.gap)
    bound = result.objective - result.gap
    return replace(result, objective=value, gap=max(value - bound, 0.0) + point.sum_rounding)


def _so_far(objective: Objective) -> SolverResult | None:
    """Return the best weights before something went wrong, if there are any."""
    w, history = objective.journal.w, objective.journal.history
    if w is None or not history:
        return None
    best = min(history, key=closeness)
    if best.fraction < 1.0:  # what a sample says of F is no bound
        best = best._replace(objective=np.inf, gap=np.inf, estimate=np.inf)
    return SolverResult(
        w=w,
        scores=Scores(None),
        travelled=np.abs(w),
        objective=best.objective,
        gap=best.gap,
        estimate=best.estimate,
        n_iter=sum(line.fraction == 1.0 for line in history),
        stop=StopReason.FAILED,
        history=history,
    )
