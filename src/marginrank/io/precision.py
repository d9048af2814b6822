"""Whether float32 holds every digit of numbers that were written as text."""

from typing import Any

import numpy as np

from marginrank._utils.types import Floats

BLOCK = 1 << 18  # entries looked at together, so that they stay in cache
DIGITS = (6, 7, 8, 9)  # 6 always survive float32, and 9 tell any two of its numbers apart


def narrowed(X: Any) -> Any:
    """Return float64 features as float32 if no digit is lost, else as they are."""
    entries = X.data if hasattr(X, "nnz") else X.reshape(-1)
    return X.astype(np.float32) if float32_holds_all(entries) else X


def float32_holds_all(values: Floats) -> bool:
    """Whether :func:`float32_holds` any number of values, looked at some at a time."""
    firsts = range(0, values.size, BLOCK)
    return all(float32_holds(values[first : first + BLOCK]) for first in firsts)


def float32_holds(values: Floats) -> bool:
    """Whether the shortest decimals of the nearest float32 numbers are these values again.

    So 0.1 is held, though no binary number equals it, and 123456789 is not.
    """
    with np.errstate(over="ignore"):
        nearest = values.astype(np.float32)
    inexact = nearest != values
    values, nearest = values[inexact], nearest[inexact]
    if not np.isfinite(nearest).all() or not nearest.all():
        return False
    for digits in DIGITS:
        shortest = _rounded(nearest.astype(np.float64), digits)
        found = shortest.astype(np.float32) == nearest
        if not np.array_equal(shortest[found], values[found]):
            return False
        values, nearest = values[~found], nearest[~found]
    return values.size == 0


def _rounded(values: Floats, digits: int) -> Floats:
    """Return the decimals of so many significant digits nearest to `values`, none of them 0."""
    places = digits - 1 - np.floor(np.log10(np.abs(values)))
    scale = 10.0 ** np.abs(places)  # exact up to 10²²: beyond, a digit may seem to be lost
    tall = places < 0
    whole = np.rint(np.where(tall, values / scale, values * scale))
    rounded: Floats = np.where(tall, whole * scale, whole / scale)
    return rounded
