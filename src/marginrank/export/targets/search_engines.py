"""Export of linear models to Elasticsearch, OpenSearch, Solr, Vespa, Lucene, RankLib and fastrank.

The LTR plugins of Elasticsearch and OpenSearch, and Solr, add terms in float32 in the order of the
features. Their models have no constant, so an offset is written as a normalizer that shifts one
feature. Vespa and Lucene evaluate expressions in float64. RankLib and fastrank read LETOR text, in
which features are numbered from 1.
"""

import re
from collections.abc import Iterable
from typing import Any

from marginrank._utils.parameters import ParameterError, given
from marginrank.export.names import (
    check_distinct,
    check_no_reordering,
    check_not_found,
    identifiers,
    lucene_quoted,
)
from marginrank.export.sums import Term, WeightedSum
from marginrank.export.text import LARGEST_FLOAT32, WRITTEN_BY, exact, json_file, sum_of

TEMPLATE_TAG = re.compile(r"\{\{")
RESCORED = 100  # number of top documents that the LTR plugins rerank
SOLR = "org.apache.solr.ltr"
VESPA_TERMS = 500  # most terms per Vespa function
VESPA_PROFILES = ("default", "unranked")
# Rank features of Vespa that are numbers; any other name is the name of an attribute.
RANK_FEATURE = re.compile(
    r"(attribute|attributeMatch|age|bm25|closeness|constant|distance|dotProduct|elementCompleteness"
    r"|elementSimilarity|fieldLength|fieldMatch|fieldTermMatch|freshness|itemRawScore|matchCount"
    r"|matches|nativeAttributeMatch|nativeDotProduct|nativeFieldMatch|nativeProximity|nativeRank"
    r"|query|rawScore|term|textSimilarity)"
    r"\([\w.]+(, ?[\w.]+)*\)(\.\w+)*",
    re.ASCII,
)


def write_ltr_plugin(model: WeightedSum) -> dict[str, bytes]:
    """Return three JSON requests for the LTR plugins of Elasticsearch and OpenSearch.

    They are the body of ``_createmodel``, of ``_featureset``, and of a search that reranks.
    """
    weights = {term.name: term.weight for term in model.listed()}
    _check_float32(model.terms)
    check_not_found(weights, TEMPLATE_TAG, "'{{' begins a tag of the plugin's templates")
    content: dict[str, Any] = {"type": "model/linear"}
    if model.offset:
        term, mean = _shifted(model)
        normalizer = {"standard": {"mean": mean, "standard_deviation": 1.0}}
        content["feature_normalizers"] = {term.name: normalizer}
    content["definition"] = weights
    features = {"name": model.name, "features": [_feature(name) for name in weights]}
    ranked = {"sltr": {"params": {}, "model": model.name}}
    query = {"rescore_query": ranked, "query_weight": 0.0, "rescore_query_weight": 1.0}
    rescore = {"window_size": RESCORED, "query": query}
    return {
        "": json_file({"model": {"name": model.name, "model": content}}),
        "features": json_file({"featureset": features}),
        "rescore": json_file({"query": {"match_all": {}}, "rescore": rescore}),
    }


def _shifted(model: WeightedSum) -> tuple[Term, float]:
    """Return a term, and a number whose subtraction from its feature adds the offset to scores."""
    term = max(model.terms, key=lambda term: abs(term.weight))
    mean = -model.offset / term.weight
    if abs(mean) > LARGEST_FLOAT32:
        raise ParameterError(
            given("offset", model.offset),
            f" is too large for float32 with weights of at most {abs(term.weight):g}.",
        )
    return term, mean


def _check_float32(terms: Iterable[Term]) -> None:
    for term in terms:
        if abs(term.weight) > LARGEST_FLOAT32:
            raise ValueError(
                f"the weight of {term.name!a} is {term.weight:g}, too large for float32; scale the "
                "feature up, or export to a target in float64."
            )


def _feature(name: str) -> dict[str, Any]:
    """Return the JSON of a feature: the value of the field with its name, or 0 if missing."""
    value = {"field": name, "missing": 0.0}
    query = {"query": {"match_all": {}}, "field_value_factor": value, "boost_mode": "replace"}
    return {
        "name": name,
        "params": [],
        "template_language": "mustache",
        "template": {"function_score": query},
    }


def write_solr(model: WeightedSum) -> dict[str, bytes]:
    """Return the JSON files for Solr's model store and feature store."""
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
    kind = f"{SOLR}.feature.FieldValueFeature"
    fields = [
        {"store": model.name, "name": name, "class": kind, "params": {"field": name}}
        for name in weights
    ]
    return {"": json_file(content), "features": json_file(fields)}


def write_vespa(model: WeightedSum) -> dict[str, bytes]:
    """Return the model as a rank profile of Vespa.

    A name such as "bm25(title)" is a rank feature of Vespa; other features are read from
    attributes. Vespa cannot quote names, so an attribute whose name is not an identifier is
    renamed. A second file then maps the names of features to their attributes.
    """
    check_vespa_profile(model.name)
    attributes = [name for name in model.features if not is_rank_feature(name)]
    names = dict(zip(attributes, identifiers(attributes), strict=True))
    values = {name: name for name in model.features if is_rank_feature(name)}
    values |= {name: f"attribute({made})" for name, made in names.items()}
    check_distinct(model.features, lambda name: values[name].replace(" ", ""), "Vespa")
    terms = [_vespa_term(values[term.name], term.weight) for term in model.terms]
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


def _vespa_term(value: str, weight: float) -> str:
    # Vespa returns NaN for an unset attribute.
    return f"if (isNan({value}) == 1, 0.0, {value}) * {exact(weight)}"


def is_rank_feature(name: str) -> bool:
    """Return True if a name is a rank feature of Vespa with its arguments, such as bm25(title)."""
    return RANK_FEATURE.fullmatch(name) is not None


def check_vespa_profile(name: str) -> None:
    """Raise ParameterError if a name is reserved for a built-in rank profile of Vespa."""
    if name in VESPA_PROFILES:
        raise ParameterError(
            given("name", name), " is a built-in rank profile of Vespa; pass another name."
        )


def _vespa_function(name: str, terms: list[str]) -> str:
    lines = "\n            + ".join(terms)
    return (
        f"    function {name}() {{\n"
        f"        expression {{\n            {lines}\n        }}\n"
        "    }\n"
    )


def write_lucene(model: WeightedSum) -> dict[str, bytes]:
    """Return the model as a Lucene expression; a missing field counts as 0."""
    check_no_reordering(term.name for term in model.terms)
    terms = [f"{exact(t.weight)}*doc[{lucene_quoted(t.name)}].value" for t in model.terms]
    if model.offset:
        terms.append(exact(model.offset))
    return {"": (sum_of(terms, empty="0.0") + "\n").encode()}


def write_ranklib(model: WeightedSum) -> dict[str, bytes]:
    """Return the model as a model file of RankLib, in the format of Coordinate Ascent."""
    weights = " ".join(f"{term.place + 1}:{exact(term.weight)}" for term in model.listed())
    return {"": f"## Coordinate Ascent\n## {WRITTEN_BY}\n{weights}\n".encode("ascii")}


def write_fastrank(model: WeightedSum) -> dict[str, bytes]:
    """Return the model as JSON for ``CModel.from_dict`` of fastrank.

    fastrank numbers features from 1, so the weight at index 0 is not used.
    """
    weights = [0.0] * (1 + max((term.place + 1 for term in model.terms), default=0))
    for term in model.terms:
        weights[term.place + 1] = term.weight
    return {"": json_file({"Linear": {"weights": weights}})}
