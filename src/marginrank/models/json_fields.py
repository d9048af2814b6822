"""The JSON fields that model files of every kind share, see ``docs/formats.md``."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import FitReport, Iteration, Pass, StopReason
from marginrank.models.linear_model import LostFunction
from marginrank.models.parameters import check_stored
from marginrank.models.text_formats import shorten

NON_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}  # JSON has none

HistoryLine = type[Iteration] | type[Pass]


class Fields:
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
    def to_write(cls, fields: dict[str, Any]) -> "Fields":
        """Return fields that are to be written, and refused if they could not be read again."""
        return cls("", fields, "the model cannot be saved: {what}; put it right or fit it again.")

    def inside(self, fields: dict[str, Any]) -> "Fields":
        """Return the fields of an object among these."""
        return Fields(self.path, fields, self._verdict)

    def damaged(self, what: str) -> ValueError:
        """Return the error for a wrong field."""
        return ValueError(self._verdict.format(path=self.path, what=what))

    def require_format(self, format: str, version: int, kind: str) -> None:
        """Raise ValueError if the file is of another format or version."""
        if self._fields.get("format") != format:
            raise ValueError(f"{self.path} is no {kind} model: its format is not {format!r}.")
        if self._fields.get("version") != version:
            raise ValueError(
                f"{self.path} has version {self._fields.get('version')!r} and this marginrank "
                f"reads version {version}; update marginrank."
            )

    def get(self, name: str, check: Callable[[Any], bool], meaning: str) -> Any:
        """Return the value of a field; None if it is missing and that is allowed."""
        value = self._fields.get(name)
        if not check(value):
            raise self.damaged(f"{name!r} is not {meaning}")
        return value

    def names(self, n_features: int) -> list[str] | None:
        """Return the names of the features, one for each."""
        names: list[str] | None = self.get(
            "feature_names", or_null(is_texts), "null or a list of strings"
        )
        if names is not None and len(names) != n_features:
            raise self.damaged(f"'feature_names' has {len(names)} entries and not {n_features}")
        return names

    def scale(self, n_features: int) -> Floats | None:
        """Return what features were divided by."""
        scale = self.get("scale", or_null(_is_scale), "null or a list of positive numbers")
        if scale is None:
            return None
        if len(scale) != n_features:
            raise self.damaged(f"'scale' has {len(scale)} entries and not {n_features}")
        return np.array(scale, dtype=np.float64)

    def parameters(self, estimator: str, more: Iterable[str] = ()) -> dict[str, Any]:
        """Return the parameters of an estimator, checked; `more` are checked by the caller."""
        stored = self.get("parameters", is_object, "an object")
        parameters = {name: self._parameter(name, value) for name, value in stored.items()}
        signs = parameters.get("monotonic_cst")
        try:
            if isinstance(signs, list) and all(isinstance(one, list) for one in signs):
                parameters["monotonic_cst"] = dict(signs)
            check_stored(estimator, parameters, more)
        except (ValueError, TypeError) as error:
            article = "an" if estimator.startswith("A") else "a"
            raise self.damaged(
                f"'parameters' are not those of {article} {estimator} ({error})"
            ) from error
        return parameters

    def _parameter(self, name: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return _decode(value)
        if value.keys() != {"function"} or not isinstance(value["function"], str):
            raise self.damaged(f"the parameter {name!r} is no value and no name of a function")
        return LostFunction(name, value["function"])

    def report(self, kind: HistoryLine = Iteration) -> FitReport | None:
        """Return how the fit ended, with one `kind` of history lines."""
        history = self._history(kind)
        training = self.get("training", or_null(is_object), "null or an object")
        if training is None:
            return None
        inner = self.inside({key: _decode(value) for key, value in training.items()})
        return FitReport(
            objective=float(inner.get("objective", is_number, "a number")),
            gap=float(inner.get("gap", is_number, "a number")),
            stop_reason=StopReason[inner.get("stop_reason", _is_reason, "a reason").upper()],
            n_iter=inner.get("n_iter", is_integer, "an integer"),
            n_pairs=inner.get("n_pairs", is_integer, "an integer"),
            n_rounds=inner.get("n_rounds", or_null(is_integer), "null or an integer"),
            C=inner.get("C", or_null(is_number), "null or a number"),
            smoothness=inner.get("smoothness", or_null(is_number), "null or a number"),
            history=history,
        )

    def _history(self, kind: HistoryLine) -> list[Any] | None:
        history = self.get("history", or_null(is_object), "null or an object")
        if history is None:
            return None
        try:
            columns = list(history["columns"])
            rows = [dict(zip(columns, map(_decode, row), strict=True)) for row in history["rows"]]
            known = set(columns) == set(kind._fields)
        except (KeyError, TypeError, ValueError) as error:
            raise self.damaged(f"'history' is not a table ({error})") from error
        # It is a log: one that another version kept in other columns is no reason to raise.
        return [kind(**row) for row in rows] if known else []


def parse_object(path: str, text: bytes) -> Any:
    """Return what a JSON text says; a key must not be there twice."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except _RepeatedKey as error:
        raise Fields(path, {}).damaged(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise Fields(path, {}).damaged("it is not JSON") from error


class _RepeatedKey(ValueError):
    """A key of a JSON object is there twice."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in pairs:
        if key in content:
            raise _RepeatedKey(f"{shorten(key)} is there twice")
        content[key] = value
    return content


def training_to_json(report: FitReport | None) -> dict[str, Any] | None:
    """Return how the fit ended, without its history."""
    if report is None:
        return None
    content = {
        "objective": encode(report.objective),
        "gap": encode(report.gap),
        "stop_reason": report.stop_reason.name.lower(),
        "n_iter": encode(report.n_iter),
        "n_pairs": encode(report.n_pairs),
    }
    for name in ("n_rounds", "C", "smoothness"):
        if getattr(report, name) is not None:
            content[name] = encode(getattr(report, name))
    return content


def history_to_json(
    report: FitReport | None, kind: HistoryLine = Iteration
) -> dict[str, Any] | None:
    """Return the history of a fit as a table, of one `kind` of lines."""
    if report is None or report.history is None:
        return None
    rows = [[encode(value) for value in line] for line in report.history]
    return {"columns": list(kind._fields), "rows": rows}


def parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
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
        return encode(value)
    except TypeError as error:
        raise TypeError(f"{name} cannot be saved: {error}.") from error


def _name_of_function(function: Any) -> str:
    """Return a name for people: NumPy's functions had only the short one before NumPy 2.2."""
    short = getattr(function, "__name__", type(function).__qualname__)
    return str(getattr(function, "__qualname__", short))


def encode(value: Any) -> Any:
    """Return a value as JSON has it: names for numbers that are not finite, lists for arrays."""
    if isinstance(value, (list, tuple)):
        return [encode(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    array = np.asarray(value)  # of a number of NumPy or a data frame, too
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a {type(value).__name__} has no form in a file")
    return encode(array.tolist())


def _decode(value: Any) -> Any:
    return NON_FINITE.get(value, value) if isinstance(value, str) else value


def or_null(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check that null passes, too."""
    return lambda value: value is None or check(value)


def is_object(value: Any) -> bool:
    """Whether a value is a JSON object."""
    return isinstance(value, dict)


def is_number(value: Any) -> bool:
    """Whether a value is a number in the range of floats."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**1023
    return isinstance(value, float)


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number."""
    return is_number(value) and math.isfinite(value)


def is_integer(value: Any) -> bool:
    """Whether a value is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: Any) -> bool:
    """Whether a value is a positive integer."""
    return is_integer(value) and value >= 1


def is_numbers(value: Any) -> bool:
    """Whether a value is a list of finite numbers."""
    return isinstance(value, list) and all(map(is_finite, value))


def is_texts(value: Any) -> bool:
    """Whether a value is a list of strings."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_scale(value: Any) -> bool:
    return is_numbers(value) and all(number > 0 for number in value)


def _is_reason(value: Any) -> bool:
    return value in [reason.name.lower() for reason in StopReason]
