"""Indices of the largest values of an array, the same on every machine."""

import numpy as np

from marginrank._utils.types import Floats, Integers


def places_of_largest(values: Floats, k: int) -> Integers:
    """Return the ascending indices of the k largest values; of equal values, the first ones win.

    ``numpy.argpartition`` breaks ties differently from version to version and processor to
    processor.
    """
    n = values.size
    if k >= n:
        return np.arange(n)
    least = np.partition(values, n - k)[n - k]
    chosen = values > least
    level = np.flatnonzero(values == least)
    chosen[level[: k - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)
