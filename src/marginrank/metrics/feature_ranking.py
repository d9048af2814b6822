"""Ranking of features by how well each feature alone ranks the documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginrank._utils.feature_names import names_of_all
from marginrank._utils.memory import require_memory
from marginrank._utils.tables import ResultTable
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData, as_ranking_data
from marginrank.metrics import get_metric, pairwise_accuracy
from marginrank.metrics.names import METRICS, Metric, metric_name, order_free, split_options
from marginrank.metrics.options import ROUNDING, exceeds

# Number of blocks of columns of a sparse X. Each block is a copy of about 1/16 of the entries, and
# takes one pass over all entries: more blocks would save memory but cost time.
N_BLOCKS = 16
SAMPLE = 1 << 16  # number of sampled entries that determine the blocks
FEATURE_BYTES = 160  # approximate bytes of a feature's name and results


@dataclass(frozen=True, eq=False, repr=False)
class FeatureRanking(ResultTable):
    """Result of :func:`rank_features`: the metric of each feature used as the score of documents.

    Attributes
    ----------
    metric : str
        Name of the metric.
    feature_names : list of str
        Names of the features, in the order of the columns.
    descending, ascending : ndarray of shape (n_features,)
        The metric if documents are ranked by descending and by ascending values of the feature.
    best : ndarray of shape (n_features,)
        The better of the two; nan if the metric has no value.
    direction : ndarray of int64, shape (n_features,)
        1 where `descending` is at least as good, else −1.
    order : ndarray of int64, shape (n_features,)
        Columns from the best feature to the worst; equally good ones in the order of the columns.
    chance : float
        The metric of a constant feature, which is the expectation in a random order.
    """

    metric: str
    feature_names: list[str]
    descending: Floats
    ascending: Floats
    best: Floats
    direction: Integers
    order: Integers
    chance: float

    def _columns(self) -> dict[str, Any]:
        order = self.order
        return {
            "feature": [self.feature_names[j] for j in order],
            "best": self.best[order],
            "direction": self.direction[order],
            "descending": self.descending[order],
            "ascending": self.ascending[order],
        }

    def _summary(self) -> str:
        first = int(self.order[0])
        return (
            f"{self.order.size} features by {self.metric}, best {self.feature_names[first]!r} "
            f"with {self.best[first]:.4f}, chance {self.chance:.4f}"
        )


def rank_features(
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    metric: str | Metric = "ndcg@10",
    feature_names: Sequence[str] | None = None,
    n_jobs: int | None = None,
) -> FeatureRanking:
    """Rank features by how well each one alone ranks the documents, in terms of a metric.

    Feature j is used as the score of the documents, in both directions: metric(y, x_j) and
    metric(y, −x_j). Often a few strong features alone rank almost as well as a model of all
    features (Lai et al., 2013, Fig. 1). The time is O(n_features · l log l) for l documents.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
        The documents. float32 and float64 with contiguous rows and CSR are not copied. A
        RankingData has labels, queries and names; its weights are ignored.
    y : array-like of shape (n_documents,)
        Labels.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    metric : str or callable, default="ndcg@10"
        As in :func:`~marginrank.metrics.get_metric`; higher must be better.
    feature_names : sequence of str, optional
        Names of the features; by default the columns of a data frame, or f1, f2, …
    n_jobs : int, optional
        Number of threads; all by default. Each thread holds a copy of a column of X. A metric that
        is not from :mod:`marginrank.metrics` is called from one thread.

    Returns
    -------
    FeatureRanking

    Notes
    -----
    Many features have few distinct values, or one per query. So metrics of
    :mod:`marginrank.metrics` get ``ties="average"`` (``"half"`` in pairwise_accuracy), and a
    constant feature has the value `chance` in any order of the documents. Pass
    ``get_metric("ndcg@10", ties="order")`` to keep ties in input order. A function of your own gets
    the documents in input order.

    Examples
    --------
    >>> from marginrank import rank_features
    >>> X = [[0.0, 3.0, 7.0], [1.0, 2.0, 7.0], [2.0, 1.0, 7.0], [3.0, 2.0, 7.0]]
    >>> ranking = rank_features(X, [1, 2, 0, 0], metric="auc", feature_names=["a", "b", "c"])
    >>> ranking.descending, ranking.direction
    (array([0.   , 0.875, 0.5  ]), array([-1,  1,  1]))
    >>> [ranking.feature_names[j] for j in ranking.order], ranking.chance
    (['a', 'b', 'c'], 0.5)
    """
    function = get_metric(metric)
    data = as_ranking_data(X, y, qid, group, feature_names=feature_names, n_jobs=n_jobs)
    require_memory(
        FEATURE_BYTES * data.n_features,
        f"X has {data.n_features} features, and a ranking of them",
        "check the largest index; if indices are hashes or ids, map them to fewer columns",
    )
    measure = _ColumnMetric(function, data)
    chance = measure(np.zeros(data.n_documents))
    threads = effective_threads(n_jobs) if measure.is_ours else 1
    values = _score_features(measure, data.X, threads, chance)
    descending, ascending = values[:, 0], values[:, 1]
    best = np.fmax(descending, ascending)
    return FeatureRanking(
        metric=metric_name(function),
        feature_names=names_of_all(data.feature_names, data.n_features),
        descending=descending,
        ascending=ascending,
        best=best,
        direction=np.where(exceeds(ascending, descending), -1, 1),
        order=best_first(best),
        chance=chance,
    )


def best_first(values: Floats) -> Integers:
    """Return column indices sorted by descending value, nan last.

    Values that are equal up to rounding errors keep the order of the columns.
    """
    step = ROUNDING * np.fmax.reduce(np.abs(values), initial=0.0)
    return np.argsort(-np.round(values / step) if step > 0 else -values, kind="stable")


class _ColumnMetric:
    """A metric with fixed labels and queries: a function of the scores alone."""

    def __init__(self, metric: Metric, data: RankingData) -> None:
        function, options = split_options(metric)
        self.is_ours = function in METRICS.values()
        self._metric, self._y, self._qid = metric, data.y, data.qid
        self._grouped: Callable[[Floats], Floats] = lambda scores: scores
        if not self.is_ours:
            return
        self._metric = partial(order_free(metric), n_jobs=1)  # columns run in parallel
        if function is pairwise_accuracy and "ties" not in options:
            self._metric = partial(self._metric, ties="half")
        self(np.zeros(data.n_documents))  # checks the labels, with row numbers in error messages
        # Rows are grouped by query once, not for each column.
        self._grouped = data.queries.grouped
        self._y, self._qid = map(data.queries.grouped, (data.y, data.qid))

    def __call__(self, scores: Floats) -> float:
        return float(self._metric(self._y, self._grouped(scores), qid=self._qid))


def _score_features(
    measure: Callable[[Floats], float], X: Any, threads: int, chance: float
) -> Floats:
    """Return an array with the metric of each column of X, and of its negative, as scores.

    Columns without entries are not evaluated: their metric is `chance`.
    """
    if not sp.issparse(X) or X.shape[1] <= X.nnz:
        return np.array(list(_score_columns(measure, X, threads)), dtype=np.float64)
    values = np.full((X.shape[1], 2), chance)
    used, codes = np.unique(X.indices[: X.nnz], return_inverse=True)
    if used.size:
        filled = sp.csr_array((X.data[: X.nnz], codes, X.indptr), shape=(X.shape[0], used.size))
        values[used] = list(_score_columns(measure, filled, threads))
    return values


def _score_columns(
    measure: Callable[[Floats], float], X: Any, threads: int
) -> Iterator[tuple[float, float]]:
    def score_both(block: Any, j: int) -> tuple[float, float]:
        column = _column(block, j)
        return measure(column), measure(-column)

    with ThreadPoolExecutor(threads) as pool:
        share = pool.map if threads > 1 else map
        for block in _blocks(X):
            yield from share(partial(score_both, block), range(block.shape[1]))


def _blocks(X: Any) -> Iterator[Any]:
    """Yield X if it is dense, else blocks of its columns in CSC with about equal entry counts."""
    if not sp.issparse(X):
        yield X
        return
    sample = np.sort(X.indices[: X.nnz : X.nnz // SAMPLE + 1])
    edges = np.unique([0, *sample[:: sample.size // N_BLOCKS + 1], X.shape[1]])
    for first, end in pairwise(edges):
        yield X[:, first:end].tocsc()


def _column(block: Any, j: int) -> Floats:
    if not sp.issparse(block):
        return np.array(block[:, j], dtype=np.float64)
    column = np.zeros(block.shape[0])
    entries = slice(block.indptr[j], block.indptr[j + 1])
    column[block.indices[entries]] = block.data[entries]
    return column
