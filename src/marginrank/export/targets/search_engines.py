"""Search engines: LTR plugins of Elasticsearch and OpenSearch, Solr's LTR module, Vespa, Lucene.

The plugins and Solr add in float32, in the order of the features, and have no constant: an offset
is a shift of one feature, which a normalizer makes. Vespa and Lucene have
expressions in float64.
"""

import re
from collections.abc import Iterable
from typing import Any

from marginrank._utils.parameters import ParameterError, given
from marginrank.export.names import check_no_reordering, check_not_found, identifiers, lucene_quoted
from marginrank.export.numbers import LARGEST_FLOAT32, exact, sum_of
from marginrank.export.sums import Term, WeightedSum
from marginrank.export.targets._text import WRITTEN_BY, json_file

TEMPLATE_TAG = re.compile(r"\{\{")
RESCORED = 100  # documents that the LTR plugins rank again
SOLR = "org.apache.solr.ltr"
VESPA_TERMS = 500  # of a function
VESPA_PROFILES = ("default", "unranked")


def write_ltr_plugin(model: WeightedSum) -> dict[str, bytes]:
    """Return the body of ``_createmodel``, that of ``_featureset``, and that of a search."""
    terms = model.listed()
    _check_float32(terms)
    check_not_found(
        (t.name for t in terms), TEMPLATE_TAG, "'{{' begins a tag of the plugin's templates"
    )
    return {
        "": json_file(_plugin_model(model)),
        "features": json_file(_feature_set(model.name, terms)),
        "rescore": json_file(_rescore(model.name)),
    }


def _plugin_model(model: WeightedSum) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "model/linear"}
    if model.offset:
        content["feature_normalizers"] = _shift(model)
    content["definition"] = {term.name: term.weight for term in model.listed()}
    return {"model": {"name": model.name, "model": content}}


def _shift(model: WeightedSum) -> dict[str, Any]:
    term, mean = _shifted(model)
    return {term.name: {"standard": {"mean": mean, "standard_deviation": 1.0}}}


def _shifted(model: WeightedSum) -> tuple[Term, float]:
    """Return the feature that is shifted and its mean: w (x - mean) = w x + offset."""
    term = max(model.terms, key=lambda term: abs(term.weight))
    mean = -model.offset / term.weight
    if abs(mean) > LARGEST_FLOAT32:
        raise ParameterError(
            given("offset", model.offset),
            f" is too large for weights of at most {abs(term.weight):g} in float32.",
        )
    return term, mean


def _check_float32(terms: Iterable[Term]) -> None:
    """Raise ValueError if a weight is infinite in float32."""
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
            "window_size": RESCORED,
            "query": {"rescore_query": ranked, "query_weight": 0.0, "rescore_query_weight": 1.0},
        },
    }


def write_solr(model: WeightedSum) -> dict[str, bytes]:
    """Return what goes to the model store, and what goes to the feature store."""
    _check_float32(model.terms)
    features: list[dict[str, Any]] = [{"name": term.name} for term in model.listed()]
    if model.offset:
        term, mean = _shifted(model)
        features[model.terms.index(term)]["norm"] = {
            "class": f"{SOLR}.norm.StandardNormalizer",
            "params": {"avg": exact(mean), "std": "1.0"},
        }
    weights = {term.name: term.weight for term in model.listed()}
    content = {
        "class": f"{SOLR}.model.LinearModel",
        "name": model.name,
        "store": model.name,
        "features": features,
        "params": {"weights": weights},
    }
    fields = [_solr_field(model.name, name) for name in weights]
    return {"": json_file(content), "features": json_file(fields)}


def _solr_field(store: str, name: str) -> dict[str, Any]:
    return {
        "store": store,
        "name": name,
        "class": f"{SOLR}.feature.FieldValueFeature",
        "params": {"field": name},
    }


def write_vespa(model: WeightedSum) -> dict[str, bytes]:
    """Return the rank profile, and the names of attributes where they are not the features'.

    Vespa has no quotes for names: if a feature is not an identifier, its attribute has a similar
    name.
    """
    if model.name in VESPA_PROFILES:
        raise ParameterError(
            given("name", model.name), " is a rank profile that Vespa has; choose another name."
        )
    names = dict(zip(model.features, identifiers(model.features), strict=True))
    terms = [f"{_vespa_value(names[term.name])} * {exact(term.weight)}" for term in model.terms]
    parts = [terms[k : k + VESPA_TERMS] for k in range(0, len(terms), VESPA_TERMS)]
    calls = [f"{model.name}_part_{number}" for number in range(len(parts))]
    functions = [_vespa_function(call, part) for call, part in zip(calls, parts, strict=True)]
    functions.append(_vespa_function(f"{model.name}_score", [*calls, exact(model.offset)]))
    text = (
        f"# {WRITTEN_BY}\n"
        f"rank-profile {model.name} inherits default {{\n"
        f"{''.join(functions)}"
        f"    first-phase {{\n        expression: {model.name}_score\n    }}\n"
        "}\n"
    )
    files = {"": text.encode("ascii")}
    renamed = {name: made for name, made in names.items() if name != made}
    return files | ({"names.json": json_file(renamed)} if renamed else {})


def _vespa_value(attribute: str) -> str:
    """Return the value of an attribute, which is NaN where it is not set."""
    return f"if (isNan(attribute({attribute})) == 1, 0.0, attribute({attribute}))"


def _vespa_function(name: str, terms: list[str]) -> str:
    lines = "\n            + ".join(terms)
    return (
        f"    function {name}() {{\n"
        f"        expression {{\n            {lines}\n        }}\n"
        "    }\n"
    )


def write_lucene(model: WeightedSum) -> dict[str, bytes]:
    """Return the expression; a document without a field has 0 there."""
    check_no_reordering(term.name for term in model.terms)
    terms = [f"{exact(t.weight)}*doc[{lucene_quoted(t.name)}].value" for t in model.terms]
    if model.offset:
        terms.append(exact(model.offset))
    return {"": (sum_of(terms, empty="0.0") + "\n").encode()}
