"""ONNX: a graph from a matrix of features to a vector of scores; it adds in float64."""

from functools import partial
from typing import Any

from marginrank.export.sums import CurveSum, KernelSum, Sum, WeightedSum
from marginrank.export.targets._onnx import Graph, write_graph
from marginrank.export.targets._onnx_curves import add_curves, add_grids, in_float32
from marginrank.export.targets._onnx_kernel import add_kernel


def _write(precision: str, model: Sum[Any]) -> dict[str, bytes]:
    """Return a graph with features and scores in a precision; knots of curves have it, too."""
    if isinstance(model, KernelSum):
        return write_graph(model, precision, lambda graph, X: add_kernel(graph, X, model))
    if isinstance(model, CurveSum):
        curves = in_float32(model) if precision == "float32" else model
        return write_graph(curves, precision, lambda graph, X: _add_terms(graph, X, curves))
    assert isinstance(model, WeightedSum)
    return write_graph(model, precision, lambda graph, X: _add_weights(graph, X, model))


write_float64 = write_float64_curves = write_float64_kernel = partial(_write, "float64")
write_float32 = write_float32_curves = write_float32_kernel = partial(_write, "float32")


def _add_terms(graph: Graph, X: str, model: CurveSum) -> str:
    """Add the sum of what curves add, and grids if there are any."""
    added = add_curves(graph, X, model.listed())
    if model.grids:
        added = graph.add("Concat", added, add_grids(graph, X, model.grids), axis=1)
    return graph.add("ReduceSum", added, graph.constant("axes", [1], "int64"), keepdims=0)


def _add_weights(graph: Graph, X: str, model: WeightedSum) -> str:
    """Add a product with weights; columns without one are left out."""
    terms = model.listed()  # onnxruntime does not write the products of empty matrices
    places = graph.constant("places", [term.place for term in terms], "int64")
    weighted = graph.zero_if_missing(graph.doubles(graph.add("Gather", X, places, axis=1)))
    return graph.add("MatMul", weighted, graph.constant("weights", [t.weight for t in terms]))
