"""Files of ONNX: nodes that are put together one by one, and the model around them."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.optional import require
from marginrank._utils.version import __version__
from marginrank.export.sums import Sum

OPSET = 17  # of 2022: what has run models since then reads it
IR_VERSION = 8
LARGEST_FILE = 2**31 - 2**20  # of bytes: protobuf ends at 2 GiB, and nodes and names need some


class Graph:
    """Nodes and constants; each has a name, which others take as an input."""

    def __init__(self) -> None:
        self._onnx: Any = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: ArrayLike, dtype: str = "float64") -> str:
        """Add an array, and return its name."""
        array = np.asarray(value, dtype)
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def doubles(self, values: str) -> str:
        """Add a change to float64."""
        return self.add("Cast", values, to=self.type_of("float64"))

    def zero_if_missing(self, doubles: str) -> str:
        """Add 0 in the place of NaN."""
        missing = self.add("IsNaN", doubles)
        return self.add("Where", missing, self.constant("zero", 0.0), doubles)

    def type_of(self, precision: str) -> int:
        """Return ONNX's number of a type."""
        kind: int = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(precision))
        return kind


def write_graph(
    model: Sum[Any], precision: str, sums_of: Callable[[Graph, str], str]
) -> dict[str, bytes]:
    """Return the file of a model from features to scores of a precision.

    Parameters
    ----------
    model : Sum
        What is written: its features, its offset and its name.
    precision : {"float64", "float32"}
        That of features and scores.
    sums_of : callable
        Adds nodes from the input to a vector of float64, the scores without the offset.
    """
    graph = Graph()
    sums = sums_of(graph, "X")
    shifted = graph.add("Add", sums, graph.constant("offset", model.offset))
    graph.add("Cast", shifted, output="scores", to=graph.type_of(precision))
    size = sum(constant.ByteSize() for constant in graph.constants)
    if size > LARGEST_FILE:
        raise ValueError(
            f"the model has {size:,} bytes of numbers, and a file of ONNX holds 2 GiB; train a "
            "smaller model."
        )
    return {"": _file(model, graph, graph.type_of(precision))}


def _file(model: Sum[Any], graph: Graph, kind: int) -> bytes:
    onnx: Any = require("onnx", "onnx")
    made = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes,
            model.name,
            [onnx.helper.make_tensor_value_info("X", kind, ["documents", len(model.features)])],
            [onnx.helper.make_tensor_value_info("scores", kind, ["documents"])],
            graph.constants,
        ),
        producer_name="marginrank",
        producer_version=__version__,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.helper.set_model_props(made, {"features": json.dumps(model.features)})
    onnx.checker.check_model(made)
    content: bytes = made.SerializeToString(deterministic=True)
    return content
