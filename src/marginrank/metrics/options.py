"""Options that metrics share, and how values by query become a result."""

import numbers
from math import isfinite
from typing import Any

import numpy as np

from marginrank._utils.types import Booleans, Floats

Value = float | Any  # a float, or with per_query=True an array: Any spares users a cast

TIES = ("order", "average")
ROUNDING = 1e-12  # relative; values that differ by less may do so by the order of the rows


def check_cutoff(k: Any) -> int | None:
    """Return the cut-off k, None for all documents."""
    if k is None:
        return None
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1:
        raise ValueError(f"k={k!r} must be a rank, 1 or more, or None for all documents.")
    return int(k)


def check_real(name: str, value: Any) -> float:
    """Return `value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    return float(value)


def exceeds(value: Any, other: Any) -> Any:
    """Tell whether a value is higher than another by more than rounding."""
    return value - other > ROUNDING * np.abs(value)


def settle(values: Floats, relevant: Booleans, no_relevant: float | str) -> Floats:
    """Put the policy `no_relevant` in the place of queries that have no relevant document."""
    if isinstance(no_relevant, str) and no_relevant == "skip":
        return np.where(relevant, values, np.nan)
    if no_relevant not in (0, 1):
        raise ValueError(f'no_relevant={no_relevant!r} is not known; use 0, 1 or "skip".')
    return np.where(relevant, values, float(no_relevant))


def report(values: Floats, per_query: bool) -> Value:
    """Return values by query, or their mean over the queries that have one (are not nan)."""
    if per_query:
        return values
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if defined.size else float("nan")
