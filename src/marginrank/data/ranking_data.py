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

    Rows are grouped by query without copying X. All attributes are in the order of the rows; only
    `queries` has the grouped order.

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
        Document weights. The weight of a pair is the product of its two, so weight 2 is the same as
        repeating the document.
    query_weight : array-like of shape (n_queries,) or (n_documents,), optional
        Query weights, in the order in which queries first appear, or repeated for each document.
    cost : array-like of shape (n_documents,), optional
        Factor on the weights of the pairs in which a document is preferred, for example the inverse
        propensity of a click. LETOR text has it as ``cost:``.
    position : array-like of shape (n_documents,), optional
        Position at which a document was shown, 1 for the top, if labels are clicks; fits learn one
        effect per position, which is not a part of the model.
    context : array-like of shape (n_documents,), optional
        Layout or device, an integer or string; each has its own effects of positions.
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
    X, y, qid : as given, checked
        `qid` has numbers 0, 1, … by first appearance. `y` is float64, or integers if float64 would
        round them.
    sample_weight, cost, position, context, feature_names, comments : as given, checked, or None
        One entry per document or feature.
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
        """Create an instance from attributes that are validated already."""
        self = cls.__new__(cls)
        vars(self).update(parts._asdict())
        return self

    def _parts(self) -> DataParts:
        return DataParts(**{name: getattr(self, name) for name in DataParts._fields})

    def with_features(self, X: Any, *, n_jobs: int | None = None) -> Self:
        """Return the same documents with other features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, any number of features)
            The features, in the order of the rows.
        n_jobs : int, optional
            Threads for the checks; all by default.

        Returns
        -------
        RankingData
            Without :attr:`feature_names`. The grouping by query is reused.

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
        """Return the data in the columns of a data frame.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame, polars.LazyFrame or pyarrow.Table
            One row per document.
        label, qid : str
            Columns of the labels and of the query ids; with ``qid=None``, all rows are one query.
        features : sequence of str, optional
            Columns of the features; by default all columns without another role. X is float32 if
            all columns are float32, small integers or booleans, else float64. It shares the memory
            of a pandas frame that is in row order.
        sample_weight, query_weight : str, optional
            Columns of the weights; a query's weight is repeated for each of its documents.
        comments : str, optional
            Column of the comments.
        allow_nan : bool, default=False
            Keep NaN and nulls of features as NaN, for :class:`~marginrank.AdditiveRankSVM`. By
            default they raise ValueError.
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
        """Create data from runs: all retrieved documents, with features from each run.

        Parameters
        ----------
        runs : mapping
            Runs by name: each as from :func:`~marginrank.load_run`, a data frame or a ranx.Run.
        qrels : mapping, data frame or ranx.Qrels, optional
            Judgments, as from :func:`~marginrank.load_qrels`; queries without any are dropped. By
            default all labels are 0, for data to predict on.
        depth : int, default=100
            Number of documents per run and query.
        unjudged : {"irrelevant", "skip"}, default="irrelevant"
            Unjudged documents get label 0, or are dropped.

        Returns
        -------
        RankingData
            Features per run: its score (`name`), its rank (`name_rank`), and 1 if it lacks the
            document (`name_missing`), which then has its lowest score in the query and rank
            ``depth + 1``. `comments` holds the document ids.

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
        """Return ``{query: {document: score}}`` for one score per document, as from `predict`.

        The ids of the documents are in `comments`.

        Examples
        --------
        >>> from marginrank import RankingData
        >>> data = RankingData.from_runs({"bm25": {"q1": {"d1": 9.0, "d2": 7.0}}})
        >>> data.to_run([0.5, 2.0])
        {'q1': {'d2': 0.5, 'd1': 2.0}}
        """
        return run_of(self.query_ids[self.qid], self.comments, scores)

    def save(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a store, a folder that :meth:`open` maps into memory.

        The folder appears only when it is complete.

        Parameters
        ----------
        folder : str or path
            The folder to create.
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
        """Return the data of a store, with X mapped into memory read-only.

        Parameters
        ----------
        folder : str or path
            A folder written by :meth:`save`.
        verify : bool, default=True
            Compare the checksum of every file, and check queries, labels and weights. Otherwise
            only small files are read.

        Raises
        ------
        ValueError
            If the store is damaged, of a newer version, or not a store.
        """
        return cls._from_parts(open_store(folder, verify=verify))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cached view of X."""
        return {name: value for name, value in vars(self).items() if name not in CACHED}

    @cached_property
    def matrix(self) -> _core.Matrix:
        """X as a matrix of the native kernels; indices of CSR are checked on first access."""
        return as_matrix(self.X)

    @cached_property
    def position_codes(self) -> PositionCodes | None:
        """The positions as a categorical feature, or None."""
        return None if self.position is None else position_codes(self.position, self.context)

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
        """Number of pairs."""
        return exact_sum(self.queries.n_pairs)

    @property
    def qid(self) -> Integers:
        """Query of each row, numbered from 0 in order of first appearance."""
        return self.queries.by_row(self.queries.query_of_document)

    def __iter__(self) -> Iterator[Any]:
        """Unpack as X, y, qid."""
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
    """Return X if it is a RankingData, else a RankingData made from all arguments.

    Raise ValueError if an argument is given in addition to a RankingData, or if values are missing
    and `allow_nan` is False.
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
    """Raise ValueError if an argument repeats what a RankingData or store already contains."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name} cannot be combined with {what}, which already holds it; drop {name}, or "
                "pass X as a matrix, and y and qid as further arguments."
            )
