"""Export to Python: a function without dependencies that scores a sequence or mapping."""

from marginrank.export.sums import CurveSum, WeightedSum, term_list
from marginrank.export.text import WRITTEN_BY, entry_lines, exact

TEXT = '''\
"""Scores documents by a {sum}. {written_by}"""
{imports}
FEATURES = [
{features}
]
{terms}


def score(values):
    """Return the score of a document: a sequence in the order of FEATURES, or a dict by name.

    {missing}
    """
    by_name = hasattr(values, "keys")
    value_of = (lambda place: values.get(FEATURES[place])) if by_name else values.__getitem__
    total = {offset}
{add}
    return total
'''
ADD_PRODUCTS = """\
    for place, weight in TERMS:
        value = value_of(place)
        if value is not None and value == value:
            total += weight * value"""
CURVES = """\
# An axis is the index of a feature, whether it is categorical, and its knots.
# The nodes of an axis are one for missing values, and one per knot.
CURVES = [  # an axis, and the values at its nodes
{curves}
]"""
ADD_CURVES = """\
    for (place, *axis), at_nodes in CURVES:
        total += between(at_nodes, *find(value_of(place), *axis))"""
FIND = '''

def find(value, categorical, knots):
    """Return the index of the node before a value, and the relative position to the next."""
    if value is None or value != value:
        return 0, 0.0
    above = bisect.bisect_right(knots, value)
    if categorical:
        return (above - 1, 1.0) if above and knots[above - 1] == value else (0, 0.0)
    if len(knots) == 1:
        return 0, 1.0
    right = min(max(above, 1), len(knots) - 1)
    return right, (value - knots[right - 1]) / (knots[right] - knots[right - 1])


def between(at_nodes, left, share):
    """Return the value between two nodes by linear interpolation."""
    return at_nodes[left] + share * (at_nodes[left + 1] - at_nodes[left])
'''
GRIDS = """
GRIDS = [  # two axes, and the values at their nodes: rows of the first, columns of the second
{grids}
]"""
ADD_GRIDS = """
    for (first, *rows), (second, *columns), at_nodes in GRIDS:
        row, down = inside(*find(value_of(first), *rows))
        column, along = inside(*find(value_of(second), *columns))
        above, below = (between(at_nodes[k], column, along) for k in (row, row + 1))
        total += above + down * (below - above)"""
INSIDE = '''

def inside(left, share):
    """Return the nearest position between the outer knots; grids are constant beyond these."""
    return left, min(max(share, 0.0), 1.0)
'''


def write(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return the model as the source of a Python module."""
    if isinstance(model, CurveSum):
        terms, add, behind = CURVES, ADD_CURVES, FIND
        if model.grids:
            terms, add, behind = terms + GRIDS, add + ADD_GRIDS, behind + INSIDE
        parts = {
            "sum": "sum of curves of features",
            "imports": "\nimport bisect\n",
            "terms": terms.format(
                curves=entry_lines(map(term_list, model.terms)),
                grids=entry_lines(map(term_list, model.grids)),
            ),
            "missing": "An absent, None, NaN or unknown value adds its learned value.",
        }
    else:
        add, behind = ADD_PRODUCTS, ""
        terms = entry_lines(f"({term.place}, {exact(term.weight)})" for term in model.terms)
        parts = {
            "sum": "weighted sum of features",
            "imports": "",
            "terms": f"TERMS = [\n{terms}\n]",
            "missing": "A value that is absent, None or NaN counts as 0.",
        }
    text = TEXT.format(
        written_by=WRITTEN_BY,
        features=entry_lines(map(ascii, model.features)),
        offset=exact(model.offset),
        add=add,
        **parts,
    )
    return {"": (text + behind).encode("ascii")}
