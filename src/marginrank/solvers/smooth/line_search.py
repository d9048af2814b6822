"""Exact line search in score space."""

from typing import Protocol, Self, TypeVar

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import PRECISION
from marginrank.objective.protocols import Scores

MOST_STEPS = 50


class SearchablePoint(Protocol):
    """A point that knows its neighbours on a line: of an objective, alone or with a regulariser."""

    @property
    def value(self) -> float:
        """F(w)."""

    @property
    def sum_rounding(self) -> float:
        """How far F(w) may be off."""

    def move(self, step: float, direction: Floats, direction_scores: Scores) -> Self:
        """Evaluate w + step · direction."""

    def slope(self, direction: Floats, direction_scores: Scores) -> float:
        """Return the first derivative along the direction."""

    def curvature(self, direction: Floats, direction_scores: Scores) -> float:
        """Return the second derivative along the direction."""


P = TypeVar("P", bound=SearchablePoint)


def line_search(
    start: P,
    direction: Floats,
    direction_scores: Scores,
    slope_tol: float = 0.05,
    longest: float = np.inf,
    first: float = 1.0,
) -> P | None:
    """Minimise φ(a) = F(w + a · direction) over 0 < a ≤ longest, from a = first.

    φ is convex and piecewise quadratic, so Newton's method on φ' = 0, kept inside the bracket found
    so far, ends in a few steps. It ends when |φ'(a)| ≤ slope_tol · |φ'(0)| and φ(a) < φ(0), as a
    loss that is linear far out has small slopes there, too. Where the gain is less than the
    rounding of φ, slopes alone decide, which are known better. X is not touched.

    Returns
    -------
    point or None
        Where the step leads; None if the direction does not descend, or not measurably.
    """
    slope0 = start.slope(direction, direction_scores)
    if not slope0 < 0:
        return None
    noise = start.sum_rounding + PRECISION * abs(start.value)
    low, high = 0.0, np.inf
    size = min(first, longest)
    point: P | None = None
    for _ in range(MOST_STEPS):
        point = None  # what it keeps of each document makes room for the next one
        point = start.move(size, direction, direction_scores)
        slope = point.slope(direction, direction_scores)
        if not np.isfinite(point.value):
            high, size = size, 0.5 * (low + size)
            continue
        flat = abs(slope) <= slope_tol * abs(slope0)
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
    """Newton's step on φ', or some other step where that leads outside or far away."""
    newton = size - slope / curvature if curvature > 0 else np.inf
    if low < newton < high and 0.1 * size <= newton <= 10.0 * size:
        return newton
    if low == 0.0:
        return 0.1 * high
    return 0.5 * (low + high) if np.isfinite(high) else 10.0 * size
