"""What models that are to be chosen from are judged by: folds, or data held out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marginrank._base.threads import effective_threads
from marginrank._base.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.metrics import compare, get_metric
from marginrank.metrics._names import Metric, metric_name, order_free
from marginrank.metrics.comparison import Comparison
from marginrank.training.folds import Fold, has_pairs


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
        As :func:`~marginrank.metrics.get_metric` takes it.
    n_jobs : int, optional
        Number of threads.

    Attributes
    ----------
    metric : str
        Its name.
    """

    def __init__(self, metric: str | Metric, n_jobs: int | None) -> None:
        asked = get_metric(metric)
        self.metric = metric_name(asked)
        self._evaluate = order_free(asked)
        self._threads = effective_threads(n_jobs)
        self._with_pairs: dict[int, bool] = {}

    @property
    @abstractmethod
    def parts(self) -> list[Integers | None]:
        """The rows to learn from, for each model of a candidate; None for all."""

    @abstractmethod
    def judged(self, k: int, ws: Sequence[Floats]) -> Judged:
        """Return the documents that models without part k are judged by, with their scores."""

    def score(self, k: int, w: Floats) -> float:
        """Return the metric of a model that has learned from part k.

        It is nan if the metric has no value, or there is no pair to judge by.
        """
        y, (scores,), qid = self.judged(k, [w])
        if k not in self._with_pairs:
            self._with_pairs[k] = has_pairs(y, qid)
        if not self._with_pairs[k]:
            return np.nan
        return float(self._evaluate(y, scores, qid=qid))

    def compare(self, a: Sequence[Floats], b: Sequence[Floats]) -> Comparison | None:
        """Compare two candidates, with weights for each part, query by query.

        None if fewer than two queries have a value of the metric.
        """
        judged = [self.judged(k, ws) for k, ws in enumerate(zip(a, b, strict=True))]
        firsts = np.cumsum([0, *(int(one.qid.max()) + 1 for one in judged)])[:-1]
        of_a, of_b = (np.concatenate([one.scores[k] for one in judged]) for k in range(2))
        y = np.concatenate([one.y for one in judged])
        qid = np.concatenate([first + one.qid for first, one in zip(firsts, judged, strict=True)])
        values = [self._evaluate(y, scores, qid=qid, per_query=True) for scores in (of_a, of_b)]
        if np.count_nonzero(~np.isnan(values).any(axis=0)) < 2:
            return None
        return replace(compare(y, of_a, of_b, qid, metric=self._evaluate), metric=self.metric)


class FoldJudge(Judge):
    """Scores a model on the test rows of a fold it has not learned from."""

    def __init__(
        self, data: RankingData, folds: Sequence[Fold], metric: str | Metric, n_jobs: int | None
    ) -> None:
        super().__init__(metric, n_jobs)
        self._data = data
        self._folds = folds

    @property
    def parts(self) -> list[Integers | None]:
        """The training rows of each fold."""
        return [fold.train for fold in self._folds]

    def judged(self, k: int, ws: Sequence[Floats]) -> Judged:
        """Return the test rows of a fold."""
        rows, data = self._folds[k].test, self._data
        scores = [data.matrix.dot(w, rows, self._threads) for w in ws]
        return Judged(data.y[rows], scores, data.qid[rows])


class HeldOutJudge(Judge):
    """Scores models of all data on other data."""

    def __init__(self, held_out: RankingData, metric: str | Metric, n_jobs: int | None) -> None:
        super().__init__(metric, n_jobs)
        self._held_out = held_out

    @property
    def parts(self) -> list[Integers | None]:
        """All rows, once."""
        return [None]

    def judged(self, k: int, ws: Sequence[Floats]) -> Judged:
        """Return the data held out."""
        data = self._held_out
        scores = [data.matrix.dot(w, None, self._threads) for w in ws]
        return Judged(data.y, scores, data.qid)
