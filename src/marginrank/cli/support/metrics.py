"""Metrics that the user selects by name: values, confidence intervals and the effect of ties."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from marginrank._utils.parameters import calling
from marginrank.cli.flags.shared import Metrics, OneMetric
from marginrank.cli.support.errors import complain, message_of
from marginrank.cli.support.output import plus_minus, print_line
from marginrank.data import RankingData
from marginrank.metrics import get_metric, pairwise_accuracy
from marginrank.metrics.comparison import half_interval
from marginrank.metrics.names import COMMON_METRICS

INTERVAL = "± 95% confidence interval"
NOTICEABLE = 0.001  # smallest effect of ties that is reported

Metric = Callable[..., Any]
Ties = dict[str, dict[str, float]]


def find_metrics(
    names: str | None, options: Metrics | OneMetric, parameter: str = "metrics"
) -> dict[str, Metric]:
    """Return {name: metric} for a comma-separated list of names, or for the default metrics.

    Options such as gain are applied to the metrics that have them. Raise ValueError for an option
    that none of the metrics has. `parameter` is the flag in messages.
    """
    values = {"gain": options.gain, "discount": options.discount}
    given = {option: value for option, value in values.items() if value is not None}
    chosen = {}
    unused = set(given)
    listed = COMMON_METRICS if names is None else names.replace(" ", "").split(",")
    for name in listed:
        with calling("metric", parameter):
            known = inspect.signature(get_metric(name)).parameters
        own = {option: value for option, value in given.items() if option in known}
        chosen[name] = get_metric(name, **own)
        unused -= own.keys()
    for option in sorted(unused):
        raise ValueError(
            f"--{option} applies to ndcg and dcg only; add one of them or drop --{option}."
        )
    return chosen


def find_metric(options: OneMetric) -> Metric:
    """Return the metric that is selected with --metric, with its options."""
    chosen = list(find_metrics(options.metric, options, "metric").values())
    if len(chosen) > 1:
        raise ValueError(f"--metric {options.metric} names {len(chosen)} metrics; pass one.")
    return chosen[0]


def measure(
    chosen: Mapping[str, Metric],
    data: RankingData,
    scores: Any,
    *,
    skip: bool,
    per_query: bool = False,
) -> dict[str, Any]:
    """Return {name: value} for the metrics `chosen` of `scores`.

    If a metric does not support the labels, raise ValueError, or with `skip` warn and omit it.
    """
    values = {}
    left_out: dict[str, list[str]] = {}
    qid = data.qid
    for name, metric in chosen.items():
        try:
            values[name] = metric(data.y, scores, qid=qid, per_query=per_query)
        except ValueError as error:
            if not skip:
                raise
            left_out.setdefault(message_of(error), []).append(name)
    for reason, names in left_out.items():
        verb = "is" if len(names) == 1 else "are"
        complain(f"warning: {', '.join(names)} {verb} left out: {reason}")
    return values


def with_intervals(
    chosen: Mapping[str, Metric], values: Mapping[str, Any], data: RankingData, scores: Any
) -> list[tuple[str, str]]:
    """Return (name, "mean ± half the width of the 95% confidence interval") for each metric."""
    own = {name: chosen[name] for name in values}
    by_query = measure(own, data, scores, skip=False, per_query=True)
    return [(name, with_interval(values[name], by_query[name])) for name in values]


def with_interval(value: float, by_query: Any) -> str:
    """Return the text "mean ± half the width of the 95% confidence interval" for a metric."""
    defined = by_query[~np.isnan(by_query)]
    # Pairwise accuracy is a share of all pairs, not a mean over queries, so the interval of a mean
    # does not apply.
    is_mean = defined.size > 1 and np.isclose(np.mean(defined), value, rtol=1e-9)
    return plus_minus(value, half_interval(defined) if is_mean else np.nan)


def effect_of_ties(
    chosen: Mapping[str, Metric], values: Mapping[str, Any], data: RankingData, scores: Any
) -> Ties:
    """Return the metrics that change if documents with equal scores (ties) are reordered.

    The result is {name: {rule: value}}, with the values for two rules for ties: input order and the
    average over all orders or, for pairwise accuracy, tied pairs as wrong and as half right.
    """
    order = np.lexsort((scores, data.qid))
    if not np.any((np.diff(scores[order]) == 0) & (np.diff(data.qid[order]) == 0)):
        return {}
    effects = {}
    for name, value in values.items():
        orders = _orders(chosen[name], float(value), data, scores)
        if orders is not None and _difference(orders) >= NOTICEABLE:
            effects[name] = orders
    return effects


def print_ties(effects: Ties) -> None:
    """Print a line for each metric that depends on the order of documents with equal scores."""
    for name, orders in effects.items():
        both = ", ".join(f"{order.replace('_', ' ')}: {v:.4f}" for order, v in orders.items())
        print_line(f"equal scores change {name} by up to {_difference(orders):.4f} ({both})")


def _difference(orders: dict[str, float]) -> float:
    value, other = orders.values()
    return abs(other - value)


def _orders(
    metric: Metric, value: float, data: RankingData, scores: Any
) -> dict[str, float] | None:
    function = metric.func if isinstance(metric, partial) else metric
    if function is pairwise_accuracy:
        half = metric(data.y, scores, qid=data.qid, ties="half")
        return {"as_wrong": value, "as_half": float(half)}
    if "ties" in inspect.signature(metric).parameters:
        average = metric(data.y, scores, qid=data.qid, ties="average")
        return {"input_order": value, "averaged": float(average)}
    return None
