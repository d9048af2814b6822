"""Model files of marginrank: JSON, described field by field in ``docs/formats.md``."""

import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import marginrank
from marginrank._atomic import atomic_write
from marginrank.models.linear_model import PARAMETERS, LinearModel, Training, check_parameters
from marginrank.solvers import Iteration, Pass, StopReason

FORMAT = "marginrank-model"
VERSION = 1
NON_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}  # JSON has none


def write(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a model, each field on a line of its own."""
    lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in _to_json(model)]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    with atomic_write(path) as file:
        file.write(text.encode("ascii"))


def _to_json(model: LinearModel) -> list[tuple[str, Any]]:
    """Return the fields of the file, in order."""
    if model.estimator not in PARAMETERS:
        raise TypeError(
            f"a {model.estimator} cannot be saved as JSON; only {', '.join(PARAMETERS)} can."
        )
    if not np.isfinite(model.coef).all():
        raise ValueError("coef_ holds NaN or infinity; fit the model again before it is saved.")
    return [
        ("format", FORMAT),
        ("version", VERSION),
        ("written_by", f"marginrank {marginrank.__version__}"),
        ("estimator", model.estimator),
        ("parameters", _encode_parameters(model.parameters)),
        ("n_features", model.coef.size),
        ("feature_names", model.feature_names),
        ("coef", model.coef.tolist()),
        ("training", None if model.training is None else _training(model.training)),
        (
            "history",
            None if model.history is None else _history(model.history, _line(model.estimator)),
        ),
    ]


def _training(training: Training) -> dict[str, Any]:
    """Return how the fit ended."""
    return {
        "objective": _encode(training.objective),
        "gap": _encode(training.gap),
        "stop_reason": training.stop_reason.name.lower(),
        "n_iter": _encode(training.n_iter),
        "n_pairs": _encode(training.n_pairs),
    }


def _line(estimator: str) -> type[Iteration] | type[Pass]:
    """Return what a line of the history is."""
    return Pass if estimator == "SGDRankSVM" else Iteration


def _history(
    history: list[Iteration] | list[Pass], kind: type[Iteration] | type[Pass]
) -> dict[str, Any]:
    rows = [[_encode(value) for value in line] for line in history]
    return {"columns": list(kind._fields), "rows": rows}


def _encode_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without those that are Python functions, which no file holds."""
    return {name: _encode(value) for name, value in parameters.items() if not callable(value)}


def _encode(value: Any) -> Any:
    """Return a value as JSON has it; None for a random generator, which has no seed to write."""
    if isinstance(value, (np.ndarray, list, tuple)):
        return [_encode(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)]
    return value if isinstance(value, (bool, int, float, str)) else None


def _decode(value: Any) -> Any:
    return NON_FINITE.get(value, value) if isinstance(value, str) else value


class _Fields:
    """The fields of a JSON object; a missing or wrong one is an error that names it."""

    def __init__(self, path: str, fields: dict[str, Any]) -> None:
        self.path = path
        self._fields = fields

    def get(self, name: str, check: Callable[[Any], bool], meaning: str) -> Any:
        value = self._fields.get(name)
        if not check(value):
            raise self.damaged(f"{name!r} is not {meaning}")
        return value

    def damaged(self, what: str) -> ValueError:
        return ValueError(
            f"{self.path} is damaged: {what}; restore it from a copy or save the model again."
        )


def read(path: str) -> LinearModel:
    """Read a model."""
    fields = _open(path)
    estimator, parameters = _read_parameters(fields)
    n_features = fields.get("n_features", _is_count, "a positive integer")
    coef = fields.get("coef", _is_weights, "a list of finite numbers")
    names = fields.get("feature_names", _is_names, "null or a list of strings")
    if len(coef) != n_features or (names is not None and len(names) != n_features):
        raise fields.damaged(f"'coef' or 'feature_names' has not {n_features} entries")
    return LinearModel(
        coef=np.array(coef, dtype=np.float64),
        parameters=parameters,
        feature_names=names,
        training=_read_training(fields),
        history=_read_history(fields, _line(estimator)),
        estimator=estimator,
    )


def _open(path: str) -> _Fields:
    with open(path, "rb") as file:
        text = file.read()
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: it is not JSON; restore it from a copy or save the model again."
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is JSON but no marginrank model: its format is not {FORMAT!r}.")
    if content.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {content.get('version')!r} and this marginrank reads version "
            f"{VERSION}; update marginrank."
        )
    return _Fields(path, content)


def _read_parameters(fields: _Fields) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of the estimator."""
    name = fields.get("estimator", lambda v: isinstance(v, str), "a name")
    if name not in PARAMETERS:
        raise ValueError(
            f"{fields.path} holds a {name}, which this marginrank does not have; update marginrank."
        )
    stored = fields.get("parameters", lambda v: isinstance(v, dict), "an object")
    parameters = {key: _decode(value) for key, value in stored.items()}
    try:
        check_parameters(name, parameters)
    except ValueError as error:
        raise fields.damaged(f"'parameters' are not those of a {name} ({error})") from error
    return name, parameters


def _read_training(fields: _Fields) -> Training | None:
    training = fields.get("training", _is_object_or_null, "null or an object")
    if training is None:
        return None
    inner = _Fields(fields.path, {key: _decode(value) for key, value in training.items()})
    return Training(
        objective=float(inner.get("objective", _is_number, "a number")),
        gap=float(inner.get("gap", _is_number, "a number")),
        stop_reason=StopReason[inner.get("stop_reason", _is_reason, "a reason").upper()],
        n_iter=inner.get("n_iter", _is_integer, "an integer"),
        n_pairs=inner.get("n_pairs", _is_integer, "an integer"),
    )


def _read_history(fields: _Fields, kind: type[Iteration] | type[Pass]) -> list[Any] | None:
    history = fields.get("history", _is_object_or_null, "null or an object")
    if history is None:
        return None
    try:
        columns = list(history["columns"])
        rows = [dict(zip(columns, map(_decode, row), strict=True)) for row in history["rows"]]
    except (KeyError, TypeError, ValueError) as error:
        raise fields.damaged(f"'history' is not a table ({error})") from error
    # It is a log: one that another version kept in other columns is no reason to refuse a model.
    known = set(columns) == set(kind._fields)
    return [kind(**row) for row in rows] if known else []


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**1023
    return isinstance(value, float)


def _is_reason(value: Any) -> bool:
    return value in [reason.name.lower() for reason in StopReason]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 1


def _is_object_or_null(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_names(value: Any) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(name, str) for name in value)
    )


def _is_weights(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(w) and math.isfinite(w) for w in value)
