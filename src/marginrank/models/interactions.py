"""What pairs of features add to a score, as plain data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats
from marginrank.data.grids import Grid, grid_scores
from marginrank.data.knots import MOST_KNOTS, are_rising
from marginrank.models.json_model import _Fields, _is_weights


class Interaction(NamedTuple):
    """What two features add to a score together, beside their curves.

    Attributes
    ----------
    features : tuple of int
        Columns of the two features.
    knots : tuple of ndarray
        Values of the first and of the second feature, ascending; categories, if that has some.
    values : ndarray of shape (n_first + 1, n_second + 1)
        What is added at each two knots, in rows of the first feature and columns of the second;
        the first row and the first column are for missing values. Between knots it is bilinear,
        and beyond the outer ones it is what it is there.
    categorical : tuple of bool
        Which of the two features has categories; one that is none of the knots counts as missing.
    """

    features: tuple[int, int]
    knots: tuple[Floats, Floats]
    values: Floats
    categorical: tuple[bool, bool]

    @property
    def spread(self) -> float:
        """The largest difference that the pair makes between two points of values at knots."""
        return float(np.ptp(self.values[1:, 1:]))

    @property
    def grid(self) -> Grid:
        """Its nodes."""
        return Grid(self.features, self.knots, self.categorical)

    def name(self, names: Sequence[str] | None) -> str:
        """Return the names of both features as one."""
        return " × ".join(name_of(k, names) for k in self.features)


def interactions_of(grids: Sequence[Grid], values: Sequence[Floats]) -> list[Interaction]:
    """Return the grids of a fit, with their values."""
    return [
        Interaction(grid.features, grid.axes, at_nodes.copy(), grid.categorical)
        for grid, at_nodes in zip(grids, values, strict=True)
    ]


def scores_of(interactions: Sequence[Interaction], X: Any, threads: int) -> Floats:
    """Return the sum of what pairs of features add, for checked features."""
    grids = [one.grid for one in interactions]
    return grid_scores(grids, [one.values for one in interactions], X, threads)


def to_json(one: Interaction) -> dict[str, Any]:
    """Return what a file has of it."""
    return {
        "features": list(one.features),
        "knots": [axis.tolist() for axis in one.knots],
        "values": one.values.tolist(),
        "categorical": list(one.categorical),
    }


def read_interactions(fields: _Fields, n_features: int) -> list[Interaction]:
    """Return those of a file; files without have none."""
    stored = fields.get(
        "interactions",
        lambda v: v is None or (isinstance(v, list) and all(isinstance(one, dict) for one in v)),
        "a list of objects",
    )
    return [_read(fields, k, one, n_features) for k, one in enumerate(stored or [])]


def _read(fields: _Fields, k: int, stored: dict[str, Any], n_features: int) -> Interaction:
    inner, place = fields.inside(stored), f"in interaction {k}"
    features = inner.get(
        "features",
        lambda v: (
            _is_two(v, lambda one: type(one) is int and 0 <= one < n_features) and v[0] != v[1]
        ),
        f"the columns of two features, {place}",
    )
    categorical = inner.get(
        "categorical",
        lambda v: _is_two(v, lambda one: isinstance(one, bool)),
        f"true or false for both, {place}",
    )
    axes = inner.get(
        "knots",
        lambda v: isinstance(v, list) and len(v) == 2 and all(map(_is_axis, v, categorical)),
        f"two lists of rising knots, {place}",
    )
    shape = tuple(len(axis) + 1 for axis in axes)
    values = inner.get(
        "values",
        lambda v: (
            isinstance(v, list)
            and len(v) == shape[0]
            and all(_is_weights(row) and len(row) == shape[1] for row in v)
        ),
        f"{shape[0]} lists of {shape[1]} finite numbers, {place}",
    )
    return Interaction(
        (features[0], features[1]),
        (np.array(axes[0], dtype=np.float64), np.array(axes[1], dtype=np.float64)),
        np.array(values, dtype=np.float64),
        (categorical[0], categorical[1]),
    )


def _is_two(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(fits, value))


def _is_axis(value: Any, categorical: bool) -> bool:
    return (
        _is_weights(value)
        and 1 <= len(value) <= MOST_KNOTS
        and are_rising(np.array(value, dtype=np.float64), categorical)
    )
