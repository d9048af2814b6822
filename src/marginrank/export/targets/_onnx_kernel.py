"""Kernels in ONNX: functions of inner products with all landmarks.

onnxruntime joins a scalar factor with the matrix product next to it, and keeps it in float32 there.
So factors of products are part of the landmarks, and a node stands behind the scale, which is a
scalar if there is one feature.
"""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.sums import KernelSum
from marginrank.export.targets._onnx import Graph


def add_kernel(graph: Graph, X: str, model: KernelSum) -> str:
    """Add the sum of kernels with the landmarks, by the formulas of scikit-learn."""
    terms = model.listed()
    landmarks = np.stack([term.features for term in terms])
    shifted = graph.add("Sub", graph.doubles(X), graph.constant("center", model.center))
    divided = graph.add("Div", shifted, graph.constant("scale", model.scale))
    zero = graph.constant("zero", (0.0 - model.center) / model.scale)
    x = graph.add("Where", graph.add("IsNaN", divided), zero, divided)
    kernels = KERNELS[model.kernel](graph, x, landmarks, model)
    return graph.add("MatMul", kernels, graph.constant("weights", [t.weight for t in terms]))


def _linear(graph: Graph, x: str, landmarks: Floats, model: KernelSum) -> str:
    return graph.add("MatMul", x, graph.constant("landmarks", landmarks.T))


def _shifted(graph: Graph, x: str, landmarks: Floats, model: KernelSum) -> str:
    product = _linear(graph, x, model.gamma * landmarks, model)
    return graph.add("Add", product, graph.constant("coef0", model.coef0))


def _polynomial(graph: Graph, x: str, landmarks: Floats, model: KernelSum) -> str:
    shifted = _shifted(graph, x, landmarks, model)
    return graph.add("Pow", shifted, graph.constant("degree", model.degree))


def _sigmoid(graph: Graph, x: str, landmarks: Floats, model: KernelSum) -> str:
    return graph.add("Tanh", _shifted(graph, x, landmarks, model))


def _cosine(graph: Graph, x: str, landmarks: Floats, model: KernelSum) -> str:
    """Divide by norms; a document of zeros stays one."""
    norms = np.linalg.norm(landmarks, axis=1, keepdims=True)
    length = graph.add("Sqrt", _squares(graph, x))
    is_zero = graph.add("Equal", length, graph.constant("no_length", 0.0))
    divisor = graph.add("Where", is_zero, graph.constant("one", 1.0), length)
    unit = landmarks / np.where(norms == 0, 1.0, norms)
    return _linear(graph, graph.add("Div", x, divisor), unit, model)


def _rbf(graph: Graph, x: str, landmarks: Floats, model: KernelSum) -> str:
    """Take ‖x − z‖² as ‖x‖² − 2xz + ‖z‖², which rounding must not make negative."""
    product = _linear(graph, x, -2.0 * landmarks, model)
    squares = graph.constant("squares", np.sum(landmarks**2, axis=1))
    apart = graph.add("Add", graph.add("Add", product, _squares(graph, x)), squares)
    apart = graph.add("Max", apart, graph.constant("least", 0.0))
    return graph.add("Exp", graph.add("Mul", apart, graph.constant("gamma", -model.gamma)))


def _squares(graph: Graph, x: str) -> str:
    axes = graph.constant("axes", [1], "int64")
    return graph.add("ReduceSum", graph.add("Mul", x, x), axes, keepdims=1)


KERNELS = {
    "linear": _linear,
    "poly": _polynomial,
    "polynomial": _polynomial,
    "rbf": _rbf,
    "sigmoid": _sigmoid,
    "cosine": _cosine,
}
