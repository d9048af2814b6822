"""Solver for the hinge loss with weights in a cone, or with a penalty on groups of weights.

The smoothed problems of :mod:`marginrank.solvers.hinge.widths`, one per width, are solved in a cone
by :mod:`~marginrank.solvers.cone.pivoting` from face to face (on a face, some conditions Gu ≥ 0 are
equations), and with groups by :func:`~marginrank.solvers.sparse.group_newton.group_newton`.
"""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.cones import Cone, ConePoint
from marginrank.objective.derived_point import StructuredPoint
from marginrank.objective.groups import GroupPoint, Groups
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.solvers.cone.pivoting import FaceOptimum, Pivoting
from marginrank.solvers.hinge.widths import Stage, Widths
from marginrank.solvers.progress import Progress
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.sparse.group_newton import group_newton

FIRST_TOL = 1e-3  # for the first width, whose error is larger than this
FAILURES = 4  # problems in a row that were far from solved or did not lower the gap: then stop
STUCK = 0.99  # a gap above this share of the previous one counts as not lowered
CONE_ITERATIONS = 500  # Newton iterations per width, over all faces
GROUP_ITERATIONS = 50  # Newton iterations per width


def structured_smoothing(
    objective: Objective,
    *,
    regularizer: Cone | Groups,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimize an objective with a hinge loss over a cone, or with a penalty on groups.

    The other parameters are as in :func:`~marginrank.solvers.hinge.smoothing.smoothing`.
    """
    progress = Progress(objective, callback)
    widths: _StructuredWidths
    if isinstance(regularizer, Cone):
        widths = _ConeWidths(objective, regularizer, w0, tol, seed)
    else:
        widths = _GroupWidths(objective, regularizer, w0, tol, seed)
    return widths.minimize(progress, max_iter)


class SmoothOptimum(NamedTuple):
    """The optimum of a smoothed problem, with its estimated distance to the minimum."""

    point: StructuredPoint
    estimate: float
    n_inner: int


class _StructuredWidths(Widths[StructuredPoint]):
    """Solves smoothed problems in a cone, or with a penalty on groups."""

    def __init__(self, objective: Objective, tol: float) -> None:
        super().__init__(objective, self._wrap(objective.at_zero()), tol)
        self._allowed = FIRST_TOL * self.best.value
        self._before: tuple[float, Floats] | None = None
        self._failures = 0
        self._gap_before = np.inf

    @abstractmethod
    def _minimize(self, objective: Objective, tol: float) -> SmoothOptimum:
        """Return the optimum of a smoothed objective, starting from the previous optimum."""

    def _inside(self, w: Floats) -> Floats:
        """Return the nearest feasible weights."""
        return w

    def _solve(self) -> Stage[StructuredPoint]:
        tol = max(self._allowed / self.best.value, PRECISION)
        smooth, estimate, n_inner = self._minimize(self._smoothed(), tol)
        _, found = self._bound_at(smooth.base, smooth)
        self._extrapolate(smooth.w)
        band = max(self.best.value - found.if_solved, 0.0)
        estimate = band + found.rounding + estimate
        return Stage(self.best, smooth, found.plane, band, found.rounding, estimate, n_inner)

    def _extrapolate(self, w: Floats) -> None:
        # If few pairs are left in the band, w is linear in the width: evaluate its limit at zero.
        if self._before is not None:
            width, last = self._before
            step = self._width / (width - self._width)
            self._offer(self._objective.at(self._inside(w + step * (w - last))))
        self._before = self._width, w

    def _shrink(self, stage: Stage[StructuredPoint]) -> bool:
        """Choose the next width; return False also after FAILURES problems without progress."""
        unsolved = stage.estimate - stage.band - stage.rounding > self.gap
        is_stuck = self.gap > STUCK * self._gap_before
        self._failures = self._failures + 1 if unsolved or is_stuck else 0
        self._gap_before = self.gap
        return self._failures < FAILURES and super()._shrink(stage)


class _ConeWidths(_StructuredWidths):
    """Solves smoothed problems in a cone by pivoting, each from the face of the previous one."""

    def __init__(
        self, objective: Objective, cone: Cone, w0: Floats | None, tol: float, seed: int
    ) -> None:
        self._cone = cone
        self._w0 = w0
        self._pivoting = Pivoting(cone, newton, CONE_ITERATIONS, seed)
        super().__init__(objective, tol)

    def _begin(self) -> None:
        if self._w0 is not None:
            self._pivoting.begin(self._w0)

    def _minimize(self, objective: Objective, tol: float) -> SmoothOptimum:
        faces: list[FaceOptimum] = []
        estimate, _ = self._pivoting.run(objective, tol, faces.append)
        assert self._pivoting.best is not None
        return SmoothOptimum(self._pivoting.best, estimate, sum(face.n_inner for face in faces))

    def _wrap(self, point: Point) -> ConePoint:
        return ConePoint(self._cone, point)

    def _inside(self, w: Floats) -> Floats:
        return self._cone.nearest(w)[0]


class _GroupWidths(_StructuredWidths):
    """Solves smoothed problems with groups, each from the optimum of the previous one."""

    def __init__(
        self, objective: Objective, groups: Groups, w0: Floats | None, tol: float, seed: int
    ) -> None:
        self._groups = groups
        self._w = w0
        self._seed = seed
        super().__init__(objective, tol)

    def _minimize(self, objective: Objective, tol: float) -> SmoothOptimum:
        result = group_newton(
            objective,
            regularizer=self._groups,
            w0=self._w,
            tol=tol,
            max_iter=GROUP_ITERATIONS,
            seed=self._seed,
        )
        if result.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        self._w = result.w
        point = objective.at(result.w, result.scores, accumulated_update=result.accumulated_update)
        return SmoothOptimum(self._wrap(point), result.estimate, result.n_iter)

    def _wrap(self, point: Point) -> GroupPoint:
        return GroupPoint(self._groups, point)
