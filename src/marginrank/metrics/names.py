"""Metrics by name, such as "ndcg@10", and the names of metrics with options."""

import difflib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from marginrank._utils.parameters import Mention, ParameterError, given
from marginrank.metrics.binary_relevance import (
    auc,
    average_precision,
    precision,
    recall,
    reciprocal_rank,
)
from marginrank.metrics.cascade import err
from marginrank.metrics.cumulative_gain import dcg, letor_mean_ndcg, ndcg
from marginrank.metrics.pairwise import kendall_tau, pairwise_accuracy

Metric = Callable[..., Any]

_ALL = (ndcg, letor_mean_ndcg, dcg, average_precision, reciprocal_rank, precision, recall, err)
METRICS: dict[str, Metric] = {
    metric.__name__: metric for metric in (*_ALL, pairwise_accuracy, kendall_tau, auc)
}

# Metrics of commands and reports by default.
COMMON_METRICS = (
    "ndcg@1",
    "ndcg@5",
    "ndcg@10",
    "average_precision",
    "reciprocal_rank",
    "pairwise_accuracy",
)

ALIASES = {"map": "average_precision", "mrr": "reciprocal_rank", "p": "precision"}


def get_metric(metric: str | Metric, **options: Any) -> Metric:
    """Return a ranking metric, given by name or as a function, as a callable with options set.

    Parameters
    ----------
    metric : str or callable
        Name of a function of :mod:`marginrank.metrics`, optionally with a cut-off: "ndcg@10". Case
        does not matter; "map", "mrr" and "p" are short for "average_precision", "reciprocal_rank"
        and "precision". Or a function with the signature
        ``metric(y, scores, qid=…, per_query=…)``.
    **options
        Options of the metric, such as ``k=10`` or ``no_relevant="skip"``.

    Returns
    -------
    callable
        Called as ``metric(y, scores, qid=…, per_query=…)``.

    Raises
    ------
    ValueError
        If the name or an option is unknown, or a value is invalid.

    Examples
    --------
    >>> from marginrank.metrics import get_metric
    >>> get_metric("precision@2", threshold=1)([2, 1, 0], [3.0, 2.0, 1.0])
    0.5
    """
    function, cutoff = _named(metric) if isinstance(metric, str) else (metric, {})
    if not callable(function):
        raise ParameterError(given("metric", metric), " must be a name or a function.")
    if cutoff.keys() & options.keys():
        raise ValueError(f"metric {metric!r} and k={options['k']!r} both give a cut-off; pass one.")
    options = {**cutoff, **options}
    if function in METRICS.values():
        _check_options(function, options)
    return partial(function, **options) if options else function


def order_free(metric: Metric) -> Metric:
    """Return `metric` with ``ties="average"``, if it has this option and does not set it already.

    A metric that selects a model must not depend on the order of the rows: if rows are sorted by
    label and ties stay in input order, a model that gives all documents the same score seems
    perfect.
    """
    function, options = split_options(metric)
    if function not in METRICS.values() or "ties" in options:
        return metric
    ties = inspect.signature(function).parameters.get("ties")
    return partial(metric, ties="average") if ties and ties.default == "order" else metric


def split_options(metric: Metric) -> tuple[Metric, dict[str, Any]]:
    """Return the metric function inside nested ``functools.partial`` objects, and its options."""
    if isinstance(metric, partial):
        function, options = split_options(metric.func)
        return function, {**options, **metric.keywords}
    return metric, {}


def _named(metric: str) -> tuple[Metric, dict[str, Any]]:
    given_name, at, k = metric.partition("@")
    name = ALIASES.get(given_name.lower(), given_name.lower())
    if name not in METRICS:
        near = difflib.get_close_matches(name, [*METRICS, *ALIASES], n=1)
        hint = f"did you mean {near[0]!r}? Use" if near else "use"
        what = f" {given_name!r} is not known; {hint} one of {', '.join(METRICS)}."
        raise ParameterError(Mention("metric"), what)
    if at and not k.isdecimal():
        what = f' {metric!r} has no cut-off after the @; pass one as in "ndcg@10".'
        raise ParameterError(Mention("metric"), what)
    return METRICS[name], {"k": int(k)} if at else {}


def _check_options(metric: Metric, options: dict[str, Any]) -> None:
    data = ("y", "scores", "qid", "group", "sample_weight", "per_query")
    known = [name for name in inspect.signature(metric).parameters if name not in data]
    for option in options:
        if option not in known:
            allowed = ", ".join(known)
            raise ValueError(f"{metric.__name__} has no option {option!r}; available: {allowed}.")
    metric([0, 0], [1.0, 0.0], **options)  # check the values of the options


def metric_name(metric: Metric) -> str:
    """Return the name of a metric with its options, as in "ndcg@10(gain='linear')"."""
    if not isinstance(metric, partial):
        return getattr(metric, "__name__", repr(metric))
    options = dict(metric.keywords)
    k = options.pop("k", None)
    cutoff = "" if k is None else f"@{k}"
    inside = ", ".join(f"{option}={value!r}" for option, value in options.items())
    return f"{metric_name(metric.func)}{cutoff}" + (f"({inside})" if inside else "")
