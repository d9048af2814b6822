"""Scores of models on test folds or validation data, for searches."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Integers
from marginrank.data.ranking_data import RankingData
from marginrank.metrics.comparison import Comparison, compare_values
from marginrank.metrics.names import METRICS, Metric, metric_name, order_free, split_options
from marginrank.metrics.ranking import Judgments
from marginrank.metrics.scorers import metric_of
from marginrank.selection.folds import Fold, has_pairs
from marginrank.selection.learner import PathLearner
from marginrank.selection.linear_paths import LINEAR

# With more resamples, a comparison would take longer than the fits of a small grid.
RESAMPLES = 2000


class Split(NamedTuple):
    """Rows to train a model on, and documents to score the model on: a fold or validation data."""

    train: Integers | None  # training rows; None for all
    data: RankingData | None  # documents to score; None for no scores
    test: Integers | None = None  # rows of `data` to score; None for all


def fold_splits(data: RankingData, folds: Sequence[Fold]) -> list[Split]:
    """Return cross-validation folds of `data` as a list of Split."""
    return [Split(fold.train, data, fold.test) for fold in folds]


class SplitScorer:
    """Scores models on the test documents of folds, or on validation data, by a metric.

    Attributes
    ----------
    metric : str
        Name of the metric, which is averaged over all orders of documents with tied scores.
    parts : list of ndarray or None
        The rows to train on for each split into training and test documents.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        metric: str | Metric,
        n_jobs: int | None = None,
        learner: PathLearner = LINEAR,
    ) -> None:
        found = metric_of(metric)
        self.metric = metric_name(found)
        self._evaluate = order_free(found)
        self._threads = effective_threads(n_jobs)
        self._learner = learner
        self.parts = [split.train for split in splits]
        is_own = split_options(found)[0] in METRICS.values()
        self._tests = [_test_documents(k, split, is_own, n_jobs) for k, split in enumerate(splits)]

    def score(self, k: int, model: Any) -> float:
        """Return the metric of a model on the test documents of fold k.

        It is nan if the metric is undefined, or if no query has documents with different labels.
        """
        test = self._tests[k]
        return np.nan if test is None else float(self._apply(test, model))

    def score_queries(self, k: int, models: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        """Return the test queries of fold k, then for each model the metric of these queries."""
        test = self._tests[k]
        if test is None:
            return (np.empty(0, dtype=np.int64), *(np.empty(0) for _ in models))
        first = np.unique(test.qid, return_index=True)[1]
        values = (self._apply(test, model, per_query=True) for model in models)
        return (test.qid[np.sort(first)], *(np.asarray(one, dtype=np.float64) for one in values))

    def compare(self, a: Sequence[Any], b: Sequence[Any]) -> Comparison | None:
        """Return a comparison of two candidates by query, given one model per fold for each.

        Return None if the metric is defined for fewer than two queries.
        """
        parts = [self.score_queries(k, models) for k, models in enumerate(zip(a, b, strict=True))]
        query, of_a, of_b = (np.concatenate(column) for column in zip(*parts, strict=True))
        known = ~(np.isnan(of_a) | np.isnan(of_b))
        # A query is one observation: the mean of its values if it is in several folds.
        queries, inverse = np.unique(query[known], return_inverse=True)
        if queries.size < 2:
            return None
        n_folds = np.bincount(inverse)
        means = (np.bincount(inverse, values[known]) / n_folds for values in (of_a, of_b))
        return compare_values(self.metric, *means, n_resamples=RESAMPLES)

    def _apply(self, test: "_TestDocuments", model: Any, **options: Any) -> Any:
        scores = self._learner.predict(test.data, model, test.rows, self._threads)
        return self._evaluate(test.y, scores, qid=test.qid, **options)


class _TestDocuments(NamedTuple):
    data: RankingData
    rows: Integers | None
    y: NDArray[Any] | Judgments
    qid: Integers


def _test_documents(
    k: int, split: Split, is_own: bool, n_jobs: int | None
) -> _TestDocuments | None:
    """Return the test documents of split k, or None if they have no pairs.

    `is_own` is whether the metric is one of marginrank.metrics, which take labels as judgments.
    """
    _, data, rows = split
    if data is None:
        return None
    y, qid = data.y, data.qid
    if rows is not None:
        # With a single query, its test rows are evaluated as one query.
        y, qid = y[rows], qid[rows] if data.n_queries > 1 else np.full(rows.size, k)
    if not has_pairs(y, qid):
        return None
    if is_own and y.dtype == np.float64:  # how integer labels are converted depends on the metric
        return _TestDocuments(data, rows, Judgments.of(y, qid, None, n_jobs, n=y.size), qid)
    return _TestDocuments(data, rows, y, qid)
