"""Model files of marginrank: JSON, described field by field in ``docs/formats.md``."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.version import __version__
from marginrank.data.feature_choice import directions
from marginrank.data.knots import MOST_KNOTS, are_rising
from marginrank.models.additive_model import AdditiveModel, Curve
from marginrank.models.fit_report import Iteration, Pass
from marginrank.models.interactions import Interaction
from marginrank.models.json_fields import (
    Fields,
    HistoryLine,
    encode,
    history_to_json,
    is_count,
    is_finite,
    is_integer,
    is_numbers,
    is_object,
    is_texts,
    or_null,
    parameters_to_json,
    parse_object,
    training_to_json,
)
from marginrank.models.linear_model import LinearModel

FORMAT = "marginrank-model"
ADDITIVE_FORMAT = "marginrank-additive-model"
VERSION = 1
ESTIMATORS = ("RankSVM", "SparseRankSVM", "SGDRankSVM")
COUNTS = ("n_iter", "n_pairs", "t")


def write(model: LinearModel | AdditiveModel, path: str | os.PathLike[str]) -> None:
    """Write a model, each field on a line of its own, if it could be read again."""
    if isinstance(model, AdditiveModel):
        content = _additive_to_json(model)
        _read_additive(Fields.to_write(content))
    else:
        content = _linear_to_json(model)
        _read_linear(Fields.to_write(content))
    lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in content.items()]
    with atomic_write(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii"))


def read(path: str) -> LinearModel:
    """Read a linear model."""
    return _read_linear(_open(path, FORMAT, "linear"))


def read_additive(path: str) -> AdditiveModel:
    """Read an additive model."""
    return _read_additive(_open(path, ADDITIVE_FORMAT, "additive"))


def is_additive_model(path: str) -> bool:
    """Whether a file begins like that of an additive model."""
    with open(path, "rb") as file:
        return f'"{ADDITIVE_FORMAT}"'.encode() in file.read(128)


def _open(path: str, format: str, kind: str) -> Fields:
    with open(path, "rb") as file:
        content = parse_object(path, file.read())
    fields = Fields(path, content if isinstance(content, dict) else {})
    fields.require_format(format, VERSION, kind)
    return fields


def _linear_to_json(model: LinearModel) -> dict[str, Any]:
    """Return the fields of the file, in order."""
    if model.estimator not in ESTIMATORS:
        raise TypeError(
            f"a {model.estimator} cannot be saved as JSON; only {', '.join(ESTIMATORS)} can."
        )
    content = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"marginrank {__version__}",
        "estimator": model.estimator,
        "parameters": parameters_to_json(model.parameters),
        "n_features": model.coef.size,
        "feature_names": model.feature_names,
        "coef": model.coef.tolist(),
        "training": training_to_json(model.report),
        "history": history_to_json(model.report, _line(model.estimator)),
    }
    if model.counts is not None:
        content["counts"] = {name: encode(value) for name, value in model.counts.items()}
    if model.scale is not None:
        content["scale"] = model.scale.tolist()
    return content


def _read_linear(fields: Fields) -> LinearModel:
    estimator = fields.get("estimator", lambda v: isinstance(v, str), "a name")
    if estimator not in ESTIMATORS:
        raise ValueError(
            f"{fields.path} holds a {estimator}, which this marginrank does not have; update "
            "marginrank."
        )
    n_features = fields.get("n_features", is_count, "a positive integer")
    coef = fields.get("coef", is_numbers, "a list of finite numbers")
    if len(coef) != n_features:
        raise fields.damaged(f"'coef' has {len(coef)} entries and not {n_features}")
    return LinearModel(
        coef=np.array(coef, dtype=np.float64),
        parameters=fields.parameters(estimator),
        feature_names=fields.names(n_features),
        report=fields.report(_line(estimator)),
        estimator=estimator,
        counts=_read_counts(fields),
        scale=fields.scale(n_features),
    )


def _line(estimator: str) -> HistoryLine:
    """Return what a line of the history is."""
    return Pass if estimator == "SGDRankSVM" else Iteration


def _read_counts(fields: Fields) -> dict[str, int] | None:
    counts = fields.get("counts", or_null(is_object), "null or an object")
    if counts is None:
        return None
    inner = fields.inside(counts)
    return {name: inner.get(name, is_integer, "an integer") for name in COUNTS}


def _additive_to_json(model: AdditiveModel) -> dict[str, Any]:
    """Return the fields of the file, in order."""
    interactions = [_interaction_to_json(one) for one in model.interactions]
    return {
        "format": ADDITIVE_FORMAT,
        "version": VERSION,
        "written_by": f"marginrank {__version__}",
        "parameters": parameters_to_json(_with_listed_pairs(model.parameters)),
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "curves": [_curve_to_json(curve) for curve in model.curves],
        **({"interactions": interactions} if interactions else {}),
        "training": training_to_json(model.report),
        "history": history_to_json(model.report),
        **({} if model.scale is None else {"scale": model.scale.tolist()}),
    }


def _with_listed_pairs(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with pairs instead of a mapping, as keys in JSON are text."""
    signs = parameters.get("monotonic_cst")
    if not isinstance(signs, Mapping):
        return parameters
    return parameters | {"monotonic_cst": [list(pair) for pair in directions(signs).items()]}


def _read_additive(fields: Fields) -> AdditiveModel:
    curves = fields.get("curves", lambda v: isinstance(v, list) and bool(v), "a list of curves")
    n_features = fields.get("n_features", lambda v: v == len(curves), "the number of curves")
    return AdditiveModel(
        curves=[_read_curve(fields, k, curve) for k, curve in enumerate(curves)],
        parameters=fields.parameters("AdditiveRankSVM"),
        feature_names=fields.names(n_features),
        report=fields.report(),
        interactions=_read_interactions(fields, n_features),
        scale=fields.scale(n_features),
    )


def _curve_to_json(curve: Curve) -> dict[str, Any]:
    return {
        "knots": curve.knots.tolist(),
        "values": curve.values.tolist(),
        "missing": curve.missing,
        "categorical": curve.categorical,
        **({} if curve.categories is None else {"categories": list(curve.categories)}),
    }


def _read_curve(fields: Fields, k: int, stored: Any) -> Curve:
    if not isinstance(stored, dict):
        raise fields.damaged(f"curve {k} is no object")
    inner = fields.inside(stored)
    numbers = f"a list of finite numbers, in curve {k}"
    knots = np.array(inner.get("knots", is_numbers, numbers), dtype=np.float64)
    values = np.array(inner.get("values", is_numbers, numbers), dtype=np.float64)
    categorical = inner.get("categorical", _is_flag, "true or false")
    if not 1 <= knots.size == values.size <= MOST_KNOTS or not are_rising(knots, categorical):
        raise fields.damaged(
            f"curve {k} does not have a value at each of 1 to {MOST_KNOTS} rising knots"
        )
    texts = inner.get("categories", or_null(is_texts), f"a list of text, in curve {k}")
    return Curve(
        knots=knots,
        values=values,
        missing=float(inner.get("missing", is_finite, f"a finite number, in curve {k}")),
        categorical=categorical,
        categories=None if texts is None else tuple(texts),
    )


def _interaction_to_json(one: Interaction) -> dict[str, Any]:
    return {
        "features": list(one.features),
        "knots": [axis.tolist() for axis in one.knots],
        "values": one.values.tolist(),
        "categorical": list(one.categorical),
    }


def _read_interactions(fields: Fields, n_features: int) -> list[Interaction]:
    """Return the interactions of a file; files without the field have none."""
    stored = fields.get(
        "interactions",
        or_null(lambda v: isinstance(v, list) and all(map(is_object, v))),
        "a list of objects",
    )
    return [_read_interaction(fields, k, one, n_features) for k, one in enumerate(stored or [])]


def _read_interaction(
    fields: Fields, k: int, stored: dict[str, Any], n_features: int
) -> Interaction:
    inner, place = fields.inside(stored), f"in interaction {k}"
    features = inner.get(
        "features",
        lambda v: (
            _is_two(v, lambda one: type(one) is int and 0 <= one < n_features) and v[0] != v[1]
        ),
        f"the columns of two features, {place}",
    )
    categorical = inner.get(
        "categorical", lambda v: _is_two(v, _is_flag), f"true or false for both, {place}"
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
            and all(is_numbers(row) and len(row) == shape[1] for row in v)
        ),
        f"{shape[0]} lists of {shape[1]} finite numbers, {place}",
    )
    return Interaction(
        (features[0], features[1]),
        (np.array(axes[0], dtype=np.float64), np.array(axes[1], dtype=np.float64)),
        np.array(values, dtype=np.float64),
        (categorical[0], categorical[1]),
    )


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_two(value: Any, fits: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(fits, value))


def _is_axis(value: Any, categorical: bool) -> bool:
    return (
        is_numbers(value)
        and 1 <= len(value) <= MOST_KNOTS
        and are_rising(np.array(value, dtype=np.float64), categorical)
    )
