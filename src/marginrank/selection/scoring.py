"""Scores of models on other documents than their training data: folds, or held-out data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Integers
from marginrank.data.ranking_data import RankingData
from marginrank.metrics.comparison import Comparison, compare_values
from marginrank.metrics.names import Metric, metric_name, order_free
from marginrank.metrics.scorers import metric_of
from marginrank.selection.folds import Fold, has_pairs
from marginrank.selection.learner import PathLearner
from marginrank.selection.linear_paths import LINEAR

RESAMPLES = 2000  # more would take longer than the fits of a small grid


class Split(NamedTuple):
    """Rows to train on (None for all), and the documents to score: rows of some data, or all."""

    train: Integers | None
    data: RankingData
    test: Integers | None = None


def fold_splits(data: RankingData, folds: Sequence[Fold]) -> list[Split]:
    """Return the training and test rows of folds as splits."""
    return [Split(fold.train, data, fold.test) for fold in folds]


class SplitScorer:
    """Scores models by a metric; tied documents count as in random order.

    Parameters
    ----------
    splits : sequence of Split
        One for each model of a candidate.
    metric : str or callable
        As :func:`~marginrank.metrics.get_metric` takes it, or a scorer of
        :func:`~marginrank.metrics.make_ranking_scorer`.
    n_jobs : int, optional
        Number of threads.
    learner : PathLearner
        Predicts the scores of documents.

    Attributes
    ----------
    metric : str
        Name of the metric.
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
        self._splits = splits
        self._threads = effective_threads(n_jobs)
        self._learner = learner
        self._with_pairs: dict[int, bool] = {}

    @property
    def parts(self) -> list[Integers | None]:
        """The rows to train on, for each split."""
        return [split.train for split in self._splits]

    def score(self, k: int, model: Any) -> float:
        """Return the metric of a model on the test documents of split k.

        It is nan if the metric has no value, or if no query has documents with different labels.
        """
        y, qid = self._labels(k)
        if not self._has_pairs(k):
            return np.nan
        return float(self._evaluate(y, self._predict(k, model), qid=qid))

    def score_queries(self, k: int, models: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        """Return the test queries of split k, and the metric of each model on each of them."""
        y, qid = self._labels(k)
        if not self._has_pairs(k):
            return (np.empty(0, dtype=np.int64), *(np.empty(0) for _ in models))
        first = np.unique(qid, return_index=True)[1]
        values = (
            self._evaluate(y, self._predict(k, model), qid=qid, per_query=True) for model in models
        )
        return (qid[np.sort(first)], *(np.asarray(one, dtype=np.float64) for one in values))

    def compare(self, a: Sequence[Any], b: Sequence[Any]) -> Comparison | None:
        """Compare two candidates, with one model for each split, query by query.

        A query that is in several splits has the mean of its values. None if fewer than two queries
        have a value of the metric.
        """
        parts = [self.score_queries(k, models) for k, models in enumerate(zip(a, b, strict=True))]
        query, of_a, of_b = (np.concatenate(column) for column in zip(*parts, strict=True))
        known = ~(np.isnan(of_a) | np.isnan(of_b))
        # A query is one observation, however many folds it is tested in.
        queries, inverse = np.unique(query[known], return_inverse=True)
        if queries.size < 2:
            return None
        n_folds = np.bincount(inverse)
        means = (np.bincount(inverse, values[known]) / n_folds for values in (of_a, of_b))
        return compare_values(self.metric, *means, n_resamples=RESAMPLES)

    def _labels(self, k: int) -> tuple[NDArray[Any], Integers]:
        """Return labels and queries of the test documents."""
        _, data, test = self._splits[k]
        if test is None:
            return data.y, data.qid
        # The test rows of the only query count as a query of their own.
        return data.y[test], data.qid[test] if data.n_queries > 1 else np.full(test.size, k)

    def _predict(self, k: int, model: Any) -> Any:
        _, data, test = self._splits[k]
        return self._learner.predict(data, model, test, self._threads)

    def _has_pairs(self, k: int) -> bool:
        if k not in self._with_pairs:
            self._with_pairs[k] = has_pairs(*self._labels(k))
        return self._with_pairs[k]
