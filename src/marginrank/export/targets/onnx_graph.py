"""Export to ONNX: a graph that maps a matrix of features to a vector of scores.

Curves of additive models are evaluated as follows. A *bin* is the interval between two adjacent
knots of a curve. The bins of all features are found at once, by bisection: a step takes four
operators, and 255 knots need eight steps. So the number of operators does not depend on the number
of features, and the memory per document does not depend on the number of knots.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.export.names import shown
from marginrank.export.sums import (
    CurveAxis,
    CurveSum,
    CurveTerm,
    GridTerm,
    KernelSum,
    Sum,
    WeightedSum,
)
from marginrank.export.targets._onnx import Graph, write_graph
from marginrank.export.text import FLOAT32_ACCURACY
from marginrank.models.additive_model import Curve


def _write(precision: str, model: Sum[Any]) -> dict[str, bytes]:
    """Return the model as an ONNX file, with features, knots and scores of dtype `precision`."""
    if isinstance(model, KernelSum):
        return write_graph(model, precision, partial(_add_kernel, model))
    if isinstance(model, CurveSum):
        model = _in_float32(model) if precision == "float32" else model
        return write_graph(model, precision, partial(_add_terms, model))
    assert isinstance(model, WeightedSum)
    return write_graph(model, precision, partial(_add_weights, model))


write_float64 = partial(_write, "float64")
write_float32 = partial(_write, "float32")


def _add_weights(model: WeightedSum, graph: Graph, X: str) -> str:
    terms = model.listed()  # onnxruntime does not compute products of empty matrices
    places = graph.constant("places", [term.place for term in terms], "int64")
    values = graph.doubles(graph.add("Gather", X, places, axis=1))
    missing = graph.add("IsNaN", values)
    filled = graph.add("Where", missing, graph.constant("zero", 0.0), values)
    return graph.add("MatMul", filled, graph.constant("weights", [t.weight for t in terms]))


class Bins(NamedTuple):
    """The bins (intervals between adjacent knots) of a feature's curve.

    `knots` are the lower ends of the bins; `left` and `right` are the nodes at both ends of each
    bin, as indices of the curve's values.
    """

    knots: Floats
    widths: Floats
    left: Integers
    right: Integers


class BinPositions(NamedTuple):
    """Names of three ONNX outputs that locate feature values among the knots of their curves.

    `bins` is the index of the interval between two knots, `shares` the relative position in it, and
    `are_missing` whether the value is missing.
    """

    bins: str
    shares: str
    are_missing: str


class GridLines(NamedTuple):
    """Names of three ONNX outputs that locate feature values in the grid of an interaction.

    `first` and `second` are the positions, in the concatenated array of all grids, of the two rows
    (or columns) around the value; `share` is the weight of the second one in the interpolation.
    """

    first: str
    second: str
    share: str


def _add_terms(model: CurveSum, graph: Graph, X: str) -> str:
    added = _add_curves(graph, X, model.listed())
    if model.grids:
        added = graph.add("Concat", added, _add_grids(graph, X, model.grids), axis=1)
    return graph.add("ReduceSum", added, graph.constant("axes", [1], "int64"), keepdims=0)


def _add_curves(graph: Graph, X: str, terms: Sequence[CurveTerm]) -> str:
    """Add operators that evaluate the curve of each feature; return the name of their output.

    The operations and their order are the same as in `predict`, so rounding is the same.
    """
    axes = [axis for term in terms for axis in term.axes]
    places = _add_places(graph, X, axes, "curve")
    bins = [_bins_of(axis) for axis in axes]
    left = np.concatenate([t.at_nodes[b.left] for t, b in zip(terms, bins, strict=True)])
    right = np.concatenate([t.at_nodes[b.right] for t, b in zip(terms, bins, strict=True)])
    value = graph.add("Gather", graph.constant("values", left), places.bins)
    rise = graph.add("Gather", graph.constant("rises", right - left), places.bins)
    added = graph.add("Add", value, graph.add("Mul", places.shares, rise))
    missing = graph.constant("missing", [term.curve.missing for term in terms])
    return graph.add("Where", places.are_missing, missing, added)


def _add_places(graph: Graph, X: str, axes: Sequence[CurveAxis], name: str) -> BinPositions:
    """Add operators that find the bin of each feature value; return the names of their outputs.

    `name` is the prefix of the names of constants.
    """
    bins = [_bins_of(axis) for axis in axes]
    features = graph.constant(f"{name}_places", [axis.place for axis in axes], "int64")
    knots = graph.constant(f"{name}_knots", np.concatenate([b.knots for b in bins]))
    widths = graph.constant(f"{name}_widths", np.concatenate([b.widths for b in bins]))
    x = graph.doubles(graph.add("Gather", X, features, axis=1))
    sizes = np.array([b.knots.size for b in bins])
    found = graph.constant(f"{name}_starts", np.cumsum(sizes) - sizes, "int64")
    for step, half in enumerate(_halves(sizes)):  # the last bin that begins at or below x
        middle = graph.add("Add", found, graph.constant(f"{name}_half_{step}", half, "int64"))
        reached = graph.add("LessOrEqual", graph.add("Gather", knots, middle), x)
        found = graph.add("Where", reached, middle, found)
    knot, width = (graph.add("Gather", table, found) for table in (knots, widths))
    share = graph.add("Div", graph.add("Sub", x, knot), width)
    categorical = graph.constant(f"{name}_categorical", [axis.categorical for axis in axes], "bool")
    unknown = graph.add("And", categorical, graph.add("Not", graph.add("Equal", x, knot)))
    return BinPositions(found, share, graph.add("Or", graph.add("IsNaN", x), unknown))


def _bins_of(axis: CurveAxis) -> Bins:
    """Return the intervals between the knots of a feature.

    A category, or the only knot, counts as an interval with the same value at both ends.
    """
    nodes = np.arange(1, axis.knots.size + 1)
    if axis.categorical:
        return Bins(axis.knots, np.ones(nodes.size), nodes, nodes)
    if nodes.size == 1:
        return Bins(np.zeros(1), np.ones(1), nodes, nodes)
    return Bins(axis.knots[:-1], np.diff(axis.knots), nodes[:-1], nodes[1:])


def _halves(sizes: Integers) -> Iterator[Integers]:
    """Yield the steps (numbers of intervals) of bisections over n intervals, for each n in `sizes`.

    An odd number is not split evenly. The search then continues with the size of the larger half,
    so the step does not depend on which half is chosen.
    """
    while np.any(sizes > 1):
        yield sizes // 2
        sizes = sizes - sizes // 2


def _add_grids(graph: Graph, X: str, grids: Sequence[GridTerm]) -> str:
    """Add operators that evaluate the grid of each interaction; return the name of their output.

    The operations and their order are the same as in `predict`, so rounding is the same.
    """
    table = graph.constant("at_nodes", np.concatenate([grid.at_nodes.ravel() for grid in grids]))
    sizes = np.array([grid.at_nodes.size for grid in grids])
    widths = np.array([grid.at_nodes.shape[1] for grid in grids])
    rows_of, columns_of = zip(*(grid.axes for grid in grids), strict=True)
    rows = _add_lines(graph, X, rows_of, np.cumsum(sizes) - sizes, widths, "row")
    columns = _add_lines(graph, X, columns_of, 0 * sizes, np.ones_like(sizes), "column")

    def along(row: str) -> str:
        left, right = (
            graph.add("Gather", table, graph.add("Add", row, column))
            for column in (columns.first, columns.second)
        )
        return _add_between(graph, left, right, columns.share)

    return _add_between(graph, along(rows.first), along(rows.second), rows.share)


def _add_lines(
    graph: Graph, X: str, axes: Sequence[CurveAxis], starts: Integers, strides: Integers, name: str
) -> GridLines:
    """Add operators that find the two rows (or columns) of each grid around a document's value.

    All grids are concatenated in one array. Row k of a grid begins at start + k * stride, and row 0
    is for missing values.
    """
    places = _add_places(graph, X, axes, name)
    of_grids = list(zip(starts, strides, map(_bins_of, axes), strict=True))
    missing = graph.constant(f"{name}_missing", starts, "int64")
    zero, one = (graph.constant(f"{name}_{end}", end) for end in (0.0, 1.0))
    inside = graph.add("Clip", places.shares, zero, one)

    def line(side: str, begins: Sequence[Integers]) -> str:
        of_bins = graph.constant(f"{name}_{side}", np.concatenate(begins), "int64")
        found = graph.add("Gather", of_bins, places.bins)
        return graph.add("Where", places.are_missing, missing, found)

    return GridLines(
        line("first", [start + stride * bins.left for start, stride, bins in of_grids]),
        line("second", [start + stride * bins.right for start, stride, bins in of_grids]),
        graph.add("Where", places.are_missing, zero, inside),
    )


def _add_between(graph: Graph, left: str, right: str, share: str) -> str:
    return graph.add("Add", left, graph.add("Mul", share, graph.add("Sub", right, left)))


def _in_float32(model: CurveSum) -> CurveSum:
    """Return a model with knots rounded to float32; raise ValueError if this changes its scores.

    With float32 features, a value that equals a knot is rounded like the knot, so it still equals
    it. This matters for categories and where curves jump.
    """
    spreads = [np.ptp(term.at_nodes[1:]) for term in model.terms]
    spreads += [np.ptp(term.at_nodes[1:, 1:]) for term in model.grids]
    spread = float(max(spreads, default=0.0))

    def rounded_curve(term: CurveTerm) -> CurveTerm:
        knots = _rounded_knots(*term.axes, [term.curve], spread)
        return replace(term, curve=term.curve._replace(knots=knots))

    def rounded_grid(term: GridTerm) -> GridTerm:
        first, second = term.axes
        axes = (
            replace(first, knots=_rounded_knots(first, term.columns, spread)),
            replace(second, knots=_rounded_knots(second, term.rows, spread)),
        )
        return replace(term, axes=axes)

    return replace(
        model,
        terms=tuple(map(rounded_curve, model.terms)),
        grids=tuple(map(rounded_grid, model.grids)),
    )


def _rounded_knots(axis: CurveAxis, curves: Sequence[Curve], spread: float) -> Floats:
    with np.errstate(over="ignore"):
        knots = axis.knots.astype(np.float32).astype(np.float64)
    merged = not np.isfinite(knots).all() or np.any(np.diff(knots) <= 0)
    if merged or max(_blur(curve, knots) for curve in curves) > FLOAT32_ACCURACY * spread:
        raise ValueError(
            f"the feature {shown(axis.name)} has knots that float32 cannot hold or distinguish; "
            "export the model in float64."
        )
    return knots


def _blur(curve: Curve, rounded: Floats) -> float:
    """Return the largest change of a curve's value if the feature is rounded to float32.

    The change is 0 if rounding does not change the knots: knots are feature values, so the features
    were float32 already.
    """
    if curve.categorical or np.array_equal(curve.knots, rounded):
        return 0.0
    slopes = np.abs(np.diff(curve.values) / np.diff(curve.knots))
    sizes = np.maximum(np.abs(rounded[:-1]), np.abs(rounded[1:]))
    return float(np.max(slopes * sizes, initial=0.0) * np.finfo(np.float32).eps)


def _add_kernel(model: KernelSum, graph: Graph, X: str) -> str:
    """Add operators for the weighted sum of kernel values, by the formulas of scikit-learn.

    onnxruntime fuses a scalar factor with the matrix product next to it and rounds the factor to
    float32. To prevent this, gamma is multiplied into the landmarks, and another operator separates
    the product from the division by `scale`, which is a scalar if there is one feature.
    """
    terms = model.listed()
    landmarks = np.stack([term.features for term in terms])
    shifted = graph.add("Sub", graph.doubles(X), graph.constant("center", model.center))
    divided = graph.add("Div", shifted, graph.constant("scale", model.scale))
    zero = graph.constant("zero", (0.0 - model.center) / model.scale)
    x = graph.add("Where", graph.add("IsNaN", divided), zero, divided)
    kernels = _kernel_values(model, graph, x, landmarks)
    return graph.add("MatMul", kernels, graph.constant("weights", [t.weight for t in terms]))


def _kernel_values(model: KernelSum, graph: Graph, x: str, landmarks: Floats) -> str:
    def product(rows: str, columns: Floats) -> str:
        return graph.add("MatMul", rows, graph.constant("landmarks", columns.T))

    def squares() -> str:
        axes = graph.constant("axes", [1], "int64")
        return graph.add("ReduceSum", graph.add("Mul", x, x), axes, keepdims=1)

    if model.kernel == "linear":
        return product(x, landmarks)
    if model.kernel == "cosine":
        norms = np.linalg.norm(landmarks, axis=1, keepdims=True)
        length = graph.add("Sqrt", squares())
        is_zero = graph.add("Equal", length, graph.constant("no_length", 0.0))  # 0 / 0 is NaN
        divisor = graph.add("Where", is_zero, graph.constant("one", 1.0), length)
        unit = landmarks / np.where(norms == 0, 1.0, norms)
        return product(graph.add("Div", x, divisor), unit)
    if model.kernel == "rbf":
        inner = product(x, -2.0 * landmarks)
        of_landmarks = graph.constant("squares", np.sum(landmarks**2, axis=1))
        apart = graph.add("Add", graph.add("Add", inner, squares()), of_landmarks)
        # ‖x − z‖² = ‖x‖² − 2xz + ‖z‖², which rounding can make negative.
        apart = graph.add("Max", apart, graph.constant("least", 0.0))
        return graph.add("Exp", graph.add("Mul", apart, graph.constant("gamma", -model.gamma)))
    inner = product(x, model.gamma * landmarks)
    shifted = graph.add("Add", inner, graph.constant("coef0", model.coef0))
    if model.kernel == "sigmoid":
        return graph.add("Tanh", shifted)
    return graph.add("Pow", shifted, graph.constant("degree", model.degree))  # "polynomial"
