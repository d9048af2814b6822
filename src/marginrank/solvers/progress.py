"""The bookkeeping that solvers share: history, timing, the certificate."""

import time
from typing import Protocol

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import Iteration, StopReason
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores
from marginrank.objective.regularizers import Regularizer
from marginrank.solvers.result import Callback, SolverResult

SUSPICIOUS = 1e140  # a gradient whose square is close to overflow
SUSPECTS = 1000  # features that are checked


class ReachedPoint(Protocol):
    """A point that a solver has reached: of an objective, alone or with a regulariser."""

    @property
    def objective(self) -> Objective:
        """What it is a point of."""

    @property
    def w(self) -> Floats:
        """The weights."""

    @property
    def scores(self) -> Scores:
        """Xw."""

    @property
    def accumulated_update(self) -> Floats:
        """How far each weight has gone in steps along which scores were updated."""

    @property
    def value(self) -> float:
        """F(w)."""

    @property
    def gap(self) -> float:
        """A certified upper bound on F(w) − F*."""

    @property
    def gradient(self) -> Floats:
        """A vector that is zero at the optimum only."""


class Progress:
    """Records iterations and builds the result."""

    def __init__(self, objective: Objective, callback: Callback | None) -> None:
        self.history: list[Iteration] = []
        self.n_iter = 0
        self._kept: Iteration | None = None
        self._objective = objective
        self._callback = callback
        self._start = time.perf_counter()
        self._sweeps_before = objective.sweeps
        self._is_first = objective.journal.history is None
        if self._is_first:
            objective.journal.history = self.history

    def record(
        self,
        point: ReachedPoint,
        estimate: float,
        inner_iterations: int,
        *,
        gap: float | None = None,
        gradient: Floats | None = None,
    ) -> None:
        """Add one iteration that ended at `point`; `gap` and `gradient` are its own by default."""
        full = point.objective is self._objective
        self.n_iter += full
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
        self._keep(point, line)
        if self._callback:
            self._callback(line)

    def _keep(self, point: ReachedPoint, line: Iteration) -> None:
        """Write down the weights in the journal: the best ones of the most documents."""
        before = self._kept
        better = before is None or closeness(line) <= closeness(before)
        if self._is_first and better:
            self._kept, self._objective.journal.w = line, point.w

    def update(self, point: ReachedPoint) -> None:
        """Put the gap of a point in the last line, if it is about it: a closer one was found."""
        if self.history and self.history[-1].objective == point.value:
            self.history[-1] = self.history[-1]._replace(gap=point.gap, estimate=point.gap)

    def result(
        self, point: ReachedPoint, estimate: float, stop: StopReason, *, gap: float | None = None
    ) -> SolverResult:
        """Return `point` as the outcome; `gap` is its own by default."""
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
    """Return by what iterations are compared: first by their number of documents."""
    return -line.fraction, line.objective


def start(objective: Objective, w: Floats, scores: Scores | None = None) -> Point:
    """Evaluate the first w; raise ValueError if features cannot be summed."""
    point = objective.at(w, scores)
    check_magnitude(point)
    return point


def check_magnitude(point: Point) -> None:
    """Raise ValueError for features whose gradient is close to overflow at the first w."""
    if not np.abs(point.gradient).max() < SUSPICIOUS:
        _raise_overflow(point)


def start_inside(
    objective: Objective, regularizer: Regularizer, w0: Floats | None, scores0: Scores | None
) -> Point:
    """Evaluate the first w, in the domain of a regularizer: zero, or `w0` moved into it."""
    if w0 is None:
        return start(objective, np.zeros(objective.n_features))
    w = regularizer.inside(w0)
    return start(objective, w, scores0 if np.array_equal(w, w0) else None)


def _raise_overflow(point: Point) -> None:
    """Raise ValueError, naming the cause, if squares of gradients overflow not by C alone."""
    objective = point.objective
    magnitudes = objective.feature_magnitudes
    if not objective.space.is_finite(point.scores):
        _check_finite(objective)
        worst = int(np.argmax(magnitudes))
    elif objective.space.is_finite(point.score_gradient):
        worst = int(np.argmax(np.nan_to_num(np.abs(point.gradient), nan=np.inf)))
    else:
        raise ValueError(
            "weights, pair costs, margins or C are so large that the loss overflows; lower them."
        )
    if magnitudes[worst] > SUSPICIOUS or not np.isfinite(point.gradient).all():
        raise ValueError(
            f"X[:, {objective.feature(worst)}] has values so large that sums overflow; scale the "
            "feature."
        )


def _check_finite(objective: Objective) -> None:
    """Raise ValueError if a feature has become NaN or infinite since the data were checked."""
    for j in range(min(objective.n_features, SUSPECTS)):
        if not objective.space.is_finite(objective.design.column(j)):
            raise ValueError(
                f"X[:, {objective.feature(j)}] has NaN or infinity; replace or impute such values."
            )
