"""Scaling of features without a copy of X.

A pair depends on the difference of two documents only. So dividing feature k by σ_k is the same as
fitting the unscaled features with the regularizer ½ Σ σ_k² w_k² instead of ½‖w‖², or Σ σ_k |w_k|
instead of ‖w‖₁. Solvers work with the weights u = σw of the scaled features X / σ; a fitted model
stores w.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import name_of
from marginrank._utils.memory import require_vectors
from marginrank._utils.parameters import Message, ParameterError, given
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.data.stored_data import between
from marginrank.fit.feature_scales import FeatureScale, QueryScale, RangeScale, StandardScale
from marginrank.models.parameters import LEAST_SCALE, MOST_SCALE, check_scale_values, no_scale
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Matrix
from marginrank.operators.parts.matrix import StreamedMatrix
from marginrank.operators.transformed import ScaledMatrix

SCALES: dict[str, type[FeatureScale]] = {"standard": StandardScale, "range": RangeScale}
HUGE = 1e10  # beside a constant of this size, gradients of other features keep only six digits
SHOWN = 10  # number of features that a message names before it only counts the others


@dataclass(frozen=True)
class Scale:
    """Divisors of the features, and the indices of features that have no effect on any pair."""

    values: Floats  # σ, positive; 1 for a constant feature
    without_effect: Integers  # features that are constant within every query, so without effect


def find_scale(data: RankingData, scale: Any, matrix: Matrix | None = None) -> Scale | None:
    """Return the divisors of the features for the parameter `scale` of an estimator, or None.

    If X is on disk, they are computed by one pass over `matrix`.
    """
    if no_scale(scale):
        return None
    search = ScaleSearch(scale)
    if isinstance(matrix, StreamedMatrix):
        plan = matrix.plan
        for part, X in matrix.parts():
            search.add(between(data, int(plan.queries[part]), int(plan.queries[part + 1]), X))
    else:
        search.add(data)
    return search.found()


def find_linear_scale(data: RankingData, scale: Any, matrix: Matrix | None = None) -> Scale | None:
    """Return the divisors of the features of a linear model, for the parameter `scale`.

    Unlike :func:`find_scale`, this divides features that are huge and constant within every query
    by their size. Their weights are zero, but rounding errors of sums over them would hide the
    gradients of other features.
    """
    found = find_scale(data, scale, matrix)
    if isinstance(matrix, StreamedMatrix):
        return found
    magnitudes = data.matrix.magnitudes(1)
    # Features above MOST_SCALE overflow and raise an error.
    candidates = np.flatnonzero((magnitudes > HUGE) & (magnitudes <= MOST_SCALE)).tolist()
    huge = [k for k in candidates if _is_constant(data, k)]
    if not huge:
        return found
    values = np.ones(data.n_features) if found is None else found.values.copy()
    values[huge] = magnitudes[huge]
    without_effect = huge if found is None else found.without_effect
    return Scale(values, np.asarray(without_effect, dtype=np.int64))


def _is_constant(data: RankingData, feature: int) -> bool:
    column = data.X[:, [feature]]
    values = np.asarray(column.toarray() if sp.issparse(column) else column).ravel()
    _, first = np.unique(data.qid, return_index=True)
    return bool(np.all(values == values[first][data.qid]))


class ScaleSearch:
    """Computes the divisors of the features for a parameter `scale` from data added in chunks."""

    def __init__(self, scale: Any) -> None:
        self._scale = None if no_scale(scale) else scale
        self._in_queries = QueryScale()
        is_other = isinstance(scale, str) and scale in SCALES
        self._other: FeatureScale | None = SCALES[scale]() if is_other else None

    def add(self, data: RankingData) -> None:
        if self._scale is None:
            return
        require_vectors(data.n_features)
        with np.errstate(over="ignore", invalid="ignore"):  # `found` checks for overflow
            self._in_queries.add(data)
            if self._other is not None:
                self._other.add(data)

    def merge(self, other: "ScaleSearch") -> None:
        """Add the documents that were added to another ScaleSearch with the same parameter."""
        self._in_queries.merge(other._in_queries)
        if self._other is not None:
            self._other.merge(other._other)

    def found(self) -> Scale | None:
        if self._scale is None:
            return None
        in_queries = self._in_queries.values()
        if isinstance(self._scale, str):
            with np.errstate(over="ignore"):
                found = in_queries if self._other is None else self._other.values()
                values = _positive(found)
        else:
            values = check_scale_values(self._scale, in_queries.size)
        return Scale(values, np.flatnonzero(in_queries == 0))


def _positive(scale: Floats) -> Floats:
    """Return `scale` with 1 instead of 0; raise ValueError if dividing by it may overflow."""
    values = np.where(scale == 0, 1.0, scale)
    odd = np.flatnonzero(~((values >= LEAST_SCALE) & (values <= MOST_SCALE)))
    if odd.size:
        size = "small" if values[odd[0]] < LEAST_SCALE else "large"
        raise ValueError(
            f"X[:, {odd[0]}] has values too {size} to rescale (scale={values[odd[0]]:.3g}). "
            "Multiply the column by a constant."
        )
    return values


def scale_of_part(scale: Any, n_features: int) -> Floats | None:
    """Return the divisors of the features for partial_fit, which has only a part of the documents.

    Raise ParameterError if the parameter `scale` is the name of a scale of all documents.
    """
    if no_scale(scale):
        return None
    if isinstance(scale, str):
        raise ParameterError(
            given("scale", scale),
            " requires all documents, but partial_fit gets a part of them. Pass an array, such as "
            "scale_ of another fit, or call fit first.",
        )
    return check_scale_values(scale, n_features)


def with_scale(objective: Objective, scale: Scale | None) -> Objective:
    """Return an objective as a function of the weights of scaled features."""
    if scale is None:
        return objective
    return objective.on(ScaledMatrix(objective.matrix, scale.values))


def to_raw(u: Floats, scale: Scale | None) -> Floats:
    """Return the weights of the unscaled features for weights of scaled features."""
    return u if scale is None else u / scale.values


def values_of(scale: Scale | None) -> Floats | None:
    """Return the divisors of the features as an array, or None without scaling."""
    return None if scale is None else scale.values


def without_effect(scale: Scale | None) -> tuple[int, ...]:
    """Return the features that are constant within every query; empty without scaling."""
    return () if scale is None else tuple(scale.without_effect.tolist())


def effect_message(features: Sequence[int], names: Sequence[str] | None) -> Message | None:
    """Return the warning about features without effect on any pair, or None if there are none."""
    if not features:
        return None
    more = f" and {len(features) - SHOWN} more" if len(features) > SHOWN else ""
    listed = ", ".join(name_of(k, names) for k in features[:SHOWN])
    return Message(
        f"Features without effect, because they are constant within every query: {listed}{more}. "
        "Drop them."
    )


@contextmanager
def blaming_features(*, C: Any) -> Iterator[None]:
    """Context manager: if a C that was chosen from the data is invalid, raise an error about X."""
    try:
        yield
    except ParameterError as error:
        if C is not None or error.parameter != "C":
            raise
        raise ParameterError(
            "Cannot choose C for features of this scale; use ",
            given("scale", "standard"),
            " or rescale X.",
        ) from error
