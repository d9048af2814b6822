"""Newton's method on many problems at once, each along a path of ridges.

The problems have the same documents and differ in weights, like the folds of a cross validation.
Each goes from the solution for one ridge to the solution for the next. In each round every problem
makes one step, and all of them share two sweeps over X, for Xd and for Xᵀz. What makes a step
cheap:

* At the solution for one ridge, value and gradient for another are known without a sweep.
* Each problem has a sampled Hessian without a ridge. With any ridge it is close enough to the
  Hessian for a step without conjugate gradients. It is renewed when steps leave much to gain.
* If neighbors on a path are so close that the predicted decrease is next to nothing, both have the
  same solution.

If such steps do not suffice, :mod:`~marginrank.solvers.smooth.newton` solves the problem.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores, is_certified
from marginrank.objective.together import make_gradients, points_at, scores_of
from marginrank.solvers.progress import Progress, check_magnitude
from marginrank.solvers.result import SolverResult
from marginrank.solvers.smooth.estimates import decrement, hidden_by_rounding
from marginrank.solvers.smooth.line_search import line_search
from marginrank.solvers.smooth.newton import NewtonIteration, growing_samples
from marginrank.solvers.smooth.preconditioner import (
    PartsOfSample,
    parts_of_sample,
    sampled_hessians,
    stand_ins,
)

CAUTION = 4.0  # on the decrement by a sampled Hessian as an estimate of F − F*
SLOPE_TOL = 0.2  # of a line search: the next direction corrects the rest
STALE = 0.02  # a step that leaves more of its decrement asks for a new Hessian, which costs less
POOR = 0.5  # one that leaves more than this did not help,
PATIENCE = 2  # and after so many of them newton takes over,
MAX_ROUNDS = 12  # or after so many rounds for one ridge
KEPT = (0.5, 2.0)  # actual / predicted gain of a step whose prediction can be trusted
AT_ONCE = 0.1  # of tol: an estimate below, before any step, accepts the neighbor's solution
START_TOL = 1e-2  # on samples, for the first ridge


class PathSolution(NamedTuple):
    """The solution of one problem for one ridge."""

    problem: int
    step: int
    result: SolverResult


def newton_paths(
    reference: Objective,
    problems: Sequence[Objective],
    ridges: Floats,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    seed: int = 0,
) -> Iterator[PathSolution]:
    """Minimize each problem for each ridge, and yield solutions as they are found.

    `reference` has all documents and a smooth loss; its samples provide the first weights. The
    `problems` are on the same documents. The `ridges` are descending, so the first problem is the
    easiest, and the solutions of one problem come in this order. The other parameters are as in
    :func:`~marginrank.solvers.smooth.newton.newton`.
    """
    first = float(ridges[0])
    w = _start(reference.with_ridge(first), max_iter, seed)
    starts = [problem.with_ridge(first) for problem in problems]
    points = points_at(starts, [w] * len(starts), [None] * len(starts))
    for point in points:
        check_magnitude(point)
    walkers = [
        _Walker(number, point, ridges, tol=tol, max_iter=max_iter, seed=seed)
        for number, point in enumerate(points)
    ]
    while walkers:
        yield from _round([walker for walker in walkers if walker.shape.is_known])
        for walker in walkers:
            if not walker.shape.is_known:
                yield walker.solve_alone()
        walkers = [walker for walker in walkers if not walker.is_done]


def _round(walkers: Sequence["_Walker"]) -> Iterator[PathSolution]:
    if not walkers:
        return
    directions = [walker.direction() for walker in walkers]
    images = scores_of([walker.point.objective for walker in walkers], directions)
    for walker, direction, image in zip(walkers, directions, images, strict=True):
        walker.step(direction, image)
    make_gradients([walker.point for walker in walkers])
    for walker in walkers:
        yield from walker.finish_round()


def _start(objective: Objective, max_iter: int, seed: int) -> Floats:
    # Zeros if the data are too few for samples.
    w = np.zeros(objective.n_features)
    iteration = NewtonIteration(max_iter, seed + 1, Progress(objective, None))
    for sample in growing_samples(objective, seed):
        w = iteration.run(sample.at(w), START_TOL, careful=False).point.w
    return w


class _SampledHessian:
    """The Hessians of parts of a sample, without a ridge, factorized for the current ridge.

    `is_current` says whether they were made at the walker's point.
    """

    def __init__(self, point: Point, seed: int) -> None:
        self._parts = stand_ins(point.objective, seed)
        self._hessians: list[Floats] = []
        self._ridge = np.nan
        self._factors: PartsOfSample | None = None
        self.is_current = False
        self.renew(point.w)

    @property
    def is_known(self) -> bool:
        """Whether there are Hessians: a sample must not be most of the data."""
        return bool(self._parts)

    def renew(self, w: Floats) -> None:
        """Compute the Hessians at w, if the sample holds enough pairs with a loss there."""
        self._ridge, self._factors = np.nan, None
        self._hessians = sampled_hessians(self._parts, w)
        self.is_current = True

    def with_ridge(self, ridge: float) -> PartsOfSample | None:
        """Return the factorized Hessians; None if the sample holds too few pairs with a loss."""
        if self._hessians and ridge != self._ridge:
            self._ridge, self._factors = ridge, parts_of_sample(self._hessians, ridge)
        return self._factors


class _Walker:
    """One problem on its way along the ridges; `point` is where it is."""

    def __init__(
        self, number: int, point: Point, ridges: Floats, *, tol: float, max_iter: int, seed: int
    ) -> None:
        self.shape = _SampledHessian(point, seed)
        self.is_done = False
        self._number = number
        self._ridges = ridges
        self._tol = tol
        self._max_iter = max_iter
        self._seed = seed
        self._kept = np.inf  # actual / predicted gain of the last step
        self._begin(0, point)

    def _begin(self, step: int, point: Point) -> None:
        # Start with the next ridge.
        self.point = point
        self._step = step
        self._rounds = 0
        self._n_poor = 0
        self._is_stuck = False
        self._progress = Progress(point.objective, None)

    def direction(self) -> Floats:
        hessian = self._hessian
        return np.zeros_like(self.point.w) if hessian is None else hessian.direction(self.point)

    @property
    def _hessian(self) -> PartsOfSample | None:
        return self.shape.with_ridge(self.point.objective.ridge)

    def step(self, direction: Floats, image: Scores) -> None:
        self._rounds += 1
        self._promised = decrement(self.point, direction)
        step = line_search(self.point, direction, image, slope_tol=SLOPE_TOL)
        self._is_stuck = step is None
        if step is not None:
            self._kept = (self.point.value - step.value) / self._promised
            self.point = step

    def finish_round(self) -> Iterator[PathSolution]:
        """Yield the solutions that the last step has reached, and prepare the next step."""
        if self._is_stuck:
            yield self.solve_alone()
            self.shape.renew(self.point.w)
            return
        self.shape.is_current = False
        left = self._left()
        estimate = self._estimate(left)
        self._progress.record(self.point, estimate, 0)
        is_stale = left > STALE * self._promised
        self._n_poor += not left <= POOR * self._promised
        stop, estimate = self._stop()
        if stop is None and (self._n_poor == PATIENCE or self._rounds == MAX_ROUNDS):
            yield self.solve_alone()
        while stop is not None:
            yield self._found(self._progress.result(self.point, estimate, stop))
            stop, estimate = (None, np.inf) if self.is_done else self._stop()
        if is_stale and not self.is_done and not self.shape.is_current:
            self.shape.renew(self.point.w)

    def _left(self) -> float:
        # The predicted gain of the next step.
        return np.inf if self._hessian is None else decrement(self.point, self.direction())

    def solve_alone(self) -> PathSolution:
        iteration = NewtonIteration(self._max_iter, self._seed + 1, self._progress, may_ease=True)
        outcome = iteration.run(self.point, self._tol)
        self.point = outcome.point
        self.shape.is_current = False
        return self._found(self._progress.result(*outcome))

    def _found(self, result: SolverResult) -> PathSolution:
        # Also starts with the next ridge.
        found = PathSolution(self._number, self._step, result)
        self.is_done = self._step + 1 == len(self._ridges)
        if not self.is_done:
            step = self._step + 1
            self._begin(step, self.point.with_ridge(float(self._ridges[step])))
        return found

    def _estimate(self, left: float) -> float:
        # A step that gained more than predicted shows a Hessian that is too large by that factor.
        return CAUTION * max(self._kept, 1.0) * left

    def _stop(self) -> tuple[StopReason | None, float]:
        # The reason to stop here, if any, and the estimate of F − F*.
        estimate = self._estimate(self._left())
        if is_certified(self.point, self._tol):
            return StopReason.CERTIFIED, estimate
        enough = (self._tol if self._rounds else AT_ONCE * self._tol) * self.point.value
        if not KEPT[0] <= self._kept <= KEPT[1] or estimate > enough:
            return None, estimate
        if not self.shape.is_current:
            # An older Hessian may hold pairs that have lost their loss, and predict too little.
            self.shape.renew(self.point.w)
            estimate = self._estimate(self._left())
        if self._hessian is not None:
            estimate += hidden_by_rounding(self.point, self._hessian, enough)
        return StopReason.ESTIMATED if estimate <= enough else None, estimate
