"""C99: one function of an array, in float64."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marginrank.export.curve_sum import CurveSum, flat
from marginrank.export.names import c_quoted
from marginrank.export.numbers import exact
from marginrank.export.targets._text import WRITTEN_BY
from marginrank.export.weighted_sum import Sum, WeightedSum

TEXT = """\
/* {written_by} Compile it without -ffast-math, which knows no NaN. */
#include <stddef.h>

{terms}

const size_t {name}_n_features = {n_features};
const char *const {name}_features[] = {{
{features}
}};

/* The score of a document: features in the order of {name}_features, NaN where one is missing. */
double {name}_score(const double *features)
{{
    double score = {offset};
    size_t k;
    for (k = 0; k < {n_terms}; k++) {{
        const double value = features[places[k]];
{add}
    }}
    return score;
}}
"""
ADD_PRODUCT = """\
        if (value == value)
            score += weights[k] * value;"""
ADD_CURVE = """\
        score += added(value, k);"""
CURVE = """

/* What curve k adds: straight between its knots, and on beyond the outer ones. */
static double added(double value, size_t k)
{
    const double *const t = knots + starts[k], *const v = values + starts[k];
    const size_t n = starts[k + 1] - starts[k];
    size_t above = 0, end = n, right;
    if (value != value)
        return missing[k];
    while (above < end) {
        const size_t middle = (above + end) / 2;
        if (t[middle] <= value)
            above = middle + 1;
        else
            end = middle;
    }
    if (categorical[k])
        return above > 0 && t[above - 1] == value ? v[above - 1] : missing[k];
    if (n == 1)
        return v[0];
    right = above < 1 ? 1 : above < n ? above : n - 1;
    return v[right - 1]
           + (value - t[right - 1]) / (t[right] - t[right - 1]) * (v[right] - v[right - 1]);
}"""
TYPES = {"places": "size_t", "starts": "size_t", "categorical": "char"}  # others are double


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return a source file; C has no empty arrays, so that a model without weights has one."""
    terms = model.listed()
    arrays = {
        "places": [str(term.place) for term in terms],
        "weights": [exact(term.weight) for term in terms],
    }
    return _source(model, terms=_arrays(arrays), n_terms=len(terms), add=ADD_PRODUCT)


def write_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a source file; a model without curves has one that adds nothing."""
    terms = model.listed()
    return _source(model, terms=_arrays(flat(terms)) + CURVE, n_terms=len(terms), add=ADD_CURVE)


def _source(model: Sum[Any], **parts: Any) -> dict[str, bytes]:
    text = TEXT.format(
        written_by=WRITTEN_BY,
        name=model.name,
        features=_lines(map(c_quoted, model.features)),
        n_features=len(model.features),
        offset=exact(model.offset),
        **parts,
    )
    return {"": text.encode("ascii")}


def _arrays(arrays: Mapping[str, Sequence[str]]) -> str:
    return "\n".join(
        f"static const {TYPES.get(name, 'double')} {name}[] = {{\n{_lines(entries)}\n}};"
        for name, entries in arrays.items()
    )


def _lines(values: Iterable[str]) -> str:
    return "\n".join(f"    {value}," for value in values)
