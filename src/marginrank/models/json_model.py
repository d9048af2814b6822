"""JSON files of linear and additive models, described in ``docs/reference/formats.md``."""

import json
import os
from typing import Any

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.types import Floats
from marginrank.data.knots import MOST_KNOTS, are_rising
from marginrank.models.additive_model import AdditiveModel, Curve, Interaction
from marginrank.models.fit_report import Iteration, Pass
from marginrank.models.json_fields import (
    NOT_SAVED,
    Fields,
    encode,
    format_to_json,
    history_to_json,
    parameters_to_json,
    training_to_json,
)
from marginrank.models.linear_model import LinearModel

FORMAT = "marginrank-model"
ADDITIVE_FORMAT = "marginrank-additive-model"
HISTORY_LINES = {"RankSVM": Iteration, "SparseRankSVM": Iteration, "SGDRankSVM": Pass}
ESTIMATORS = tuple(HISTORY_LINES)
COUNTS = ("n_iter", "n_pairs", "t")


def write(model: LinearModel | AdditiveModel, path: str | os.PathLike[str]) -> None:
    """Write a linear or additive model as JSON, one field per line.

    Raise ValueError if the file would be invalid.
    """
    if isinstance(model, AdditiveModel):
        content = _additive_to_json(model)
        _read_additive(Fields("", content, NOT_SAVED))
    else:
        content = _linear_to_json(model)
        _read_linear(Fields("", content, NOT_SAVED))
    lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in content.items()]
    with atomic_write(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii"))


def read(path: str) -> LinearModel:
    """Read a linear model from a JSON file."""
    with open(path, "rb") as file:
        return _read_linear(Fields.parsed(path, file.read(), FORMAT, "linear"))


def read_additive(path: str) -> AdditiveModel:
    """Read an additive model from a JSON file."""
    with open(path, "rb") as file:
        return _read_additive(Fields.parsed(path, file.read(), ADDITIVE_FORMAT, "additive"))


def is_additive_model(path: str) -> bool:
    """Return whether the first bytes of a file match an additive model."""
    with open(path, "rb") as file:
        return f'"{ADDITIVE_FORMAT}"'.encode() in file.read(128)


def _linear_to_json(model: LinearModel) -> dict[str, Any]:
    if model.estimator not in ESTIMATORS:
        raise TypeError(
            f"{model.estimator} cannot be saved as JSON; only {', '.join(ESTIMATORS)} can."
        )
    content = {
        **format_to_json(FORMAT),
        "estimator": model.estimator,
        "parameters": parameters_to_json(model.parameters),
        "n_features": model.coef.size,
        "feature_names": model.feature_names,
        "coef": model.coef.tolist(),
        "training": training_to_json(model.report),
        "history": history_to_json(model.report, HISTORY_LINES[model.estimator]),
    }
    if model.counts is not None:
        content["counts"] = {name: encode(value) for name, value in model.counts.items()}
    if model.scale is not None:
        content["scale"] = model.scale.tolist()
    return content


def _read_linear(fields: Fields) -> LinearModel:
    estimator = fields.get("estimator", "a string")
    if estimator not in ESTIMATORS:
        raise ValueError(
            f"{fields.path} is a model of {estimator}, which this marginrank does not have; update "
            "marginrank."
        )
    n_features = fields.get("n_features", "a positive integer")
    coef = fields.list_of(n_features, "coef", "a list of finite numbers")
    counts = fields.get("counts", "an object", optional=True)
    if counts is not None:
        inner = fields.inside(counts)
        counts = {name: inner.get(name, "an integer") for name in COUNTS}
    return LinearModel(
        coef=np.array(coef, dtype=np.float64),
        parameters=fields.parameters(estimator),
        feature_names=fields.names(n_features),
        report=fields.report(HISTORY_LINES[estimator]),
        estimator=estimator,
        counts=counts,
        scale=fields.scale(n_features),
    )


def _additive_to_json(model: AdditiveModel) -> dict[str, Any]:
    curves = [
        {
            "knots": curve.knots.tolist(),
            "values": curve.values.tolist(),
            "missing": curve.missing,
            "categorical": curve.categorical,
            **({} if curve.categories is None else {"categories": list(curve.categories)}),
        }
        for curve in model.curves
    ]
    interactions = [
        {
            "features": list(one.features),
            "knots": [axis.tolist() for axis in one.knots],
            "values": one.values.tolist(),
            "categorical": list(one.categorical),
        }
        for one in model.interactions
    ]
    return {
        **format_to_json(ADDITIVE_FORMAT),
        "parameters": parameters_to_json(model.parameters),
        "n_features": model.n_features,
        "feature_names": model.feature_names,
        "curves": curves,
        **({"interactions": interactions} if interactions else {}),
        "training": training_to_json(model.report),
        "history": history_to_json(model.report),
        **({} if model.scale is None else {"scale": model.scale.tolist()}),
    }


def _read_additive(fields: Fields) -> AdditiveModel:
    curves = fields.get("curves", "a list of objects")
    n_features = fields.get("n_features", "a positive integer")
    if len(curves) != n_features:
        raise fields.damaged(f"'n_features' is {n_features}, but there are {len(curves)} curves")
    pairs = fields.get("interactions", "a list of objects", optional=True) or []
    return AdditiveModel(
        curves=[_read_curve(fields.inside(one, f", in curve {k}")) for k, one in enumerate(curves)],
        parameters=fields.parameters("AdditiveRankSVM"),
        feature_names=fields.names(n_features),
        report=fields.report(),
        interactions=[
            _read_interaction(fields.inside(one, f", in interaction {k}"), n_features)
            for k, one in enumerate(pairs)
        ],
        scale=fields.scale(n_features),
    )


def _read_curve(fields: Fields) -> Curve:
    categorical = fields.get("categorical", "a boolean")
    knots, values = (
        np.array(fields.get(name, "a list of finite numbers"), dtype=np.float64)
        for name in ("knots", "values")
    )
    if knots.size != values.size or not _is_axis(knots, categorical):
        raise fields.damaged(f"'values' must be values at 1 to {MOST_KNOTS} ascending 'knots'")
    texts = fields.get("categories", "a list of strings", optional=True)
    return Curve(
        knots=knots,
        values=values,
        missing=float(fields.get("missing", "a finite number")),
        categorical=categorical,
        categories=None if texts is None else tuple(texts),
    )


def _read_interaction(fields: Fields, n_features: int) -> Interaction:
    a, b = fields.list_of(2, "features", "a list of integers")
    if a == b or not (0 <= a < n_features and 0 <= b < n_features):
        raise fields.damaged(f"'features' is [{a}, {b}], not two of {n_features} columns")
    in_a, in_b = fields.list_of(2, "categorical", "a list of booleans")
    axes = fields.list_of(2, "knots", "a list of lists of finite numbers")
    first, second = (np.array(axis, dtype=np.float64) for axis in axes)
    if not (_is_axis(first, in_a) and _is_axis(second, in_b)):
        raise fields.damaged(f"'knots' must be two lists of 1 to {MOST_KNOTS} ascending numbers")
    rows = fields.list_of(first.size + 1, "values", "a list of lists of finite numbers")
    if any(len(row) != second.size + 1 for row in rows):
        raise fields.damaged(
            f"'values' has a row with more or fewer than {second.size + 1} entries"
        )
    return Interaction((a, b), (first, second), np.array(rows, dtype=np.float64), (in_a, in_b))


def _is_axis(knots: Floats, categorical: bool) -> bool:
    return 1 <= knots.size <= MOST_KNOTS and are_rising(knots, categorical)
