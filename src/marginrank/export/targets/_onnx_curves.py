"""Curves in ONNX: the bins of all features are searched at once, by bisection.

The number of nodes does not depend on the number of features, and memory not on that of knots: a
step of the bisection is four nodes, and 255 knots need eight steps.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.export.curve_sum import Axis, CurveTerm
from marginrank.export.targets._onnx import Graph


class Bins(NamedTuple):
    """Where the bins of an axis begin, how wide they are, and the nodes at their ends."""

    knots: Floats
    widths: Floats
    left: Integers
    right: Integers


class Places(NamedTuple):
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


def add_places(graph: Graph, X: str, axes: Sequence[Axis], name: str) -> Places:
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
    return Places(found, share, graph.add("Or", graph.add("IsNaN", x), unknown))


def bins_of(axis: Axis) -> Bins:
    """Return the bins of an axis; categories, and the only knot of a feature, are bins of a node.

    Examples
    --------
    >>> import numpy as np
    >>> bins_of(Axis(0, "bm25", np.array([0.0, 2.0, 3.0]), categorical=False)).widths
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
