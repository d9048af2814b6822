"""Exact line search for piecewise linear losses; it works on scores and does not read X."""

from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import Point
from marginrank.objective.protocols import Scores

MAX_POINTS = 40  # safety limit on evaluations: most searches need only a few


class _Trial(NamedTuple):
    """One evaluation of F(w + a · direction) in a line search, at the step size a = `size`."""

    size: float
    point: Point
    slope: float  # derivative of F with respect to a
    loss_slope: float  # derivative of the loss with respect to a

    def tangent(self, size: float) -> float:
        return self.point.loss_value + (size - self.size) * self.loss_slope


def cutting_search(
    start: Point, direction: Floats, direction_scores: Scores, accuracy: float = 0.05
) -> Point:
    """Minimize φ(a) = F(w + a · direction) over the step a ≥ 0; return F evaluated at the minimum.

    `start` is F evaluated at w, and `direction_scores` is X · direction. φ is a parabola q (the
    ridge) plus a convex L with kinks (the loss). The tangents of L at the ends of the bracket bound
    φ below, and the next a minimizes this bound. The search begins with a = 1 and stops when bound
    and best value differ by at most `accuracy` times the decrease so far.
    """

    def evaluate(size: float) -> _Trial:
        point = start.move(size, direction, direction_scores) if size > 0 else start
        loss_slope = point.loss_slope(direction_scores)
        return _Trial(size, point, point.slope(direction, direction_scores), loss_slope)

    low = best = evaluate(0.0)
    high = None
    bend = start.objective.ridge * float(direction @ direction)
    size = 1.0
    for _ in range(MAX_POINTS):
        trial = evaluate(size)
        best = min(best, trial, key=lambda t: t.point.value)
        if trial.slope < 0:
            low = trial
        else:
            high = trial
        if high is None:
            size *= 2.0
            continue
        size = _lowest(low, high, bend)
        bound = _parabola(low, size, bend) + max(low.tangent(size), high.tangent(size))
        enough = accuracy * (start.value - best.point.value)
        if best.point.value - bound <= enough or not low.size < size < high.size:
            break
    return best.point


def _lowest(low: _Trial, high: _Trial, bend: float) -> float:
    # Minimize q plus the higher tangent between the ends of the bracket. Where one tangent is the
    # higher one, φ'(end) + bend · (a − end) is the slope of the bound.
    from_low = low.size - low.slope / bend if bend > 0 else np.inf
    from_high = high.size - high.slope / bend if bend > 0 else -np.inf
    turn = high.loss_slope - low.loss_slope
    crossing = (
        (low.tangent(0.0) - high.tangent(0.0)) / turn if turn > 0 else 0.5 * (low.size + high.size)
    )
    return float(max(min(from_low, crossing), from_high))


def _parabola(low: _Trial, size: float, bend: float) -> float:
    # ½ρ‖w + size · direction‖², from its value and slope at the low end.
    step = size - low.size
    value = low.point.value - low.point.loss_value
    return value + step * (low.slope - low.loss_slope) + 0.5 * bend * step * step
