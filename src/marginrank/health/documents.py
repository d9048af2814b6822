"""Reading of documents in blocks of bounded size, and random samples of documents."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Integers
from marginrank.data import RankingData
from marginrank.data.queries import bounded_ranges
from marginrank.data.store.feature_rows import FeatureRows

BLOCK_ENTRIES = 1 << 19  # entries of X in memory at a time
SAMPLE_ENTRIES = 1 << 24  # most entries of X in a sample
MOST_DOCUMENTS = 20_000  # most documents in a sample
FEWEST_DOCUMENTS = 500  # fewest documents in a sample, even with many features

LARGEST = 1e150  # differences are clipped to this magnitude, so their squares are finite


class Block(NamedTuple):
    """The features of some documents, which are ordered by query."""

    X: Any  # float64; an array or CSR
    query: Integers  # query index of each document
    documents: Integers  # indices of the documents, ascending


def blocks(data: RankingData) -> Iterator[Block]:
    """Yield the features of all documents in blocks; a query may continue in the next block."""
    rows = FeatureRows.of(data.X)
    lengths = np.full(data.n_documents, data.n_features, dtype=np.int64)
    most = BLOCK_ENTRIES
    if rows.indptr is not None:
        lengths = data.queries.grouped(np.diff(rows.indptr).astype(np.int64))
        # Sums over documents have n_features entries, so smaller blocks would not save memory.
        most = max(most, data.n_features)
    query = data.queries.query_of_document
    for first, last in bounded_ranges(np.append(0, np.cumsum(lengths + 1)), most):
        documents = np.arange(first, last)
        yield Block(_taken(rows, data, documents), query[documents], documents)


def sample(data: RankingData, seed: int) -> Block:
    """Return a Block with all documents if they are few, else with the documents of random queries.

    The number of documents is limited, so one query of a sample may be incomplete.
    """
    most = SAMPLE_ENTRIES // data.n_features
    most = min(max(most, FEWEST_DOCUMENTS), MOST_DOCUMENTS)
    offsets, query = data.queries.offsets, data.queries.query_of_document
    documents = np.arange(data.n_documents)
    if data.n_documents > most:
        order = np.random.default_rng(seed).permutation(data.n_queries)
        ends = np.cumsum(data.queries.sizes[order])
        chosen = order[: int(np.searchsorted(ends, most)) + 1]
        ranges = [np.arange(offsets[q], offsets[q + 1]) for q in chosen]
        documents = np.sort(np.concatenate(ranges)[:most])
    return Block(_taken(FeatureRows.of(data.X), data, documents), query[documents], documents)


def _taken(rows: FeatureRows, data: RankingData, documents: Integers) -> Any:
    """Return the features of some documents, given by ascending indices, in float64."""
    order = data.queries.rows
    chosen = documents if order is None else order[documents]
    consecutive = chosen.size and np.array_equal(chosen, np.arange(chosen[0], chosen[-1] + 1))
    taken = rows.take(slice(int(chosen[0]), int(chosen[-1]) + 1) if consecutive else chosen)
    if rows.indptr is None:
        return np.asarray(taken, dtype=np.float64)
    values = taken.data.astype(np.float64)
    shape = (documents.size, rows.shape[1])
    return sp.csr_array((values, taken.indices, taken.indptr), shape=shape)


def columns(X: Any, used: Integers) -> Any:
    """Return the columns `used` of X as a dense array."""
    some = X[:, used]
    return some.toarray() if sp.issparse(some) else some


def differences(X: Any, origin: Any) -> Any:
    """Return X − origin, with 0 where X is missing.

    Differences are clipped to ±1e150, so that their squares do not overflow.
    """
    with np.errstate(over="ignore"):
        apart = np.clip(X - origin, -LARGEST, LARGEST)
    apart[np.isnan(X)] = 0.0
    return apart
