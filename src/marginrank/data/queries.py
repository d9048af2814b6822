"""Documents grouped by query.

This is the one place that knows the grouped order: query by query, and inside a query the order of
the rows. Whatever has no order of its own here (features, labels, weights) is kept by row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.alignment import AlignedWhenUnpickled
from marginrank._utils.types import Floats, Integers
from marginrank.data.validation import in_order

Scalar = TypeVar("Scalar", bound=np.generic)


def exact_sum(counts: Integers) -> int:
    """Sum non-negative integers as a Python integer, which cannot overflow."""
    low = int(np.sum(counts & 0xFFFFFFFF, dtype=np.int64))
    return (int(np.sum(counts >> 32, dtype=np.int64)) << 32) + low


def bounded_ranges(offsets: Integers, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) whose offsets differ by `most` at most, or of one entry."""
    first, n = 0, offsets.size - 1
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


@dataclass(frozen=True)
class Documents(AlignedWhenUnpickled):
    """Documents grouped by query.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query q has the documents ``offsets[q]`` … ``offsets[q + 1]``.
    rows : ndarray of int64, shape (n_documents,), or None
        Row of X of each document; None where documents and rows are the same.
    """

    offsets: Integers
    rows: Integers | None

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.offsets.size - 1

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> Integers:
        """Number of documents of each query."""
        return np.diff(self.offsets)

    @property
    def query_of_document(self) -> Integers:
        """Number of each document's query."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    def row(self, document: int) -> int:
        """Return the row of a document."""
        return int(document if self.rows is None else self.rows[document])

    @overload
    def grouped(self, values: NDArray[Scalar]) -> NDArray[Scalar]: ...
    @overload
    def grouped(self, values: None) -> None: ...
    def grouped(self, values: NDArray[Any] | None) -> NDArray[Any] | None:
        """Bring what has an entry for each row of X into the order of the documents."""
        return values if values is None or self.rows is None else values[self.rows]

    def by_row(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Bring what has an entry for each document into the order of the rows of X.

        Every row of X must be a document: this is the way back from :meth:`grouped`.
        """
        if self.rows is None:
            return values
        result = np.empty_like(values)
        result[self.rows] = values
        return result

    def keep(self, documents: Integers, query_of_document: Integers) -> "Documents":
        """Return the given documents only (ascending), and the queries that have any left."""
        sizes = np.diff(
            np.flatnonzero(np.diff(query_of_document, prepend=-1)), append=len(documents)
        )
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Documents(offsets, documents if self.rows is None else self.rows[documents])


@dataclass(frozen=True)
class Queries(Documents):
    """Documents grouped by query: everything about the pairs but the features.

    Attributes
    ----------
    offsets, rows : ndarray of int64
        See :class:`Documents`.
    level, n_levels : ndarray of int32
        Dense rank of each document's label inside its query; number of levels of each query.
    n_pairs, n_adjacent_pairs : ndarray of int64, shape (n_queries,)
        Pairs of each query, over all levels and over adjacent levels.
    """

    level: NDArray[np.int32]
    n_levels: NDArray[np.int32]
    n_pairs: Integers
    n_adjacent_pairs: Integers

    @classmethod
    def from_labels(
        cls, labels: Floats, offsets: Integers, rows: Integers | None, threads: int
    ) -> "Queries":
        """Rank `labels` (in document order) inside each query."""
        return cls(offsets, rows, *_core.rank_labels(labels, offsets, threads))

    def between(self, first: int, last: int, first_row: int = 0) -> "Queries":
        """Return neighbouring queries alone, on a matrix that begins with some row."""
        begin, end = self.offsets[first], self.offsets[last]
        documents, queries = slice(begin, end), slice(first, last)
        return Queries(
            offsets=self.offsets[first : last + 1] - begin,
            rows=None if self.rows is None else self.rows[documents] - first_row,
            level=self.level[documents],
            n_levels=self.n_levels[queries],
            n_pairs=self.n_pairs[queries],
            n_adjacent_pairs=self.n_adjacent_pairs[queries],
        )

    def take(self, documents: Integers, query_of_document: Integers, threads: int) -> "Queries":
        """Return the given documents only (ascending), with levels ranked anew."""
        kept = self.keep(documents, query_of_document)
        labels = self.level[documents].astype(np.float64)
        return Queries.from_labels(labels, kept.offsets, kept.rows, threads)


def rank_labels(y: NDArray[Any], documents: Documents, threads: int) -> Queries:
    """Rank labels that are in the order of the rows."""
    labels = documents.grouped(in_order(y))
    return Queries.from_labels(labels, documents.offsets, documents.rows, threads)
