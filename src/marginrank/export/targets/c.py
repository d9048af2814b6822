"""Export to C99: a function that takes an array of features and returns a score in float64."""

from marginrank.export.names import c_quoted
from marginrank.export.sums import CurveSum, WeightedSum
from marginrank.export.text import WRITTEN_BY, entry_lines, exact

TEXT = """\
/* {written_by} Compile it without -ffast-math, which breaks NaN. */
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
{add}
    return score;
}}
"""
ADD_PRODUCTS = """\
    for (k = 0; k < {n_terms}; k++) {{
        const double value = features[places[k]];
        if (value == value)
            score += weights[k] * value;
    }}"""
ADD_CURVES = """\
    const double *at = values;
    for (k = 0; k < {n_terms}; at += nodes(k), k++) {{
        const struct place x = find(features[places[k]], k);
        score += between(at + x.left, x.share);
    }}"""
ADD_GRIDS = """
    for (; k < {n_axes}; at += nodes(k) * nodes(k + 1), k += 2) {{
        const struct place row = inside(find(features[places[k]], k));
        const struct place column = inside(find(features[places[k + 1]], k + 1));
        const double *const corner = at + row.left * nodes(k + 1) + column.left;
        const double above = between(corner, column.share);
        const double below = between(corner + nodes(k + 1), column.share);
        score += above + row.share * (below - above);
    }}"""
CURVES = """

/* A node, and a relative position between it and the next node. */
struct place {
    size_t left;
    double share;
};

/* The number of nodes of axis k: one for missing values, and one per knot. */
static size_t nodes(size_t k)
{
    return starts[k + 1] - starts[k] + 1;
}

/* The position of a value on axis k; missing and unknown values are at its first node. */
static struct place find(double value, size_t k)
{
    const struct place unknown = {0, 0.0};
    const double *const t = knots + starts[k];
    const size_t n = starts[k + 1] - starts[k];
    struct place found = {0, 1.0};
    size_t above = 0, end = n;
    if (value != value)
        return unknown;
    while (above < end) {
        const size_t middle = (above + end) / 2;
        if (t[middle] <= value)
            above = middle + 1;
        else
            end = middle;
    }
    if (categorical[k]) {
        if (above == 0 || t[above - 1] != value)
            return unknown;
        found.left = above - 1;
    } else if (n > 1) {
        found.left = above < 1 ? 1 : above < n ? above : n - 1;
        found.share = (value - t[found.left - 1]) / (t[found.left] - t[found.left - 1]);
    }
    return found;
}

/* Linear interpolation between two nodes. */
static double between(const double *left, double share)
{
    return left[0] + share * (left[1] - left[0]);
}"""
GRIDS = """

/* A function of two features is constant beyond its outer knots. */
static struct place inside(struct place x)
{
    x.share = x.share < 0.0 ? 0.0 : x.share > 1.0 ? 1.0 : x.share;
    return x;
}"""
TYPES = {"places": "size_t", "starts": "size_t", "categorical": "char"}  # others are double


def write(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return the model as a C source file.

    C has no empty arrays, so a model without terms gets one zero term.
    """
    arrays, functions, add = model.flat(), "", ADD_PRODUCTS
    if isinstance(model, CurveSum):
        functions, add = CURVES, ADD_CURVES
        if model.grids:
            functions, add = functions + GRIDS, add + ADD_GRIDS
    declared = (
        f"static const {TYPES.get(name, 'double')} {name}[] = {{\n{entry_lines(entries)}\n}};"
        for name, entries in arrays.items()
    )
    text = TEXT.format(
        written_by=WRITTEN_BY,
        name=model.name,
        features=entry_lines(map(c_quoted, model.features)),
        n_features=len(model.features),
        offset=exact(model.offset),
        terms="\n".join(declared) + functions,
        add=add.format(n_terms=len(model.listed()), n_axes=len(arrays["places"])),
    )
    return {"": text.encode("ascii")}
