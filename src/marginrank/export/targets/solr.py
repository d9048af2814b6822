"""Solr's LTR module: the model, and features that are fields.

Scores are sums in float32, in the order of the model's features. A shift by the normaliser of one
feature stands for an offset.
"""

from typing import Any

from marginrank.export.numbers import exact
from marginrank.export.targets._text import json_file
from marginrank.export.targets.ltr_plugin import check_float32, shifted
from marginrank.export.weighted_sum import WeightedSum

LTR = "org.apache.solr.ltr"


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return what goes to the model store, and what goes to the feature store."""
    check_float32(model.terms)
    features: list[dict[str, Any]] = [{"name": term.name} for term in model.listed()]
    if model.offset:
        term, mean = shifted(model)
        features[model.terms.index(term)]["norm"] = {
            "class": f"{LTR}.norm.StandardNormalizer",
            "params": {"avg": exact(mean), "std": "1.0"},
        }
    weights = {term.name: term.weight for term in model.listed()}
    content = {
        "class": f"{LTR}.model.LinearModel",
        "name": model.name,
        "store": model.name,
        "features": features,
        "params": {"weights": weights},
    }
    fields = [_field(model.name, name) for name in weights]
    return {"": json_file(content), "features": json_file(fields)}


def _field(store: str, name: str) -> dict[str, Any]:
    return {
        "store": store,
        "name": name,
        "class": f"{LTR}.feature.FieldValueFeature",
        "params": {"field": name},
    }
