"""Queries that judge the passes of an online fit."""

from collections.abc import Callable, Iterable

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.online.parameters import OnlineParameters
from marginrank.metrics import get_metric
from marginrank.metrics.names import order_free


class Validation:
    """Queries to measure a metric on, with tied scores as in random order.

    Parameters
    ----------
    data : RankingData
        The documents.
    scoring : str
        The metric.
    queries : ndarray of bool, optional
        Which queries to use; all by default.
    """

    def __init__(self, data: RankingData, scoring: str, queries: Booleans | None = None) -> None:
        self._metric = order_free(get_metric(scoring))
        self._matrix = data.matrix
        qid = data.qid
        self._rows = np.arange(qid.size) if queries is None else np.flatnonzero(queries[qid])
        self._y, self._qid = data.y[self._rows], qid[self._rows]

    @property
    def has_value(self) -> bool:
        """Whether the labels leave the metric a value; the scores have no say in that."""
        return not np.isnan(self._measure(np.zeros(self._y.size)))

    def measure(self, w: Floats, threads: int) -> float:
        """Return the metric of the scores Xw."""
        return self._measure(self._matrix.dot(w, self._rows, threads))

    def _measure(self, scores: Floats) -> float:
        return float(self._metric(self._y, scores, qid=self._qid))


def hold_out(
    chunks: Callable[[], Iterable[RankingData]],
    parameters: OnlineParameters,
    seed: int,
    validation: RankingData | None,
) -> tuple[Booleans | None, Validation | None]:
    """Return which queries are not learned from, and what judges the passes."""
    if validation is not None:
        return None, Validation(validation, parameters.scoring)
    if not parameters.early_stopping:
        return None, None
    (data,) = chunks()
    able = np.flatnonzero(data.queries.n_pairs > 0)
    count = max(1, round(parameters.validation_fraction * able.size))
    if count >= able.size:
        raise ValueError(
            f"early_stopping=True needs two queries with pairs, and there are {able.size}; give "
            "validation data, or early_stopping=False."
        )
    held_out = np.zeros(data.n_queries, dtype=bool)
    held_out[np.random.default_rng(seed).permutation(able)[:count]] = True
    return held_out, Validation(data, parameters.scoring, held_out)
