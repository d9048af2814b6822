"""Normalization of scores within each query, with the exact formulas of search engines.

A document that a signal did not retrieve always has the value 0. The table of engines, edge cases
and sources is in docs/how_to/hybrid_search.md.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Booleans, Floats, Integers

LARGEST = 1e150
FLOOR = 0.001  # OpenSearch replaces normalized scores ≤ 0 of retrieved documents by this value


class RetrievedScores(NamedTuple):
    """The scores of one signal, in document order (see :mod:`marginrank.data.queries`)."""

    scores: Floats
    ranks: Floats  # ranks from 1; arbitrary for documents that the signal did not retrieve
    retrieved: Booleans
    offsets: Integers  # query q has the documents offsets[q] … offsets[q + 1]

    def by_query(self, ufunc: np.ufunc, values: Floats, other: float) -> Floats:
        """Reduce values over each query's retrieved documents; repeat the result per document."""
        reduced = ufunc.reduceat(np.where(self.retrieved, values, other), self.offsets[:-1])
        return np.repeat(reduced, np.diff(self.offsets))

    def low_high(self) -> tuple[Floats, Floats]:
        return (
            self.by_query(np.minimum, self.scores, np.inf),
            self.by_query(np.maximum, self.scores, -np.inf),
        )

    def mean_deviation(self) -> tuple[Floats, Floats]:
        """Return mean and sample standard deviation per query; the latter is 0 for one document."""
        count = self.by_query(np.add, np.ones(self.scores.size), 0.0)
        mean = self.by_query(np.add, self.scores, 0.0) / np.maximum(count, 1.0)
        squares = self.by_query(np.add, (self.scores - mean) ** 2, 0.0)
        return mean, np.sqrt(squares / np.maximum(count - 1.0, 1.0))


def normalize(signal: RetrievedScores, normalizer: str, rrf_constant: float) -> Floats:
    """Return the normalized score of each document; 0 for documents that were not retrieved.

    Raise ValueError if the squares of scores may overflow.
    """
    largest = np.abs(signal.scores).max(initial=0.0)
    if largest > LARGEST:
        raise ValueError(
            f"scores up to {largest:g} are too large to normalize; divide them by a constant."
        )
    with np.errstate(all="ignore"):
        values = NORMALIZERS[normalizer](signal, rrf_constant)
    return np.where(signal.retrieved, values, 0.0)


def _minmax(signal: RetrievedScores, _: float) -> Floats:
    low, high = signal.low_high()
    return np.where(low == high, 1.0, (signal.scores - low) / (high - low))


def _minmax_floor(signal: RetrievedScores, _: float) -> Floats:
    values = _minmax(signal, _)
    return np.where(values == 0.0, FLOOR, values)  # OpenSearch replaces the lowest score only


def _zscore(signal: RetrievedScores, _: float) -> Floats:
    low, high = signal.low_high()
    mean, deviation = signal.mean_deviation()
    z = (signal.scores - mean) / deviation
    # If a score equals the mean in float32, OpenSearch returns the largest raw score.
    at_mean = signal.scores.astype(np.float32) == mean.astype(np.float32)
    z = np.where(deviation == 0.0, low, np.where(z <= 0.0, FLOOR, z))
    return np.where(at_mean, high, z)


def _l2(signal: RetrievedScores, _: float) -> Floats:
    norm = np.sqrt(signal.by_query(np.add, signal.scores**2, 0.0))
    return np.where(norm == 0.0, 0.0, signal.scores / norm)


def _dbsf(signal: RetrievedScores, _: float) -> Floats:
    low, high = signal.low_high()
    mean, deviation = signal.mean_deviation()
    is_equal = (low == high) | (deviation == 0.0)
    return np.where(is_equal, 0.5, (signal.scores - mean) / (6.0 * deviation) + 0.5)


def _rrf(signal: RetrievedScores, constant: float) -> Floats:
    return 1.0 / (constant + signal.ranks)


def _none(signal: RetrievedScores, _: float) -> Floats:
    return signal.scores


NORMALIZERS: dict[str, Callable[[RetrievedScores, float], Floats]] = {
    "minmax": _minmax,
    "minmax_floor": _minmax_floor,
    "zscore": _zscore,
    "l2": _l2,
    "dbsf": _dbsf,
    "rrf": _rrf,
    "none": _none,
}
