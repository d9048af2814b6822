"""Checks whether float32 keeps every digit of decimal text."""

from typing import Any

import numpy as np

from marginrank._utils.types import Floats

BLOCK = 1 << 18  # entries checked at a time, to stay in cache
DIGITS = (6, 7, 8, 9)  # 6 always survive float32, and 9 distinguish any two of its numbers


def narrowed(X: Any) -> Any:
    """Return float64 features as float32 if no digit is lost, else unchanged."""
    entries = X.data if hasattr(X, "nnz") else X.reshape(-1)
    return X.astype(np.float32) if float32_holds_all(entries) else X


def float32_holds_all(values: Floats) -> bool:
    """Return :func:`float32_holds` for any number of values, in blocks."""
    firsts = range(0, values.size, BLOCK)
    return all(float32_holds(values[first : first + BLOCK]) for first in firsts)


def float32_holds(values: Floats) -> bool:
    """Return True if the shortest decimals of the nearest float32 numbers equal the values.

    float32 holds 0.1 in this sense, but not 123456789.
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
    """Return non-zero `values` rounded to a number of significant digits."""
    places = digits - 1 - np.floor(np.log10(np.abs(values)))
    scale = 10.0 ** np.abs(places)  # exact up to 10²²; beyond, a digit may seem to be lost
    tall = places < 0
    whole = np.rint(np.where(tall, values / scale, values * scale))
    rounded: Floats = np.where(tall, whole * scale, whole / scale)
    return rounded
