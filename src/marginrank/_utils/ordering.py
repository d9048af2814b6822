"""The largest of many values, chosen alike on every machine."""

import numpy as np

from marginrank._utils.types import Floats, Integers


def places_of_largest(values: Floats, k: int) -> Integers:
    """Return where the k largest values are, in ascending order; of equal ones, the first.

    ``numpy.argpartition`` is free to choose among equal ones, and does so by version and processor.
    """
    n = values.size
    if k >= n:
        return np.arange(n)
    least = np.partition(values, n - k)[n - k]
    chosen = values > least
    level = np.flatnonzero(values == least)
    chosen[level[: k - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)
