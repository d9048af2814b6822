"""RankingData: features, labels and queries of documents."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from marginrank import _core
from marginrank._utils.alignment import AlignedWhenUnpickled
from marginrank._utils.threads import cached_property, effective_threads
from marginrank._utils.types import Integers
from marginrank.data.frames import from_frame
from marginrank.data.positions import PositionCodes, check_positions, position_codes
from marginrank.data.queries import exact_sum, group_rows, rank_labels, weights_by_query
from marginrank.data.runs import ByDocument, retrieved_features, run_of
from marginrank.data.store.store import DataParts, open_store
from marginrank.data.store.store_writer import save_store
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.validation import (
    as_matrix,
    check_exact_labels,
    check_features,
    check_finite,
    check_not_path,
    check_texts,
    check_weights,
    columns_of,
)

CACHED = ("matrix", "position_codes")


class RankingData(AlignedWhenUnpickled):
    """Documents with features, labels and queries.

    Documents are grouped by query without copying X: all attributes are in the order of the rows,
    except `queries`, which has the documents query by query.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_features)
        The features. Float32 or float64 arrays with contiguous rows and CSR matrices with sorted,
        unique indices are not copied, read-only memory maps included; anything else is converted.
    y : array-like of shape (n_documents,)
        Labels, any real numbers; higher is preferred.
    qid : array-like of shape (n_documents,), optional
        Query of each document: integers, strings or other hashables, in any order.
    group : array-like of shape (n_queries,), optional
        Sizes of contiguous queries, instead of `qid`. With neither, all documents are one query.
    sample_weight : array-like of shape (n_documents,), optional
        Document weights. The weight of a pair is the product of the weights of its documents, so
        weight 2 is the same as repeating the document.
    query_weight : array-like of shape (n_queries,) or (n_documents,), optional
        Query weights, in the order in which queries first appear, or repeated for each document.
    cost : array-like of shape (n_documents,), optional
        Factor on the weights of the pairs in which a document is preferred, for example the inverse
        propensity of a click. In LETOR text, it is written as ``cost:<number>``.
    position : array-like of shape (n_documents,), optional
        Position at which a document was shown, 1 for the top, if labels are clicks. A fit then
        estimates one effect per position (position bias), which `predict` does not use.
    context : array-like of shape (n_documents,), optional
        Layout or device of each document, an integer or string. Each has its own position effects.
    feature_names : sequence of str, optional
        Names of the features; by default the column names if X is a data frame.
    comments : sequence of str, optional
        One comment per document.
    allow_nan : bool, default=False
        Keep missing values of X as NaN, for estimators that accept NaN, such as
        :class:`~marginrank.AdditiveRankSVM`. By default they raise ValueError.
    n_jobs : int, optional
        Threads for the checks; all by default.

    Attributes
    ----------
    X, y, qid : ndarray or sparse matrix
        The validated arguments. `y` is float64, or integers if float64 would round them. `qid`
        numbers the queries 0, 1, … in order of first appearance.
    sample_weight, cost, position, context, comments, feature_names : array-like or None
        The validated arguments, one entry per document or feature.
    query_ids, query_weight : ndarray of shape (n_queries,)
        The id of each query, by first appearance, and its weight (or None).
    queries : Queries
        The documents grouped by query.
    n_pairs : int
        Number of pairs of documents of one query with different labels.
    stored : StoredFeatures or None
        X on disk, if the data were opened from a store.
    has_nan : bool
        Whether X has missing values.

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
        cost: ArrayLike | None = None,
        position: ArrayLike | None = None,
        context: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        comments: Sequence[str] | None = None,
        allow_nan: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        threads = effective_threads(n_jobs)
        self.X = check_features(X, missing=allow_nan)
        n = self.X.shape[0]
        self.y = check_exact_labels(y, n)
        documents, self.query_ids = group_rows(n, qid, group)
        self.has_nan = check_finite(self.X, self.matrix, threads, allow_nan=allow_nan)
        self.queries = rank_labels(self.y, documents, threads)
        meaning = "one weight per document"
        self.sample_weight, self.cost = (
            None if weights is None else check_weights(weights, name, n, meaning)
            for name, weights in (("sample_weight", sample_weight), ("cost", cost))
        )
        self.query_weight = weights_by_query(query_weight, self.queries)
        self.position = self.context = None
        if position is not None or context is not None:
            self.position, self.context = check_positions(position, context, n)
        names = columns_of(X) if feature_names is None else feature_names
        self.feature_names = check_texts(
            names, "feature_names", self.n_features, "one name per feature"
        )
        self.comments: Sequence[str] | None = check_texts(
            comments, "comments", n, "one comment per document"
        )
        self.stored: StoredFeatures | None = None

    @classmethod
    def _from_parts(cls, parts: DataParts) -> Self:
        """Create a RankingData from attributes that are validated already."""
        self = cls.__new__(cls)
        vars(self).update(parts._asdict())
        return self

    def _parts(self) -> DataParts:
        return DataParts(**{name: getattr(self, name) for name in DataParts._fields})

    def with_features(self, X: Any, *, n_jobs: int | None = None) -> Self:
        """Return a data set with the same documents, labels and queries, but other features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, any number of features)
            The features, in the order of the rows.
        n_jobs : int, optional
            Threads for the checks; all by default.

        Returns
        -------
        RankingData
            The new data set, without :attr:`feature_names`.

        Examples
        --------
        >>> from marginrank import RankingData
        >>> data = RankingData([[0.0], [1.0]], [0, 1])
        >>> data.with_features([[0.0, 2.0], [1.0, 3.0]])
        RankingData(2 documents, 1 queries, 2 features, 1 pairs)
        """
        checked = check_features(X)
        if checked.shape[0] != self.n_documents:
            raise ValueError(
                f"X has {checked.shape[0]} rows and needs {self.n_documents}, one per document."
            )
        parts = self._parts()._replace(X=checked, feature_names=None, stored=None, has_nan=False)
        other = self._from_parts(parts)
        check_finite(other.X, other.matrix, effective_threads(n_jobs))
        return other

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
        allow_nan: bool = False,
        n_jobs: int | None = None,
    ) -> Self:
        """Create a RankingData from a data frame with columns of labels, query ids and features.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
            One row per document.
        label, qid : str
            Columns of the labels and of the query ids; with ``qid=None``, all rows are one query.
        features : sequence of str, optional
            Columns of the features; by default all other columns. X is float32 if all columns are
            float32, small integers or booleans, else float64. If a pandas DataFrame stores the
            columns as one C-contiguous array, X is a view of it.
        sample_weight, query_weight : str, optional
            Columns of the weights; a query's weight is repeated for each of its documents.
        comments : str, optional
            Column with one comment per document, such as its id.
        allow_nan : bool, default=False
            Keep NaN and nulls as NaN instead of raising ValueError.
        n_jobs : int, optional
            Threads for the checks; all by default.

        Returns
        -------
        RankingData
            The data set; :attr:`feature_names` are the names of the columns.

        Examples
        --------
        >>> import pandas as pd
        >>> from marginrank import RankingData
        >>> frame = pd.DataFrame({"qid": ["a", "a"], "label": [1, 0], "bm25": [2.5, 0.5]})
        >>> data = RankingData.from_frame(frame)
        >>> data.feature_names, data.n_pairs
        (['bm25'], 1)
        """

        def make(X: Any, y: Any, ids: Any, **others: Any) -> Any:
            group = [len(y)] if qid is None else None
            return cls(X, y, ids, group, allow_nan=allow_nan, **others)

        data: Self = from_frame(
            make,
            frame,
            label=label,
            qid=qid,
            features=features,
            sample_weight=sample_weight,
            query_weight=query_weight,
            comments=comments,
            allow_nan=allow_nan,
            n_jobs=n_jobs,
        )
        return data

    @classmethod
    def from_runs(
        cls,
        runs: Mapping[str, Any],
        qrels: Any = None,
        *,
        depth: int = 100,
        unjudged: str = "irrelevant",
    ) -> Self:
        """Create a RankingData from runs (ranked lists): three features per run for each document.

        Parameters
        ----------
        runs : mapping
            Names and runs. A run is a dict as returned by :func:`~marginrank.load_run`, a data
            frame or a ranx.Run.
        qrels : mapping, data frame or ranx.Qrels, optional
            Relevance judgments, as returned by :func:`~marginrank.load_qrels`. Queries without
            judgments are dropped. Without qrels, all labels are 0, for data to predict on.
        depth : int, default=100
            Number of top documents to use from each run, for each query.
        unjudged : {"irrelevant", "skip"}, default="irrelevant"
            "irrelevant" gives label 0 to documents without a judgment, "skip" drops them.

        Returns
        -------
        RankingData
            The run "bm25" has the features "bm25", the score of the document; "bm25_rank", its
            rank; and "bm25_missing", which is 1 if the run did not retrieve the document. Such a
            document gets the run's lowest score in the query and rank ``depth + 1``. `comments`
            holds the document ids.

        Examples
        --------
        >>> from marginrank import RankingData
        >>> bm25, dense = {"q1": {"d1": 9.0, "d2": 7.0}}, {"q1": {"d2": 0.8, "d3": 0.6}}
        >>> data = RankingData.from_runs({"bm25": bm25, "dense": dense}, {"q1": {"d2": 1}})
        >>> data.comments, data.feature_names[:3]
        (['d3', 'd2', 'd1'], ['bm25', 'bm25_rank', 'bm25_missing'])
        >>> data.X[:, :3].tolist()
        [[7.0, 101.0, 1.0], [7.0, 2.0, 0.0], [9.0, 1.0, 0.0]]
        """
        X, y, qid, documents, names = retrieved_features(runs, qrels, depth, unjudged)
        return cls(X, y, qid, feature_names=names, comments=documents.tolist())

    def to_run(self, scores: ArrayLike) -> ByDocument:
        """Convert one score per document, such as predictions, to ``{query: {document: score}}``.

        The documents are named by `comments`, which must hold their ids.

        Examples
        --------
        >>> from marginrank import RankingData
        >>> data = RankingData.from_runs({"bm25": {"q1": {"d1": 9.0, "d2": 7.0}}})
        >>> data.to_run([0.5, 2.0])
        {'q1': {'d2': 0.5, 'd1': 2.0}}
        """
        return run_of(self.query_ids[self.qid], self.comments, scores)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the data set to a store, a folder that :meth:`open` maps into memory.

        Parameters
        ----------
        folder : str or path
            The folder to create. It appears only when it is complete.
        overwrite : bool, default=False
            Replace an existing store.
        """
        if self.has_nan:
            raise ValueError(
                "X has NaN, which a store cannot hold; impute the values, or write a table with "
                "`marginrank convert`."
            )
        save_store(self._parts(), folder, overwrite=overwrite)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """Open a store written by :meth:`save`, with X mapped into memory (read-only).

        Parameters
        ----------
        folder : str or path
            A folder written by :meth:`save`.
        verify : bool, default=True
            Compare the checksum of every file, and validate queries, labels and weights. If False,
            only small files are read, so opening is fast.

        Raises
        ------
        ValueError
            If the store is damaged, of a newer version, or not a store.
        """
        return cls._from_parts(open_store(folder, verify=verify))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without the cached object of the native kernels."""
        return {name: value for name, value in vars(self).items() if name not in CACHED}

    @cached_property
    def matrix(self) -> _core.Matrix:
        """X as the matrix class of the C++ kernels; the first access checks the indices of CSR."""
        return as_matrix(self.X)

    @cached_property
    def position_codes(self) -> PositionCodes | None:
        """The positions of the documents, encoded as a categorical feature; None if not given."""
        return None if self.position is None else position_codes(self.position, self.context)

    @property
    def n_documents(self) -> int:
        """Number of documents, the rows of X."""
        return self.queries.n_documents

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.queries.n_queries

    @property
    def n_features(self) -> int:
        """Number of features, the columns of X."""
        return int(self.X.shape[1])

    @property
    def n_pairs(self) -> int:
        """Number of pairs of documents of one query with different labels."""
        return exact_sum(self.queries.n_pairs)

    @property
    def qid(self) -> Integers:
        """Number of each document's query: 0, 1, … in order of first appearance."""
        return self.queries.by_row(self.queries.query_of_document)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over X, y and qid, so that ``X, y, qid = data`` works."""
        return iter((self.X, self.y, self.qid))

    def __repr__(self) -> str:
        return (
            f"RankingData({self.n_documents} documents, {self.n_queries} queries, "
            f"{self.n_features} features, {self.n_pairs} pairs)"
        )


def as_ranking_data(
    X: Any,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    position: ArrayLike | None = None,
    context: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    allow_nan: bool = False,
    n_jobs: int | None = None,
) -> RankingData:
    """Return the arguments of `fit` as a RankingData: X itself if it is one, else a new one.

    Raise ValueError for y, qid, … beside a RankingData, and for NaN in X unless `allow_nan`.
    """
    others: dict[str, Any] = {
        "qid": qid,
        "group": group,
        "sample_weight": sample_weight,
        "query_weight": query_weight,
        "position": position,
        "context": context,
        "feature_names": feature_names,
    }
    if isinstance(X, RankingData):
        check_beside_data(y=y, **others)
        if X.has_nan and not allow_nan:
            check_finite(X.X, X.matrix, effective_threads(n_jobs))
        return X
    check_not_path(X)
    if y is None:
        raise ValueError(
            "y is None: a matrix X requires y to be passed, but the target y is None; pass labels, "
            "or a RankingData as X."
        )
    return RankingData(X, y, **others, allow_nan=allow_nan, n_jobs=n_jobs)


def check_beside_data(what: str = "a RankingData", **given: Any) -> None:
    """Raise ValueError if labels, query ids or weights are given in addition to a RankingData.

    `what` is the name of the data set in the message.
    """
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be combined with {what}, which already holds it; drop {name}, or "
                "pass X as a matrix, with y and qid as separate arguments."
            )
