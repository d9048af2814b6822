"""Curves and grids in ONNX: the bins of all features are searched at once, by bisection.

The number of nodes does not depend on the number of features, and memory not on that of knots: a
step of the bisection is four nodes, and 255 knots need eight steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.export.names import shown
from marginrank.export.numbers import FLOAT32_ACCURACY
from marginrank.export.sums import CurveAxis, CurveSum, CurveTerm, GridTerm
from marginrank.export.targets._onnx import Graph
from marginrank.models.additive_model import Curve


class Bins(NamedTuple):
    """Where the bins of an axis begin, how wide they are, and the nodes at their ends."""

    knots: Floats
    widths: Floats
    left: Integers
    right: Integers


class BinPositions(NamedTuple):
    """Where values lie: the bin among all, how far it is through that, and if they are missing."""

    bins: str
    shares: str
    are_missing: str


def add_curves(graph: Graph, X: str, terms: Sequence[CurveTerm]) -> str:
    """Add what each curve adds, in the order of operations of `predict`."""
    axes = [axis for term in terms for axis in term.axes]
    places = add_places(graph, X, axes, "curve")
    bins = [bins_of(axis) for axis in axes]
    left = np.concatenate([t.at_nodes[b.left] for t, b in zip(terms, bins, strict=True)])
    right = np.concatenate([t.at_nodes[b.right] for t, b in zip(terms, bins, strict=True)])
    value = graph.add("Gather", graph.constant("values", left), places.bins)
    rise = graph.add("Gather", graph.constant("rises", right - left), places.bins)
    added = graph.add("Add", value, graph.add("Mul", places.shares, rise))
    missing = graph.constant("missing", [term.curve.missing for term in terms])
    return graph.add("Where", places.are_missing, missing, added)


def add_places(graph: Graph, X: str, axes: Sequence[CurveAxis], name: str) -> BinPositions:
    """Add the search of documents on some axes; names of its constants begin with `name`."""
    bins = [bins_of(axis) for axis in axes]
    features = graph.constant(f"{name}_places", [axis.place for axis in axes], "int64")
    knots = graph.constant(f"{name}_knots", np.concatenate([b.knots for b in bins]))
    widths = graph.constant(f"{name}_widths", np.concatenate([b.widths for b in bins]))
    x = graph.doubles(graph.add("Gather", X, features, axis=1))
    found = _search(graph, x, knots, np.array([b.knots.size for b in bins]), name)
    knot, width = (graph.add("Gather", table, found) for table in (knots, widths))
    share = graph.add("Div", graph.add("Sub", x, knot), width)
    categorical = graph.constant(f"{name}_categorical", [axis.categorical for axis in axes], "bool")
    unknown = graph.add("And", categorical, graph.add("Not", graph.add("Equal", x, knot)))
    return BinPositions(found, share, graph.add("Or", graph.add("IsNaN", x), unknown))


def bins_of(axis: CurveAxis) -> Bins:
    """Return the bins of an axis; categories, and the only knot of a feature, are bins of a node.

    Examples
    --------
    >>> import numpy as np
    >>> bins_of(CurveAxis(0, "bm25", np.array([0.0, 2.0, 3.0]), categorical=False)).widths
    array([2., 1.])
    """
    nodes = np.arange(1, axis.knots.size + 1)
    if axis.categorical:
        return Bins(axis.knots, np.ones(nodes.size), nodes, nodes)
    if nodes.size == 1:
        return Bins(np.zeros(1), np.ones(1), nodes, nodes)
    return Bins(axis.knots[:-1], np.diff(axis.knots), nodes[:-1], nodes[1:])


def _search(graph: Graph, x: str, knots: str, sizes: Integers, name: str) -> str:
    """Add the search of the last bin of each axis that begins up to x, or its first one."""
    found = graph.constant(f"{name}_starts", np.cumsum(sizes) - sizes, "int64")
    for step, half in enumerate(_halves(sizes)):
        middle = graph.add("Add", found, graph.constant(f"{name}_half_{step}", half, "int64"))
        reached = graph.add("LessOrEqual", graph.add("Gather", knots, middle), x)
        found = graph.add("Where", reached, middle, found)
    return found


def _halves(sizes: Integers) -> Iterator[Integers]:
    """Yield how far the middle of what is left of each axis is, until one bin is left.

    The upper half may be the larger one, and is what is taken to be left of the lower one, too.
    """
    while np.any(sizes > 1):
        yield sizes // 2
        sizes = sizes - sizes // 2


class GridLines(NamedTuple):
    """Rows or columns around documents: where they begin, and how far it is between the two."""

    first: str
    second: str
    share: str


def add_grids(graph: Graph, X: str, grids: Sequence[GridTerm]) -> str:
    """Add what each grid adds, in the order of operations of `predict`."""
    table = graph.constant("at_nodes", np.concatenate([grid.at_nodes.ravel() for grid in grids]))
    sizes = np.array([grid.at_nodes.size for grid in grids])
    widths = np.array([grid.at_nodes.shape[1] for grid in grids])
    rows_of, columns_of = zip(*(grid.axes for grid in grids), strict=True)
    rows = _add_lines(graph, X, rows_of, np.cumsum(sizes) - sizes, widths, "row")
    columns = _add_lines(graph, X, columns_of, 0 * sizes, np.ones_like(sizes), "column")
    above, below = (_add_along(graph, table, row, columns) for row in (rows.first, rows.second))
    return _add_between(graph, above, below, rows.share)


def _add_lines(
    graph: Graph, X: str, axes: Sequence[CurveAxis], starts: Integers, strides: Integers, name: str
) -> GridLines:
    """Add the search of the two lines around documents.

    Line k of a grid begins k strides behind its start; the first one is for missing values.
    """
    places = add_places(graph, X, axes, name)
    of_grids = list(zip(starts, strides, map(bins_of, axes), strict=True))
    first = [start + stride * bins.left for start, stride, bins in of_grids]
    second = [start + stride * bins.right for start, stride, bins in of_grids]
    missing = graph.constant(f"{name}_missing", starts, "int64")
    zero, one = (graph.constant(f"{name}_{end}", end) for end in (0.0, 1.0))
    inside = graph.add("Clip", places.shares, zero, one)
    return GridLines(
        _add_choice(graph, places, missing, first, f"{name}_first"),
        _add_choice(graph, places, missing, second, f"{name}_second"),
        graph.add("Where", places.are_missing, zero, inside),
    )


def _add_choice(
    graph: Graph, places: BinPositions, missing: str, begins: Sequence[Integers], name: str
) -> str:
    """Add which lines documents are at: those of their bins, or those for missing values."""
    of_bins = graph.constant(name, np.concatenate(begins), "int64")
    line = graph.add("Gather", of_bins, places.bins)
    return graph.add("Where", places.are_missing, missing, line)


def _add_along(graph: Graph, table: str, row: str, columns: GridLines) -> str:
    """Add what is between two columns of a row."""
    left, right = (
        graph.add("Gather", table, graph.add("Add", row, column))
        for column in (columns.first, columns.second)
    )
    return _add_between(graph, left, right, columns.share)


def _add_between(graph: Graph, left: str, right: str, share: str) -> str:
    return graph.add("Add", left, graph.add("Mul", share, graph.add("Sub", right, left)))


def in_float32(model: CurveSum) -> CurveSum:
    """Return a sum whose knots are where float32 has them, or refuse one that would be another.

    A value of a feature is rounded as the knot that it equals, and so stays on it: at a knot,
    where curves may jump, and with categories.
    """
    spreads = [np.ptp(term.at_nodes[1:]) for term in model.terms]
    spreads += [np.ptp(term.at_nodes[1:, 1:]) for term in model.grids]
    spread = float(max(spreads, default=0.0))
    return replace(
        model,
        terms=tuple(_rounded_curve(term, spread) for term in model.terms),
        grids=tuple(_rounded_grid(term, spread) for term in model.grids),
    )


def _rounded_curve(term: CurveTerm, spread: float) -> CurveTerm:
    knots = _rounded_knots(*term.axes, [term.curve], spread)
    return replace(term, curve=term.curve._replace(knots=knots))


def _rounded_grid(term: GridTerm, spread: float) -> GridTerm:
    first, second = term.axes
    columns, rows = term.transposed.rows, term.rows  # curves of the first, and of the second
    axes = (
        replace(first, knots=_rounded_knots(first, columns, spread)),
        replace(second, knots=_rounded_knots(second, rows, spread)),
    )
    return replace(term, axes=axes)


def _rounded_knots(axis: CurveAxis, curves: Sequence[Curve], spread: float) -> Floats:
    """Return the knots in float32, or refuse what changes one of the curves on them too much."""
    with np.errstate(over="ignore"):
        knots = axis.knots.astype(np.float32).astype(np.float64)
    merged = not np.isfinite(knots).all() or np.any(np.diff(knots) <= 0)
    if merged or max(_blur(curve, knots) for curve in curves) > FLOAT32_ACCURACY * spread:
        raise ValueError(
            f"the feature {shown(axis.name)} has knots that float32 does not hold, or cannot tell "
            "apart well enough; export it in float64."
        )
    return knots


def _blur(curve: Curve, rounded: Floats) -> float:
    """Return how far a curve is off between knots, as float32 rounds them and what is there.

    Nothing, if knots need no rounding: they are values of features, which were float32 then.
    """
    if curve.categorical or np.array_equal(curve.knots, rounded):
        return 0.0
    slopes = np.abs(np.diff(curve.values) / np.diff(curve.knots))
    sizes = np.maximum(np.abs(rounded[:-1]), np.abs(rounded[1:]))
    return float(np.max(slopes * sizes, initial=0.0) * np.finfo(np.float32).eps)
