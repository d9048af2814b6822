"""Arguments that all metrics share, their checks, and the mean of a metric over queries."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from functools import wraps
from math import isfinite
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import check_choice
from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.ranking import Ranking

Value = float | Any  # a float, or with per_query=True an array; Any avoids casts by users

ROUNDING = 1e-12  # relative rounding error that the order of the rows may cause


class RankingMetric(Protocol):
    """Protocol of ranking metrics; `options` stands for the options of the specific metric."""

    __name__: str

    def __call__(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        per_query: bool = False,
        n_jobs: int | None = None,
        **options: Any,
    ) -> Value:
        """Return the metric as the mean over queries, or with `per_query` one value per query."""

    def of_retrieved(
        self, y: ArrayLike, scores: ArrayLike, qid: ArrayLike, retrieved: Booleans, **options: Any
    ) -> Floats:
        """Return the metric of each query of a run; the mask `retrieved` marks its documents.

        Other documents have no rank: they are judged, but the run did not retrieve them.
        """


def ranking_metric(
    *, conventions: bool = True, ordinal: bool = False
) -> Callable[[Callable[..., Floats]], RankingMetric]:
    """Return a decorator that turns a function with one value per query into a ranking metric.

    The decorated function takes a :class:`~marginrank.metrics.ranking.Ranking` and options. It
    returns nan for a query in which the metric is not defined. The metric takes labels, scores,
    queries, `per_query` and `n_jobs` instead of the Ranking.

    Parameters
    ----------
    conventions : bool
        Whether the metric also takes ``ties``, which the function reads as
        ``ranking.average_ties``, and ``no_relevant``, the value that replaces nan.
    ordinal : bool
        Whether only the order of the labels matters.
    """

    def decorate(values_of: Callable[..., Floats]) -> RankingMetric:
        @wraps(values_of)
        def metric(
            y: ArrayLike,
            scores: ArrayLike,
            *,
            qid: ArrayLike | None = None,
            group: ArrayLike | None = None,
            per_query: bool = False,
            n_jobs: int | None = None,
            **options: Any,
        ) -> Value:
            ties = options.pop("ties", "order") if conventions else "order"
            no_relevant = options.pop("no_relevant", 0.0) if conventions else "skip"
            check_choice("ties", ties, ("order", "average"))
            ranking = Ranking.of(
                y,
                scores,
                qid,
                group,
                n_jobs,
                ordinal=ordinal,
                average_ties=ties == "average",
            )
            return average(_fill(values_of(ranking, **options), no_relevant), per_query)

        def of_retrieved(
            y: ArrayLike, scores: ArrayLike, qid: ArrayLike, retrieved: Booleans, **options: Any
        ) -> Floats:
            ranking = Ranking.of(y, scores, qid, None, None, ordinal=ordinal, retrieved=retrieved)
            return _fill(values_of(ranking, **options), 0.0 if conventions else "skip")

        shared = [*inspect.signature(RankingMetric.__call__).parameters.values()][1:]
        own = [*inspect.signature(values_of).parameters.values()][1:]
        if conventions:
            own += [*inspect.signature(_conventions).parameters.values()]
        signature = inspect.Signature([*shared[:4], *own, *shared[4:6]], return_annotation=Value)
        metric.__signature__ = signature  # type: ignore[attr-defined]
        metric.of_retrieved = of_retrieved  # type: ignore[attr-defined]
        return cast(RankingMetric, metric)

    return decorate


def _conventions(*, ties: str = "order", no_relevant: float | str = 0.0) -> None:
    """Declare the options `ties` and `no_relevant`, which most metrics have."""


def check_cutoff(k: Any) -> int | None:
    """Return the cut-off k of a metric as an int, or None for no cut-off.

    Raise ValueError if it is not a positive integer.
    """
    if k is None:
        return None
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1:
        raise ValueError(f"k={k!r} must be a rank, 1 or more, or None for all documents.")
    return int(k)


def check_real(name: str, value: Any) -> float:
    """Return `value` as a float; raise ValueError unless it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    return float(value)


def exceeds(value: Any, other: Any) -> Any:
    """Return True (elementwise) if `value` exceeds `other` by more than rounding errors."""
    return value - other > ROUNDING * np.abs(value)


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return the elementwise ratio part / whole, with nan where `whole` is 0."""
    result = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=result, where=whole > 0)
    return result


def average(values: Floats, per_query: bool) -> Value:
    """Return the mean of a metric's values over queries, ignoring nan.

    With `per_query`, return `values` unchanged.
    """
    if per_query:
        return values
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if defined.size else float("nan")


def _fill(values: Floats, no_relevant: Any) -> Floats:
    if isinstance(no_relevant, str) and no_relevant == "skip":
        return values
    if no_relevant not in (0, 1):
        raise ValueError(f'no_relevant={no_relevant!r} must be 0, 1 or "skip".')
    return np.where(np.isnan(values), float(no_relevant), values)
