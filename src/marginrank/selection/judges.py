"""What models that are to be chosen from are judged by: folds, or data held out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.metrics.comparison import Comparison, compare_values
from marginrank.metrics.names import Metric, metric_name, order_free
from marginrank.metrics.scorers import metric_of
from marginrank.selection.folds import Fold, has_pairs
from marginrank.selection.learners import LINES, Learner

RESAMPLES = 2000  # more would take longer than the fits of a small grid


class Judged(NamedTuple):
    """Documents with labels and the scores of models that have not seen them."""

    y: Floats
    scores: list[Floats]
    qid: Integers


class Judge(ABC):
    """Scores models by a metric; ties count as in random order.

    Parameters
    ----------
    metric : str or callable
        As :func:`~marginrank.metrics.get_metric` takes it, or a scorer of
        :func:`~marginrank.metrics.make_ranking_scorer`.
    n_jobs : int, optional
        Number of threads.
    learner : Learner
        What scores documents by models.

    Attributes
    ----------
    metric : str
        Its name.
    """

    def __init__(self, metric: str | Metric, n_jobs: int | None, learner: Learner) -> None:
        asked = metric_of(metric)
        self.metric = metric_name(asked)
        self._evaluate = order_free(asked)
        self._threads = effective_threads(n_jobs)
        self._learner = learner
        self._with_pairs: dict[int, bool] = {}

    @property
    @abstractmethod
    def parts(self) -> list[Integers | None]:
        """The rows to learn from, for each model of a candidate; None for all."""

    @abstractmethod
    def judged(self, k: int, models: Sequence[Any]) -> Judged:
        """Return the documents that models without part k are judged by, with their scores."""

    def score(self, k: int, model: Any) -> float:
        """Return the metric of a model that has learned from part k.

        It is nan if the metric has no value, or there is no pair to judge by.
        """
        y, (scores,), qid = self.judged(k, [model])
        if not self._has_pairs(k, y, qid):
            return np.nan
        return float(self._evaluate(y, scores, qid=qid))

    def compare(self, a: Sequence[Any], b: Sequence[Any]) -> Comparison | None:
        """Compare two candidates, with a model for each part, query by query.

        A query that is in several folds has the mean of its values. None if fewer than two queries
        have a value of the metric.
        """
        parts = [self._by_query(k, models) for k, models in enumerate(zip(a, b, strict=True))]
        query, of_a, of_b = (np.concatenate(column) for column in zip(*parts, strict=True))
        known = ~(np.isnan(of_a) | np.isnan(of_b))
        # A query is one observation, however many folds it is tested in.
        queries, place = np.unique(query[known], return_inverse=True)
        if queries.size < 2:
            return None
        n_folds = np.bincount(place)
        means = (np.bincount(place, values[known]) / n_folds for values in (of_a, of_b))
        return compare_values(self.metric, *means, n_resamples=RESAMPLES)

    def _by_query(self, k: int, models: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        """Return the queries that part k is judged by, and the metric of each model in them."""
        y, scores, qid = self.judged(k, models)
        if not self._has_pairs(k, y, qid):
            return (np.empty(0, dtype=np.int64), *(np.empty(0) for _ in models))
        first = np.unique(qid, return_index=True)[1]
        values = (self._evaluate(y, one, qid=qid, per_query=True) for one in scores)
        return (qid[np.sort(first)], *(np.asarray(one, dtype=np.float64) for one in values))

    def _has_pairs(self, k: int, y: NDArray[Any], qid: Integers) -> bool:
        """Tell whether part k has a pair to judge by; looked for once."""
        if k not in self._with_pairs:
            self._with_pairs[k] = has_pairs(y, qid)
        return self._with_pairs[k]


class FoldJudge(Judge):
    """Scores a model on the test rows of a fold it has not learned from."""

    def __init__(
        self,
        data: RankingData,
        folds: Sequence[Fold],
        metric: str | Metric,
        n_jobs: int | None,
        learner: Learner = LINES,
    ) -> None:
        super().__init__(metric, n_jobs, learner)
        self._data = data
        self._folds = folds

    @property
    def parts(self) -> list[Integers | None]:
        """The training rows of each fold."""
        return [fold.train for fold in self._folds]

    def judged(self, k: int, models: Sequence[Any]) -> Judged:
        """Return the test rows of a fold."""
        rows, data = self._folds[k].test, self._data
        scores = [self._learner.scores(data, model, rows, self._threads) for model in models]
        # The parts of the only query count as queries.
        qid = data.qid[rows] if data.n_queries > 1 else np.full(rows.size, k)
        return Judged(data.y[rows], scores, qid)


class HeldOutJudge(Judge):
    """Scores models of all data on other data."""

    def __init__(
        self,
        held_out: RankingData,
        metric: str | Metric,
        n_jobs: int | None,
        learner: Learner = LINES,
    ) -> None:
        super().__init__(metric, n_jobs, learner)
        self._held_out = held_out

    @property
    def parts(self) -> list[Integers | None]:
        """All rows, once."""
        return [None]

    def judged(self, k: int, models: Sequence[Any]) -> Judged:
        """Return the data held out."""
        data = self._held_out
        scores = [self._learner.scores(data, model, None, self._threads) for model in models]
        return Judged(data.y, scores, data.qid)
