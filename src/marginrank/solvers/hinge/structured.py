"""Solver for the hinge loss with linear constraints, a group penalty or an l1 norm, by smoothing.

The hinge is replaced by smooth losses that differ from it on an interval of decreasing width, see
:mod:`marginrank.solvers.hinge.widths`. The smooth problems are solved by other solvers: with linear
constraints Gu ≥ 0 (a cone) by :mod:`~marginrank.solvers.cone.pivoting`, with groups by
:func:`~marginrank.solvers.sparse.group_newton.group_newton`, and with an l1 norm by
:mod:`~marginrank.solvers.sparse.proximal_newton`.

With an l1 norm the problem is a linear program, except for a ridge: the solution is linear in the
width if the width is small, so it is extrapolated to zero.
"""

from abc import abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite, L1Point, scaled_bound
from marginrank.objective.cones import Cone, ConePoint
from marginrank.objective.derived_point import DerivedPoint
from marginrank.objective.groups import GroupPoint, Groups
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.objective.regularizers import L1Regularizer
from marginrank.solvers.cone.pivoting import FaceOptimum, Pivoting
from marginrank.solvers.hinge.widths import LowerBound, Stage, Widths, ridge_bound
from marginrank.solvers.progress import Progress
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.sparse.group_newton import group_newton
from marginrank.solvers.sparse.proximal_newton import ProximalNewton

FIRST_TOL = 1e-3  # tol for the first width, whose smoothing error is larger than this
FAILURES = 4  # problems in a row that were far from solved or did not lower the gap: then stop
STUCK = 0.99  # a gap above this share of the previous one counts as not lowered
CONE_ITERATIONS = 500  # Newton iterations per width, over all faces
GROUP_ITERATIONS = 50  # Newton iterations per width
SPARSE_ITERATIONS = 100  # proximal Newton iterations per width


def structured_smoothing(
    objective: Objective,
    *,
    regularizer: Cone | Groups | L1Regularizer,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimize an objective with a hinge loss and a regularizer or linear constraints.

    `regularizer` is the regularizer or the constraints. The other parameters are as in
    :func:`~marginrank.solvers.hinge.smoothing.smoothing`.
    """
    progress = Progress(objective, callback)
    widths: _StructuredWidths[Any]
    if isinstance(regularizer, Cone):
        widths = _ConeWidths(objective, regularizer, w0, tol, seed)
    elif isinstance(regularizer, L1Regularizer):
        widths = _SparseWidths(objective, regularizer, w0, tol, seed)
    else:
        widths = _GroupWidths(objective, regularizer, w0, tol, seed)
    return widths.minimize(progress, max_iter)


P = TypeVar("P", bound=DerivedPoint)


class SmoothOptimum(NamedTuple, Generic[P]):
    """The approximate minimum of a smoothed hinge problem, and an estimate of its error."""

    point: P
    estimate: float
    n_inner: int


class _StructuredWidths(Widths[P]):
    """Base class: solves smoothed hinge problems with constraints or a regularizer."""

    def __init__(self, objective: Objective, tol: float) -> None:
        super().__init__(objective, self._wrap(objective.at_zero()), tol)
        self._allowed = FIRST_TOL * self.best.value
        self._before: tuple[float, Floats] | None = None
        self._failures = 0
        self._gap_before = np.inf

    @abstractmethod
    def _minimize(self, objective: Objective, tol: float) -> SmoothOptimum[P]:
        """Return the minimum of a smoothed objective plus regularizer, from the last solution."""

    def _inside(self, w: Floats) -> Floats:
        """Return the weights nearest to w that satisfy the constraints of the regularizer."""
        return w

    def _solve(self) -> Stage[P]:
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

    def _shrink(self, stage: Stage[P]) -> bool:
        """Set the next width; return False to stop, as after FAILURES failed problems in a row."""
        unsolved = stage.estimate - stage.band - stage.rounding > self.gap
        is_stuck = self.gap > STUCK * self._gap_before
        self._failures = self._failures + 1 if unsolved or is_stuck else 0
        self._gap_before = self.gap
        return self._failures < FAILURES and super()._shrink(stage)


class _ConeWidths(_StructuredWidths[ConePoint]):
    """Solves smoothed hinge problems with linear constraints, each from the last solution."""

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

    def _minimize(self, objective: Objective, tol: float) -> SmoothOptimum[ConePoint]:
        faces: list[FaceOptimum] = []
        estimate, _ = self._pivoting.run(objective, tol, faces.append)
        assert self._pivoting.best is not None
        return SmoothOptimum(self._pivoting.best, estimate, sum(face.n_inner for face in faces))

    def _lower_bound(self, base: Point, edges: Point, smooth: ConePoint) -> LowerBound:
        return ridge_bound(base, edges, smooth)

    def _wrap(self, point: Point) -> ConePoint:
        return ConePoint(self._cone, point)

    def _inside(self, w: Floats) -> Floats:
        return self._cone.nearest(w)[0]


class _GroupWidths(_StructuredWidths[GroupPoint]):
    """Solves smoothed hinge problems with a group penalty, each from the last solution."""

    def __init__(
        self, objective: Objective, groups: Groups, w0: Floats | None, tol: float, seed: int
    ) -> None:
        self._groups = groups
        self._w = w0
        self._seed = seed
        super().__init__(objective, tol)

    def _minimize(self, objective: Objective, tol: float) -> SmoothOptimum[GroupPoint]:
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

    def _lower_bound(self, base: Point, edges: Point, smooth: GroupPoint) -> LowerBound:
        return ridge_bound(base, edges, smooth)

    def _wrap(self, point: Point) -> GroupPoint:
        return GroupPoint(self._groups, point)


class _SparseWidths(_StructuredWidths[L1Point]):
    """Solves smoothed hinge problems with an l1 norm, each from the last solution."""

    def __init__(
        self,
        objective: Objective,
        regularizer: L1Regularizer,
        w0: Floats | None,
        tol: float,
        seed: int,
    ) -> None:
        self._regularizer = regularizer
        self._last = None if w0 is None else objective.at(regularizer.inside(w0))
        self._seed = seed
        super().__init__(objective, tol)

    def _is_solved(self) -> bool:
        return self.best.composite.is_solved(self.best.value, self.gap, self._tol)

    def _solve(self) -> Stage[L1Point]:
        stage = super()._solve()
        # Sparse fits stop on a proven bound only.
        return stage._replace(estimate=max(stage.estimate, self.gap))

    def _minimize(self, objective: Objective, tol: float) -> SmoothOptimum[L1Point]:
        solver = ProximalNewton(objective, max_iter=SPARSE_ITERATIONS, seed=self._seed)
        start_at = None if self._last is None else objective.at_point(self._last)
        result = solver.solve(self._regularizer, start_at=start_at, tol=tol)
        if result.stop is StopReason.INTERRUPTED or solver.point is None:
            raise KeyboardInterrupt
        self._last = solver.point.base
        return SmoothOptimum(solver.point, result.gap, result.n_iter)

    def _lower_bound(self, base: Point, edges: Point, smooth: L1Point) -> LowerBound:
        plane = 2.0 * base.loss_value - edges.loss_value
        along = float(base.gradient @ base.w)
        scale, bound = scaled_bound(along - plane, 0.0, self._regularizer.ray(base.gradient))
        rounding = 2.0 * base.sum_rounding + edges.sum_rounding + 2.0 * edges.score_rounding
        rounding += PRECISION * (abs(plane) + abs(along) + smooth.penalty)
        rounding *= scale
        return LowerBound(plane, bound - rounding, plane + smooth.penalty, scale, rounding)

    def _wrap(self, point: Point) -> L1Point:
        return Composite(point.objective, self._regularizer).wrap(point)

    def _inside(self, w: Floats) -> Floats:
        return self._regularizer.inside(w)
