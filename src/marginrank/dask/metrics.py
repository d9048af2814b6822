"""Metrics of scores on a cluster."""

from typing import Any

from marginrank.dask.clusters import find_client
from marginrank.dask.loading import load_parts
from marginrank.dask.scoring import mean_over_parts, values_by_query
from marginrank.dask.sources import is_array, open_source
from marginrank.metrics import get_metric
from marginrank.metrics.names import Metric


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
    """Judge scores that are Dask collections, with a metric of :mod:`marginrank.metrics`.

    Each partition is judged where it is; two numbers of each come back.

    Parameters
    ----------
    metric : str or callable
        As in :func:`~marginrank.metrics.get_metric`: "ndcg@10", for example.
    y, scores : Dask series or array
        Labels and scores, in the same partitions.
    qid : Dask series or array
        Query of each document.
    sample_weight : Dask series or array, optional
        Weights of the documents, for the metrics that take them.
    per_query : bool, default=False
        Return values by query, as a Dask array: those of the first partition, and so on, in order
        of first appearance.
    partitions : {"as_is", "by_query"}, default="as_is"
        Refuse a query that is in two partitions, or shuffle first.
    client : distributed.Client, optional
        The cluster; that of this process by default.
    **options
        Options of the metric.

    Returns
    -------
    float or dask.array.Array of shape (n_queries,)
        What the metric returns for all documents in memory.
    """
    chosen = get_metric(metric, **options)
    client = find_client(client)
    features = scores[:, None] if is_array(scores) else scores.to_frame(name="score")
    columns = {"y": y, "qid": qid, "sample_weight": sample_weight}
    loaded = load_parts(client, open_source(client, features, **columns), partitions)
    if not per_query:
        return mean_over_parts(client, loaded, chosen, None)
    import dask.array

    values = values_by_query(client, loaded, chosen, None)
    blocks = [
        dask.array.from_delayed(future, shape=(facts.n_queries,), dtype="float64")
        for future, facts in zip(values, loaded.facts, strict=True)
    ]
    return dask.array.concatenate(blocks)
