"""Exact line search for piecewise quadratic losses; it works on scores and does not read X."""

from typing import Protocol, Self, TypeVar

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import PRECISION
from marginrank.objective.protocols import Scores

MOST_STEPS = 50  # safety limit: a few suffice


class _Searchable(Protocol):
    """Interface of an objective evaluated at one w that can be evaluated along a direction."""

    @property
    def value(self) -> float: ...

    @property
    def sum_rounding(self) -> float: ...

    def move(self, step: float, direction: Floats, direction_scores: Scores) -> Self: ...

    def slope(self, direction: Floats, direction_scores: Scores) -> float: ...

    def curvature(self, direction: Floats, direction_scores: Scores) -> float: ...


P = TypeVar("P", bound=_Searchable)


def line_search(
    start: P,
    direction: Floats,
    direction_scores: Scores,
    slope_tol: float = 0.05,
    longest: float = np.inf,
    first: float = 1.0,
) -> P | None:
    """Minimize φ(a) = F(w + a · direction) over the step a; return F evaluated at the minimum.

    `start` is F evaluated at w, `direction_scores` is X · direction, 0 < a ≤ `longest`, and `first`
    is the first a to try. φ is convex and piecewise quadratic, so Newton's method on φ' = 0, kept
    inside the bracket found so far, ends in a few steps. It stops when |φ'(a)| is at most
    `slope_tol` · |φ'(0)|. X is not read. Return None if φ does not decrease measurably.
    """
    slope0 = start.slope(direction, direction_scores)
    if not slope0 < 0:
        return None
    noise = start.sum_rounding + PRECISION * abs(start.value)
    low, high = 0.0, np.inf
    size = min(first, longest)
    point: P | None = None
    for _ in range(MOST_STEPS):
        point = None  # frees its arrays, one per document, before the next point is made
        point = start.move(size, direction, direction_scores)
        slope = point.slope(direction, direction_scores)
        if not np.isfinite(point.value):
            high, size = size, 0.5 * (low + size)
            continue
        flat = abs(slope) <= slope_tol * abs(slope0)
        # A loss that is linear far out has small slopes there, too, so the value must fall as well,
        # unless the gain is below the rounding of φ; slopes keep more digits.
        if flat and (point.value < start.value or size * abs(slope0) <= noise):
            return point
        if slope < 0 and size == longest:
            break
        low, high = (size, high) if slope < 0 else (low, size)
        curvature = point.curvature(direction, direction_scores)
        size = min(_next_size(size, slope, curvature, low, high), longest)
        if not low < size < high:
            break
    return point if point is not None and point.value < start.value else None


def _next_size(size: float, slope: float, curvature: float, low: float, high: float) -> float:
    # Newton's step on φ', unless it leaves the bracket or changes the size by more than 10: past a
    # kink the curvature may be far too small or too large.
    newton = size - slope / curvature if curvature > 0 else np.inf
    if low < newton < high and 0.1 * size <= newton <= 10.0 * size:
        return newton
    if low == 0.0:
        return 0.1 * high
    return 0.5 * (low + high) if np.isfinite(high) else 10.0 * size
