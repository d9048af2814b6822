"""Smoothing of the hinge loss with a decreasing width, and lower bounds on the minimum F*.

Each kink θ of the loss becomes a parabola on the band [θ − ε/2, θ + ε/2] of width ε, which gives a
smooth loss L_ε and objective F_ε. Only pairs whose score difference t lies in the band change their
loss, by at most ε/8. So the error shrinks like ε² as long as many pairs are in the band. Few values
of ε are needed, each warm-started from the solution for the previous one.

**Certificate.** The slopes −α of the smoothed loss lie between the slopes of the hinge on both
sides of a kink, so P = Σ δ α (θ − t) is a plane below the hinge loss: a cutting plane of the bundle
method, with gradient ∇L_ε(w). So is every multiple 0 ≤ τ ≤ 1 of it. With the hinge loss H_θ and
L_ε, P(w) is 2 L_ε − ½ (H_{θ+ε/2} + H_{θ−ε/2}): sums that the pair kernels compute. The certificate
of the smoothed problem at w consists of r, which is zero only at its optimum (∇F_ε without a cone
or groups), and of a slack. With a penalty Ψ(w), which is zero in a cone, every τ gives

    F* ≥ τ (P(w) + ρ‖w‖² + Ψ(w) − rᵀw − slack) − ½τ² ‖ρw − r‖² / ρ,

and with a regularizer Ω of sparse models instead of the ridge,

    F* ≥ τ (P(w) − wᵀ∇L_ε(w)) − Ω*(−τ∇L_ε(w)).

The best τ is below 1 if the data are nearly separable: the smoothed problem then asks for margins
that are larger by ε/2, and τw is closer to the optimum, too.

L_ε is a difference of squares over ε, so its rounding grows like 1/ε, which limits the shrinking.
The kernels return its size.
"""

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from marginrank.models.fit_report import StopReason
from marginrank.objective.derived_point import DerivedPoint, StructuredPoint
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.objective.protocols import meets
from marginrank.solvers.progress import Progress
from marginrank.solvers.result import SolverResult

FIRST_WIDTH = 4.0  # at w = 0 every pair is inside the band
SHRINK = 0.1  # smallest ratio of successive widths: a warm start is close enough for few steps
BAND_SHARE = 0.4  # share of tol · F for the band's part of the gap; the rest is for other errors
GRADIENT_SHARE = 0.3  # largest ratio of the gradient's part of the gap to the band's part
ROUND_UP = 1.0 + 1e-13  # margins that τw meets exactly are still met after rounding

P = TypeVar("P", bound=Point | DerivedPoint)


class Stage(NamedTuple, Generic[P]):
    """The minimum of the objective for one smoothing width of the hinge loss, and error bounds."""

    point: P  # the hinge objective at this minimum
    smooth: P  # the smoothed objective at this minimum
    plane: float  # P(w)
    band: float  # the part of the gap that smoothing causes
    rounding: float  # rounding error of the lower bound
    estimate: float = np.inf  # estimate of F − F* for the hinge objective F
    n_inner: int = 0  # inner iterations


class LowerBound(NamedTuple):
    """A lower bound on the minimum of the hinge objective, and the terms of the bound.

    It comes from a plane below the hinge loss, which the slopes of the smoothed loss define.
    """

    plane: float  # P(w)
    bound: float
    if_solved: float  # the bound if r, the slack and rounding were zero
    scale: float  # τ
    rounding: float  # subtracted from the bound


class Widths(ABC, Generic[P]):
    """Base class of solvers that replace the hinge loss by smooth losses of decreasing width."""

    def __init__(self, objective: Objective, first: P, tol: float) -> None:
        self.best: P = first  # the best point of the hinge objective so far
        self.lower = 0.0  # the best certified lower bound on F* so far; no loss is negative
        self._objective = objective
        self._tol = tol
        self._width = FIRST_WIDTH
        self._allowed = 0.0  # limit on the gradient's part of the gap for the next width

    @property
    def gap(self) -> float:
        return max(self.best.value - self.lower, 0.0) + self.best.rounding

    def minimize(self, progress: Progress, max_iter: int) -> SolverResult:
        """Minimize an objective with a hinge loss to `tol`, one smoothing width per iteration."""
        if self.best.value == 0.0 == self.gap:  # no pair has a loss: a relative gap is undefined
            return progress.result(self.best, self.gap, StopReason.CERTIFIED, gap=self.gap)
        stop, estimate = StopReason.MAX_ITER, np.inf
        try:
            self._begin()
            for _ in range(max_iter):
                stage = self._solve()
                estimate = stage.estimate
                progress.record(
                    stage.point,
                    estimate,
                    stage.n_inner,
                    gap=self.gap,
                    gradient=stage.smooth.gradient,
                )
                if self._is_solved():
                    stop = StopReason.CERTIFIED
                    break
                if estimate <= self._tol * self.best.value:
                    stop = StopReason.ESTIMATED
                    break
                if not self._shrink(stage):
                    stop = StopReason.PRECISION
                    break
        except KeyboardInterrupt:
            stop = StopReason.INTERRUPTED
        return progress.result(self.best, estimate, stop, gap=self.gap)

    def _is_solved(self) -> bool:
        return meets(self._tol, self.best.value, self.gap)

    def _begin(self) -> None:
        """Prepare a warm start before the first smoothing width."""

    @abstractmethod
    def _solve(self) -> Stage[P]:
        """Return the minimum for the current width; update `best` and `lower`."""

    @abstractmethod
    def _lower_bound(self, base: Point, edges: Point, smooth: P) -> LowerBound:
        """Return a lower bound on the minimum F* of the hinge objective, by a multiple of a plane.

        `edges` is the loss ½ (H_{θ+ε/2} + H_{θ−ε/2}), at the same w as `base` and `smooth`; see the
        docstring of the module.
        """

    @abstractmethod
    def _wrap(self, point: Point) -> P:
        """Return `point` with the penalty or the constraints of this problem added."""

    def _smoothed(self) -> Objective:
        return self._objective.with_loss(self._objective.loss.smoothed(self._width))

    def _bound_at(self, base: Point, smooth: P) -> tuple[Point, LowerBound]:
        """Return the hinge objective at the w of a smoothed one, and a lower bound on its minimum.

        Updates `best` and `lower`.
        """
        hinge = self._objective.at_point(base)
        edges = self._objective.with_loss(_edges(self._objective.loss, self._width))
        found = self._lower_bound(base, edges.at_point(base), smooth)
        self._offer(hinge)
        if found.scale < 1.0:
            self._offer(hinge.move(found.scale * ROUND_UP - 1.0, hinge.w, hinge.scores))
        self.lower = max(self.lower, found.bound)
        return hinge, found

    def _offer(self, point: Point) -> None:
        # Updates best.
        offered = self._wrap(point)
        if offered.value < self.best.value:
            self.best = offered

    def _shrink(self, stage: Stage[P]) -> bool:
        """Set the next smoothing width; return False if rounding would then be most of the gap.

        The error of the smoothing should fall below tol · F. It is about quadratic in the width,
        and the rounding error of the lower bound is about inverse to the width.
        """
        band = min(stage.band, self.gap)  # an extrapolation may have come closer since
        wanted = BAND_SHARE * self._tol * self.best.value
        factor = float(np.clip(np.sqrt(wanted / band), SHRINK, 0.5)) if band > 0.0 else 0.5
        self._width *= factor
        self._allowed = GRADIENT_SHARE * max(factor**2 * band, wanted)
        return stage.rounding / factor < 0.5 * self.gap


def ridge_bound(base: Point, edges: Point, smooth: Point | StructuredPoint) -> LowerBound:
    """Return a lower bound on the minimum of an objective with a hinge loss and a ridge.

    The docstring of the module derives it. `base` and `smooth` are the smoothed objective without
    and with its penalty or constraints, and `edges` is the loss ½ (H_{θ+ε/2} + H_{θ−ε/2}), all at
    the same w.
    """
    w, gradient = base.w, smooth.gradient
    penalty, slack = smooth.penalty, smooth.slack
    plane = 2.0 * base.loss_value - edges.loss_value
    weight = base.objective.ridge * float(w @ w)
    along = float(gradient @ w)
    linear = plane + weight + penalty - along - slack
    square = weight - 2.0 * along + 2.0 * smooth.gradient_gap
    scale = _best_multiple(linear, square)
    # The plane has the slopes of a hinge, so errors of the scores do not move it by more.
    rounding = 2.0 * base.sum_rounding + edges.sum_rounding + edges.score_rounding
    rounding += PRECISION * (abs(plane) + weight + penalty + abs(along) + slack)
    of_slope = base.slope_rounding * float(base.objective.feature_magnitudes @ np.abs(w))
    rounding += (1.0 - scale) * of_slope
    bound = scale * (linear - rounding) - 0.5 * scale**2 * square
    # The distance to this bound is the part of the gap that the width of the band causes, however
    # far the smoothed problem is from being solved.
    solved = plane + weight + penalty
    of_solved = _best_multiple(solved, weight)
    if_solved = of_solved * solved - 0.5 * of_solved**2 * weight
    return LowerBound(plane, bound, if_solved, scale, scale * rounding)


def _best_multiple(linear: float, square: float) -> float:
    # argmax of τ · linear − ½τ² · square.
    return linear / square if 0.0 < linear < square else float(linear > 0.0)


def _edges(loss: Loss, width: float) -> Loss:
    # ½ (H_{θ+ε/2} + H_{θ−ε/2}) for each hinge H_θ of the loss.
    pieces = tuple(
        Piece(0.5 * p.coefficient, p.theta + side * width, 1)
        for p in loss.pieces
        for side in (-0.5, 0.5)
    )
    return Loss(loss.name, pieces)
