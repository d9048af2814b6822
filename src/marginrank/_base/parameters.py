"""Checks of parameters."""

import math
import numbers
from collections.abc import Iterable
from typing import Any


def check_number(name: str, value: Any, *, above: float = 0.0, allow_equal: bool = False) -> float:
    """Return a finite number above a bound."""
    valid = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not (valid and math.isfinite(value) and (value > above or (allow_equal and value == above))):
        relation = "at least" if allow_equal else "more than"
        raise ValueError(f"{name}={value!r} must be a finite number, {relation} {above:g}.")
    return float(value)


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return an integer of at least a bound."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {at_least}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of the allowed names."""
    allowed = list(choices)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, allowed))}.")
    return value
