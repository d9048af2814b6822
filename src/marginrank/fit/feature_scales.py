"""Scales of features: range, standard deviation, and within-query standard deviation.

X, dense or sparse, is read a few rows at a time, and in chunks if it does not fit in memory. One
value of each feature is subtracted from all others before squares are added up. A large offset then
costs no precision, and a constant feature has a scale of exactly zero.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import Documents
from marginrank.data.ranking_data import RankingData

BLOCK_ENTRIES = 1 << 17  # entries of X that are read at a time: they fit in a cache


class FeatureScale(ABC):
    """Base class: computes one scale per feature from documents that are added in chunks."""

    @abstractmethod
    def add(self, data: RankingData) -> None:
        """Update the scale with documents of whole queries; columns missing in X count as zero."""

    @abstractmethod
    def merge(self, other: Any) -> None:
        """Update the scale with all documents that were added to another object of this class."""

    @abstractmethod
    def values(self) -> Floats:
        """Return the scale of each feature over all added documents; 0 for a constant feature."""


class RangeScale(FeatureScale):
    """Computes the range of each feature (maximum minus minimum) from documents added in chunks."""

    def __init__(self) -> None:
        self._low: Floats | None = None
        self._high: Floats | None = None

    def add(self, data: RankingData) -> None:
        for first, last in _heights(data.X, data.n_documents):
            block = data.X[first:last]
            self._widen(_dense_row(block.min(axis=0)), _dense_row(block.max(axis=0)))

    def merge(self, other: "RangeScale") -> None:
        if other._low is not None and other._high is not None:
            self._widen(other._low, other._high)

    def _widen(self, low: Floats, high: Floats) -> None:
        if self._low is None or self._high is None:
            self._low, self._high = low, high
        else:
            self._low = np.minimum(*_equally_wide(self._low, low))
            self._high = np.maximum(*_equally_wide(self._high, high))

    def values(self) -> Floats:
        assert self._low is not None
        assert self._high is not None
        return self._high - self._low


class StandardScale(FeatureScale):
    """Computes the standard deviation of each feature from documents added in chunks."""

    def __init__(self) -> None:
        self._group: _Group | None = None

    def add(self, data: RankingData) -> None:
        if self._group is None:
            self._group = _Group.beginning_with(data.X[:1])
        self._group.widen(data.n_features)
        for first, last in _heights(data.X, data.n_documents):
            self._group.add(_as_wide(data.X[first:last], self._group.shift.size))

    def merge(self, other: "StandardScale") -> None:
        if self._group is None:
            self._group = other._group
        elif other._group is not None:
            self._group.merge(other._group)

    def values(self) -> Floats:
        assert self._group is not None
        return np.sqrt(self._group.squares / self._group.count)


class QueryScale(FeatureScale):
    """Computes the within-query standard deviation of each feature from documents added in chunks.

    It is the root mean squared deviation of documents from the mean of their query.
    """

    def __init__(self) -> None:
        self._squares = np.zeros(0)
        self._count = 0

    def add(self, data: RankingData) -> None:
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

    def merge(self, other: "QueryScale") -> None:
        self._count += other._count
        self._squares = np.add(*_equally_wide(self._squares, other._squares))

    def values(self) -> Floats:
        return np.sqrt(self._squares / self._count)


@dataclass
class _Group:
    """Running mean and sum of squared deviations of each feature over a group of documents.

    Groups are joined by the formulas of Chan, Golub and LeVeque (1979).
    """

    shift: Floats  # the first document
    count: int
    mean: Floats  # mean minus the shift
    squares: Floats  # sum of the squared deviations from the mean

    @classmethod
    def beginning_with(cls, row: Any) -> "_Group":
        """Create an empty group; the given document is subtracted from all that are added later."""
        shift = _dense_row(row)
        return cls(shift, 0, np.zeros(shift.size), np.zeros(shift.size))

    def widen(self, n_features: int) -> None:
        """Append features to the group that were zero in all documents so far."""
        self.shift, self.mean, self.squares = (
            _widened(v, n_features) for v in (self.shift, self.mean, self.squares)
        )

    def add(self, block: Any) -> None:
        moments = _sparse_moments if sp.issparse(block) else _dense_moments
        mean, squares = moments(block, self.shift)
        self._join(block.shape[0], mean, squares)

    def merge(self, other: "_Group") -> None:
        n_features = max(self.shift.size, other.shift.size)
        self.widen(n_features)
        other.widen(n_features)
        self._join(other.count, (other.shift - self.shift) + other.mean, other.squares)

    def _join(self, n_rows: int, mean: Floats, squares: Floats) -> None:
        """Add documents, given their number, their mean minus the shift, and sum of squares."""
        count = self.count + n_rows
        share = n_rows / count
        apart = mean - self.mean
        self.mean = self.mean + share * apart
        self.squares = self.squares + squares + (self.count * share) * apart**2
        self.count = count


def _dense_moments(block: Any, shift: Floats) -> tuple[Floats, Floats]:
    """Return the mean of the rows minus `shift`, and the sum of squared deviations from it."""
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
    """Return, for each feature, the sum of squared deviations from its mean in one query."""
    group = _Group.beginning_with(_rows(X, documents, first, first + 1))
    for start, stop in _heights(X, last - first):
        group.add(_rows(X, documents, first + start, first + stop))
    return group.squares


def _dense_squares(block: Any, offsets: Integers) -> Floats:
    """Return, for each feature, the sum of squared deviations from query means over a block."""
    sizes = np.diff(offsets)
    apart = block - np.repeat(block[offsets[:-1]].astype(np.float64), sizes, axis=0)
    n_rows = block.shape[0]
    adds = sp.csr_array((np.ones(n_rows), np.arange(n_rows), offsets), shape=(sizes.size, n_rows))
    means = (adds @ apart) / sizes[:, None]
    apart -= np.repeat(means, sizes, axis=0)
    squares: Floats = np.einsum("ij,ij->j", apart, apart)
    return squares


def _sparse_squares(block: Any, offsets: Integers) -> Floats:
    """Return the sums of :func:`_dense_squares` for sparse rows.

    Entries are sorted by column and row, so the entries of one query in one column are adjacent.
    They form a cell.
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
    # Only a cell without zeros can have a large offset compared with the deviations.
    shift = np.where(zeros == 0, values[starts], 0.0)
    apart = values - shift[cell]
    means = np.bincount(cell, apart, starts.size) / n_rows
    apart -= means[cell]
    squares = np.bincount(cell, apart**2, starts.size) + zeros * means**2
    return np.bincount(column[starts], squares, block.shape[1]).astype(np.float64, copy=False)


def _widened(values: Floats, n_features: int) -> Floats:
    return np.pad(values, (0, max(n_features - values.size, 0)))


def _equally_wide(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    n_features = max(a.size, b.size)
    return _widened(a, n_features), _widened(b, n_features)


def _as_wide(block: Any, n_features: int) -> Any:
    missing = n_features - block.shape[1]
    if missing <= 0:
        return block
    if sp.issparse(block):
        shape = (block.shape[0], n_features)
        return sp.csr_array((block.data, block.indices, block.indptr), shape=shape)
    return np.pad(block, ((0, 0), (0, missing)))


def _rows(X: Any, documents: Documents, first: int, last: int) -> Any:
    some = slice(first, last)
    return X[some if documents.rows is None else documents.rows[some]]


def _dense_row(row: Any) -> Floats:
    dense = row.toarray() if sp.issparse(row) else row
    return np.ravel(dense).astype(np.float64)


def _height(X: Any) -> int:
    if not sp.issparse(X):
        return max(1, BLOCK_ENTRIES // int(X.shape[1]))
    # Each entry needs several temporary numbers. Sums are computed for every feature, so a block
    # should have at least one entry per feature.
    entries = max(BLOCK_ENTRIES // 4, int(X.shape[1]))
    return max(1, entries * int(X.shape[0]) // max(int(X.nnz), 1))


def _heights(X: Any, n_rows: int) -> Iterator[tuple[int, int]]:
    height = _height(X)
    for first in range(0, n_rows, height):
        yield first, min(first + height, n_rows)


def _blocks_of_queries(X: Any, documents: Documents) -> Iterator[Integers]:
    """Yield, for each block of whole queries, the offsets of its queries."""
    offsets, height, first = documents.offsets, _height(X), 0
    while first < documents.n_queries:
        last = int(np.searchsorted(offsets, offsets[first] + height, side="right")) - 1
        last = max(last, first + 1)
        yield offsets[first : last + 1]
        first = last
