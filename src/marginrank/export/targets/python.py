"""Python: one function of a sequence or a mapping, without dependencies."""

from typing import Any

from marginrank.export.curve_sum import CurveSum
from marginrank.export.names import python_quoted
from marginrank.export.numbers import exact
from marginrank.export.targets._text import WRITTEN_BY
from marginrank.export.weighted_sum import Sum, WeightedSum
from marginrank.models.additive_model import Curve

TEXT = '''\
"""Scores documents by a {sum}. {written_by}"""
{imports}
FEATURES = [
{features}
]
TERMS = [
{terms}
]


def score(values):
    """Return the score of a document: a sequence in the order of FEATURES, or a dict by name.

    {missing}
    """
    by_name = hasattr(values, "keys")
    total = {offset}
    for place, {term} in TERMS:
        value = values.get(FEATURES[place]) if by_name else values[place]
{add}
    return total
'''
ADD_PRODUCT = """\
        if value is not None and value == value:
            total += weight * value"""
ADD_CURVE = """\
        total += added(value, *curve)"""
CURVE = '''

def added(value, missing, categorical, knots, values):
    """Return what a curve adds: straight between its knots, and on beyond the outer ones."""
    if value is None or value != value:
        return missing
    above = bisect.bisect_right(knots, value)
    if categorical:
        return values[above - 1] if above and knots[above - 1] == value else missing
    if len(knots) == 1:
        return values[0]
    right = min(max(above, 1), len(knots) - 1)
    left = right - 1
    share = (value - knots[left]) / (knots[right] - knots[left])
    return values[left] + share * (values[right] - values[left])
'''


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return a module."""
    return _module(
        model,
        sum="weighted sum of features",
        imports="",
        terms="\n".join(f"    ({term.place}, {exact(term.weight)})," for term in model.terms),
        missing="What is absent, None or NaN counts as 0.",
        term="weight",
        add=ADD_PRODUCT,
    )


def write_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a module."""
    return _module(
        model,
        sum="sum of curves of features",
        imports="\nimport bisect\n",
        terms="\n".join(f"    ({term.place}, {_curve(term.curve)})," for term in model.terms),
        missing="What is absent, None, NaN or an unknown category adds what its curve says.",
        term="curve",
        add=ADD_CURVE,
        behind=CURVE,
    )


def _module(model: Sum[Any], behind: str = "", **parts: str) -> dict[str, bytes]:
    text = TEXT.format(
        written_by=WRITTEN_BY,
        features="\n".join(f"    {python_quoted(name)}," for name in model.features),
        offset=exact(model.offset),
        **parts,
    )
    return {"": (text + behind).encode("ascii")}


def _curve(curve: Curve) -> str:
    knots, values = (", ".join(map(exact, numbers)) for numbers in (curve.knots, curve.values))
    return f"({exact(curve.missing)}, {curve.categorical}, [{knots}], [{values}])"
