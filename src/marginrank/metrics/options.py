"""Arguments that metrics share, and how values by query become a result."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from functools import wraps
from math import isfinite
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.ranking import Ranking

Value = float | Any  # a float, or with per_query=True an array: Any spares users a cast

TIES = ("order", "average")
ROUNDING = 1e-12  # relative; values that differ by less may do so by the order of the rows


class RankingMetric(Protocol):
    """A metric as users call it; `options` are its own."""

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
        """Return the mean over queries, or with `per_query` the value of each."""


def from_values_by_query(values_of: Callable[..., Floats]) -> RankingMetric:
    """Make a metric of a function that returns a value per query of a Ranking, nan for none.

    The metric has the arguments of :class:`RankingMetric` and those of the function.
    """
    shared = inspect.signature(RankingMetric.__call__).parameters
    options = [*inspect.signature(values_of).parameters.values()][1:]
    data = [shared[name] for name in ("y", "scores", "qid", "group")]
    output = [shared[name] for name in ("per_query", "n_jobs")]

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
        ranking = Ranking.of(y, scores, qid, group, n_jobs)
        return report(values_of(ranking, **options), per_query)

    signature = inspect.Signature([*data, *options, *output], return_annotation=Value)
    metric.__signature__ = signature  # type: ignore[attr-defined]
    return metric


def check_cutoff(k: Any) -> int | None:
    """Return the cut-off k, None for all documents."""
    if k is None:
        return None
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or k < 1:
        raise ValueError(f"k={k!r} must be a rank, 1 or more, or None for all documents.")
    return int(k)


def check_real(name: str, value: Any) -> float:
    """Return `value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not isfinite(value):
        raise ValueError(f"{name}={value!r} must be a finite number.")
    return float(value)


def exceeds(value: Any, other: Any) -> Any:
    """Tell whether a value is higher than another by more than rounding."""
    return value - other > ROUNDING * np.abs(value)


def settle(values: Floats, relevant: Booleans, no_relevant: float | str) -> Floats:
    """Put the policy `no_relevant` in the place of queries that have no relevant document."""
    if isinstance(no_relevant, str) and no_relevant == "skip":
        return np.where(relevant, values, np.nan)
    if no_relevant not in (0, 1):
        raise ValueError(f'no_relevant={no_relevant!r} is not known; use 0, 1 or "skip".')
    return np.where(relevant, values, float(no_relevant))


def report(values: Floats, per_query: bool) -> Value:
    """Return values by query, or their mean over the queries that have one (are not nan)."""
    if per_query:
        return values
    defined = values[~np.isnan(values)]
    return float(np.mean(defined)) if defined.size else float("nan")
