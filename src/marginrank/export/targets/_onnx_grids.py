"""Functions of two features in ONNX: the nodes around documents are found in all grids at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Integers
from marginrank.export.curve_sum import Axis, GridTerm
from marginrank.export.targets._onnx import Graph
from marginrank.export.targets._onnx_curves import Places, add_places, bins_of


class Lines(NamedTuple):
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
    graph: Graph, X: str, axes: Sequence[Axis], starts: Integers, strides: Integers, name: str
) -> Lines:
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
    return Lines(
        _add_choice(graph, places, missing, first, f"{name}_first"),
        _add_choice(graph, places, missing, second, f"{name}_second"),
        graph.add("Where", places.are_missing, zero, inside),
    )


def _add_choice(
    graph: Graph, places: Places, missing: str, begins: Sequence[Integers], name: str
) -> str:
    """Add which lines documents are at: those of their bins, or those for missing values."""
    of_bins = graph.constant(name, np.concatenate(begins), "int64")
    line = graph.add("Gather", of_bins, places.bins)
    return graph.add("Where", places.are_missing, missing, line)


def _add_along(graph: Graph, table: str, row: str, columns: Lines) -> str:
    """Add what is between two columns of a row."""
    left, right = (
        graph.add("Gather", table, graph.add("Add", row, column))
        for column in (columns.first, columns.second)
    )
    return _add_between(graph, left, right, columns.share)


def _add_between(graph: Graph, left: str, right: str, share: str) -> str:
    return graph.add("Add", left, graph.add("Mul", share, graph.add("Sub", right, left)))
