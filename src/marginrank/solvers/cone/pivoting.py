"""Block principal pivoting: which conditions of a cone are equations at the optimum.

Each step solves the problem on a face of the cone, where some conditions are equations and the
others are left out: an ordinary problem, for any solver. Where a condition that was left out does
not hold, it becomes an equation; where one holds the weights back from what they want, it is left
out. All change at once as long as that makes fewer of them wrong, for a while if it does not; then
one by one, the last of them first. This comes to an end, as F is strictly convex (Murty, 1974;
Habetler and Kostreva, 1978, where it is not quadratic; Júdice and Pires, 1994, for blocks).

Every step also gives a point of the cone, the projection of what was found, and a lower bound on
the optimum by its certificate.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.cones import Cone, ConePoint
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.objective.protocols import meets
from marginrank.solvers.progress import start
from marginrank.solvers.result import SolverResult

CHANCES = 3  # steps that may leave as many conditions wrong as before
FIRST_TOL = 1e-3  # on the first face
FINER = 0.01  # by which the tolerance on a face falls when the face seems right
LAST_TOL = 1e-4  # of the tolerance: the least on a face
PATIENCE = 50  # faces without a smaller gap

Minimise = Callable[..., SolverResult]


class FaceOptimum(NamedTuple):
    """What was found on a face."""

    free: Point  # the optimum of the face, which may be outside of the cone
    inside: ConePoint  # the nearest point of the cone
    held_inside: Booleans  # the conditions that hold that
    estimate: float
    stop: StopReason
    n_inner: int


class Pivoting:
    """The search for the right face, on one objective after another.

    Attributes
    ----------
    w : ndarray or None
        Where the next face is entered; None for nowhere yet.
    best : ConePoint or None
        The lowest point of the cone so far, of the last objective.
    lower : float
        A certified lower bound on its optimum.
    """

    def __init__(self, cone: Cone, minimise: Minimise, max_iter: int, seed: int) -> None:
        self.w: Floats | None = None
        self.best: ConePoint | None = None
        self.lower = 0.0
        self._cone = cone
        self._minimise = minimise
        self._max_iter = max_iter
        self._seed = seed
        self._held = np.zeros(cone.n_conditions, dtype=bool)

    def begin(self, w: Floats) -> None:
        """Enter by some weights."""
        self.w, self._held = self._cone.nearest(w)

    @property
    def gap(self) -> float:
        """The certified bound on how far the best point is above the optimum."""
        if self.best is None:
            return np.inf
        bounded = max(self.best.value - self.lower, 0.0) + self.best.base.rounding
        return min(bounded, self.best.gap)

    def run(
        self, objective: Objective, tol: float, tell: Callable[[FaceOptimum], None]
    ) -> tuple[float, StopReason]:
        """Minimise an objective; return an estimate of how far from the optimum, and why it ended.

        Sets: w, best, lower
        """
        self.best, self.lower = None, 0.0
        exchange = _Exchange(self._cone.n_conditions)
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
            tell(step)
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
                self._held = step.held_inside
            else:
                self._held, is_better = exchange.next(self._held, wrong)
                accuracy = accuracy if is_better else max(FINER * accuracy, finest)
        return estimate, StopReason.MAX_ITER

    def _offer(self, point: ConePoint) -> ConePoint:
        """Return the lowest point, and keep it and the highest bound.

        Sets: best, lower
        """
        if self.best is None or point.value < self.best.value:
            self.best = point
        self.lower = max(self.lower, point.value - point.gap)
        return self.best

    def _solve(self, objective: Objective, tol: float, max_iter: int) -> FaceOptimum:
        """Find the optimum of the face.

        Sets: w
        """
        face = self._cone.face(objective, self._held)
        if face.objective.n_features == 0:
            free, found = objective.at_zero(), None
        else:
            w0 = None if self.w is None else face.basis.T @ self.w
            options = {"tol": tol, "max_iter": max_iter, "seed": self._seed}
            found = self._minimise(face.objective, w0=w0, **options)
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
        """Tell which conditions are wrong: those that do not hold, and those that hold back."""
        size = PRECISION * point.w.size
        rounding = point.gradient_rounding + size * float(np.linalg.norm(point.gradient))
        pulled = self._cone.forces(point.gradient, self._held) < -rounding
        fallen = self._cone.conditions(point.w) < -size * float(np.linalg.norm(point.w))
        wrong: Booleans = np.where(self._held, pulled, fallen)
        return wrong


class _Exchange:
    """Which conditions change sides."""

    def __init__(self, n_conditions: int) -> None:
        self._fewest = n_conditions + 1
        self._chances = CHANCES

    def next(self, held: Booleans, wrong: Booleans) -> tuple[Booleans, bool]:
        """Return which conditions are equations next, and whether fewer than ever were wrong."""
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
