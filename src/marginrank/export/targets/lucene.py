"""Lucene: an expression over fields, as a script of Elasticsearch has them, in float64."""

from marginrank.export.names import lucene_quoted, refuse_reordering
from marginrank.export.numbers import exact, sum_of
from marginrank.export.weighted_sum import WeightedSum


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return the expression; a document without a field has 0 there."""
    refuse_reordering(term.name for term in model.terms)
    terms = [f"{exact(t.weight)}*doc[{lucene_quoted(t.name)}].value" for t in model.terms]
    if model.offset:
        terms.append(exact(model.offset))
    return {"": (sum_of(terms, empty="0.0") + "\n").encode()}
