"""Scores of documents and ranking metrics on a Dask cluster; scores stay on the workers."""

from typing import Any

import numpy as np
from distributed import Client

from marginrank._utils.alignment import aligned
from marginrank._utils.types import Floats
from marginrank.dask.chunks import read_rows
from marginrank.dask.clusters import fetch, find_client, map_tasks
from marginrank.dask.loading import LoadedParts, is_array, load_parts
from marginrank.dask.parts import Part
from marginrank.data.stored_data import open_stored
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.metrics import get_metric
from marginrank.metrics.names import Metric, split_options
from marginrank.metrics.pairwise import pairs_in_order, pairwise_accuracy


def metric(
    metric: str | Metric,
    y: Any,
    scores: Any,
    *,
    qid: Any = None,
    sample_weight: Any = None,
    per_query: bool = False,
    partitions: str = "as_is",
    client: Any = None,
    **options: Any,
) -> Any:
    """Return a metric of :mod:`marginrank.metrics` for labels and scores in Dask collections.

    Partitions are evaluated on the workers. For a mean, each sends two numbers to the client.

    Parameters
    ----------
    metric : str or callable
        As in :func:`~marginrank.metrics.get_metric`: "ndcg@10", for example.
    y, scores : Dask series or array
        Labels and scores, in the same partitions.
    qid : Dask series or array
        Query of each document.
    sample_weight : Dask series or array, optional
        Weights of the documents, for metrics that take them.
    per_query : bool, default=False
        Return one value per query as a Dask array, by partition and in order of first appearance.
    partitions : {"as_is", "by_query"}, default="as_is"
        "as_is" raises ValueError if a query is in two partitions; "by_query" shuffles the
        documents first, so that no query is.
    client : distributed.Client, optional
        The cluster; by default the current client of this process.
    **options
        Options of the metric.

    Returns
    -------
    float or dask.array.Array of shape (n_queries,)
        The value, the same as for all documents in memory up to rounding.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from marginrank.dask import metric
    >>> y, scores, qid = (da.from_array(a) for a in ([2, 0, 1], [0.3, 0.1, 0.2], [1, 1, 1]))
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     metric("ndcg@10", y, scores, qid=qid, client=client)
    1.0
    """
    chosen = get_metric(metric, **options)
    client = find_client(client)
    features = scores[:, None] if is_array(scores) else scores.to_frame(name="score")
    columns = {"y": y, "qid": qid, "sample_weight": sample_weight}
    loaded = load_parts(client, features, partitions, **columns)
    if not per_query:
        return mean_over_parts(client, loaded, chosen, None)
    import dask.array

    values = map_tasks(client, _values_of_part, loaded.parts, metric=chosen, coef=None)
    blocks = [
        dask.array.from_delayed(future, shape=(facts.n_queries,), dtype="float64")
        for future, facts in zip(values, loaded.facts, strict=True)
    ]
    return dask.array.concatenate(blocks)


def score_rows(X: Any, coef: Floats) -> Floats:
    """Return the scores Xw of the rows of X for the weights w = `coef`; X may be empty."""
    if X.shape[0] == 0:
        return np.zeros(0)
    checked = check_features(X)
    matrix = as_matrix(checked)
    scores: Floats = matrix.dot(aligned(coef), None, 1)
    if not np.isfinite(scores.sum()):
        check_finite(checked, matrix, 1)
    return scores


def score_frame(frame: Any, coef: Floats, features: list[str] | None) -> Any:
    """Return the scores Xw for a partition of a dataframe, as a series with the same index."""
    from pandas import Series

    X = frame if features is None else frame[features]
    return Series(score_rows(X.to_numpy(), coef), index=frame.index, name="score")


def score_store(path: str, first: int, last: int, coef: Floats) -> Floats:
    """Return the scores Xw for the rows `first` to `last` − 1 of the on-disk store at `path`."""
    return score_rows(read_rows(open_stored(path, verify=False).X, first, last), coef)


def mean_over_parts(client: Client, loaded: LoadedParts, metric: Metric, coef: Any) -> float:
    """Return a ranking metric for documents on a Dask cluster: a mean over queries or pairs.

    `coef` are the weights of the features. If it is None, X has one column, the scores.
    """
    futures = map_tasks(client, _sum_of_part, loaded.parts, metric=metric, coef=coef)
    total, weight = np.sum(fetch(client, futures), axis=0)
    return float(total / weight) if weight > 0 else float("nan")


def _sum_of_part(part: Part, metric: Metric, coef: Any) -> tuple[float, float]:
    """Dask task: return the sum of a metric over the queries of a part, and their number.

    Pairwise accuracy is summed over pairs (with weights) instead of queries.
    """
    function, options = split_options(metric)
    if function is pairwise_accuracy:  # the only mean over pairs, not over queries
        y, scores, given = _arguments(part, coef)
        good, total = pairs_in_order(y, scores, **given, **options)
        return float(np.sum(good)), float(np.sum(total))
    values = _values_of_part(part, metric, coef)
    defined = values[~np.isnan(values)]
    return float(np.sum(defined)), float(defined.size)


def _values_of_part(part: Part, metric: Metric, coef: Any) -> Floats:
    y, scores, given = _arguments(part, coef)
    values: Floats = metric(y, scores, per_query=True, **given)
    return values


def _arguments(part: Part, coef: Any) -> tuple[Floats, Floats, dict[str, Any]]:
    data = part.data
    assert data is not None
    given = {"qid": data.qid, "sample_weight": data.sample_weight}
    scores = np.ravel(data.X) if coef is None else score_rows(data.X, coef)
    return data.y, scores, {name: value for name, value in given.items() if value is not None}
