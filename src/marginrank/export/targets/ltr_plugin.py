"""The LTR plugins of Elasticsearch and OpenSearch: model, feature set, rescore body.

Scores are sums in float32, in the order of the feature set. There is no constant in such a model:
an offset is a shift of one feature, which a normaliser makes.
"""

import re
from collections.abc import Iterable
from typing import Any

from marginrank._utils.parameters import ParameterError, given
from marginrank.export.names import refuse
from marginrank.export.numbers import LARGEST_FLOAT32
from marginrank.export.targets._text import json_file
from marginrank.export.weighted_sum import Term, WeightedSum

TEMPLATE_TAG = re.compile(r"\{\{")
WINDOW = 100  # documents that are ranked again


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return the body of ``_createmodel``, that of ``_featureset``, and that of a search."""
    terms = model.listed()
    check_float32(terms)
    refuse((t.name for t in terms), TEMPLATE_TAG, "'{{' begins a tag of the plugin's templates")
    return {
        "": json_file(_model(model)),
        "features": json_file(_feature_set(model.name, terms)),
        "rescore": json_file(_rescore(model.name)),
    }


def _model(model: WeightedSum) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "model/linear"}
    if model.offset:
        content["feature_normalizers"] = _shift(model)
    content["definition"] = {term.name: term.weight for term in model.listed()}
    return {"model": {"name": model.name, "model": content}}


def _shift(model: WeightedSum) -> dict[str, Any]:
    term, mean = shifted(model)
    return {term.name: {"standard": {"mean": mean, "standard_deviation": 1.0}}}


def shifted(model: WeightedSum) -> tuple[Term, float]:
    """Return the feature that is shifted and its mean: w (x - mean) = w x + offset."""
    term = max(model.terms, key=lambda term: abs(term.weight))
    mean = -model.offset / term.weight
    if abs(mean) > LARGEST_FLOAT32:
        raise ParameterError(
            given("offset", model.offset),
            f" is too large for weights of at most {abs(term.weight):g} in float32.",
        )
    return term, mean


def check_float32(terms: Iterable[Term]) -> None:
    """Refuse weights that are infinite in float32."""
    for term in terms:
        if abs(term.weight) > LARGEST_FLOAT32:
            raise ValueError(
                f"the weight of {term.name!a} is {term.weight:g}, too large for a target that "
                "computes in float32; scale the feature up, or export to another target."
            )


def _feature_set(name: str, terms: tuple[Term, ...]) -> dict[str, Any]:
    return {"featureset": {"name": name, "features": [_feature(term.name) for term in terms]}}


def _feature(name: str) -> dict[str, Any]:
    """Return a feature that is the value of a field of the same name, 0 where there is none."""
    value = {"field": name, "missing": 0.0}
    query = {"query": {"match_all": {}}, "field_value_factor": value, "boost_mode": "replace"}
    return {
        "name": name,
        "params": [],
        "template_language": "mustache",
        "template": {"function_score": query},
    }


def _rescore(name: str) -> dict[str, Any]:
    """Return a search whose best documents are ranked by the model alone."""
    ranked = {"sltr": {"params": {}, "model": name}}
    return {
        "query": {"match_all": {}},
        "rescore": {
            "window_size": WINDOW,
            "query": {"rescore_query": ranked, "query_weight": 0.0, "rescore_query_weight": 1.0},
        },
    }
