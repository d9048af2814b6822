"""How much features vary: over all documents, or inside queries.

X is read a few rows at a time, dense or sparse, and chunk by chunk where it does not fit in memory.
Values are taken relative to one of their own group, so that an offset costs no digits and a feature
that does not vary has a spread of exactly zero. Entries that a sparse matrix leaves out are zeros
like any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import Documents
from marginrank.data.ranking_data import RankingData

BLOCK_ENTRIES = 1 << 17  # of X that are looked at at a time: they fit in a cache


class Spread(Protocol):
    """How much each feature varies in the data so far."""

    def add(self, data: RankingData) -> None:
        """Take more documents into account; features that some do not have are zero there."""

    def merge(self, other: Any) -> None:
        """Take the documents into account that another of the same kind has seen."""

    def values(self) -> Floats:
        """Return a number for each feature, zero for one that does not vary."""


class RangeSpread:
    """The largest value less the smallest."""

    def __init__(self) -> None:
        self._low: Floats | None = None
        self._high: Floats | None = None

    def add(self, data: RankingData) -> None:
        """Take more documents into account."""
        for first, last in _heights(data.X, data.n_documents):
            block = data.X[first:last]
            self._widen(_dense_row(block.min(axis=0)), _dense_row(block.max(axis=0)))

    def merge(self, other: "RangeSpread") -> None:
        """Take the documents of another into account."""
        if other._low is not None and other._high is not None:
            self._widen(other._low, other._high)

    def _widen(self, low: Floats, high: Floats) -> None:
        if self._low is None or self._high is None:
            self._low, self._high = low, high
        else:
            self._low = np.minimum(*_equally_wide(self._low, low))
            self._high = np.maximum(*_equally_wide(self._high, high))

    def values(self) -> Floats:
        """Return the range of each feature."""
        assert self._low is not None
        assert self._high is not None
        return self._high - self._low


class TotalSpread:
    """The root of the mean squared deviation from the mean."""

    def __init__(self) -> None:
        self._group: _Group | None = None

    def add(self, data: RankingData) -> None:
        """Take more documents into account."""
        if self._group is None:
            self._group = _Group.beginning_with(data.X[:1])
        self._group.widen(data.n_features)
        for first, last in _heights(data.X, data.n_documents):
            self._group.add(_as_wide(data.X[first:last], self._group.shift.size))

    def merge(self, other: "TotalSpread") -> None:
        """Take the documents of another into account."""
        if self._group is None:
            self._group = other._group
        elif other._group is not None:
            self._group.merge(other._group)

    def values(self) -> Floats:
        """Return the standard deviation of each feature."""
        assert self._group is not None
        return np.sqrt(self._group.squares / self._group.count)


class QuerySpread:
    """The root of the mean squared deviation of documents from the mean of their query."""

    def __init__(self) -> None:
        self._squares = np.zeros(0)
        self._count = 0

    def add(self, data: RankingData) -> None:
        """Take more documents into account; queries are whole."""
        self._count += data.n_documents
        squares = np.zeros(data.n_features)
        for offsets in _blocks_of_queries(data.X, data.queries):
            if offsets.size == 2:
                squares += _squares_of_query(data.X, data.queries, *offsets)
            else:
                block = _rows(data.X, data.queries, offsets[0], offsets[-1])
                inside = _sparse_squares if sp.issparse(block) else _dense_squares
                squares += inside(block, offsets - offsets[0])
        self._squares = np.add(*_equally_wide(self._squares, squares))

    def merge(self, other: "QuerySpread") -> None:
        """Take the documents of another into account."""
        self._count += other._count
        self._squares = np.add(*_equally_wide(self._squares, other._squares))

    def values(self) -> Floats:
        """Return the spread of each feature inside queries."""
        return np.sqrt(self._squares / self._count)


@dataclass
class _Group:
    """Documents that are compared with one mean.

    Parts are put together by the formula of Chan, Golub and LeVeque (1979).

    Attributes
    ----------
    shift : ndarray of shape (n_features,)
        The first document.
    count : int
        Number of documents.
    mean, squares : ndarray of shape (n_features,)
        Mean less the shift; sum of the squared deviations from the mean.
    """

    shift: Floats
    count: int
    mean: Floats
    squares: Floats

    @classmethod
    def beginning_with(cls, row: Any) -> "_Group":
        """Return a group that is still empty, and whose first document will be this."""
        shift = _dense_row(row)
        return cls(shift, 0, np.zeros(shift.size), np.zeros(shift.size))

    def widen(self, n_features: int) -> None:
        """Have more features, which were zero so far."""
        self.shift, self.mean, self.squares = (
            _widened(v, n_features) for v in (self.shift, self.mean, self.squares)
        )

    def add(self, block: Any) -> None:
        """Take more documents into account."""
        moments = _sparse_moments if sp.issparse(block) else _dense_moments
        mean, squares = moments(block, self.shift)
        self._join(block.shape[0], mean, squares)

    def merge(self, other: "_Group") -> None:
        """Take the documents of another group into account."""
        n_features = max(self.shift.size, other.shift.size)
        self.widen(n_features)
        other.widen(n_features)
        self._join(other.count, (other.shift - self.shift) + other.mean, other.squares)

    def _join(self, n_rows: int, mean: Floats, squares: Floats) -> None:
        """Add some documents, given their mean less the shift of this group."""
        count = self.count + n_rows
        share = n_rows / count
        apart = mean - self.mean
        self.mean = self.mean + share * apart
        self.squares = self.squares + squares + (self.count * share) * apart**2
        self.count = count


def _dense_moments(block: Any, shift: Floats) -> tuple[Floats, Floats]:
    """Return the mean of some rows less the shift, and the squared deviations from it."""
    apart = block - shift
    mean = apart.mean(axis=0)
    apart -= mean
    return mean, np.einsum("ij,ij->j", apart, apart)


def _sparse_moments(block: Any, shift: Floats) -> tuple[Floats, Floats]:
    n_rows, n_features = block.shape
    column = block.indices
    zeros = n_rows - np.bincount(column, minlength=n_features)
    apart = block.data - shift[column]
    mean = (np.bincount(column, apart, n_features) - zeros * shift) / n_rows
    apart -= mean[column]
    return mean, np.bincount(column, apart**2, n_features) + zeros * (shift + mean) ** 2


def _squares_of_query(X: Any, documents: Documents, first: int, last: int) -> Floats:
    """Return the squared deviations in a query of any length."""
    group = _Group.beginning_with(_rows(X, documents, first, first + 1))
    for start, stop in _heights(X, last - first):
        group.add(_rows(X, documents, first + start, first + stop))
    return group.squares


def _dense_squares(block: Any, offsets: Integers) -> Floats:
    """Return the squared deviations from the means of queries that begin at the offsets."""
    sizes = np.diff(offsets)
    apart = block - np.repeat(block[offsets[:-1]].astype(np.float64), sizes, axis=0)
    n_rows = block.shape[0]
    adds = sp.csr_array((np.ones(n_rows), np.arange(n_rows), offsets), shape=(sizes.size, n_rows))
    means = (adds @ apart) / sizes[:, None]
    apart -= np.repeat(means, sizes, axis=0)
    squares: Floats = np.einsum("ij,ij->j", apart, apart)
    return squares


def _sparse_squares(block: Any, offsets: Integers) -> Floats:
    """Return the same of sparse rows.

    By column, with rows in their order, the entries of a query stand together: they are a cell.
    """
    by_column = block.tocsc()
    values = by_column.data.astype(np.float64, copy=False)
    sizes = np.diff(offsets)
    query = np.repeat(np.arange(sizes.size), sizes)[by_column.indices]
    begins = np.ones(values.size, dtype=bool)
    begins[1:] = query[1:] != query[:-1]
    column = np.repeat(np.arange(block.shape[1]), np.diff(by_column.indptr))
    begins[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(begins)
    cell = np.cumsum(begins) - 1
    n_rows = sizes[query[starts]]
    zeros = n_rows - np.diff(starts, append=values.size)
    # A cell without zeros may have an offset; one with zeros is as wide as its values are large.
    shift = np.where(zeros == 0, values[starts], 0.0)
    apart = values - shift[cell]
    means = np.bincount(cell, apart, starts.size) / n_rows
    apart -= means[cell]
    squares = np.bincount(cell, apart**2, starts.size) + zeros * means**2
    return np.bincount(column[starts], squares, block.shape[1]).astype(np.float64, copy=False)


def _widened(values: Floats, n_features: int) -> Floats:
    """Return an entry for each feature, zero for those that have none."""
    return np.pad(values, (0, max(n_features - values.size, 0)))


def _equally_wide(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    n_features = max(a.size, b.size)
    return _widened(a, n_features), _widened(b, n_features)


def _as_wide(block: Any, n_features: int) -> Any:
    """Return some rows with columns of zeros for the features that they do not have."""
    missing = n_features - block.shape[1]
    if missing <= 0:
        return block
    if sp.issparse(block):
        shape = (block.shape[0], n_features)
        return sp.csr_array((block.data, block.indices, block.indptr), shape=shape)
    return np.pad(block, ((0, 0), (0, missing)))


def _rows(X: Any, documents: Documents, first: int, last: int) -> Any:
    """Return the features of some documents."""
    some = slice(first, last)
    return X[some if documents.rows is None else documents.rows[some]]


def _dense_row(row: Any) -> Floats:
    dense = row.toarray() if sp.issparse(row) else row
    return np.ravel(dense).astype(np.float64)


def _height(X: Any) -> int:
    """Return how many rows are looked at at a time."""
    if not sp.issparse(X):
        return max(1, BLOCK_ENTRIES // int(X.shape[1]))
    # An entry has many numbers on the way. Sums are made for every feature, so that a block should
    # have an entry for most of them.
    entries = max(BLOCK_ENTRIES // 4, int(X.shape[1]))
    return max(1, entries * int(X.shape[0]) // max(int(X.nnz), 1))


def _heights(X: Any, n_rows: int) -> Iterator[tuple[int, int]]:
    """Cut some rows of X into blocks."""
    height = _height(X)
    for first in range(0, n_rows, height):
        yield first, min(first + height, n_rows)


def _blocks_of_queries(X: Any, documents: Documents) -> Iterator[Integers]:
    """Cut the documents into blocks of whole queries; yield where these begin and end."""
    offsets, height, first = documents.offsets, _height(X), 0
    while first < documents.n_queries:
        last = int(np.searchsorted(offsets, offsets[first] + height, side="right")) - 1
        last = max(last, first + 1)
        yield offsets[first : last + 1]
        first = last
