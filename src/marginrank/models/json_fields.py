"""Reading and writing of the fields that JSON files of all kinds of models share."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from marginrank._utils.types import Floats
from marginrank._utils.version import __version__
from marginrank.data.feature_choice import directions
from marginrank.models.fit_report import FitReport, Iteration, Pass, StopReason
from marginrank.models.linear_model import LostFunction
from marginrank.models.stored_parameters import check_stored
from marginrank.models.text_formats import shorten

VERSION = 1
NON_FINITE = ("Infinity", "-Infinity", "NaN")  # numbers that JSON lacks, written as strings
DAMAGED = "{path} is damaged: {what}; restore it from a copy or save the model again."
NOT_SAVED = "the model cannot be saved: {what}; correct it or fit the model again."

HistoryLine = type[Iteration] | type[Pass]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (_is_integer(value) and abs(value) < 2**1023)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


# Checks of values, by the name of the kind of value in messages.
CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "a boolean": lambda value: isinstance(value, bool),
    "an object": lambda value: isinstance(value, dict),
    "an integer": _is_integer,
    "a positive integer": lambda value: _is_integer(value) and value >= 1,
    "a number": _is_number,
    "a finite number": _is_finite,
    "a stop reason": lambda value: value in [reason.name.lower() for reason in StopReason],
    "a list of objects": _list_of(lambda value: isinstance(value, dict)),
    "a list of strings": _list_of(lambda value: isinstance(value, str)),
    "a list of booleans": _list_of(lambda value: isinstance(value, bool)),
    "a list of integers": _list_of(_is_integer),
    "a list of finite numbers": _list_of(_is_finite),
    "a list of lists of finite numbers": _list_of(_list_of(_is_finite)),
    "a list of positive numbers": _list_of(lambda value: _is_finite(value) and value > 0),
}


class Fields:
    """Reader of the fields of a JSON object in a model file, with checks of their types.

    Errors name the missing or invalid field.
    """

    def __init__(
        self, path: str, fields: dict[str, Any], error: str = DAMAGED, place: str = ""
    ) -> None:
        self.path = path
        self._fields = fields
        self._error = error
        self._place = place

    @classmethod
    def parsed(cls, path: str, text: bytes, format: str, kind: str) -> "Fields":
        """Parse the JSON text of a model file.

        Raise ValueError if the text is not JSON or has another format or version.
        """
        content = parse_object(path, text)
        fields = content if isinstance(content, dict) else {}
        if fields.get("format") != format:
            raise ValueError(f"{path} is not a {kind} model: its format is not {format!r}.")
        if fields.get("version") != VERSION:
            raise ValueError(
                f"{path} has format version {fields.get('version')!r}, but this marginrank reads "
                f"version {VERSION}; install the marginrank that wrote it."
            )
        return cls(path, fields)

    def inside(self, fields: dict[str, Any], place: str = "") -> "Fields":
        """Return a Fields for a nested JSON object; `place` is its location for error messages."""
        return Fields(self.path, fields, self._error, place)

    def damaged(self, what: str) -> ValueError:
        """Return a ValueError that says what is wrong with the model file."""
        return ValueError(self._error.format(path=self.path, what=what + self._place))

    def get(self, name: str, kind: str, *, optional: bool = False) -> Any:
        """Return the value of a field; raise ValueError if it has the wrong type.

        `kind` is a type named in :data:`CHECKS`. If `optional`, a missing field is None.
        """
        value = self._fields.get(name)
        if optional and value is None:
            return None
        if not CHECKS[kind](value):
            raise self.damaged(f"{name!r} is not {'null or ' if optional else ''}{kind}")
        return value

    def list_of(self, n: int, name: str, kind: str, *, optional: bool = False) -> Any:
        """Return the value of a field that is a list; raise ValueError unless it has n entries."""
        values = self.get(name, kind, optional=optional)
        if values is not None and len(values) != n:
            raise self.damaged(f"{name!r} has {len(values)} entries, not {n}")
        return values

    def names(self, n_features: int) -> list[str] | None:
        """Return the feature names in the model file, or None if it has none."""
        names: list[str] | None = self.list_of(
            n_features, "feature_names", "a list of strings", optional=True
        )
        return names

    def scale(self, n_features: int) -> Floats | None:
        """Return the divisors of the features in the model file, or None if it has none."""
        scale = self.list_of(n_features, "scale", "a list of positive numbers", optional=True)
        return None if scale is None else np.array(scale, dtype=np.float64)

    def parameters(self, estimator: str, more: Iterable[str] = ()) -> dict[str, Any]:
        """Return the validated parameters of the estimator in the model file.

        Parameters named in `more` are not validated; the caller checks them.
        """
        stored = self.get("parameters", "an object")
        parameters = {name: self._parameter(name, value) for name, value in stored.items()}
        signs = parameters.get("monotonic_cst")
        try:
            if isinstance(signs, list) and all(isinstance(one, list) for one in signs):
                parameters["monotonic_cst"] = dict(signs)
            check_stored(estimator, parameters, more)
        except (ValueError, TypeError) as error:
            raise self.damaged(f"'parameters' are invalid for {estimator} ({error})") from error
        return parameters

    def _parameter(self, name: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return _decode(value)
        if value.keys() != {"function"} or not isinstance(value["function"], str):
            raise self.damaged(f"the parameter {name!r} is neither a value nor a function's name")
        return LostFunction(name, value["function"])

    def report(self, kind: HistoryLine = Iteration) -> FitReport | None:
        """Return the fit report in the file, or None; `kind` is the class of history entries."""
        history = self._history(kind)
        training = self.get("training", "an object", optional=True)
        if training is None:
            return None
        inner = self.inside({key: _decode(value) for key, value in training.items()})
        return FitReport(
            objective=float(inner.get("objective", "a number")),
            gap=float(inner.get("gap", "a number")),
            stop_reason=StopReason[inner.get("stop_reason", "a stop reason").upper()],
            n_iter=inner.get("n_iter", "an integer"),
            n_pairs=inner.get("n_pairs", "an integer"),
            n_rounds=inner.get("n_rounds", "an integer", optional=True),
            C=inner.get("C", "a number", optional=True),
            smoothness=inner.get("smoothness", "a number", optional=True),
            history=history,
        )

    def _history(self, kind: HistoryLine) -> list[Any] | None:
        history = self.get("history", "an object", optional=True)
        if history is None:
            return None
        try:
            columns = list(history["columns"])
            rows = [dict(zip(columns, map(_decode, row), strict=True)) for row in history["rows"]]
            known = set(columns) == set(kind._fields)
        except (KeyError, TypeError, ValueError) as error:
            raise self.damaged(f"'history' is not a table ({error})") from error
        # The history is only a log, so columns of another version are not an error.
        return [kind(**row) for row in rows] if known else []


def parse_object(path: str, text: bytes) -> Any:
    """Parse the JSON text of a model file; raise ValueError if invalid or a key appears twice."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except KeyError as error:
        raise Fields(path, {}).damaged(f"{shorten(error.args[0])} appears twice") from error
    except (ValueError, RecursionError) as error:
        raise Fields(path, {}).damaged("it is not JSON") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise KeyError(key)
        content[key] = value
    return content


def format_to_json(format: str) -> dict[str, Any]:
    """Return the first fields of every JSON model file: format, version and writer."""
    return {"format": format, "version": VERSION, "written_by": f"marginrank {__version__}"}


def training_to_json(report: FitReport | None) -> dict[str, Any] | None:
    """Return a fit report, without its history, as a JSON object."""
    if report is None:
        return None
    content = {
        "objective": encode(report.objective),
        "gap": encode(report.gap),
        "stop_reason": report.stop_reason.name.lower(),
        "n_iter": encode(report.n_iter),
        "n_pairs": encode(report.n_pairs),
    }
    optional = {name: getattr(report, name) for name in ("n_rounds", "C", "smoothness")}
    return content | {name: encode(value) for name, value in optional.items() if value is not None}


def history_to_json(
    report: FitReport | None, kind: HistoryLine = Iteration
) -> dict[str, Any] | None:
    """Return the history of a fit as a JSON table; `kind` is the class of its entries."""
    if report is None or report.history is None:
        return None
    rows = [[encode(value) for value in line] for line in report.history]
    return {"columns": list(kind._fields), "rows": rows}


def parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator for JSON, functions as names and generators as None."""
    return {name: _encode_parameter(name, value) for name, value in parameters.items()}


def _encode_parameter(name: str, value: Any) -> Any:
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, LostFunction):
        return {"function": value.name}
    if callable(value):
        # NumPy's functions have no __qualname__ before NumPy 2.2.
        short = getattr(value, "__name__", type(value).__qualname__)
        return {"function": str(getattr(value, "__qualname__", short))}
    if name == "monotonic_cst" and isinstance(value, Mapping):  # keys in JSON are strings
        value = list(directions(value).items())
    try:
        return encode(value)
    except TypeError as error:
        raise TypeError(f"{name} cannot be saved: {error}.") from error


def encode(value: Any) -> Any:
    """Return a value for JSON: arrays become lists, numbers that are not finite become strings."""
    if isinstance(value, (list, tuple)):
        return [encode(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    array = np.asarray(value)  # an array, a NumPy scalar or a data frame
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a {type(value).__name__} cannot be written to JSON")
    return encode(array.tolist())


def _decode(value: Any) -> Any:
    return float(value) if isinstance(value, str) and value in NON_FINITE else value
