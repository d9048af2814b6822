"""Search engines and ranking libraries: Elasticsearch, OpenSearch, Solr, Vespa, Lucene, RankLib.

The LTR plugins and Solr add in float32, in the order of the features, and have no constant: an
offset is written as a shift of one feature by a normalizer. Vespa and Lucene evaluate expressions
in float64. RankLib and fastrank read LETOR text, where features are numbered from 1.
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
    """Return the JSON bodies of three requests: ``_createmodel``, ``_featureset`` and a search."""
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
    """Return a term and the mean to subtract from its feature, which adds the offset to scores."""
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
    """Return a feature whose value is the field of the same name, 0 where that is missing."""
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
    """Return the rank profile, and a map from features to attributes if their names differ.

    A name such as "bm25(title)" is a rank feature, others are attributes. Vespa cannot quote names,
    so an attribute whose name is not an identifier gets a similar one.
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
    """Whether a name is a rank feature of Vespa with its arguments, such as bm25(title)."""
    return RANK_FEATURE.fullmatch(name) is not None


def check_vespa_profile(name: str) -> None:
    """Raise ParameterError if a name is not allowed for a rank profile of Vespa."""
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
    """Return the Lucene expression of the score; a missing field counts as 0."""
    check_no_reordering(term.name for term in model.terms)
    terms = [f"{exact(t.weight)}*doc[{lucene_quoted(t.name)}].value" for t in model.terms]
    if model.offset:
        terms.append(exact(model.offset))
    return {"": (sum_of(terms, empty="0.0") + "\n").encode()}


def write_ranklib(model: WeightedSum) -> dict[str, bytes]:
    """Return a Coordinate Ascent model; RankLib recognizes it by the first line."""
    weights = " ".join(f"{term.place + 1}:{exact(term.weight)}" for term in model.listed())
    return {"": f"## Coordinate Ascent\n## {WRITTEN_BY}\n{weights}\n".encode("ascii")}


def write_fastrank(model: WeightedSum) -> dict[str, bytes]:
    """Return the JSON for fastrank's ``CModel.from_dict``; the weight at index 0 is not used."""
    weights = [0.0] * (1 + max((term.place + 1 for term in model.terms), default=0))
    for term in model.terms:
        weights[term.place + 1] = term.weight
    return {"": json_file({"Linear": {"weights": weights}})}
