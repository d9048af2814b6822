"""How much of a metric is decided by the order of documents with equal scores."""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from marginrank.cli.support.metrics import Metric
from marginrank.cli.support.output import print_line

if TYPE_CHECKING:
    from marginrank.data import RankingData

NOTICEABLE = 0.001

Ties = dict[str, dict[str, float]]


def decided_by_ties(
    chosen: Mapping[str, Metric], values: Mapping[str, Any], data: "RankingData", scores: Any
) -> Ties:
    """Return what the metrics would be otherwise, for those where it makes a difference.

    A metric takes tied documents in input order, or tied pairs for wrong; here it averages over
    their orders. One that knows no order of tied documents is left out.
    """
    if not _has_ties(data, scores):
        return {}
    decided = {}
    for name, value in values.items():
        orders = _orders(chosen[name], float(value), data, scores)
        if orders is not None and _share(orders) >= NOTICEABLE:
            decided[name] = orders
    return decided


def print_ties(decided: Ties) -> None:
    """Print a line for each metric that ties decide."""
    for name, orders in decided.items():
        told = ", ".join(f"{order.replace('_', ' ')}: {v:.4f}" for order, v in orders.items())
        print_line(f"ties decide up to {_share(orders):.4f} of {name} ({told})")


def _share(orders: dict[str, float]) -> float:
    """Return how far the two values are apart."""
    value, other = orders.values()
    return abs(other - value)


def _has_ties(data: "RankingData", scores: Any) -> bool:
    import numpy as np

    order = np.lexsort((scores, data.qid))
    same = (np.diff(scores[order]) == 0) & (np.diff(data.qid[order]) == 0)
    return bool(same.any())


def _orders(
    metric: Metric, value: float, data: "RankingData", scores: Any
) -> dict[str, float] | None:
    """Return the value of a metric and what it would be if it took ties otherwise."""
    from marginrank.metrics import pairwise_accuracy

    function = metric.func if isinstance(metric, partial) else metric
    if function is pairwise_accuracy:
        half = metric(data.y, scores, qid=data.qid, ties="half")
        return {"as_wrong": value, "as_half": float(half)}
    if "ties" in inspect.signature(metric).parameters:
        average = metric(data.y, scores, qid=data.qid, ties="average")
        return {"input_order": value, "averaged": float(average)}
    return None
