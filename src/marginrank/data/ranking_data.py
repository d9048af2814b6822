"""RankingData: features, labels and queries, ready for an objective."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank import _core
from marginrank._threads import effective_threads
from marginrank.data._grouping import group_rows
from marginrank.data._validation import (
    as_matrix,
    check_features,
    check_finite,
    check_labels,
    check_weights,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def exact_sum(counts: Integers) -> int:
    """Sum non-negative integers as a Python integer, which cannot overflow."""
    low = int(np.sum(counts & 0xFFFFFFFF, dtype=np.int64))
    return (int(np.sum(counts >> 32, dtype=np.int64)) << 32) + low


@dataclass(frozen=True)
class Queries:
    """Documents grouped by query: everything about the pairs but the features.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_queries + 1,)
        Query q has the documents ``offsets[q]`` … ``offsets[q + 1]``.
    rows : ndarray of int64, shape (n_documents,), or None
        Row of X of each document; None where documents and rows are the same.
    level, n_levels : ndarray of int32
        Dense rank of each document's label inside its query; number of levels of each query.
    n_pairs, n_adjacent_pairs : ndarray of int64, shape (n_queries,)
        Pairs of each query, over all levels and over adjacent levels.
    """

    offsets: Integers
    rows: Integers | None
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

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.offsets.size - 1

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self.offsets[-1])

    def take(self, documents: Integers, query_of_document: Integers, threads: int) -> "Queries":
        """Return the given documents only (ascending), with levels ranked anew."""
        sizes = np.diff(
            np.flatnonzero(np.diff(query_of_document, prepend=-1)), append=len(documents)
        )
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = documents if self.rows is None else self.rows[documents]
        labels = self.level[documents].astype(np.float64)
        return Queries.from_labels(labels, offsets, rows, threads)


class RankingData:
    """Documents with features, labels and queries.

    Rows are grouped by query without copying X: where queries are not contiguous, the kernels visit
    the rows in another order.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_features)
        float32 and float64 with contiguous rows and canonical CSR are used as they are, read-only
        memory maps included; anything else is converted.
    y : array-like of shape (n_documents,)
        Labels, any real numbers; higher is preferred.
    qid : array-like of shape (n_documents,), optional
        Query of each document: integers, strings or other hashables, in any order.
    group : array-like of shape (n_queries,), optional
        Sizes of contiguous queries, instead of `qid`. With neither, all documents are one query.
    sample_weight : array-like of shape (n_documents,), optional
        Document weights; a pair weighs the product of its two, so that weight 2 equals a repeated
        document.
    query_weight : array-like of shape (n_queries,) or (n_documents,), optional
        Query weights, in the order in which queries first appear, or repeated for each document.
    n_jobs : int, optional
        Threads for the checks; all by default.

    Attributes
    ----------
    X, y, qid : as given, checked
        In the order of the rows; `qid` holds numbers 0, 1, … by first appearance.
    queries : Queries
        The grouped documents.
    query_ids : ndarray of shape (n_queries,)
        The id of each query.
    n_pairs : int
        Number of pairs of documents of one query with different labels, exactly.

    Examples
    --------
    >>> from marginrank import RankingData
    >>> data = RankingData([[0.0], [1.0], [2.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> data.n_queries, data.n_pairs
    (2, 1)
    """

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        threads = effective_threads(n_jobs)
        self.X = check_features(X)
        n = self.X.shape[0]
        self.y = check_labels(y, n)
        grouping = group_rows(n, qid, group)
        self.query_ids = grouping.queries
        self.matrix = as_matrix(self.X)
        check_finite(self.X, self.matrix, threads)
        rows = grouping.rows
        labels = self.y if rows is None else self.y[rows]
        self.queries = Queries.from_labels(labels, grouping.offsets, rows, threads)
        self.sample_weight = self._document_order(sample_weight)
        self.query_weight = self._by_query(query_weight)

    def _document_order(self, weights: ArrayLike | None) -> Floats | None:
        if weights is None:
            return None
        n = self.n_documents
        weights = check_weights(weights, "sample_weight", n, "one weight a document")
        return weights if self.queries.rows is None else weights[self.queries.rows]

    def _by_query(self, weights: ArrayLike | None) -> Floats | None:
        if weights is None:
            return None
        per_document = np.size(weights) == self.n_documents != self.n_queries
        n = self.n_documents if per_document else self.n_queries
        weights = check_weights(weights, "query_weight", n, "one weight a query")
        if not per_document:
            return weights
        per_row = weights if self.queries.rows is None else weights[self.queries.rows]
        per_query = per_row[self.queries.offsets[:-1]]
        differs = np.flatnonzero(per_row != np.repeat(per_query, np.diff(self.queries.offsets)))
        if differs.size:
            at = differs[0] if self.queries.rows is None else self.queries.rows[differs[0]]
            raise ValueError(
                f"query_weight[{at}] differs from another document's of its query; give all "
                "documents of a query the same weight, or one weight a query."
            )
        return per_query

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.queries.n_documents

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.queries.n_queries

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_pairs(self) -> int:
        """Number of pairs, exactly."""
        return exact_sum(self.queries.n_pairs)

    @property
    def qid(self) -> Integers:
        """Number of each row's query, by first appearance."""
        number = np.repeat(np.arange(self.n_queries), np.diff(self.queries.offsets))
        if self.queries.rows is None:
            return number
        qid = np.empty_like(number)
        qid[self.queries.rows] = number
        return qid

    def __iter__(self) -> Iterator[Any]:
        """Unpack as X, y, qid."""
        return iter((self.X, self.y, self.qid))

    def __repr__(self) -> str:
        """Return the counts."""
        return (
            f"RankingData({self.n_documents} documents, {self.n_queries} queries, "
            f"{self.n_features} features, {self.n_pairs} pairs)"
        )
