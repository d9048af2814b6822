"""Curves in ONNX: the bins of all features are searched at once, by bisection.

The number of nodes does not depend on the number of features, and memory not on that of knots: a
step of the bisection is four nodes, and 255 knots need eight steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marginrank._base.types import Floats, Integers
from marginrank.export.curve_sum import CurveSum, CurveTerm
from marginrank.export.names import shown
from marginrank.export.targets._onnx import Graph
from marginrank.models.additive_model import Curve

FLOAT32_ERROR = 1e-5  # of the spread of scores: what exports in float32 promise


class Bins(NamedTuple):
    """Where the bins of a curve begin, how wide they are, the value there, and how it changes."""

    knots: Floats
    widths: Floats
    values: Floats
    rises: Floats


def add_curves(graph: Graph, X: str, model: CurveSum) -> str:
    """Add the sum of what curves add, in the order of operations of `predict`."""
    terms = model.listed()
    bins = [bins_of(term.curve) for term in terms]
    names = {name: np.concatenate([getattr(b, name) for b in bins]) for name in Bins._fields}
    tables = {name: graph.constant(name, numbers) for name, numbers in names.items()}
    places = graph.constant("places", [term.place for term in terms], "int64")
    x = graph.doubles(graph.add("Gather", X, places, axis=1))
    found = _search(graph, x, tables["knots"], np.array([b.knots.size for b in bins]))
    knot, width, value, rise = (graph.add("Gather", table, found) for table in tables.values())
    share = graph.add("Div", graph.add("Sub", x, knot), width)
    added = graph.add("Add", value, graph.add("Mul", share, rise))
    missing = graph.constant("missing", [term.curve.missing for term in terms])
    added = graph.add("Where", _is_missing(graph, x, knot, terms), missing, added)
    return graph.add("ReduceSum", added, graph.constant("axes", [1], "int64"), keepdims=0)


def bins_of(curve: Curve) -> Bins:
    """Return the bins of a curve; categories, and the only knot of a curve, are flat ones.

    Examples
    --------
    >>> import numpy as np
    >>> bins_of(Curve(np.array([0.0, 2.0, 3.0]), np.array([1.0, 0.0, 5.0]), 0.0, False)).rises
    array([-1.,  5.])
    """
    knots, values = curve.knots, curve.values
    if curve.categorical:
        return Bins(knots, np.ones_like(knots), values, np.zeros_like(values))
    if knots.size == 1:
        return Bins(np.zeros(1), np.ones(1), values, np.zeros(1))
    return Bins(knots[:-1], np.diff(knots), values[:-1], np.diff(values))


def in_float32(model: CurveSum) -> CurveSum:
    """Return curves whose knots are where float32 has them, or refuse those that would be others.

    A value of a feature is rounded as the knot that it equals, and so stays on it: at a knot,
    where curves may jump, and with categories.
    """
    spread = max((term.curve.spread for term in model.terms), default=0.0)
    terms = tuple(_rounded(term, spread) for term in model.terms)
    return CurveSum(model.name, model.features, terms, model.offset, model.dialect)


def _rounded(term: CurveTerm, spread: float) -> CurveTerm:
    with np.errstate(over="ignore"):
        knots = term.curve.knots.astype(np.float32).astype(np.float64)
    merged = not np.isfinite(knots).all() or np.any(np.diff(knots) <= 0)
    if merged or _blur(term.curve, knots) > FLOAT32_ERROR * spread:
        raise ValueError(
            f"the curve of the feature {shown(term.name)} has knots that float32 does not hold, or "
            "cannot tell apart well enough; export it in float64."
        )
    return replace(term, curve=term.curve._replace(knots=knots))


def _blur(curve: Curve, rounded: Floats) -> float:
    """Return how far a curve is off between knots, as float32 rounds them and what is there.

    Nothing, if knots need no rounding: they are values of features, which were float32 then.
    """
    if curve.categorical or np.array_equal(curve.knots, rounded):
        return 0.0
    slopes = np.abs(np.diff(curve.values) / np.diff(curve.knots))
    sizes = np.maximum(np.abs(rounded[:-1]), np.abs(rounded[1:]))
    return float(np.max(slopes * sizes, initial=0.0) * np.finfo(np.float32).eps)


def _search(graph: Graph, x: str, knots: str, sizes: Integers) -> str:
    """Add the search of the last knot of each curve up to x, or its first one."""
    found = graph.constant("starts", np.cumsum(sizes) - sizes, "int64")
    for step, half in enumerate(_halves(sizes)):
        middle = graph.add("Add", found, graph.constant(f"half_{step}", half, "int64"))
        reached = graph.add("LessOrEqual", graph.add("Gather", knots, middle), x)
        found = graph.add("Where", reached, middle, found)
    return found


def _halves(sizes: Integers) -> Iterator[Integers]:
    """Yield how far the middle of what is left of each curve is, until one knot is left.

    The upper half may be the larger one, and is what is taken to be left of the lower one, too.
    """
    while np.any(sizes > 1):
        yield sizes // 2
        sizes = sizes - sizes // 2


def _is_missing(graph: Graph, x: str, knot: str, terms: Sequence[CurveTerm]) -> str:
    """Add whether x is NaN, or a category that is none of the knots."""
    categorical = graph.constant("categorical", [t.curve.categorical for t in terms], "bool")
    elsewhere = graph.add("Not", graph.add("Equal", x, knot))
    return graph.add("Or", graph.add("IsNaN", x), graph.add("And", categorical, elsewhere))
