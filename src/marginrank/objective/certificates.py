"""When a certified gap is small enough."""

from typing import Protocol


class CertifiedPoint(Protocol):
    """A point with a certificate."""

    @property
    def value(self) -> float:
        """F(w)."""

    @property
    def gap(self) -> float:
        """A certified upper bound on F(w) − F*."""


def is_certified(point: CertifiedPoint, tol: float) -> bool:
    """Whether (F − F*) / F* ≤ tol is certain: gap ≤ tol · (F − gap) with F − gap ≤ F*."""
    return meets(tol, point.value, point.gap)


def meets(tol: float, value: float, gap: float) -> bool:
    """Whether a gap proves that the value is within a relative tol of the optimum."""
    return gap <= tol * max(value - gap, 0.0)  # a sum of losses is negative by rounding only
