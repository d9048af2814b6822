"""The default solver for hinge losses: Newton's method on smoothed losses of decreasing width.

The kink of the hinge is replaced by a parabola on an interval.
:mod:`marginrank.solvers.hinge.widths` describes the width of this interval, the band (the pairs
that the smoothing affects) and the lower bound on the minimum. When few pairs are in the band, the
minima of the last two widths are extrapolated to a width of zero.
"""

from dataclasses import replace

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores
from marginrank.solvers.hinge.cutting_search import cutting_search
from marginrank.solvers.hinge.widths import (
    BAND_SHARE,
    FIRST_WIDTH,
    GRADIENT_SHARE,
    SHRINK,
    LowerBound,
    Stage,
    Widths,
    ridge_bound,
)
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, Curvature, SolverResult
from marginrank.solvers.smooth.newton import NewtonIteration, newton

TIGHTENINGS = 4  # how often tol may be lowered to make the gradient's part of the gap small
NEWTON_ITERATIONS = 100  # most Newton iterations per width
FIRST_TOL = 1e-3  # tol for the first width, whose smoothing error is larger than this
ALONG = 1e-3  # accuracy of the line search of an extrapolation: its gain is small, but real
FAR = 0.01  # a warm start whose gradient's part of the gap exceeds this share of F is not close


def smoothing(
    objective: Objective,
    *,
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
    curvature: Curvature | None = None,
) -> SolverResult:
    """Minimize an objective with a hinge loss by a sequence of smooth problems; the default solver.

    The smooth losses differ from the hinge on an interval of decreasing width, and each smoothed
    problem is solved from the previous solution. Stops when a proven bound shows that `tol` is
    reached. With badly scaled features, rounding may prevent that; the fit then stops on Newton's
    estimate plus the proven error of the smoothing. `max_iter` limits the number of widths;
    `callback` runs once per width. The other parameters are as in
    :func:`~marginrank.solvers.smooth.newton.newton`.
    """
    progress = Progress(objective, callback)
    first = objective.at_zero() if w0 is None else start(objective, w0, scores0)
    run = _NewtonWidths(objective, first, tol, seed, curvature, is_warm=w0 is not None)
    return replace(run.minimize(progress, max_iter), curvature=run.curvature)


class _NewtonWidths(Widths[Point]):
    """Solves smoothed hinge problems by Newton's method, each from the last solution."""

    def __init__(
        self,
        objective: Objective,
        first: Point,
        tol: float,
        seed: int,
        curvature: Curvature | None,
        *,
        is_warm: bool,
    ) -> None:
        super().__init__(objective, first, tol)
        self.curvature = curvature  # curvature of the last smoothed problem
        self._seed = seed
        self._is_warm = is_warm
        self._solved_width = np.inf  # last width that was solved, for extrapolation; none yet
        self._stage: Stage[Point] | None = None

    def _begin(self) -> None:
        # Choose the first width for a warm start.
        if not self._is_warm:
            return
        self._stage = self._narrowed()
        self._allowed = GRADIENT_SHARE * BAND_SHARE * self._tol * self.best.value
        if self._stage.smooth.gradient_gap > FAR * self.best.value:
            self._width = FIRST_WIDTH
            self._allowed = FIRST_TOL * self.best.value

    def _narrowed(self) -> Stage[Point]:
        # With a larger smoothing error than tol allows, a step would move a good warm start away
        # from the optimum.
        while True:
            stage = self._measure(self._smoothed().at_point(self.best))
            band = stage.point.loss_value - stage.plane
            enough = BAND_SHARE * self._tol * stage.point.value
            if band + stage.rounding <= enough or stage.rounding > SHRINK * enough:
                return stage
            self._width *= SHRINK

    def _wrap(self, point: Point) -> Point:
        return point

    def _lower_bound(self, base: Point, edges: Point, smooth: Point) -> LowerBound:
        return ridge_bound(base, edges, smooth)

    def _solve(self) -> Stage[Point]:
        smooth = self._smoothed()
        if self._stage is None:
            tol = max(self._tol, FIRST_TOL)
            first = newton(
                smooth,
                tol=tol,
                max_iter=NEWTON_ITERATIONS,
                seed=self._seed,
                curvature=self.curvature,
            )
            self.curvature = first.curvature
            point = smooth.at(first.w, first.scores, accumulated_update=first.accumulated_update)
            estimate = first.estimate
            self._measure(point)
            if first.stop is StopReason.INTERRUPTED:
                raise KeyboardInterrupt
        else:
            point, estimate = smooth.at_point(self._stage.point), np.inf
        before, self._stage = self._stage, self._refine(point, estimate)
        if before is not None and self._holds_few_pairs(before, self._stage):
            self._extrapolate(before, self._stage)
        self._solved_width = self._width
        return self._stage

    def _holds_few_pairs(self, before: Stage[Point], after: Stage[Point]) -> bool:
        # The band's part of the gap then falls more slowly than the square of the width.
        ratio = self._width / self._solved_width
        return after.band > 2.0 * ratio**2 * before.band

    def _extrapolate(self, before: Stage[Point], after: Stage[Point]) -> None:
        # If the pairs in the band are exactly the pairs on the kink at the optimum, w is linear in
        # the width, and the error of the lower bound quadratic. So evaluate the limit at width 0.
        step = self._width / (self._solved_width - self._width)
        point, last = after.point, before.point
        difference = self._objective.space.add(point.scores, -1.0, last.scores)
        scores = self._objective.space.add(self._objective.space.zero(), step, difference)
        found = cutting_search(point, step * (point.w - last.w), scores, ALONG)
        # Evaluate again: a long step amplifies the rounding of a difference of scores.
        if found.value < self.best.value:
            self._offer(self._objective.at(found.w))

    def _refine(self, point: Point, estimate: float) -> Stage[Point]:
        # Iterate until the gradient's part of the gap is small compared with the band's part.
        progress = Progress(point.objective, None)
        iteration = NewtonIteration(NEWTON_ITERATIONS, self._seed + 1, progress)
        iteration.curvature = self.curvature
        stop = None
        if not np.isfinite(estimate):  # not at a minimum of this width yet
            point, estimate, stop = iteration.run(point, self._allowed / point.value)
        for attempt in range(TIGHTENINGS + 1):
            stage = self._measure(point)
            enough = 0.5 * self._tol * stage.point.value
            allowed = GRADIENT_SHARE * max(stage.band + stage.rounding, enough)
            if point.gradient_gap <= allowed or stop in (StopReason.PRECISION, StopReason.MAX_ITER):
                break
            tol = allowed / stage.point.value * 0.01**attempt
            point, estimate, stop = iteration.run(point, tol)
        self.curvature = iteration.curvature
        return stage._replace(
            estimate=stage.band + stage.rounding + estimate,
            n_inner=sum(line.inner_iterations for line in progress.history),
        )

    def _measure(self, smooth: Point) -> Stage[Point]:
        # Updates best and lower.
        hinge, found = self._bound_at(smooth, smooth)
        band = max(self.best.value - found.if_solved, 0.0)
        return Stage(hinge, smooth, found.plane, band, found.rounding)

    def _shrink(self, stage: Stage[Point]) -> bool:
        # If smoothing does not contribute to the gap, a smaller width cannot help.
        return stage.band > 0.0 and super()._shrink(stage)
