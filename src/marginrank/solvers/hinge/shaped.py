"""The hinge loss with weights in a cone, or with a penalty on groups: problems of shrinking width.

As in :mod:`marginrank.solvers.hinge.smoothing`, slopes of a smoothed loss make a plane P below the
hinge loss. Smoothed problems are solved by another method, which tells what its certificate of the
smoothed problem at u is made of: r, which is zero at the optimum, and a slack. With a penalty Ψ(u)
that is zero in a cone, and what r leaves of u, ρu − r, every multiple 0 ≤ τ ≤ 1 of the plane says

    F* ≥ τ (P(u) + ρ‖u‖² + Ψ(u) − rᵀu − slack) − ½τ² ‖ρu − r‖² / ρ.
"""

from typing import NamedTuple, Protocol

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.certificates import meets
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.solvers.hinge.smoothing import (
    BAND_SHARE,
    FIRST_TOL,
    FIRST_WIDTH,
    GRADIENT_SHARE,
    ROUND_UP,
    SHRINK,
    best_multiple,
    halves,
    solved_bound,
)
from marginrank.solvers.progress import Progress, Reached
from marginrank.solvers.result import Callback, SolverResult

FAILURES = 4  # smoothed problems in a row that were not solved by far, or did not help
STUCK = 0.99  # of the gap for the last width: more is no help


class ShapedPoint(Reached, Protocol):
    """A point in a cone, or with a penalty."""

    @property
    def point(self) -> Point:
        """The point of the objective."""

    @property
    def penalty(self) -> float:
        """Ψ(u)."""

    @property
    def slack(self) -> float:
        """What the certificate has beside the square of the gradient."""

    @property
    def gradient_rounding(self) -> float:
        """How far the gradient may be off, as a length."""


class Found(NamedTuple):
    """The optimum of a smooth problem."""

    point: ShapedPoint
    estimate: float
    n_inner: int


class Method(Protocol):
    """What minimises one smooth objective after another."""

    def begin(self, w: Floats) -> None:
        """Start the next one from some weights."""

    def minimise(self, objective: Objective, tol: float) -> Found:
        """Minimise an objective, from the optimum of the last one."""

    def wrap(self, point: Point) -> ShapedPoint:
        """Return a point with its penalty."""

    def inside(self, w: Floats) -> Floats:
        """Return the nearest weights that are allowed."""


class Stage(NamedTuple):
    """The minimum for one width."""

    smooth: ShapedPoint
    band: float  # what the band adds to the gap
    rounding: float  # of the lower bound
    estimate: float


def shaped_hinge(
    objective: Objective,
    *,
    method: Method,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a hinge loss, in a cone or with a penalty on groups.

    Parameters
    ----------
    objective : Objective
        What to minimise; its loss is a sum of hinges.
    method : Method
        What minimises smoothed objectives there.
    w0 : ndarray, optional
        Where to start; zero by default.
    tol : float
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int
        Limit on the number of widths.
    callback : callable, optional
        Called with each :class:`~marginrank.models.fit_report.Iteration`, one a width.
    """
    progress = Progress(objective, callback)
    run = _Widths(objective, method, w0, tol)
    stop = StopReason.CERTIFIED if run.best.value == 0.0 else StopReason.MAX_ITER
    estimate = run.gap if run.best.value == 0.0 else np.inf
    try:
        for _ in range(0 if stop is StopReason.CERTIFIED else max_iter):
            stage = run.solve()
            estimate = stage.estimate
            progress.record(
                run.best, estimate, run.n_inner, gap=run.gap, gradient=stage.smooth.gradient
            )
            if meets(tol, run.best.value, run.gap):
                stop = StopReason.CERTIFIED
                break
            if estimate <= tol * run.best.value:
                stop = StopReason.ESTIMATED
                break
            if not run.shrink(stage):
                stop = StopReason.PRECISION
                break
    except KeyboardInterrupt:
        stop = StopReason.INTERRUPTED
    return progress.result(run.best, estimate, stop, gap=run.gap)


class _Widths:
    """The sequence of smoothed problems.

    Attributes
    ----------
    best : ShapedPoint
        The best point of the hinge objective so far.
    lower : float
        The best certified lower bound on the optimum.
    n_inner : int
        Iterations for the last width.
    """

    def __init__(self, objective: Objective, method: Method, w0: Floats | None, tol: float) -> None:
        self.best = method.wrap(objective.at_zero())
        self.lower = 0.0  # no loss is negative
        self.n_inner = 0
        self._objective = objective
        self._method = method
        self._tol = tol
        self._width = FIRST_WIDTH
        self._allowed = FIRST_TOL * self.best.value  # for the gradient's part of the gap
        self._before: tuple[float, Floats] | None = None
        self._failures = 0
        self._gap_before = np.inf
        if w0 is not None:
            method.begin(w0)

    @property
    def gap(self) -> float:
        """The certified bound on F(best) − F*."""
        rounding = self.best.point.rounding + PRECISION * self.best.penalty
        return max(self.best.value - self.lower, 0.0) + rounding

    def solve(self) -> Stage:
        """Minimise for the current width.

        Sets: best, lower, n_inner
        """
        smooth = self._objective.with_loss(self._objective.loss.smoothed(self._width))
        tol = max(self._allowed / self.best.value, PRECISION)
        found = self._method.minimise(smooth, tol)
        self.n_inner = found.n_inner
        return self._measure(found.point, found.estimate)

    def _measure(self, smooth: ShapedPoint, estimate: float) -> Stage:
        """Look at the hinge objective where a smoothed one has its optimum.

        Sets: best, lower
        """
        hinge = self._objective.at_point(smooth.point)
        edges = self._objective.with_loss(halves(self._objective.loss, self._width))
        cut = _Cut.below(smooth, edges.at_point(smooth.point))
        self._offer(hinge)
        if cut.scale < 1.0:
            self._offer(hinge.move(cut.scale * ROUND_UP - 1.0, hinge.w, hinge.scores))
        self._extrapolate(smooth.w)
        self.lower = max(self.lower, cut.bound)
        band = max(self.best.value - cut.if_solved, 0.0)
        return Stage(smooth, band, cut.rounding, band + cut.rounding + estimate)

    def _extrapolate(self, w: Floats) -> None:
        """Look at where the minima of the last two widths lead for a width of zero.

        Sets: best
        """
        if self._before is not None:
            width, last = self._before
            step = self._width / (width - self._width)
            self._offer(self._objective.at(self._method.inside(w + step * (w - last))))
        self._before = self._width, w

    def _offer(self, point: Point) -> None:
        """Keep the lowest point.

        Sets: best
        """
        offered = self._method.wrap(point)
        if offered.value < self.best.value:
            self.best = offered

    def shrink(self, stage: Stage) -> bool:
        """Choose the next width, for which the band's part of the gap should be below tol · F.

        False if rounding would be most of the gap then, or if smoothed problems are too hard.
        """
        unsolved = stage.estimate - stage.band - stage.rounding > self.gap
        is_stuck = self.gap > STUCK * self._gap_before
        self._failures = self._failures + 1 if unsolved or is_stuck else 0
        self._gap_before = self.gap
        if self._failures == FAILURES:
            return False
        band = min(stage.band, self.gap)
        wanted = BAND_SHARE * self._tol * self.best.value
        factor = float(np.clip(np.sqrt(wanted / band), SHRINK, 0.5)) if band > 0.0 else 0.5
        self._width *= factor
        self._allowed = GRADIENT_SHARE * max(factor**2 * band, wanted)
        return stage.rounding / factor < 0.5 * self.gap


class _Cut(NamedTuple):
    """A lower bound on the optimum from the plane of a smoothed loss."""

    bound: float
    if_solved: float  # the bound, if r, the slack and rounding were zero
    scale: float  # τ
    rounding: float  # that was taken off the bound

    @classmethod
    def below(cls, smooth: ShapedPoint, edges: Point) -> "_Cut":
        """Take the best multiple 0 ≤ τ ≤ 1 of the plane that belongs to a smoothed point."""
        point, ridge = smooth.point, smooth.objective.ridge
        plane = 2.0 * point.loss_value - edges.loss_value
        weight = ridge * float(smooth.w @ smooth.w)
        along = float(smooth.gradient @ smooth.w)
        linear = plane + weight + smooth.penalty - along - smooth.slack
        length = float(np.linalg.norm(smooth.gradient)) + smooth.gradient_rounding
        square = weight - 2.0 * along + length**2 / ridge
        scale = best_multiple(linear, square)
        rounding = 2.0 * point.sum_rounding + edges.sum_rounding + edges.score_rounding
        rounding += PRECISION * (abs(plane) + weight + smooth.penalty + abs(along) + smooth.slack)
        magnitudes = smooth.objective.feature_magnitudes
        of_slope = point.slope_rounding * float(magnitudes @ np.abs(smooth.w))
        rounding += (1.0 - scale) * of_slope
        bound = scale * (linear - rounding) - 0.5 * scale**2 * square
        if_solved = solved_bound(plane, weight, smooth.penalty)
        return cls(bound, if_solved, scale, scale * rounding)
