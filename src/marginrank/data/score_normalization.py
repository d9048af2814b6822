"""Normalization of retrieval scores within each query, with the exact formulas of search engines.

A *signal* is one of the searches whose scores are combined, such as BM25 or a vector search. A
document that a signal did not retrieve always has the normalized score 0. Engines, edge cases and
sources are listed in docs/how_to/hybrid_search.md.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Booleans, Floats, Integers

LARGEST = 1e150  # largest score whose square, and sums of such squares, do not overflow
FLOOR = 0.001  # OpenSearch replaces normalized scores ≤ 0 of retrieved documents by this value


class RetrievedScores(NamedTuple):
    """Scores and ranks of one search (BM25, vectors, …) for all documents, query by query."""

    scores: Floats
    ranks: Floats  # ranks from 1; arbitrary for documents that were not retrieved
    retrieved: Booleans
    offsets: Integers  # query q has the documents offsets[q], …, offsets[q + 1] - 1

    def by_query(self, ufunc: np.ufunc, values: Floats, other: float) -> Floats:
        """Return, for each document, the result of reducing `values` over its query by `ufunc`.

        `ufunc` is a function such as ``np.minimum`` or ``np.add``. Values of documents that were
        not retrieved are replaced by `other`.
        """
        reduced = ufunc.reduceat(np.where(self.retrieved, values, other), self.offsets[:-1])
        return np.repeat(reduced, np.diff(self.offsets))

    def low_high(self) -> tuple[Floats, Floats]:
        return (
            self.by_query(np.minimum, self.scores, np.inf),
            self.by_query(np.maximum, self.scores, -np.inf),
        )

    def mean_deviation(self) -> tuple[Floats, Floats]:
        """Return the mean and sample standard deviation of the scores in each document's query.

        The standard deviation is 0 in a query with one retrieved document.
        """
        count = self.by_query(np.add, np.ones(self.scores.size), 0.0)
        mean = self.by_query(np.add, self.scores, 0.0) / np.maximum(count, 1.0)
        squares = self.by_query(np.add, (self.scores - mean) ** 2, 0.0)
        return mean, np.sqrt(squares / np.maximum(count - 1.0, 1.0))


def normalize(signal: RetrievedScores, normalizer: str, rrf_constant: float) -> Floats:
    """Return scores normalized within each query, and 0 for documents that were not retrieved.

    `normalizer` is a key of NORMALIZERS, such as "minmax" or "rrf"; `rrf_constant` is the constant
    k of reciprocal rank fusion, 1 / (k + rank). Raise ValueError if squares of scores may overflow.
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
