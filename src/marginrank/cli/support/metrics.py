"""Metrics by their names on the command line, such as ndcg@10."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from marginrank._utils.parameters import calling
from marginrank.cli.support.errors import complain, message_of

if TYPE_CHECKING:
    from marginrank.data import RankingData

DEFAULT = "ndcg@1,ndcg@5,ndcg@10,average_precision,reciprocal_rank,pairwise_accuracy"

Metric = Callable[..., Any]


def find_metrics(
    names: str | None, *, parameter: str = "metrics", **options: str | None
) -> dict[str, Metric]:
    """Return the metrics of a list with commas, or the default ones, with options that they have.

    An option that none of them has is refused. Errors name the `parameter` that the list is of.
    """
    from marginrank.metrics import get_metric

    given = {option: value for option, value in options.items() if value is not None}
    chosen = {}
    unused = set(given)
    for name in (DEFAULT if names is None else names).replace(" ", "").split(","):
        with calling("metric", parameter):
            known = inspect.signature(get_metric(name)).parameters
        own = {option: value for option, value in given.items() if option in known}
        chosen[name] = get_metric(name, **own)
        unused -= own.keys()
    for option in sorted(unused):
        raise ValueError(f"--{option} is given, but no metric has a {option}; ndcg and dcg do.")
    return chosen


def find_metric(name: str, **options: str | None) -> Metric:
    """Return one metric, with the options that are given."""
    chosen = list(find_metrics(name, parameter="metric", **options).values())
    if len(chosen) > 1:
        raise ValueError(f"--metric {name} names {len(chosen)} metrics; give one.")
    return chosen[0]


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
