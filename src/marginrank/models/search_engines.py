"""Readers of linear models in the formats of Solr, Elasticsearch and OpenSearch.

A normalizer turns a feature x into (x - a) / b. It becomes the weight w / b, without the constant -
w a / b, which does not affect rankings.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from marginrank.models.json_fields import parse_object
from marginrank.models.json_model import FORMAT
from marginrank.models.linear_model import LinearModel

SOLR_CLASS = "org.apache.solr.ltr.model.LinearModel"
SOLR_NORMALIZERS = {"StandardNormalizer": ("std",), "MinMaxNormalizer": ("max", "min")}
PLUGIN_TYPE = "model/linear"
PLUGIN_NORMALIZERS = {"standard": ("standard_deviation",), "min_max": ("maximum", "minimum")}
# Largest index of a feature without a name: a small file must not allocate gigabytes.
MOST_INDICES = 1 << 24
INDEX = re.compile(r"f([1-9]\d{0,8})", re.ASCII)  # default names of features in exports


def engine_of(path: str) -> str | None:
    """Return the format of a search engine's linear model: "solr", "elasticsearch" or None."""
    with open(path, "rb") as file:
        text = file.read()
    if FORMAT.encode() in text[:64]:
        return None
    try:
        content = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if isinstance(content, dict) and content.get("class") == SOLR_CLASS:
        return "solr"
    return None if _plugin_model(content) is None else "elasticsearch"


def _plugin_model(content: Any) -> dict[str, Any] | None:
    """Return the JSON object of a linear model inside a request or response, or None.

    `content` is the parsed JSON of a request to an LTR plugin, or of its response.
    """
    while isinstance(content, dict):
        if content.get("type") == PLUGIN_TYPE:
            return content
        content = content.get("model", content.get("_source"))
    return None


def read_solr(path: str) -> LinearModel:
    """Read the weights of a linear model of Solr's learning to rank from JSON."""
    with open(path, "rb") as file:
        model = parse_object(path, file.read())
    if not isinstance(model, dict) or model.get("class") != SOLR_CLASS:
        _fail(path, f"its class is not {SOLR_CLASS}")
    weights = model["params"].get("weights") if isinstance(model.get("params"), dict) else None
    features = model.get("features")
    if not isinstance(weights, dict) or not isinstance(features, list):
        _fail(path, "'features' or 'weights' are missing")
    found = {}
    for feature in features:
        name = feature.get("name") if isinstance(feature, dict) else None
        if not isinstance(name, str) or name not in weights:
            _fail(path, f"the feature {name!r} has no weight")
        if name in found:
            _fail(path, f"the feature {name!r} appears twice")
        found[name] = _number(path, name, weights[name])
        norm = feature.get("norm")
        if norm is not None:
            norm = norm if isinstance(norm, dict) else {}
            kind = str(norm.get("class")).rpartition(".")[2]
            if kind != "IdentityNormalizer":
                found[name] /= _width(path, name, kind, norm.get("params"), SOLR_NORMALIZERS)
    return _named(path, found)


def read_plugin(path: str) -> LinearModel:
    """Read the weights of a linear model of the Elasticsearch and OpenSearch LTR plugins."""
    with open(path, "rb") as file:
        model = _plugin_model(parse_object(path, file.read()))
    if model is None:
        _fail(path, f"its type is not {PLUGIN_TYPE}")
    weights = model.get("definition")
    if isinstance(weights, str):  # the plugin returns the weights as JSON text
        weights = parse_object(path, weights.encode())
    normalizers = model.get("feature_normalizers") or {}
    if not isinstance(weights, dict) or not isinstance(normalizers, dict):
        _fail(path, "'definition' is not an object of weights")
    none = ("", None)
    found = {name: _number(path, name, weight) for name, weight in weights.items()}
    for name, entry in normalizers.items():
        if name in found:
            kind, params = next(iter(entry.items()), none) if isinstance(entry, dict) else none
            found[name] /= _width(path, name, kind, params, PLUGIN_NORMALIZERS)
    return _named(path, found)


def _width(
    path: str, name: str, kind: str, params: Any, known: Mapping[str, tuple[str, ...]]
) -> float:
    """Return the divisor of a normalizer: a standard deviation, or maximum minus minimum."""
    if kind not in known or not isinstance(params, dict):
        _fail(path, f"the normalizer of {name!r} is not one of {', '.join(known)}")
    high, *low = (_number(path, name, params.get(key)) for key in known[kind])
    width = high - sum(low)
    if width <= 0:
        _fail(path, f"the normalizer of {name!r} divides by {width}")
    return width


def _number(path: str, name: str, value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool | None) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        _fail(path, f"the feature {name!r} has {value!r} instead of a finite number")
    return number


def _named(path: str, weights: dict[str, float]) -> LinearModel:
    """Return a LinearModel, without feature names if all are default names f1, f2, …."""
    if not weights:
        _fail(path, "it has no weights")
    values = np.array(list(weights.values()))
    if not np.isfinite(values).all():
        _fail(path, "a weight overflows when it is divided by its normalizer")
    matches = [INDEX.fullmatch(name) for name in weights]
    if None in matches:
        return LinearModel(values, {}, feature_names=list(weights))
    places = [int(match[1]) - 1 for match in matches if match is not None]
    if max(places) >= MOST_INDICES:
        _fail(path, f"the index of 'f{max(places) + 1}' is above {MOST_INDICES:,}")
    coef = np.zeros(max(places) + 1)
    coef[places] = values
    return LinearModel(coef, {})


def _fail(path: str, what: str) -> NoReturn:
    raise ValueError(f"{path} is damaged: {what}; export the model again.")
