"""Helpers shared by all solvers: record of the iterations, first evaluation, input checks.

A *point* is the objective evaluated at one w, with gradient, Hessian products and an error bound.
"""

import time

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import Iteration, StopReason
from marginrank.objective.derived_point import DerivedPoint
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores
from marginrank.objective.regularizers import Regularizer
from marginrank.solvers.result import Callback, SolverResult

SUSPICIOUS = 1e140  # size of a gradient entry whose square is close to overflow
SUSPECTS = 1000  # columns that are searched for NaN: enough for a message, cheap for wide data


class Progress:
    """Records the iterations of a solver, calls its callback and builds its result."""

    def __init__(self, objective: Objective, callback: Callback | None) -> None:
        self.history: list[Iteration] = []
        self.n_iter = 0
        self._kept: Iteration | None = None
        self._objective = objective
        self._callback = callback
        self._start = time.perf_counter()
        self._sweeps_before = objective.sweeps
        # Solvers call each other. Only the outermost one owns the journal, from which a fit
        # recovers the best weights after an I/O error.
        self._is_first = objective.journal.history is None
        if self._is_first:
            objective.journal.history = self.history

    def record(
        self,
        point: Point | DerivedPoint,
        estimate: float,
        inner_iterations: int,
        *,
        gap: float | None = None,
        gradient: Floats | None = None,
    ) -> None:
        """Append one iteration of a solver to the history, and call the callback.

        `point` is the objective at the end of the iteration. `gap` and `gradient` replace the error
        bound and the gradient of `point`, if given.
        """
        self.n_iter += point.objective is self._objective  # iterations on samples do not count
        line = Iteration(
            iteration=len(self.history) + 1,
            seconds=time.perf_counter() - self._start,
            objective=point.value,
            gap=point.gap if gap is None else gap,
            estimate=estimate,
            gradient_norm=float(np.linalg.norm(point.gradient if gradient is None else gradient)),
            inner_iterations=inner_iterations,
            sweeps=self._objective.sweeps - self._sweeps_before,
            fraction=point.objective.fraction,
        )
        self.history.append(line)
        before = self._kept
        if self._is_first and (before is None or closeness(line) <= closeness(before)):
            self._kept, self._objective.journal.w = line, point.w
        if self._callback:
            self._callback(line)

    def update(self, point: Point | DerivedPoint) -> None:
        """Update the error bound of the last recorded iteration, if it ended at `point`."""
        if self.history and self.history[-1].objective == point.value:
            self.history[-1] = self.history[-1]._replace(gap=point.gap, estimate=point.gap)

    def result(
        self,
        point: Point | DerivedPoint,
        estimate: float,
        stop: StopReason,
        *,
        gap: float | None = None,
    ) -> SolverResult:
        """Return the result of a solver that ended at `point`; `gap` is `point.gap` by default."""
        return SolverResult(
            w=point.w,
            scores=point.scores,
            accumulated_update=point.accumulated_update,
            objective=point.value,
            gap=point.gap if gap is None else gap,
            estimate=estimate,
            n_iter=self.n_iter,
            stop=stop,
            history=self.history,
        )


def closeness(line: Iteration) -> tuple[float, float]:
    """Return a sort key for iterations: large samples first, then low objectives."""
    return -line.fraction, line.objective


def check_smooth(objective: Objective) -> None:
    """Raise ValueError if the loss of the objective is not differentiable."""
    if not objective.loss.smooth:
        raise ValueError(
            f"loss={objective.loss.name!r} is not smooth; use a smooth loss, such as squared_hinge."
        )


def start(objective: Objective, w: Floats, scores: Scores | None = None) -> Point:
    """Return an objective evaluated at initial weights w; raise ValueError if sums overflow."""
    point = objective.at(w, scores)
    check_magnitude(point)
    return point


def start_inside(
    objective: Objective, regularizer: Regularizer, w0: Floats | None, scores0: Scores | None
) -> Point:
    """Return an objective evaluated at initial weights that satisfy a regularizer's constraints.

    The weights are `w0`, corrected if they violate the constraints, or zero if `w0` is None.
    `scores0` is X w0, if known.
    """
    if w0 is None:
        return start(objective, np.zeros(objective.n_features))
    w = regularizer.inside(w0)
    return start(objective, w, scores0 if np.array_equal(w, w0) else None)


def check_magnitude(point: Point) -> None:
    """Raise ValueError if the gradient at the initial weights overflows, naming a feature."""
    # A NaN fails the comparison, too.
    if np.abs(point.gradient).max() < SUSPICIOUS:
        return
    objective = point.objective
    magnitudes = objective.feature_magnitudes
    if not objective.space.is_finite(point.scores):
        _check_finite(objective)
        worst = int(np.argmax(magnitudes))
    elif objective.space.is_finite(point.score_gradient):
        worst = int(np.argmax(np.nan_to_num(np.abs(point.gradient), nan=np.inf)))
    else:
        raise ValueError(
            "the loss overflows because weights, pair costs, margins or C are too large; decrease "
            "them."
        )
    # A large C alone makes gradients large, which is fine as long as they are finite.
    if magnitudes[worst] > SUSPICIOUS or not np.isfinite(point.gradient).all():
        raise overflow_error(objective.feature(worst))


def overflow_error(feature: int) -> ValueError:
    """Return the ValueError to raise for a column of X whose sums overflow."""
    return ValueError(
        f"X[:, {feature}] has values so large that sums overflow; rescale the column."
    )


def _check_finite(objective: Objective) -> None:
    # The data were checked once, but an array can change after that.
    for j in range(min(objective.n_features, SUSPECTS)):
        if not objective.space.is_finite(objective.design.column(j)):
            raise ValueError(
                f"X[:, {objective.feature(j)}] has NaN or infinity; replace or impute them."
            )


def best_so_far(objective: Objective) -> SolverResult | None:
    """Return a SolverResult of the best iterate so far, after an I/O error; None without one."""
    w, history = objective.journal.w, objective.journal.history
    if w is None or not history:
        return None
    best = min(history, key=closeness)
    if best.fraction < 1.0:  # an objective on a sample bounds nothing
        best = best._replace(objective=np.inf, gap=np.inf, estimate=np.inf)
    return SolverResult(
        w=w,
        scores=Scores(None),
        accumulated_update=np.abs(w),
        objective=best.objective,
        gap=best.gap,
        estimate=best.estimate,
        n_iter=sum(line.fraction == 1.0 for line in history),
        stop=StopReason.FAILED,
        history=history,
    )
