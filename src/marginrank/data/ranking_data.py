"""RankingData: features, labels and queries, ready for an objective."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank import _core
from marginrank._base.cached import cached_property
from marginrank._base.threads import effective_threads
from marginrank._base.types import Floats, Integers
from marginrank.data.grouping import group_rows
from marginrank.data.validation import (
    as_matrix,
    check_exact_labels,
    check_features,
    check_finite,
    check_weights,
    in_order,
)


def exact_sum(counts: Integers) -> int:
    """Sum non-negative integers as a Python integer, which cannot overflow."""
    low = int(np.sum(counts & 0xFFFFFFFF, dtype=np.int64))
    return (int(np.sum(counts >> 32, dtype=np.int64)) << 32) + low


@dataclass(frozen=True)
class Documents:
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
    def query_of_document(self) -> Integers:
        """Number of each document's query."""
        return np.repeat(np.arange(self.n_queries), np.diff(self.offsets))

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

    def take(self, documents: Integers, query_of_document: Integers, threads: int) -> "Queries":
        """Return the given documents only (ascending), with levels ranked anew."""
        kept = self.keep(documents, query_of_document)
        labels = self.level[documents].astype(np.float64)
        return Queries.from_labels(labels, kept.offsets, kept.rows, threads)


def rank_labels(y: NDArray[Any], offsets: Integers, rows: Integers | None, threads: int) -> Queries:
    """Rank labels that are in the order of the rows."""
    labels = in_order(y)
    return Queries.from_labels(labels if rows is None else labels[rows], offsets, rows, threads)


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
    feature_names : sequence of str, optional
        Names of the features.
    comments : sequence of str, optional
        A comment for each document.
    n_jobs : int, optional
        Threads for the checks; all by default.

    Attributes
    ----------
    X, y, qid : as given, checked
        In the order of the rows; `qid` holds numbers 0, 1, … by first appearance. `y` is float64,
        unless it was given as integers that float64 cannot tell apart.
    queries : Queries
        The grouped documents.
    query_ids : ndarray of shape (n_queries,)
        The id of each query.
    feature_names : list of str or None
        As given.
    comments : sequence of str or None
        As given, in the order of the rows.
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
        feature_names: Sequence[str] | None = None,
        comments: Sequence[str] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        threads = effective_threads(n_jobs)
        self.X = check_features(X)
        n = self.X.shape[0]
        self.y = check_exact_labels(y, n)
        grouping = group_rows(n, qid, group)
        self.query_ids = grouping.queries
        check_finite(self.X, self.matrix, threads)
        self.queries = rank_labels(self.y, grouping.offsets, grouping.rows, threads)
        self.sample_weight = self._document_order(sample_weight)
        self.query_weight = self._by_query(query_weight)
        self.feature_names = _check_texts(
            feature_names, "feature_names", self.n_features, "one name a feature"
        )
        self.comments: Sequence[str] | None = _check_texts(
            comments, "comments", n, "one comment a document"
        )

    @classmethod
    def _from_parts(
        cls,
        *,
        X: Any,
        y: NDArray[Any],
        queries: Queries,
        query_ids: NDArray[Any],
        sample_weight: Floats | None,
        query_weight: Floats | None,
        feature_names: list[str] | None,
        comments: Sequence[str] | None,
    ) -> Self:
        """Put together what another instance had checked and grouped."""
        self = cls.__new__(cls)
        self.X = X
        self.y = y
        self.queries = queries
        self.query_ids = query_ids
        self.sample_weight = sample_weight
        self.query_weight = query_weight
        self.feature_names = feature_names
        self.comments = comments
        return self

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: Any = "label",
        qid: Any = "qid",
        features: Sequence[Any] | None = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        comments: Any = None,
        n_jobs: int | None = None,
    ) -> "RankingData":
        """Take the columns of a data frame.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
            One row a document.
        label, qid : str
            Columns of the labels and of the query ids; ``qid=None`` makes one query of all rows.
        features : sequence of str, optional
            Columns of the features, in this order; by default all that have no other use. Those of
            float32, small integers and booleans make X float32, others float64. X shares the
            memory of a pandas frame that holds them in row order.
        sample_weight, query_weight : str, optional
            Columns of the weights; a query's weight is repeated for each of its documents.
        comments : str, optional
            Column of the comments.
        n_jobs : int, optional
            Threads for the checks; all by default.

        Returns
        -------
        RankingData
            With :attr:`feature_names`.

        Examples
        --------
        >>> import pandas as pd
        >>> from marginrank import RankingData
        >>> frame = pd.DataFrame({"qid": ["a", "a"], "label": [1, 0], "bm25": [2.5, 0.5]})
        >>> data = RankingData.from_frame(frame)
        >>> data.feature_names, data.n_pairs
        (['bm25'], 1)
        """
        from marginrank.data.formats.frames import from_frame

        return from_frame(
            frame,
            label=label,
            qid=qid,
            features=features,
            sample_weight=sample_weight,
            query_weight=query_weight,
            comments=comments,
            n_jobs=n_jobs,
        )

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a store: a folder that :meth:`open` maps into memory.

        The folder appears only when it is complete.

        Parameters
        ----------
        folder : str or path
            The folder to make.
        overwrite : bool, default=False
            Replace the store that is there.
        """
        from marginrank.data.formats.store import save_store

        save_store(self, folder, overwrite=overwrite)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, verify: bool = True) -> "RankingData":
        """Open a store: X is mapped into memory, read-only.

        Parameters
        ----------
        folder : str or path
            A folder written by :meth:`save`.
        verify : bool, default=True
            Read every file once to compare its checksum, and see that queries, labels and weights
            make sense. Else only small files are read.

        Returns
        -------
        RankingData

        Raises
        ------
        ValueError
            If the store is damaged, of a newer version, or no store.
        """
        from marginrank.data.formats.store import open_store

        return open_store(folder, verify=verify)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the view of X, which is made again when it is asked for."""
        return {name: value for name, value in vars(self).items() if name != "matrix"}

    @cached_property
    def matrix(self) -> _core.Matrix:
        """X for the kernels; indices of CSR are checked when it is first asked for."""
        return as_matrix(self.X)

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
        number = self.queries.query_of_document
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


def _check_texts(values: Sequence[str] | None, name: str, n: int, meaning: str) -> list[str] | None:
    if values is None:
        return None
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries and needs {n}, {meaning}.")
    return list(values)
