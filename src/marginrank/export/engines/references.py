"""References of systems that cannot be run: their documented arithmetic on the exported weights."""

import json
import re
from collections.abc import Iterable

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.engines.run import EngineDocuments, EngineRun, Files

NUMBER = r"(-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
VESPA_TERM = re.compile(rf"attribute\((\w+)\)\) \* {NUMBER}$|^(?:\+ )?{NUMBER}$", re.MULTILINE)
LUCENE_TERM = re.compile(rf"{NUMBER}(?:\*doc\['((?:[^'\\]|\\.)*)'\]\.value)?", re.DOTALL)


def ltr_plugin(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score as the LTR plugins do: float32, features in the order of the feature set."""
    model = json.loads(files[""])["model"]["model"]
    features = json.loads(files["features"])["featureset"]["features"]
    normalizers = model.get("feature_normalizers", {})
    means = {name: norm["standard"]["mean"] for name, norm in normalizers.items()}
    weights = {feature["name"]: model["definition"][feature["name"]] for feature in features}
    return _in_float32("the LTR plugin", weights, means, documents)


def solr(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score as Solr's LinearModel does: float32, features in the order of the model."""
    model = json.loads(files[""])
    features = model["features"]
    means = {f["name"]: float(f["norm"]["params"]["avg"]) for f in features if "norm" in f}
    weights = {f["name"]: model["params"]["weights"][f["name"]] for f in features}
    return _in_float32("Solr", weights, means, documents)


def _in_float32(
    system: str, weights: dict[str, float], means: dict[str, float], documents: EngineDocuments
) -> EngineRun:
    total = np.zeros(len(documents.X), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for name, weight in weights.items():
            value = documents.column(name).astype(np.float32)
            total += np.float32(weight) * (value - np.float32(means.get(name, 0.0)))
    return EngineRun(f"reference of {system}", total.astype(np.float64), is_reference=True)


def vespa(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score as Vespa's rank expressions do: float64."""
    renamed = json.loads(files.get("names.json", b"{}"))
    features = {renamed.get(name, name): name for name in documents.names}
    lines = "\n".join(line.strip() for line in files[""].decode().splitlines())
    terms = [
        (documents.column(features[attribute]), weight) if attribute else (1.0, constant)
        for attribute, weight, constant in VESPA_TERM.findall(lines)
    ]
    return _in_float64("Vespa", terms, documents)


def lucene(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score as Lucene's expressions do: float64."""
    terms = [
        (
            documents.column(re.sub(r"\\(.)", r"\1", field, flags=re.DOTALL)) if field else 1.0,
            weight,
        )
        for weight, field in LUCENE_TERM.findall(files[""].decode())
    ]
    return _in_float64("Lucene", terms, documents)


def ranklib(files: Files, documents: EngineDocuments) -> EngineRun:
    """Score as RankLib does: features in float32, sums in float64."""
    X = documents.filled().astype(np.float32).astype(np.float64)
    entries = re.findall(rf"(?<!\S)(\d+):{NUMBER}", files[""].decode())
    return _in_float64("RankLib", [(X[:, int(k) - 1], weight) for k, weight in entries], documents)


def _in_float64(
    system: str, terms: Iterable[tuple[Floats | float, str]], documents: EngineDocuments
) -> EngineRun:
    total = np.zeros(len(documents.X))
    for value, weight in terms:
        total += float(weight) * value
    return EngineRun(f"reference of {system}", total, is_reference=True)
