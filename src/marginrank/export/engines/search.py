"""Search engines, which do not run here: references of their documented arithmetic."""

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.engines._arithmetic import evaluate
from marginrank.export.engines._documents import Documents, Files, Run


class _Step(NamedTuple):
    """A feature of a model that adds in float32, in its turn."""

    name: str
    weight: float
    mean: float = 0.0
    deviation: float = 1.0


def ltr_plugin(files: Files, documents: Documents) -> Run:
    """Score as the LTR plugins do: float32, features in the order of the feature set."""
    model = json.loads(files[""])["model"]["model"]
    features = json.loads(files["features"])["featureset"]["features"]
    normalizers = model.get("feature_normalizers", {})
    steps = []
    for feature in features:
        norm = normalizers.get(feature["name"], {"standard": {}})["standard"]
        weight = model["definition"].get(feature["name"], 0.0)
        mean, deviation = norm.get("mean", 0.0), norm.get("standard_deviation", 1.0)
        steps.append(_Step(feature["name"], weight, mean, deviation))
    return Run("reference of the LTR plugin", _add_in_float32(steps, documents), is_reference=True)


def solr(files: Files, documents: Documents) -> Run:
    """Score as Solr's LinearModel does: float32, features in the order of the model."""
    model = json.loads(files[""])
    weights = model["params"]["weights"]
    steps = [_solr_step(feature, weights) for feature in model["features"]]
    return Run("reference of Solr", _add_in_float32(steps, documents), is_reference=True)


def _solr_step(feature: dict[str, Any], weights: dict[str, float]) -> _Step:
    params = feature.get("norm", {"params": {"avg": "0.0", "std": "1.0"}})["params"]
    name = feature["name"]
    return _Step(name, weights[name], float(params["avg"]), float(params["std"]))


def _add_in_float32(steps: Iterable[_Step], documents: Documents) -> Floats:
    total = np.zeros(len(documents.X), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in steps:
            value = documents.column(step.name).astype(np.float32)
            if (step.mean, step.deviation) != (0.0, 1.0):
                value = (value - np.float32(step.mean)) / np.float32(step.deviation)
            total += np.float32(step.weight) * value
    return total.astype(np.float64)


FUNCTION = re.compile(r"function (\w+)\(\) \{\s*expression \{([^{}]*)\}\s*\}")
VESPA_VALUE = (
    r"if \(isNan\(attribute\((?P<attribute>\w+)\)\) == 1, 0\.0, attribute\((?P=attribute)\)\)"
)
VESPA_VARIABLE = rf"{VESPA_VALUE}|(?P<function>[A-Za-z]\w*)"


def vespa(files: Files, documents: Documents) -> Run:
    """Score as Vespa's rank expressions do: float64, functions one after the other."""
    renamed = json.loads(files.get("names.json", b"{}"))
    features = {renamed.get(name, name): name for name in documents.names}
    values: dict[str, Floats] = {}

    def value_of(match: re.Match[str]) -> Floats:
        if match["function"] is not None:
            return values[match["function"]]
        return documents.column(features[match["attribute"]])

    text = files[""].decode()
    for name, expression in FUNCTION.findall(text):
        values[name] = evaluate(expression, VESPA_VARIABLE, value_of)
    (phase,) = re.findall(r"first-phase \{\s*expression: (\w+)\s*\}", text)
    return Run(
        "reference of Vespa", np.broadcast_to(values[phase], len(documents.X)), is_reference=True
    )


LUCENE_VALUE = r"doc\['(?P<field>(?:[^'\\]|\\.)*)'\]\.value"


def lucene(files: Files, documents: Documents) -> Run:
    """Score as Lucene's expressions do: float64, from left to right."""

    def value_of(match: re.Match[str]) -> Floats:
        return documents.column(re.sub(r"\\(.)", r"\1", match["field"], flags=re.DOTALL))

    total = evaluate(files[""].decode(), LUCENE_VALUE, value_of)
    return Run("reference of Lucene", np.broadcast_to(total, len(documents.X)), is_reference=True)
