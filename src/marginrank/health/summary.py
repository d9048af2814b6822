"""Statistics of each feature (range, standard deviation, …) from one pass over the documents."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.types import Floats, Integers
from marginrank.data import RankingData
from marginrank.health.documents import blocks, differences

# Seed of the projections. It is not a small number: a random feature of the data may have been
# drawn with a small seed, and would then equal a projection's random numbers.
SEED = 0x9E3779B97F4A7C15
N_PROJECTIONS = 8  # random sums over documents, to find columns that resemble each other


@dataclass(frozen=True)
class FeatureSummary:
    """Statistics of each feature over all documents.

    Missing values (NaN) are counted in `missing` and ignored by the other statistics.
    """

    low: Floats
    high: Floats
    deviation: Floats  # standard deviation
    missing: Integers  # number of missing values
    filled: Integers  # number of values that are neither zero nor missing
    varies: NDArray[np.bool_]  # whether any two documents have different values
    varies_within: NDArray[np.bool_]  # whether two documents of one query have different values
    projections: Floats  # N_PROJECTIONS × n_features: sums of standardized values × random numbers


class _Part(NamedTuple):
    """Statistics of each feature over a block of documents, which are added up over blocks."""

    low: Floats
    high: Floats
    missing: Integers
    filled: Integers
    sums: Floats
    squares: Floats
    projections: Floats


def summarize(data: RankingData) -> FeatureSummary:
    """Return statistics of each feature, computed in one pass over the documents."""
    rng, n = np.random.default_rng(SEED), data.n_documents
    total, shift, last = None, np.zeros(data.n_features), None
    noise_sum = np.zeros(N_PROJECTIONS)
    varies_within = np.zeros(data.n_features, dtype=bool)
    for block in blocks(data):
        noise = rng.standard_normal((N_PROJECTIONS, block.query.size))
        noise_sum += noise.sum(axis=1)
        if sp.issparse(block.X):
            part = _sparse_part(block.X, noise)
        else:
            if total is None:
                # Sums are relative to a typical value, so large offsets cost no digits.
                shift = _typical(block.X)
            part = _part(block.X, noise, shift)
        total = part if total is None else _joined(total, part)
        varies_within |= _changes(last, block.X, block.query)
        last = block.X[-1:], block.query[-1:]
    assert total is not None
    mean = total.sums / n
    deviation = np.sqrt(np.maximum(total.squares / n - mean**2, 0.0))
    projections = total.projections - np.outer(noise_sum, mean)
    norm = np.where(deviation > 0, deviation * np.sqrt(n), np.inf)
    constant = (total.missing == 0) & (total.low == total.high)
    return FeatureSummary(
        low=total.low,
        high=total.high,
        deviation=deviation,
        missing=total.missing,
        filled=total.filled,
        varies=~constant & (total.missing < n),
        varies_within=varies_within,
        projections=projections / norm,
    )


def _typical(X: Floats) -> Floats:
    n_values = np.maximum(np.count_nonzero(~np.isnan(X), axis=0), 1)
    typical: Floats = np.nansum(X / n_values, axis=0)  # a sum of huge values would overflow
    return typical


def _part(X: Floats, noise: Floats, shift: Floats) -> _Part:
    missing = np.isnan(X)
    apart = differences(X, shift)
    return _Part(
        low=np.fmin.reduce(X, axis=0),
        high=np.fmax.reduce(X, axis=0),
        missing=np.count_nonzero(missing, axis=0),
        filled=np.count_nonzero((X != 0) & ~missing, axis=0),
        sums=apart.sum(axis=0),
        squares=np.einsum("ij,ij->j", apart, apart),
        projections=noise @ apart,
    )


def _sparse_part(X: Any, noise: Floats) -> _Part:
    """Return the statistics of a block in CSR; sums are relative to 0, unlike in :func:`_part`."""
    n_rows, n = X.shape
    by_column = X.tocsc()
    entries, starts = np.diff(by_column.indptr), by_column.indptr[:-1]
    low, high = (_extremes(f, by_column.data, starts, entries, n_rows) for f in (np.fmin, np.fmax))
    missing = np.isnan(X.data)
    values = differences(X.data, 0.0)
    plain = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    return _Part(
        low=low,
        high=high,
        missing=np.bincount(X.indices[missing], minlength=n),
        filled=np.bincount(X.indices[values != 0], minlength=n),
        sums=np.bincount(X.indices, values, n).astype(np.float64),  # integers if there is no entry
        squares=np.bincount(X.indices, values**2, n).astype(np.float64),
        projections=np.asarray(noise @ plain),
    )


def _extremes(
    extreme: Callable[..., Any], values: Floats, starts: Integers, entries: Integers, n_rows: int
) -> Floats:
    found = np.zeros(starts.size)
    used = np.flatnonzero(entries)
    if used.size:
        found[used] = extreme.reduceat(values, starts[used])  # type: ignore[attr-defined]
    return np.where(entries < n_rows, extreme(found, 0.0), found)


def _joined(a: _Part, b: _Part) -> _Part:
    sums = {name: getattr(a, name) + getattr(b, name) for name in _Part._fields[2:]}
    return _Part(np.fmin(a.low, b.low), np.fmax(a.high, b.high), **sums)


def _changes(last: Any, X: Any, query: Integers) -> NDArray[np.bool_]:
    """Return, for each feature, whether two consecutive documents of a query in a block differ.

    `last` is (row, query) of the last document before the block, or None. Missing values count as
    equal.
    """
    sparse = sp.issparse(X)
    if last is not None:
        X = sp.vstack([last[0], X], format="csr") if sparse else np.vstack([last[0], X])
        query = np.append(last[1], query)
    same = np.flatnonzero(query[1:] == query[:-1])
    if sparse:
        comparable = X.copy()
        comparable.data[np.isnan(comparable.data)] = np.inf  # data have no infinity
        different = comparable[same + 1] != comparable[same]
        return np.bincount(different.indices[different.data], minlength=X.shape[1]) > 0
    after, before = X[same + 1], X[same]
    changed: NDArray[np.bool_] = np.any(
        (after != before) & ~(np.isnan(after) & np.isnan(before)), axis=0
    )
    return changed
