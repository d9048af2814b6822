"""Metrics by their names on the command line, such as ndcg@10."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from marginrank.cli._errors import complain

if TYPE_CHECKING:
    from marginrank.data import RankingData

DEFAULT = "ndcg@1,ndcg@5,ndcg@10,average_precision,reciprocal_rank,pairwise_accuracy"

Metric = Callable[..., Any]


def find_metrics(names: str | None) -> dict[str, Metric]:
    """Return the metrics of a list with commas, or those shown by default."""
    from marginrank.metrics import get_metric

    return {name: get_metric(name) for name in (names or DEFAULT).replace(" ", "").split(",")}


def measure(
    chosen: Mapping[str, Metric],
    data: "RankingData",
    scores: Any,
    *,
    skip: bool,
    per_query: bool = False,
) -> dict[str, Any]:
    """Evaluate `scores`; with `skip`, leave out what these labels have no value for."""
    values = {}
    qid = data.qid
    for name, metric in chosen.items():
        try:
            values[name] = metric(data.y, scores, qid=qid, per_query=per_query)
        except ValueError as error:
            if not skip:
                raise
            complain(f"warning: {name} is left out: {error}")
    return values
