"""Cross-validation of any estimator, with folds of whole queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Floats, Integers
from marginrank.data import RankingData
from marginrank.data.ranking_data import check_beside_data
from marginrank.estimators.base import check_seed
from marginrank.estimators.query_routing import (
    fit_with_queries,
    request_queries,
    score_documents,
    takes_queries,
)
from marginrank.metrics.names import Metric, metric_name, order_free
from marginrank.metrics.scorers import metric_of
from marginrank.selection.folds import Fold, folds_of, has_pairs, numbers_by_id, over_folds


class RankingCV(ResultTable, dict[str, Any]):
    """Result of :func:`cross_validate_ranking`: a dict of scores with one entry per fold.

    Attributes
    ----------
    metrics : list of str
        Names of the metrics.
    mean, standard_error : dict of float
        Mean over the folds on which the metric is defined, and its standard error, by metric.
    """

    def __init__(self, results: Mapping[str, Any], by_metric: Mapping[str, Floats]) -> None:
        super().__init__(results)
        self.metrics = list(by_metric)
        self.mean: dict[str, float] = {}
        self.standard_error: dict[str, float] = {}
        for name, scores in by_metric.items():
            mean, error = over_folds(scores, name)
            self.mean[name], self.standard_error[name] = float(mean), float(error)

    def table(self) -> str:
        """Return a text table with one line per metric: mean ± standard error, then all folds."""
        width = max(map(len, self.metrics))
        lines = []
        for name in self.metrics:
            folds = self["test_score" if "test_score" in self else f"test_{name}"]
            values = "  ".join(f"{value:.4f}" for value in folds)
            lines.append(f"{name:<{width}}  {self._mean(name)}   folds: {values}")
        return "\n".join(lines)

    def _columns(self) -> dict[str, Any]:
        arrays = {name: values for name, values in self.items() if name != "estimator"}
        return {"fold": np.arange(1, self["fit_time"].size + 1), **arrays}

    def _summary(self) -> str:
        means = ", ".join(f"{name} {self._mean(name)}" for name in self.metrics)
        return f"{means}; {self['fit_time'].size} folds"

    def _mean(self, name: str) -> str:
        return f"{self.mean[name]:.4f} ± {self.standard_error[name]:.4f}"


@dataclass(frozen=True, eq=False)
class _FoldRows:
    """The documents: features, labels, query numbers and weights, one entry per row."""

    X: Any
    y: Any
    qid: Integers
    weights: Mapping[str, Floats]

    def take(self, rows: Integers) -> _FoldRows:
        weights = {name: weight[rows] for name, weight in self.weights.items()}
        X, y = _safe_indexing(self.X, rows), _safe_indexing(self.y, rows)
        return _FoldRows(X, y, self.qid[rows], weights)


def cross_validate_ranking(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    cv: Any = 5,
    scoring: Any = "ndcg@10",
    n_jobs: int | None = None,
    random_state: Any = 0,
    return_train_score: bool = False,
    return_estimator: bool = False,
) -> RankingCV:
    """Evaluate an estimator by cross-validation with folds of whole queries.

    All documents of a query are in the same fold. Queries are passed to ``fit`` if it takes them,
    and metrics are computed query by query. This works for any estimator: a ranker of this library,
    a regressor, a pipeline, or a ranker of LightGBM or XGBoost. Metadata routing need not be
    enabled.

    Parameters
    ----------
    estimator : estimator
        It is cloned for each fold. If its ``fit`` has a parameter `qid`, `group_id` or `group`, the
        rows are sorted by query, and this parameter gets the query numbers (for `group`, the query
        sizes). Queries are numbered in the order of their ids, so the folds of a search inside the
        estimator depend on the ids only. In a pipeline or a search, all steps get queries too,
        unless ``set_fit_request`` was called. Documents are ranked by ``predict``; with a
        classifier, by ``decision_function`` for two classes, or by the expected label from
        ``predict_proba``.
    X : array-like, sparse matrix or data frame of shape (n_documents, n_features), or RankingData
        The documents, in any form that the estimator takes.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, unless X is a RankingData. Without `qid` all documents are one query.
    sample_weight : array-like of shape (n_documents,), optional
        Weights for the fit; weights of a RankingData are used, too. Metrics are not weighted.
    cv : int, splitter or iterable of (train, test), default=5
        As in :class:`~marginrank.RankSVMCV`.
    scoring : str, callable, or list of them, default="ndcg@10"
        Metrics, see :func:`~marginrank.metrics.get_metric`, or scorers of
        :func:`~marginrank.metrics.make_ranking_scorer`. Tied scores count as in random order,
        unless the metric has its own rule.
    n_jobs : int, optional
        Number of folds to fit at a time; 1 by default, −1 for all cores.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds.
    return_train_score : bool, default=False
        Also compute the metrics on the training documents.
    return_estimator : bool, default=False
        Keep the fitted estimators.

    Returns
    -------
    RankingCV
        A dictionary of arrays with one entry per fold: "fit_time", "score_time", "test_score" and,
        if requested, "train_score" and "estimator". If `scoring` is a list, the names are
        "test_ndcg@10" and so on. The attributes `mean` and `standard_error` map each metric to a
        number; ``table()`` formats them as text. On a fold in which a metric is undefined, or no
        query has different labels, the score is nan, with a warning.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from marginrank import RankSVM, cross_validate_ranking, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> ranker = cross_validate_ranking(RankSVM(), X, y, qid=qid)
    >>> regressor = cross_validate_ranking(Ridge(), X, y, qid=qid)
    >>> ranker["test_score"].shape, ranker.mean["ndcg@10"] > regressor.mean["ndcg@10"]
    ((5,), True)
    """
    several = isinstance(scoring, (list, tuple))
    asked = [metric_of(one) for one in (scoring if several else [scoring])]
    if not asked:
        raise ValueError("scoring=[] must have at least one metric.")
    metrics = {metric_name(metric): order_free(metric) for metric in asked}
    grouped, documents = _documents(X, y, qid, sample_weight)
    folds = folds_of(grouped, cv, check_seed(random_state))
    without_pairs = [not has_pairs(grouped.y[f.test], grouped.qid[f.test]) for f in folds]
    sides = ("test", "train") if return_train_score else ("test",)
    runs = Parallel(n_jobs=n_jobs)(
        delayed(_run)(clone(estimator), documents, fold, metrics, sides) for fold in folds
    )
    results: dict[str, Any] = {
        "fit_time": np.array([run.fit_time for run in runs]),
        "score_time": np.array([run.score_time for run in runs]),
    }
    if return_estimator:
        results["estimator"] = [run.estimator for run in runs]
    for side in sides:
        for k, name in enumerate(metrics):
            key = f"{side}_{name if several else 'score'}"
            results[key] = np.array([run.values[side][k] for run in runs])
            if side == "test":
                results[key][without_pairs] = np.nan
    key = "test_{}" if several else "test_score"
    return RankingCV(results, {name: results[key.format(name)] for name in metrics})


class _FoldResult(NamedTuple):
    estimator: Any
    fit_time: float
    score_time: float
    values: dict[str, list[float]]  # values of the metrics on "test" and perhaps "train" documents


def _run(
    estimator: Any,
    documents: _FoldRows,
    fold: Fold,
    metrics: Mapping[str, Metric],
    sides: Sequence[str],
) -> _FoldResult:
    """Fit an estimator to the training documents of a fold, and compute the metrics."""
    request_queries(estimator)
    rows = fold.train
    if takes_queries(estimator):  # LightGBM and XGBoost need the rows query by query
        rows = rows[np.argsort(documents.qid[rows], kind="stable")]
    train = documents.take(rows)
    begin = perf_counter()
    try:
        fit_with_queries(estimator, train.X, train.y, train.qid, train.weights)
    except Exception as error:
        error.add_note(f"The error occurred in fold {fold.number}.")
        raise
    fitted = perf_counter()
    values = {}
    for side in sides:
        part = train if side == "train" else documents.take(fold.test)
        scores = score_documents(estimator, part.X, part.qid)
        values[side] = [float(metric(part.y, scores, qid=part.qid)) for metric in metrics.values()]
    return _FoldResult(estimator, fitted - begin, perf_counter() - fitted, values)


def _documents(
    X: Any, y: Any, qid: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[RankingData, _FoldRows]:
    """Return the queries, and the rows that estimators are fitted to."""
    if isinstance(X, RankingData):
        check_beside_data(y=y, qid=qid, sample_weight=sample_weight)
        for name in ("cost", "position"):
            if getattr(X, name) is not None:
                raise ValueError(
                    f"X.{name} is set, but cross_validate_ranking does not support it; use "
                    "RankSVMCV."
                )
        grouped, features, labels = X, X.X, X.y
    else:
        features, labels = indexable(X, y)
        # Only the estimator knows which features it takes; they may be text or missing.
        nothing = np.zeros((_num_samples(features), 1))
        grouped = RankingData(nothing, labels, qid, sample_weight=sample_weight)
    weights = {}
    if grouped.sample_weight is not None:
        weights["sample_weight"] = grouped.sample_weight
    if grouped.query_weight is not None:
        weights["query_weight"] = grouped.query_weight[grouped.qid]
    return grouped, _FoldRows(features, labels, numbers_by_id(grouped), weights)
