"""Newton's method on many problems at once, each along a path of ridges.

The problems have the same documents and differ in weights, as the folds of a cross validation do.
They walk side by side, each from the solution for one ridge to that for the next. In each round
every problem makes a step, and all of them read X together, twice: for Xd and for Xᵀz.

What makes a step cheap:

* At the solution for one ridge, value and gradient for another are known without reading X.
* Each problem has a Hessian of a sample of its documents, without a ridge. With any ridge it is an
  approximation of the Hessian that is close enough for a step without conjugate gradients. It is
  made anew where steps leave much to do.
* Where neighbours on a path are so close that the approximation promises next to nothing, the
  solution for one is that for the other.

A problem for which such steps do not do is left to :mod:`~marginrank.solvers.smooth.newton`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores, is_certified
from marginrank.objective.together import make_gradients, points_at, scores_of
from marginrank.solvers.progress import Progress, refuse_huge
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

CAUTION = 4.0  # on the decrement by a sample's Hessian as an estimate of F − F*
SLOPE_TOL = 0.2  # of a line search: the next direction mends what it leaves
STALE = 0.02  # of the decrement, left by a step: more asks for a new Hessian, which costs less
POOR = 0.5  # the same: more says that such steps will not do
KEPT = (0.5, 2.0)  # of what a step promised, that it gained: else it says little of what is left
AT_ONCE = 0.1  # of tol, below which a neighbour's solution will do
PATIENCE = 2  # such steps
MAX_ROUNDS = 12  # for one problem and ridge
START_TOL = 1e-2


class Found(NamedTuple):
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
) -> Iterator[Found]:
    """Minimise each problem for each ridge, and yield the solutions as they are found.

    Those of one problem come in the order of the ridges.

    Parameters
    ----------
    reference : Objective
        All documents, with a smooth loss: its samples tell where to start.
    problems : sequence of Objective
        What to minimise, on the documents of `reference`, with any ridge.
    ridges : ndarray
        The ridges, descending: the first problem is the easiest.
    tol : float
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int
        Limit on the iterations of `newton`, where a problem is left to it.
    seed : int
        For the samples.
    """
    first = float(ridges[0])
    w = _start(reference.with_ridge(first), max_iter, seed)
    starts = [problem.with_ridge(first) for problem in problems]
    points = points_at(starts, [w] * len(starts), [None] * len(starts))
    for point in points:
        refuse_huge(point)
    walkers = [
        Walker(number, point, ridges, tol=tol, max_iter=max_iter, seed=seed)
        for number, point in enumerate(points)
    ]
    while walkers:
        yield from _round([walker for walker in walkers if walker.shape.is_known])
        for walker in walkers:
            if not walker.shape.is_known:
                yield walker.solve_alone()
        walkers = [walker for walker in walkers if not walker.is_done]


def _round(walkers: Sequence["Walker"]) -> Iterator[Found]:
    """Let every walker make a step, and yield what has become solutions by it."""
    if not walkers:
        return
    directions = [walker.direction() for walker in walkers]
    images = scores_of([walker.point.objective for walker in walkers], directions)
    for walker, direction, image in zip(walkers, directions, images, strict=True):
        walker.step(direction, image)
    make_gradients([walker.point for walker in walkers])
    for walker in walkers:
        yield from walker.judge()


def _start(objective: Objective, max_iter: int, seed: int) -> Floats:
    """Return weights from samples, smaller than the data by far; zeros where these are few."""
    w = np.zeros(objective.n_features)
    iteration = NewtonIteration(max_iter, seed + 1, Progress(objective, None))
    for sample in growing_samples(objective, seed):
        w = iteration.run(sample.at(w), START_TOL, careful=False).point.w
    return w


class Shape:
    """The Hessians of parts of a sample, without a ridge, factorised for one ridge after another.

    Attributes
    ----------
    is_current : bool
        Whether they were made where the walker is.
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
        """Whether there are Hessians: not where a sample would be most of the data."""
        return bool(self._parts)

    def renew(self, w: Floats) -> None:
        """Make the Hessians at w, if the sample says enough there."""
        self._ridge, self._factors = np.nan, None
        self._hessians = sampled_hessians(self._parts, w)
        self.is_current = True

    def with_ridge(self, ridge: float) -> PartsOfSample | None:
        """Return the factorised Hessians; None if the sample says too little."""
        if self._hessians and ridge != self._ridge:
            self._ridge, self._factors = ridge, parts_of_sample(self._hessians, ridge)
        return self._factors


class Walker:
    """One problem on its way along the ridges.

    Attributes
    ----------
    point : Point
        Where it is.
    shape : Shape
        Its Hessian.
    is_done : bool
        Whether it has come to the end.
    """

    def __init__(
        self, number: int, point: Point, ridges: Floats, *, tol: float, max_iter: int, seed: int
    ) -> None:
        self.shape = Shape(point, seed)
        self.is_done = False
        self._number = number
        self._ridges = ridges
        self._tol = tol
        self._max_iter = max_iter
        self._seed = seed
        self._kept = np.inf  # what the last step gained, by what it had promised
        self._begin(0, point)

    def _begin(self, step: int, point: Point) -> None:
        """Turn to the next ridge."""
        self.point = point
        self._step = step
        self._rounds = 0
        self._n_poor = 0
        self._is_stuck = False
        self._progress = Progress(point.objective, None)

    def direction(self) -> Floats:
        """Return a Newton direction; zero if no Hessian is known."""
        hessian = self._hessian
        return np.zeros_like(self.point.w) if hessian is None else hessian.direction(self.point)

    @property
    def _hessian(self) -> PartsOfSample | None:
        return self.shape.with_ridge(self.point.objective.ridge)

    def step(self, direction: Floats, image: Scores) -> None:
        """Go as far in a direction as it leads down."""
        self._rounds += 1
        self._promised = decrement(self.point, direction)
        step = line_search(self.point, direction, image, slope_tol=SLOPE_TOL)
        self._is_stuck = step is None
        if step is not None:
            self._kept = (self.point.value - step.value) / self._promised
            self.point = step

    def judge(self) -> Iterator[Found]:
        """Yield what has been solved, and be ready for the next step."""
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
        """Return how much the next step promises to gain; infinity if no Hessian is known."""
        return np.inf if self._hessian is None else decrement(self.point, self.direction())

    def solve_alone(self) -> Found:
        """Solve for the present ridge without the others."""
        iteration = NewtonIteration(self._max_iter, self._seed + 1, self._progress, may_ease=True)
        outcome = iteration.run(self.point, self._tol)
        self.point = outcome.point
        self.shape.is_current = False
        return self._found(self._progress.result(*outcome))

    def _found(self, result: SolverResult) -> Found:
        """Return a solution, and turn to the next ridge."""
        found = Found(self._number, self._step, result)
        self.is_done = self._step + 1 == len(self._ridges)
        if not self.is_done:
            step = self._step + 1
            self._begin(step, self.point.with_ridge(float(self._ridges[step])))
        return found

    def _estimate(self, left: float) -> float:
        """Return about how far above the optimum it is, by what a step promises."""
        return CAUTION * max(self._kept, 1.0) * left

    def _stop(self) -> tuple[StopReason | None, float]:
        """Return why to stop here, if there is a reason, and the estimate of F − F*."""
        estimate = self._estimate(self._left())
        if is_certified(self.point, self._tol):
            return StopReason.CERTIFIED, estimate
        enough = (self._tol if self._rounds else AT_ONCE * self._tol) * self.point.value
        if not KEPT[0] <= self._kept <= KEPT[1] or estimate > enough:
            return None, estimate
        if not self.shape.is_current:
            # Pairs that have lost their loss may hide what is left to gain from older Hessians.
            self.shape.renew(self.point.w)
            estimate = self._estimate(self._left())
        if self._hessian is not None:
            estimate += hidden_by_rounding(self.point, self._hessian, enough)
        return StopReason.ESTIMATED if estimate <= enough else None, estimate
