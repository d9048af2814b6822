"""Scales of features: what each is divided by, and weights on both sides of the division.

Pairs see differences of documents, so that dividing feature k by σ_k is the same as learning from
the features as they are with the regulariser ½ Σ σ_k² w_k², or Σ σ_k |w_k| in place of ‖w‖₁. X is
never copied. Solvers see u = σw, the weights of X / σ; a model has w.
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
from marginrank.fit.spread import QuerySpread, RangeSpread, Spread, TotalSpread
from marginrank.models.parameters import LEAST_SCALE, MOST_SCALE, check_scale_values, no_scale
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Matrix
from marginrank.operators.parts.matrix import StreamedMatrix
from marginrank.operators.transformed import ScaledMatrix

SPREADS: dict[str, type[Spread]] = {
    "standard": TotalSpread,
    "range": RangeSpread,
    "query": QuerySpread,
}
HUGE = 1e10  # a constant of this size leaves six digits of the gradients of other features
SHOWN = 10  # features that a message names


@dataclass(frozen=True)
class Scale:
    """What features are divided by.

    Attributes
    ----------
    values : ndarray of shape (n_features,)
        σ, positive; 1 for a feature that does not vary.
    without_effect : ndarray of int64
        The features that are constant inside every query, so that no pair sees them.
    """

    values: Floats
    without_effect: Integers


def find_scale(data: RankingData, scale: Any, matrix: Matrix | None = None) -> Scale | None:
    """Return the scale that a parameter names for the data, or None for none.

    A sweep or two over `matrix`, if X of the data is left on disk.
    """
    if no_scale(scale):
        return None
    search = ScaleSearch(scale)
    if isinstance(matrix, StreamedMatrix):
        for chunk in chunks_of(data, matrix):
            search.add(chunk)
    else:
        search.add(data)
    return search.found()


def find_linear_scale(data: RankingData, scale: Any, matrix: Matrix | None = None) -> Scale | None:
    """Return the scale of the features of a linear model; the arguments are those of find_scale.

    Features that are huge and constant inside every query are divided by their size. No pair sees
    them and their weights are zero, but the rounding of sums over such a feature would hide the
    gradients of all others.
    """
    found = find_scale(data, scale, matrix)
    return found if isinstance(matrix, StreamedMatrix) else _without_huge_constants(found, data)


def _without_huge_constants(scale: Scale | None, data: RankingData) -> Scale | None:
    magnitudes = data.matrix.magnitudes(1)
    candidates = np.flatnonzero((magnitudes > HUGE) & (magnitudes <= MOST_SCALE)).tolist()
    huge = [k for k in candidates if _is_constant(data, k)]  # larger ones raise, as they overflow
    if not huge:
        return scale
    values = np.ones(data.n_features) if scale is None else scale.values.copy()
    values[huge] = magnitudes[huge]
    without_effect = huge if scale is None else scale.without_effect
    return Scale(values, np.asarray(without_effect, dtype=np.int64))


def _is_constant(data: RankingData, feature: int) -> bool:
    """Return True if a feature is constant inside every query."""
    column = data.X[:, [feature]]
    values = np.asarray(column.toarray() if sp.issparse(column) else column).ravel()
    _, first = np.unique(data.qid, return_index=True)
    return bool(np.all(values == values[first][data.qid]))


def chunks_of(data: RankingData, matrix: StreamedMatrix) -> Iterator[RankingData]:
    """Yield data that are left on disk in chunks of whole queries, valid until the next; a sweep.

    A query that is larger than a block comes into memory.
    """
    plan = matrix.plan
    for part, X in matrix.parts():
        yield between(data, int(plan.queries[part]), int(plan.queries[part + 1]), X)


class ScaleSearch:
    """Finds a scale, in data that may come in chunks of whole queries.

    Parameters
    ----------
    scale : None, str or array-like
        The parameter, checked. Without a scale, nothing is looked at.
    """

    def __init__(self, scale: Any) -> None:
        self._scale = None if no_scale(scale) else scale
        self._inside = QuerySpread()
        named = isinstance(scale, str) and scale in SPREADS and scale != "query"
        self._spread: Spread = SPREADS[scale]() if named else self._inside

    def add(self, data: RankingData) -> None:
        """Look at more documents."""
        if self._scale is None:
            return
        require_vectors(data.n_features)
        with np.errstate(over="ignore", invalid="ignore"):  # said better when all is seen
            self._inside.add(data)
            if self._spread is not self._inside:
                self._spread.add(data)

    def merge(self, other: "ScaleSearch") -> None:
        """Look at the documents that another search for the same scale has seen."""
        self._inside.merge(other._inside)
        if self._spread is not self._inside:
            self._spread.merge(other._spread)

    def found(self) -> Scale | None:
        """Return the scale of what was looked at."""
        if self._scale is None:
            return None
        inside = self._inside.values()
        if isinstance(self._scale, str):
            with np.errstate(over="ignore"):
                values = _positive(self._spread.values())
        else:
            values = check_scale_values(self._scale, inside.size)
        return Scale(values, np.flatnonzero(inside == 0))


def _positive(spread: Floats) -> Floats:
    """Return a spread with 1 for what does not vary."""
    values = np.where(spread == 0, 1.0, spread)
    odd = np.flatnonzero(~((values >= LEAST_SCALE) & (values <= MOST_SCALE)))
    if odd.size:
        size = "small" if values[odd[0]] < LEAST_SCALE else "large"
        raise ValueError(
            f"X[:, {odd[0]}] has values so {size} that its scale is no number to divide by; "
            "multiply the feature by a number."
        )
    return values


def scale_of_part(scale: Any, n_features: int) -> Floats | None:
    """Return the scale that a parameter gives where only a part of the data is known."""
    if no_scale(scale):
        return None
    if isinstance(scale, str):
        raise ParameterError(
            given("scale", scale),
            " needs all documents, and partial_fit sees a part of them at a time; give an array, "
            "such as scale_ of another fit, or call fit first.",
        )
    return check_scale_values(scale, n_features)


def with_scale(objective: Objective, scale: Scale | None) -> Objective:
    """Return the objective whose weights are u = σw."""
    if scale is None:
        return objective
    return objective.on(ScaledMatrix(objective.matrix, scale.values))


def to_scaled(w: Floats | None, scale: Scale | None) -> Floats | None:
    """Return u = σw, of weights to start from."""
    return w if w is None or scale is None else w * scale.values


def to_raw(u: Floats, scale: Scale | None) -> Floats:
    """Return w = u / σ, the weights of the features as they are."""
    return u if scale is None else u / scale.values


def values_of(scale: Scale | None) -> Floats | None:
    """Return σ, if there is any."""
    return None if scale is None else scale.values


def without_effect(scale: Scale | None) -> tuple[int, ...]:
    """Return the features that are constant inside every query, if they were looked for."""
    return () if scale is None else tuple(scale.without_effect.tolist())


def effect_message(features: Sequence[int], names: Sequence[str] | None) -> Message | None:
    """Return the warning that some features have no effect on any pair, or None."""
    if not features:
        return None
    more = f" and {len(features) - SHOWN} more" if len(features) > SHOWN else ""
    listed = ", ".join(name_of(k, names) for k in features[:SHOWN])
    return Message(
        f"Features without effect, as they are constant inside every query: {listed}{more}; drop "
        "them."
    )


@contextmanager
def blaming_features(*, C: Any) -> Iterator[None]:
    """Raise an error about the features, not about C, if C is None: derived from the features."""
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
