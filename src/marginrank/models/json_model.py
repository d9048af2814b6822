"""Model files of marginrank: JSON, described field by field in ``docs/formats.md``."""

import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.types import Floats
from marginrank._utils.version import __version__
from marginrank.models.fit_report import Iteration, Pass, StopReason
from marginrank.models.linear_model import (
    PARAMETERS,
    LinearModel,
    LostFunction,
    Training,
    check_parameters,
)
from marginrank.models.text_formats import shorten

FORMAT = "marginrank-model"
VERSION = 1
COUNTS = ("n_iter", "n_pairs", "t")
NON_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}  # JSON has none


def write(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a model, each field on a line of its own; what could not be read again is refused."""
    content = _to_json(model)
    _parse(_Fields.to_write(content))
    lines = [f" {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in content.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    with atomic_write(path) as file:
        file.write(text.encode("ascii"))


def _to_json(model: LinearModel) -> dict[str, Any]:
    """Return the fields of the file, in order."""
    if model.estimator not in PARAMETERS:
        raise TypeError(
            f"a {model.estimator} cannot be saved as JSON; only {', '.join(PARAMETERS)} can."
        )
    content = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"marginrank {__version__}",
        "estimator": model.estimator,
        "parameters": _encode_parameters(model.parameters),
        "n_features": model.coef.size,
        "feature_names": model.feature_names,
        "coef": model.coef.tolist(),
        "training": None if model.training is None else _training(model.training),
        "history": None,
    }
    if model.history is not None:
        content["history"] = _history(model.history, _line(model.estimator))
    if model.counts is not None:
        content["counts"] = {name: _encode(value) for name, value in model.counts.items()}
    if model.scale is not None:
        content["scale"] = model.scale.tolist()
    return content


def _training(training: Training) -> dict[str, Any]:
    """Return how the fit ended."""
    content = {
        "objective": _encode(training.objective),
        "gap": _encode(training.gap),
        "stop_reason": training.stop_reason.name.lower(),
        "n_iter": _encode(training.n_iter),
        "n_pairs": _encode(training.n_pairs),
    }
    for name in ("n_rounds", "C", "smoothness"):
        if getattr(training, name) is not None:
            content[name] = _encode(getattr(training, name))
    return content


def _line(estimator: str) -> type[Iteration] | type[Pass]:
    """Return what a line of the history is."""
    return Pass if estimator == "SGDRankSVM" else Iteration


def _history(
    history: list[Iteration] | list[Pass], kind: type[Iteration] | type[Pass]
) -> dict[str, Any]:
    rows = [[_encode(value) for value in line] for line in history]
    return {"columns": list(kind._fields), "rows": rows}


def _encode_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters as JSON has them."""
    return {name: _encode_parameter(name, value) for name, value in parameters.items()}


def _encode_parameter(name: str, value: Any) -> Any:
    """Return a value, the name of a function, or None for a generator, which has no seed."""
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, LostFunction):
        return {"function": value.name}
    if callable(value):
        return {"function": _name_of_function(value)}
    try:
        return _encode(value)
    except TypeError as error:
        raise TypeError(f"{name} cannot be saved: {error}.") from error


def _name_of_function(function: Any) -> str:
    """Return a name for people: NumPy's functions had only the short one before NumPy 2.2."""
    short = getattr(function, "__name__", type(function).__qualname__)
    return str(getattr(function, "__qualname__", short))


def _encode(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_encode(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    array = np.asarray(value)  # of a number of NumPy or a data frame, too
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a {type(value).__name__} has no form in a file")
    return _encode(array.tolist())


def _decode(value: Any) -> Any:
    return NON_FINITE.get(value, value) if isinstance(value, str) else value


def decode_parameters(fields: "_Fields") -> dict[str, Any]:
    """Return the parameters as an estimator takes them."""
    stored = fields.get("parameters", lambda v: isinstance(v, dict), "an object")
    return {name: _decode_parameter(fields, name, value) for name, value in stored.items()}


def _decode_parameter(fields: "_Fields", name: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return _decode(value)
    if value.keys() != {"function"} or not isinstance(value["function"], str):
        raise fields.damaged(f"the parameter {name!r} is no value and no name of a function")
    return LostFunction(name, value["function"])


class _Fields:
    """The fields of a JSON object; a missing or wrong one is an error that names it."""

    def __init__(
        self,
        path: str,
        fields: dict[str, Any],
        verdict: str = "{path} is damaged: {what}; restore it from a copy or save the model again.",
    ) -> None:
        self.path = path
        self._fields = fields
        self._verdict = verdict

    @classmethod
    def to_write(cls, fields: dict[str, Any]) -> "_Fields":
        """Return fields that are to be written, and refused if they could not be read again."""
        return cls("", fields, "the model cannot be saved: {what}; put it right or fit it again.")

    def inside(self, fields: dict[str, Any]) -> "_Fields":
        """Return the fields of an object among these."""
        return _Fields(self.path, fields, self._verdict)

    def get(self, name: str, check: Callable[[Any], bool], meaning: str) -> Any:
        value = self._fields.get(name)
        if not check(value):
            raise self.damaged(f"{name!r} is not {meaning}")
        return value

    def damaged(self, what: str) -> ValueError:
        return ValueError(self._verdict.format(path=self.path, what=what))


def read(path: str) -> LinearModel:
    """Read a model."""
    return _parse(_open(path))


def _parse(fields: _Fields) -> LinearModel:
    estimator, parameters = _read_parameters(fields)
    n_features = fields.get("n_features", _is_count, "a positive integer")
    coef = fields.get("coef", _is_weights, "a list of finite numbers")
    names = read_names(fields, n_features)
    if len(coef) != n_features:
        raise fields.damaged(f"'coef' has {len(coef)} entries and not {n_features}")
    return LinearModel(
        coef=np.array(coef, dtype=np.float64),
        parameters=parameters,
        feature_names=names,
        training=_read_training(fields),
        history=_read_history(fields, _line(estimator)),
        estimator=estimator,
        counts=_read_counts(fields),
        scale=_read_scale(fields, n_features),
    )


def read_names(fields: _Fields, n_features: int) -> list[str] | None:
    """Return the names of the features, one for each."""
    names: list[str] | None = fields.get("feature_names", _is_names, "null or a list of strings")
    if names is not None and len(names) != n_features:
        raise fields.damaged(f"'feature_names' has {len(names)} entries and not {n_features}")
    return names


def parse_object(path: str, text: bytes) -> Any:
    """Return what a JSON text says; a key must not be there twice."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except _Repeated as error:
        raise _Fields(path, {}).damaged(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise _Fields(path, {}).damaged("it is not JSON") from error


class _Repeated(ValueError):
    """A key of a JSON object is there twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise _Repeated(f"{shorten(key)} is there twice")
        content[key] = value
    return content


def _open(path: str) -> _Fields:
    with open(path, "rb") as file:
        content = parse_object(path, file.read())
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
    parameters = decode_parameters(fields)
    try:
        check_parameters(name, parameters)
    except (ValueError, TypeError) as error:
        raise fields.damaged(f"'parameters' are not those of a {name} ({error})") from error
    return name, parameters


def _read_training(fields: _Fields) -> Training | None:
    training = fields.get("training", _is_object_or_null, "null or an object")
    if training is None:
        return None
    inner = fields.inside({key: _decode(value) for key, value in training.items()})
    return Training(
        objective=float(inner.get("objective", _is_number, "a number")),
        gap=float(inner.get("gap", _is_number, "a number")),
        stop_reason=StopReason[inner.get("stop_reason", _is_reason, "a reason").upper()],
        n_iter=inner.get("n_iter", _is_integer, "an integer"),
        n_pairs=inner.get("n_pairs", _is_integer, "an integer"),
        n_rounds=inner.get("n_rounds", _is_integer_or_null, "null or an integer"),
        C=inner.get("C", _is_number_or_null, "null or a number"),
        smoothness=inner.get("smoothness", _is_number_or_null, "null or a number"),
    )


def _read_history(fields: _Fields, kind: type[Iteration] | type[Pass]) -> list[Any] | None:
    history = fields.get("history", _is_object_or_null, "null or an object")
    if history is None:
        return None
    try:
        columns = list(history["columns"])
        rows = [dict(zip(columns, map(_decode, row), strict=True)) for row in history["rows"]]
        known = set(columns) == set(kind._fields)
    except (KeyError, TypeError, ValueError) as error:
        raise fields.damaged(f"'history' is not a table ({error})") from error
    # It is a log: one that another version kept in other columns is no reason to refuse a model.
    return [kind(**row) for row in rows] if known else []


def _read_counts(fields: _Fields) -> dict[str, int] | None:
    counts = fields.get("counts", _is_object_or_null, "null or an object")
    if counts is None:
        return None
    inner = fields.inside(counts)
    return {name: inner.get(name, _is_integer, "an integer") for name in COUNTS}


def _read_scale(fields: _Fields, n_features: int) -> Floats | None:
    scale = fields.get("scale", _is_scale, "null or a list of positive numbers")
    if scale is None:
        return None
    if len(scale) != n_features:
        raise fields.damaged(f"'scale' has {len(scale)} entries and not {n_features}")
    return np.array(scale, dtype=np.float64)


def _is_number(value: Any) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**1023
    return isinstance(value, float)


def _is_number_or_null(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_reason(value: Any) -> bool:
    return value in [reason.name.lower() for reason in StopReason]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_integer_or_null(value: Any) -> bool:
    return value is None or _is_integer(value)


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 1


def _is_object_or_null(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _is_names(value: Any) -> bool:
    return value is None or (
        isinstance(value, list) and all(isinstance(name, str) for name in value)
    )


def _is_scale(value: Any) -> bool:
    return value is None or (_is_weights(value) and all(number > 0 for number in value))


def _is_weights(value: Any) -> bool:
    return isinstance(value, list) and all(_is_number(w) and math.isfinite(w) for w in value)
