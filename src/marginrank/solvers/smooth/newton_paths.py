"""Newton's method on many problems at once, such as folds, each for decreasing ridges.

The problems have the same documents and differ in weights. Each goes from the solution for one
ridge to the solution for the next. In each *round* every problem makes one Newton step, and all of
them share the passes over the feature matrix X (*sweeps*). Steps are cheap:

* At the solution for one ridge, value and gradient for another are known without a sweep.
* All problems share the Hessian of a sample, or the Hessians of groups of documents, without a
  ridge. With any ridge added, this Hessian preconditions conjugate gradients, which share sweeps as
  well. It is renewed once the products since the last renewal have cost as much as a new one.
* An estimate is accepted if parts of a sample without a common document confirm it, or if further
  conjugate gradient steps prove that the quadratic model has little left to gain.
* If two successive ridges are so close that the predicted decrease is next to nothing, both have
  the same solution.

If such steps do not suffice, :mod:`~marginrank.solvers.smooth.newton` solves the problem.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import is_certified
from marginrank.objective.together import make_gradients, points_at
from marginrank.solvers.progress import Progress, check_magnitude
from marginrank.solvers.result import SolverResult
from marginrank.solvers.smooth.conjugate_directions import (
    Accuracy,
    PathDirection,
    solve_together,
)
from marginrank.solvers.smooth.estimates import decrement, decrement_bound, hidden_by_rounding
from marginrank.solvers.smooth.line_search import line_search
from marginrank.solvers.smooth.newton import CG_TOL, SAFETY, NewtonIteration, growing_samples
from marginrank.solvers.smooth.preconditioner import (
    Preconditioner,
    points_on_parts,
    stand_ins,
)
from marginrank.solvers.smooth.shared_hessian import HessianGroup, SharedHessian

CAUTION = 4.0  # factor on the decrement by a shared Hessian when it estimates F − F*
SLOPE_TOL = 0.2  # relative slope that ends a line search: the next direction corrects the rest
POOR = 0.5  # a step that leaves more than this share of its decrement is poor
PATIENCE = 2  # poor steps for one ridge before `newton` solves the problem
MAX_ROUNDS = 12  # rounds for one ridge before `newton` solves the problem
KEPT = (0.5, 2.0)  # actual / predicted gain of a step whose prediction can be trusted
AT_ONCE = 0.1  # the solution for the last ridge is kept if its estimate is below this share of tol
STEP_TOL = 0.01  # share of the decrement that a direction may miss
PROOF_TOL = 0.25  # share of the allowed gain that a proof may leave open
MAX_CHECK = 40  # products with parts of a sample that confirm an estimate
START_TOL = 1e-2  # tol on samples, for the first ridge


class PathSolution(NamedTuple):
    """The solution of problem number `problem` for the ridge with index `step`."""

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
    groups: Sequence[HessianGroup] = (),
) -> Iterator[PathSolution]:
    """Minimize several objectives for several ridges each; yield each solution when it is found.

    `reference` has all documents and a smooth loss; its samples provide the first weights. The
    `problems` are on the same documents. The `ridges` are descending, so the first problem is the
    easiest, and the solutions of one problem come in this order. The Hessian of each problem is a
    weighted sum over `groups`; by default, all documents are one group. The other parameters are as
    in :func:`~marginrank.solvers.smooth.newton.newton`.
    """
    first = float(ridges[0])
    w = _start(reference.with_ridge(first), max_iter, seed)
    starts = [problem.with_ridge(first) for problem in problems]
    points = points_at(starts, [w] * len(starts), [None] * len(starts))
    for point in points:
        check_magnitude(point)
    whole = HessianGroup(reference, np.ones(len(problems)))
    hessian = SharedHessian(reference, groups or [whole], seed)
    walkers = [
        _Walker(number, point, hessian, ridges, tol=tol, max_iter=max_iter, seed=seed)
        for number, point in enumerate(points)
    ]
    for walker in walkers:
        yield from walker.check()
    walkers = [walker for walker in walkers if not walker.is_done]
    while walkers:
        if hessian.is_available:
            yield from _round(walkers, hessian)
        else:
            for walker in walkers:
                yield walker.solve_alone()
        walkers = [walker for walker in walkers if not walker.is_done]


def _round(walkers: Sequence["_Walker"], hessian: SharedHessian) -> Iterator[PathSolution]:
    hessian.refresh([walker.point.w for walker in walkers])
    directions = solve_together(
        [walker.point for walker in walkers],
        [walker.preconditioner for walker in walkers],
        [walker.accuracy for walker in walkers],
        hessian.most_products,
    )
    # Do not count products of proofs: a proof takes about as many with any Hessian.
    steps = [d for w, d in zip(walkers, directions, strict=True) if not w.is_proving]
    hessian.count(max((direction.n_products for direction in steps), default=0))
    proven, moving = [], []
    for walker, direction in zip(walkers, directions, strict=True):
        if walker.is_proven(direction):
            walker.improve(direction)
            proven.append(walker)
        elif walker.is_undecided(direction):
            if walker.is_slow:
                yield walker.solve_alone()
        else:
            walker.step(direction)
            moving.append(walker)
    make_gradients([walker.point for walker in proven + moving])
    for walker in proven:
        yield from walker.finish()
    for walker in moving:
        yield from walker.finish_round()


def _start(objective: Objective, max_iter: int, seed: int) -> Floats:
    # Return the minimum on growing samples; zeros if there are too few documents for samples.
    w = np.zeros(objective.n_features)
    iteration = NewtonIteration(max_iter, seed + 1, Progress(objective, None))
    for sample in growing_samples(objective, seed):
        w = iteration.run(sample.at(w), START_TOL, careful=False).point.w
    return w


class _Walker:
    """One objective that is minimized for each ridge in turn."""

    def __init__(
        self,
        number: int,
        point: Point,
        hessian: SharedHessian,
        ridges: Floats,
        *,
        tol: float,
        max_iter: int,
        seed: int,
    ) -> None:
        self.is_done = False
        self._number = number
        self._hessian = hessian
        self._ridges = ridges
        self._tol = tol
        self._max_iter = max_iter
        self._seed = seed
        self._parts = stand_ins(point.objective, seed)
        self._kept = np.inf  # actual / predicted gain of the last step
        self._missed = 1.0  # decrement of the last step / decrement by the preconditioner
        self._estimate = np.inf  # estimate of F − F*
        self._begin(0, point)

    def _begin(self, step: int, point: Point) -> None:
        # Start with the next ridge.
        self.point = point
        self._step = step
        self._rounds = 0
        self._n_poor = 0
        self._progress = Progress(point.objective, None)
        self.is_proving = False  # whether the next direction must prove that little is left to gain

    @property
    def preconditioner(self) -> Preconditioner:
        return self._hessian.of(self._number, self.point.objective.ridge)

    @property
    def accuracy(self) -> Accuracy:
        """The accuracy that the next Newton direction of this problem must have."""
        if self.is_proving:
            return Accuracy(0.0, PROOF_TOL * self._allowed, is_proven=True)
        return Accuracy(STEP_TOL, CG_TOL * self._allowed, is_proven=False)

    @property
    def _allowed(self) -> float:
        return (self._tol if self._rounds else AT_ONCE * self._tol) * self.point.value

    def is_proven(self, direction: PathDirection) -> bool:
        """Return True if a Newton direction proves that `tol` is reached.

        Sets the estimate of F − min F.
        """
        if not self.is_proving:
            return False
        return self._is_close(direction.decrement + direction.bound)

    def is_undecided(self, direction: PathDirection) -> bool:
        """Return True if a proof of convergence was attempted but took too many Hessian products.

        `direction` is the Newton direction of the attempt. If so, this also counts as a poor round,
        after which the Hessian is computed again.
        """
        is_undecided = self.is_proving and direction.bound > PROOF_TOL * self._allowed
        self._count_poor(is_undecided)
        return is_undecided

    def _count_poor(self, is_poor: bool) -> None:
        # Count poor rounds. A poor step shows that the shared Hessian is out of date.
        if is_poor:
            self._n_poor += 1
            self._hessian.expire()

    def _is_close(self, bound: float) -> bool:
        # `bound` is on the decrease of the quadratic model. Updates the estimate.
        self._estimate = SAFETY * self._excess * bound
        self._estimate += hidden_by_rounding(self.point, self.preconditioner, self._allowed)
        return self._estimate <= self._allowed

    @property
    def _excess(self) -> float:
        # A step that gained more than predicted shows a Hessian that is too large by that factor.
        return max(self._kept, 1.0)

    def improve(self, direction: PathDirection) -> None:
        """Move the point along a Newton direction that was computed for a proof of convergence.

        The step costs little, and metrics of rankings are sensitive to small changes of the
        weights.
        """
        step = line_search(self.point, direction.vector, direction.scores, slope_tol=SLOPE_TOL)
        self._direction = direction
        self._is_stuck = step is None
        self.point = self.point if step is None else step

    def step(self, direction: PathDirection) -> None:
        self._rounds += 1
        self.is_proving = False
        self._direction = direction
        # Conjugate gradients show how much the preconditioner misses.
        if direction.first > 0.0:
            self._missed = max(direction.decrement / direction.first, 1.0)
        step = line_search(self.point, direction.vector, direction.scores, slope_tol=SLOPE_TOL)
        self._is_stuck = step is None
        if step is not None:
            self._kept = (self.point.value - step.value) / direction.decrement
            self.point = step

    def finish_round(self) -> Iterator[PathSolution]:
        """Yield the solutions that the last Newton step has reached, for one or more ridges."""
        if self._is_stuck:
            yield self.solve_alone()
            return
        left = self._left()
        self._progress.record(self.point, left, self._direction.n_products)
        self._count_poor(not left <= POOR * CAUTION * self._direction.decrement)
        step = self._step
        yield from self.check()
        if self.is_slow and not self.is_proving and self._step == step and not self.is_done:
            yield self.solve_alone()

    @property
    def is_slow(self) -> bool:
        return self._n_poor >= PATIENCE or self._rounds >= MAX_ROUNDS

    def finish(self) -> Iterator[PathSolution]:
        """Yield the solution for the current ridge, which is the weight of the l2 penalty.

        Also yield a solution for each of the next ridges for which the same w is within `tol`.
        """
        if not self._is_stuck:
            self._progress.record(self.point, self._estimate, self._direction.n_products)
        yield self._found(self._progress.result(self.point, self._estimate, StopReason.ESTIMATED))
        yield from self.check()

    def check(self) -> Iterator[PathSolution]:
        """Yield solutions for the current and next ridges as long as the current w is within `tol`.

        If an estimate says that it is, but a check does not confirm that, the next Newton direction
        must prove it.
        """
        while not self.is_done:
            if is_certified(self.point, self._tol):
                stop = StopReason.CERTIFIED
                self._estimate = self._left()
            elif KEPT[0] <= self._kept <= KEPT[1] and self._left() <= self._allowed:
                stop = StopReason.ESTIMATED
                if not self._is_confirmed():
                    self.is_proving = True
                    return
            else:
                return
            yield self._found(self._progress.result(self.point, self._estimate, stop))

    def _left(self) -> float:
        # A cautious prediction of the gain of further steps.
        direction = self.preconditioner.direction(self.point)
        return CAUTION * self._excess * self._missed * decrement(self.point, direction)

    def _is_confirmed(self) -> bool:
        """Return True if two disjoint parts of a sample also predict a decrease of at most tol.

        A document with huge values may make the shared Hessian far too large in some direction. At
        most one of the parts holds it. Updates the estimate.
        """
        ridge = self.point.objective.ridge
        parts = points_on_parts([part.with_ridge(ridge) for part in self._parts], self.point.w)
        if not parts:
            return False
        gradient, enough = self.point.gradient, PROOF_TOL * self._allowed
        bounds = [
            decrement_bound(part, gradient, self.preconditioner, enough, MAX_CHECK)
            for part in parts
        ]
        return self._is_close(sum(bounds) / len(bounds))

    def solve_alone(self) -> PathSolution:
        iteration = NewtonIteration(self._max_iter, self._seed + 1, self._progress, may_ease=True)
        outcome = iteration.run(self.point, self._tol)
        self.point = outcome.point
        return self._found(self._progress.result(*outcome))

    def _found(self, result: SolverResult) -> PathSolution:
        # Also starts with the next ridge.
        found = PathSolution(self._number, self._step, result)
        self.is_done = self._step + 1 == len(self._ridges)
        if not self.is_done:
            step = self._step + 1
            self._begin(step, self.point.with_ridge(float(self._ridges[step])))
        return found
