"""Minimization of a smooth loss with linear constraints Gu ≥ 0, by block principal pivoting.

The set of u with Gu ≥ 0 is a cone. Each step minimizes the objective on a face of the cone: some
constraints are equations (*active*), the others are ignored. This is an unconstrained problem, for
any solver. An ignored constraint is wrong if it is violated; an active one is wrong if its
multiplier is negative. All wrong constraints are switched (between active and ignored) at once, as
long as their number falls, with a few exceptions. After that only the last wrong one is switched in
each step. This terminates because F is strictly convex (Murty, 1974; Habetler and Kostreva, 1978,
for functions that are not quadratic; Júdice and Pires, 1994, for blocks).

Every step also projects the minimum on its face onto the cone. The certificate of the projection is
a lower bound on the constrained minimum of F.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.cones import Cone, ConePoint
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.objective.protocols import meets
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, SolverResult

CHANCES = 3  # block steps allowed without a decrease in the number of wrong constraints
FIRST_TOL = 1e-3  # tolerance on the first face, which is rarely the right one
FINER = 0.01  # factor on the tolerance when the face seems right but the gap is too large
LAST_TOL = 1e-4  # smallest tolerance on a face, relative to tol
PATIENCE = 50  # faces without a smaller gap: then rounding decides which constraints are wrong

Minimize = Callable[..., SolverResult]


def smooth_in_cone(
    objective: Objective,
    *,
    regularizer: Cone,
    minimize: Minimize,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimize an objective with a smooth loss over weights with linear constraints (a cone).

    A face of the cone is the set of weights on which some constraints are equations. `minimize`
    solves the problem on a face. `max_iter` limits the number of faces and of iterations on all of
    them, and `callback` is called once per face. The other parameters are as in
    :func:`~marginrank.solvers.smooth.newton.newton`.
    """
    progress = Progress(objective, callback)
    pivoting = Pivoting(regularizer, minimize, max_iter, seed)
    if w0 is not None:
        pivoting.begin(w0)

    def record(step: FaceOptimum) -> None:
        progress.record(step.inside, step.estimate, step.n_inner, gap=pivoting.gap)

    try:
        estimate, stop = pivoting.run(objective, tol, record)
    except KeyboardInterrupt:
        estimate, stop = np.inf, StopReason.INTERRUPTED
    best = pivoting.best
    if best is None:  # interrupted on the first face
        w = pivoting.w
        nearest = np.zeros(objective.n_features) if w is None else regularizer.nearest(w)[0]
        best = ConePoint(regularizer, objective.at(nearest))
    return progress.result(best, estimate, stop, gap=min(best.gap, pivoting.gap))


class FaceOptimum(NamedTuple):
    """The minimum with some constraints as equations, and its projection onto the cone."""

    free: Point  # may be outside of the cone
    inside: ConePoint  # the nearest point of the cone
    held_inside: Booleans  # the constraints that are active at `inside`
    estimate: float
    stop: StopReason
    n_inner: int


class Pivoting:
    """The search for the linear constraints that are active at the minimum of an objective.

    Several objectives can be minimized one after the other; the next one starts with the active
    constraints and the weights of the last one.
    """

    def __init__(self, cone: Cone, minimize: Minimize, max_iter: int, seed: int) -> None:
        self.w: Floats | None = None  # initial weights of the next face; None for zero
        self.best: ConePoint | None = None  # the lowest point of the cone so far
        self.lower = 0.0  # certified lower bound on F*
        self._cone = cone
        self._minimize = minimize
        self._max_iter = max_iter
        self._seed = seed
        self._held = np.zeros(cone.n_constraints, dtype=bool)

    def begin(self, w: Floats) -> None:
        """Set the initial weights to w, projected to satisfy the constraints."""
        self.w, self._held = self._cone.nearest(w)

    @property
    def gap(self) -> float:
        """Proven upper bound on F − min F at the best weights so far."""
        if self.best is None:
            return np.inf
        bounded = max(self.best.value - self.lower, 0.0) + self.best.base.rounding
        return min(bounded, self.best.gap)

    def run(
        self, objective: Objective, tol: float, record: Callable[[FaceOptimum], None]
    ) -> tuple[float, StopReason]:
        """Minimize `objective` on the cone; return an estimate of F − min F, and the stop reason.

        Sets the attributes w, best and lower. `record` is called with the result for each set of
        active constraints.
        """
        self.best, self.lower = None, 0.0
        exchange = _Exchange(self._cone.n_constraints)
        finest = LAST_TOL * tol
        accuracy = max(tol, FIRST_TOL) if self.w is None else tol
        estimate, closest, idle = np.inf, np.inf, 0
        left = self._max_iter
        while left > 0:
            is_first = self.w is None
            step = self._solve(objective, accuracy, left)
            left -= max(step.n_inner, 1)
            estimate = step.estimate
            best = self._offer(step.inside)
            record(step)
            if meets(tol, best.value, self.gap):
                return min(estimate, self.gap), StopReason.CERTIFIED
            wrong = self._wrong(step.free)
            idle = 0 if self.gap < closest else idle + 1
            closest = min(closest, self.gap)
            if not wrong.any():
                if accuracy <= finest or step.stop is StopReason.PRECISION:
                    is_close = estimate <= tol * best.value
                    return estimate, StopReason.ESTIMATED if is_close else StopReason.PRECISION
                accuracy = max(FINER * min(accuracy, tol), finest)
            elif idle > PATIENCE:
                return self.gap, StopReason.PRECISION
            elif is_first:
                # The constraints that are active at the projection are a better guess than all
                # violated constraints.
                self._held = step.held_inside
            else:
                self._held, is_better = exchange.next(self._held, wrong)
                accuracy = accuracy if is_better else max(FINER * accuracy, finest)
        return estimate, StopReason.MAX_ITER

    def _offer(self, point: ConePoint) -> ConePoint:
        # Updates best and lower.
        if self.best is None or point.value < self.best.value:
            self.best = point
        self.lower = max(self.lower, point.value - point.gap)
        return self.best

    def _solve(self, objective: Objective, tol: float, max_iter: int) -> FaceOptimum:
        # Updates w.
        face = self._cone.face(objective, self._held)
        if face.objective.n_features == 0:
            free, found = objective.at_zero(), None
        else:
            w0 = None if self.w is None else face.basis.T @ self.w
            options = {"tol": tol, "max_iter": max_iter, "seed": self._seed}
            found = self._minimize(face.objective, w0=w0, **options)
            free = start(objective, face.basis @ found.w)
        self.w = free.w
        if found is not None and found.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        nearest, held = self._cone.nearest(free.w)
        is_inside = np.array_equal(nearest, free.w)
        inside = ConePoint(self._cone, free if is_inside else objective.at(nearest, like=free))
        outside = max(inside.value - free.value, 0.0)
        if found is None:
            return FaceOptimum(free, inside, held, outside, StopReason.CERTIFIED, 0)
        return FaceOptimum(free, inside, held, found.estimate + outside, found.stop, found.n_iter)

    def _wrong(self, point: Point) -> Booleans:
        # Violated constraints, and active constraints with a negative multiplier.
        size = PRECISION * point.w.size
        rounding = point.gradient_rounding + size * float(np.linalg.norm(point.gradient))
        pulled = self._cone.forces(point.gradient, self._held) < -rounding
        fallen = self._cone.constraints(point.w) < -size * float(np.linalg.norm(point.w))
        wrong: Booleans = np.where(self._held, pulled, fallen)
        return wrong


class _Exchange:
    """The rule that chooses which constraints to treat as equations next.

    It first switches all wrong constraints at once, later one at a time.
    """

    def __init__(self, n_constraints: int) -> None:
        self._fewest = n_constraints + 1
        self._chances = CHANCES

    def next(self, held: Booleans, wrong: Booleans) -> tuple[Booleans, bool]:
        """Return the constraints to treat as equations next, as a mask.

        `held` are the current equations, and `wrong` the constraints that must change: violated
        ones, and equations with a negative multiplier. Also return whether there are fewer wrong
        ones than ever before.
        """
        n_wrong = int(np.count_nonzero(wrong))
        is_better = n_wrong < self._fewest
        if is_better:
            self._fewest, self._chances = n_wrong, CHANCES
        elif self._chances > 0:
            self._chances -= 1
        else:
            last = int(np.flatnonzero(wrong)[-1])
            wrong = np.arange(wrong.size) == last
        return held ^ wrong, is_better
