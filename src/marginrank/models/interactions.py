"""What pairs of features add to a score, as plain data."""

from typing import Any

import numpy as np

from marginrank.data.grids import Interaction
from marginrank.data.knots import MOST_KNOTS, are_rising
from marginrank.models.json_model import _Fields, _is_weights


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
