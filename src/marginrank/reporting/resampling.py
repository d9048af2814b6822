"""Bootstrap over queries: confidence intervals of means and ratios of sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from marginrank._utils.types import Floats

RESAMPLES = 1000
CONFIDENCE = 0.95
CHUNK = 1 << 22  # most entries of the matrix resamples × queries in memory at a time


def bootstrap_ratios(numerators: Floats, denominators: Floats, seed: int) -> Floats:
    """Return Σ numerators / Σ denominators for each bootstrap resample of the queries.

    The arguments have one row per query, the result has one row per resample. The same queries are
    drawn for all columns, so columns of the result can be subtracted. A column is NaN if fewer than
    two of its denominators are nonzero.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = [
            (drawn @ numerators) / (drawn @ denominators) for drawn in _drawn(len(numerators), seed)
        ]
    is_known = np.count_nonzero(denominators, axis=0) > 1
    return np.where(is_known, np.concatenate(draws), np.nan)


def interval_of(draws: Floats) -> tuple[float, float]:
    """Return the 95% percentile interval of bootstrap draws; NaN if no draw is finite."""
    tail = (1 - CONFIDENCE) / 2
    defined = draws[np.isfinite(draws)]
    if defined.size == 0:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def _drawn(n_queries: int, seed: int) -> Iterator[Floats]:
    """Yield matrices of counts: how often each query (column) is drawn in each resample (row)."""
    rng = np.random.default_rng(seed)
    at_once = max(CHUNK // n_queries, 1)
    for first in range(0, RESAMPLES, at_once):
        size = min(at_once, RESAMPLES - first)
        drawn = (rng.integers(n_queries, size=n_queries) for _ in range(size))
        counts = [np.bincount(queries, minlength=n_queries) for queries in drawn]
        yield np.array(counts, dtype=np.float64)
