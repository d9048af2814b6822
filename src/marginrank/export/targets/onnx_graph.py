"""ONNX: a graph from a matrix of features to a vector of scores; it adds in float64."""

from marginrank.export.curve_sum import CurveSum
from marginrank.export.kernel_sum import KernelSum
from marginrank.export.targets._onnx import Graph, write_graph
from marginrank.export.targets._onnx_curves import add_curves, add_grids, in_float32
from marginrank.export.targets._onnx_kernel import add_kernel
from marginrank.export.weighted_sum import WeightedSum


def write_float64(model: WeightedSum) -> dict[str, bytes]:
    """Return a graph in float64."""
    return _write_weights(model, "float64")


def write_float32(model: WeightedSum) -> dict[str, bytes]:
    """Return a graph from float32 to float32; it adds in float64, so that digits are kept."""
    return _write_weights(model, "float32")


def write_float64_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a graph in float64 of a sum of curves."""
    return _write_curves(model, "float64")


def write_float32_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a graph of a sum of curves from float32, with knots in float32, to float32."""
    return _write_curves(in_float32(model), "float32")


def write_float64_kernel(model: KernelSum) -> dict[str, bytes]:
    """Return a graph in float64 of a sum of kernels."""
    return _write_kernel(model, "float64")


def write_float32_kernel(model: KernelSum) -> dict[str, bytes]:
    """Return a graph of a sum of kernels, from float32 to float32."""
    return _write_kernel(model, "float32")


def _write_weights(model: WeightedSum, precision: str) -> dict[str, bytes]:
    return write_graph(model, precision, lambda graph, X: _add_weights(graph, X, model))


def _write_curves(model: CurveSum, precision: str) -> dict[str, bytes]:
    return write_graph(model, precision, lambda graph, X: _add_terms(graph, X, model))


def _write_kernel(model: KernelSum, precision: str) -> dict[str, bytes]:
    return write_graph(model, precision, lambda graph, X: add_kernel(graph, X, model))


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
