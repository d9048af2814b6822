"""Newton on a smoothed hinge with shrinking smoothing: the default solver for the hinge loss.

Each kink θ of the loss is made a parabola on [θ − ε/2, θ + ε/2], which gives a smooth F_ε for
Newton's method. Only pairs whose score difference lies in that band see another loss, by at most
ε/8, so the error shrinks like ε² as long as the band holds many pairs: few values of ε are needed,
each starting from the last one's solution. When it holds few, the minima of the last two widths are
extrapolated to a width of zero.

**Certificate.** The slopes −α of the smoothed loss lie between those of the hinge on both sides of
a kink, so that P = Σ δ α (θ − t) is a plane below the hinge loss: a cutting plane of the bundle
method, with gradient ∇L_ε(w). So is every multiple 0 ≤ τ ≤ 1 of it. Minimising τP plus regulariser
gives a lower bound on F*, and for τ = 1, at any w,

    F(w) − F* ≤ ‖∇F_ε(w)‖² / 2ρ + Σ δ [h(t) − α (θ − t)],

where the sum has terms for the pairs in the band only. With the hinge loss H_θ and L_ε, P(w) is
2 L_ε − ½ (H_{θ+ε/2} + H_{θ−ε/2}): sums that the pair kernels know. The best τ is less than 1 where
the data are nearly separable: the smoothed problem then asks for margins that are larger by ε/2,
and τw is nearer to the optimum, too.

As L_ε is a difference of squares over ε, its rounding grows like 1/ε, which ends the shrinking. The
kernels tell its size.
"""

from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.backends.interface import Scores
from marginrank.objective.certificates import meets
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.solvers.hinge.cutting_search import cutting_search
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.newton import NewtonIteration, newton

FIRST_WIDTH = 4.0  # at w = 0 every pair is inside the band
SHRINK = 0.1  # of the width, at most, from one smoothing to the next
BAND_SHARE = 0.4  # of tol · F, that is left to the band when the width is chosen
GRADIENT_SHARE = 0.3  # of the band's part of the gap, that is left to ‖∇F_ε‖²
TIGHTENINGS = 4  # of Newton's own tol, until the gradient is small enough
NEWTON_ITERATIONS = 100  # for one width
FIRST_TOL = 1e-3  # for the first width, whose error is larger than this
ROUND_UP = 1.0 + 1e-13  # margins that are met exactly are still met after rounding
ALONG = 1e-3  # how exactly the line of an extrapolation is searched
FAR = 0.01  # a gradient's part of the gap, relative to F, that a warm start is not near with


class Stage(NamedTuple):
    """The minimum for one width."""

    point: Point  # of the hinge objective
    smooth: Point  # of the smoothed one
    plane: float  # P(w)
    band: float  # what the band adds to the gap
    rounding: float  # of the lower bound
    estimate: float
    n_products: int


def smoothing(
    objective: Objective,
    *,
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a hinge loss.

    Stops on the certificate; or, where features are so badly scaled that ∇F_ε cannot be made small
    enough for it, on Newton's estimate plus the certified part of the band.

    Parameters
    ----------
    objective : Objective
        What to minimise; its loss is a sum of hinges.
    w0 : ndarray, optional
        Where to start; zero by default.
    scores0 : Scores, optional
        X w0, if known.
    tol : float
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int
        Limit on the number of widths.
    seed : int
        For the samples of :func:`newton`.
    callback : callable, optional
        Called with each :class:`~marginrank.models.fit_report.Iteration`, one a width.
    """
    progress = Progress(objective, callback)
    first = objective.at_zero() if w0 is None else start(objective, w0, scores0)
    run = _Smoothing(objective, first, tol, seed)
    if first.value == 0.0 == run.gap:  # no pair has a loss: there is nothing to divide by
        return progress.result(first, run.gap, StopReason.CERTIFIED, gap=run.gap)
    stop = StopReason.MAX_ITER
    try:
        if w0 is not None:
            run.narrow()
        for _ in range(max_iter):
            stage = run.solve()
            progress.record(
                stage.point,
                stage.estimate,
                stage.n_products,
                gap=run.gap,
                gradient=stage.smooth.gradient,
            )
            if meets(tol, run.best.value, run.gap):
                stop = StopReason.CERTIFIED
                break
            if stage.estimate <= tol * run.best.value:
                stop = StopReason.ESTIMATED
                break
            if not run.shrink():
                stop = StopReason.PRECISION
                break
    except KeyboardInterrupt:
        stop = StopReason.INTERRUPTED
    estimate = progress.history[-1].estimate if progress.history else np.inf
    return progress.result(run.best, estimate, stop, gap=run.gap)


class _Smoothing:
    """The sequence of smoothed problems.

    Attributes
    ----------
    best : Point
        The best point of the hinge objective so far.
    lower : float
        The best certified lower bound on F* so far.
    """

    def __init__(self, objective: Objective, first: Point, tol: float, seed: int) -> None:
        self._objective = objective
        self.best = first
        self._tol = tol
        self._seed = seed
        self._width = FIRST_WIDTH
        self._solved_width = np.inf  # no step is taken from a point that is no minimum
        self._allowed = 0.0  # what the gradient's part of the gap may be
        self._stage: Stage | None = None
        self.lower = 0.0  # no loss is negative

    @property
    def gap(self) -> float:
        """The certified bound on F(best) − F*."""
        return max(self.best.value - self.lower, 0.0) + self.best.rounding

    def narrow(self) -> None:
        """Choose the first width for a warm start."""
        self._stage = self._narrowed()
        self._allowed = GRADIENT_SHARE * BAND_SHARE * self._tol * self.best.value
        if self._stage.smooth.gradient_gap > FAR * self.best.value:
            self._width = FIRST_WIDTH
            self._allowed = FIRST_TOL * self.best.value

    def _narrowed(self) -> Stage:
        """Narrow the band until a good point would not be left."""
        while True:
            stage = self._measure(self._smooth().at_point(self.best))
            band = stage.point.loss_value - stage.plane
            enough = BAND_SHARE * self._tol * stage.point.value
            if band + stage.rounding <= enough or stage.rounding > SHRINK * enough:
                return stage
            self._width *= SHRINK

    def _smooth(self) -> Objective:
        return self._objective.with_loss(self._objective.loss.smoothed(self._width))

    def solve(self) -> Stage:
        """Minimise for the current width.

        Sets: best, lower
        """
        smooth = self._smooth()
        if self._stage is None:
            tol = max(self._tol, FIRST_TOL)
            first = newton(smooth, tol=tol, max_iter=NEWTON_ITERATIONS, seed=self._seed)
            point = smooth.at(first.w, first.scores, travelled=first.travelled)
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

    def _holds_few_pairs(self, before: Stage, after: Stage) -> bool:
        """Whether the band's part of the gap has fallen less than the width squared."""
        ratio = self._width / self._solved_width
        return after.band > 2.0 * ratio**2 * before.band

    def _extrapolate(self, before: Stage, after: Stage) -> None:
        """Look at where the minima of the last two widths lead for a width of zero.

        When the band holds just the pairs that lie on the kink at the optimum, w is linear in the
        width, and the lower bound is off by its square.

        Sets: best
        """
        step = self._width / (self._solved_width - self._width)
        point, last = after.point, before.point
        difference = self._objective.add_scores(point.scores, -1.0, last.scores)
        scores = self._objective.add_scores(self._objective.zero_scores(), step, difference)
        found = cutting_search(point, step * (point.w - last.w), scores, ALONG)
        if found.value < self.best.value:  # a long step blows up the rounding of a difference
            self._offer(self._objective.at(found.w))

    def _refine(self, point: Point, estimate: float) -> Stage:
        """Iterate until the gradient's part of the gap is small against the band's."""
        progress = Progress(point.objective, None)
        iteration = NewtonIteration(NEWTON_ITERATIONS, self._seed + 1, progress)
        stop = None
        if not np.isfinite(estimate):  # no minimum of this width yet: nothing to measure
            point, estimate, stop = iteration.run(point, self._allowed / point.value)
        for attempt in range(TIGHTENINGS + 1):
            stage = self._measure(point)
            enough = 0.5 * self._tol * stage.point.value
            allowed = GRADIENT_SHARE * max(stage.band + stage.rounding, enough)
            if point.gradient_gap <= allowed or stop in (StopReason.PRECISION, StopReason.MAX_ITER):
                break
            tol = allowed / stage.point.value * 0.01**attempt
            point, estimate, stop = iteration.run(point, tol)
        return stage._replace(
            estimate=stage.band + stage.rounding + estimate,
            n_products=sum(line.inner_iterations for line in progress.history),
        )

    def _measure(self, smooth: Point) -> Stage:
        """Look at the hinge objective at a point of a smoothed one, and bound F* from below.

        Sets: best, lower
        """
        hinge = self._objective.at_point(smooth)
        edges = self._objective.with_loss(halves(self._objective.loss, self._width))
        cut = _Cut.below(smooth, edges.at_point(smooth))
        self._offer(hinge)
        if cut.scale < 1.0:
            self._offer(hinge.move(cut.scale * ROUND_UP - 1.0, hinge.w, hinge.scores))
        self.lower = max(self.lower, cut.bound)
        band = max(self.best.value - cut.if_solved, 0.0)
        return Stage(hinge, smooth, cut.plane, band, cut.rounding, np.inf, 0)

    def _offer(self, point: Point) -> None:
        if point.value < self.best.value:
            self.best = point

    def shrink(self) -> bool:
        """Choose the next width, for which the band's part of the gap should be below tol · F.

        The band's part is about quadratic in the width, its rounding about inverse to it. False if
        that would be most of the gap, or if the band is not to blame for it.
        """
        assert self._stage is not None
        if self._stage.band == 0.0:
            return False
        band = min(self._stage.band, self.gap)  # an extrapolation may have come closer since
        wanted = BAND_SHARE * self._tol * self.best.value
        factor = float(np.clip(np.sqrt(wanted / band), SHRINK, 0.5))
        self._width *= factor
        self._allowed = GRADIENT_SHARE * max(factor**2 * band, wanted)
        return self._stage.rounding / factor < 0.5 * self.gap


class _Cut(NamedTuple):
    """A lower bound on F* from the plane of a smoothed loss."""

    plane: float  # P(w)
    bound: float
    if_solved: float  # the bound, if ∇F_ε(w) and rounding were zero
    scale: float  # τ
    rounding: float  # that was taken off the bound

    @classmethod
    def below(cls, smooth: Point, edges: Point) -> "_Cut":
        """Take the best multiple 0 ≤ τ ≤ 1 of the plane that belongs to a smoothed point.

        τP plus regulariser has the minimum τ (P(w) + ρ‖w‖² − gᵀw) − ½τ² (ρ‖w‖² − 2gᵀw + ‖g‖²/ρ),
        with g = ∇F_ε(w), which is small.
        """
        objective = smooth.objective
        plane = 2.0 * smooth.loss_value - edges.loss_value
        weight = objective.ridge * float(smooth.w @ smooth.w)
        along = float(smooth.gradient @ smooth.w)
        linear = plane + weight - along
        square = weight - 2.0 * along + 2.0 * smooth.gradient_gap
        scale = best_multiple(linear, square)
        # The plane's slopes are those of a hinge: scores that are off do not move it by more.
        rounding = 2.0 * smooth.sum_rounding + edges.sum_rounding + edges.score_rounding
        rounding += PRECISION * (abs(plane) + weight + abs(along))
        of_slope = smooth.slope_rounding * float(objective.feature_magnitudes @ np.abs(smooth.w))
        rounding += (1.0 - scale) * of_slope
        bound = scale * (linear - rounding) - 0.5 * scale**2 * square
        return cls(plane, bound, solved_bound(plane, weight), scale, scale * rounding)


def best_multiple(linear: float, square: float) -> float:
    """Return the 0 ≤ τ ≤ 1 that maximises τ · linear − ½τ² · square."""
    return linear / square if 0.0 < linear < square else float(linear > 0.0)


def solved_bound(plane: float, weight: float, penalty: float = 0.0) -> float:
    """Return the lower bound on F* of a plane whose regularised minimum is at the point itself.

    `weight` is ρ‖w‖². The distance of a value to it is the part of a gap that the width of the
    band is to blame for, however far the smoothed problem is from being solved.
    """
    scale = best_multiple(plane + weight + penalty, weight)
    return scale * (plane + weight + penalty) - 0.5 * scale**2 * weight


def halves(loss: Loss, width: float) -> Loss:
    """Return ½ (H_{θ+ε/2} + H_{θ−ε/2}) for each hinge H_θ of the loss."""
    pieces = tuple(
        Piece(0.5 * p.coefficient, p.theta + side * width, 1)
        for p in loss.pieces
        for side in (-0.5, 0.5)
    )
    return Loss(loss.name, pieces)
