"""Scores of documents on a cluster, and how good they are: no vector of documents comes back."""

from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future

from marginrank._utils.alignment import aligned
from marginrank._utils.types import Floats
from marginrank.dask.chunks import read_rows
from marginrank.dask.clusters import fetch, map_tasks
from marginrank.dask.loading import LoadedParts
from marginrank.dask.parts import Part
from marginrank.data.stored_data import open_stored
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.metrics.names import Metric, split_options
from marginrank.metrics.pairwise import pairs_in_order, pairwise_accuracy


def score_rows(X: Any, coef: Floats) -> Floats:
    """Return Xw for some documents, perhaps none."""
    if X.shape[0] == 0:
        return np.zeros(0)
    checked = check_features(X)
    matrix = as_matrix(checked)
    scores: Floats = matrix.dot(aligned(coef), None, 1)
    if not np.isfinite(scores.sum()):
        check_finite(checked, matrix, 1)
    return scores


def score_frame(frame: Any, coef: Floats, features: list[str] | None) -> Any:
    """Return Xw for a partition of a dataframe, as a series with its index."""
    from pandas import Series

    X = frame if features is None else frame[features]
    return Series(score_rows(X.to_numpy(), coef), index=frame.index, name="score")


def score_store(path: str, first: int, last: int, coef: Floats) -> Floats:
    """Return Xw for some rows of a store."""
    return score_rows(read_rows(open_stored(path, verify=False).X, first, last), coef)


class Mean(NamedTuple):
    """A mean over queries or pairs, in the making: the sum of the values, and their weight."""

    total: float
    weight: float


def mean_over_parts(client: Client, loaded: LoadedParts, metric: Metric, coef: Any) -> float:
    """Return a metric over all queries of some parts.

    Parameters
    ----------
    client : Client
        The cluster.
    loaded : LoadedParts
        The documents.
    metric : callable
        As :func:`~marginrank.metrics.get_metric` returns it.
    coef : ndarray or None
        Weights of the features; None where the only feature is the score.
    """
    futures = map_tasks(client, _mean_of_part, loaded.parts, metric=metric, coef=coef)
    means = fetch(client, futures)
    total, weight = np.sum(means, axis=0)
    return float(total / weight) if weight > 0 else float("nan")


def values_by_query(client: Client, loaded: LoadedParts, metric: Metric, coef: Any) -> list[Future]:
    """Return a metric by query for each part, which stays on the workers."""
    return map_tasks(client, _values_of_part, loaded.parts, metric=metric, coef=coef)


def _mean_of_part(part: Part, metric: Metric, coef: Any) -> Mean:
    function, options = split_options(metric)
    if function is pairwise_accuracy:  # the one whose mean is over pairs, not over queries
        good, total = pairs_in_order(**_judged(part, coef), **options)
        return Mean(float(np.sum(good)), float(np.sum(total)))
    values = _values_of_part(part, metric, coef)
    defined = values[~np.isnan(values)]
    return Mean(float(np.sum(defined)), float(defined.size))


def _values_of_part(part: Part, metric: Metric, coef: Any) -> Floats:
    judged = _judged(part, coef)
    values: Floats = metric(judged.pop("y"), judged.pop("scores"), per_query=True, **judged)
    return values


def _judged(part: Part, coef: Any) -> dict[str, Any]:
    """Return what a metric is called with."""
    data = part.data
    assert data is not None
    scores = np.ravel(data.X) if coef is None else score_rows(data.X, coef)
    judged = {"y": data.y, "scores": scores, "qid": data.qid}
    if data.sample_weight is not None:
        judged["sample_weight"] = data.sample_weight
    return judged
