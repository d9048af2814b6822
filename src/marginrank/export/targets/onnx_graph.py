"""ONNX: a graph from a matrix of features to a vector of scores."""

import json
from typing import Any

import numpy as np

from marginrank._base.optional import require
from marginrank._base.version import __version__
from marginrank.export.weighted_sum import WeightedSum

OPSET = 17  # of 2022: what has run models since then reads it
IR_VERSION = 8


def write_float64(model: WeightedSum) -> dict[str, bytes]:
    """Return a graph in float64."""
    return {"": _graph(model, "float64")}


def write_float32(model: WeightedSum) -> dict[str, bytes]:
    """Return a graph from float32 to float32; it adds in float64, so that digits are kept."""
    return {"": _graph(model, "float32")}


def _graph(model: WeightedSum, precision: str) -> bytes:
    onnx: Any = require("onnx", "onnx")
    kind = onnx.TensorProto.FLOAT if precision == "float32" else onnx.TensorProto.DOUBLE
    terms = model.listed()  # onnxruntime does not write the products of empty matrices
    constants = {
        "zero": np.zeros((), precision),
        "places": np.array([term.place for term in terms], np.int64),
        "weights": np.array([term.weight for term in terms], np.float64),
        "offset": np.array(model.offset, np.float64),
    }
    graph = onnx.helper.make_graph(
        _nodes(onnx, kind),
        model.name,
        [onnx.helper.make_tensor_value_info("X", kind, ["documents", len(model.features)])],
        [onnx.helper.make_tensor_value_info("scores", kind, ["documents"])],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    made = onnx.helper.make_model(
        graph,
        producer_name="marginrank",
        producer_version=__version__,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.helper.set_model_props(made, {"features": json.dumps(model.features)})
    onnx.checker.check_model(made)
    content: bytes = made.SerializeToString(deterministic=True)
    return content


def _nodes(onnx: Any, kind: int) -> list[Any]:
    """Return the steps: what is missing becomes 0, columns without weights are left out."""
    node = onnx.helper.make_node
    return [
        node("IsNaN", ["X"], ["missing"]),
        node("Where", ["missing", "zero", "X"], ["filled"]),
        node("Gather", ["filled", "places"], ["weighted"], axis=1),
        node("Cast", ["weighted"], ["doubles"], to=onnx.TensorProto.DOUBLE),
        node("MatMul", ["doubles", "weights"], ["sums"]),
        node("Add", ["sums", "offset"], ["shifted"]),
        node("Cast", ["shifted"], ["scores"], to=kind),
    ]
