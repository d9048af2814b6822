"""Construction of ONNX files: operators are added to a graph, and the graph becomes a model."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.optional import require
from marginrank._utils.version import __version__
from marginrank.export.sums import Sum

OPSET = 17  # opset version of 2022, which later runtimes support
IR_VERSION = 8
# Most bytes of constants: protobuf's limit of 2 GiB per file, minus space for nodes and names.
LARGEST_FILE = 2**31 - 2**20


class Graph:
    """Builder of an ONNX graph, to which constants and operators are added."""

    def __init__(self) -> None:
        self._onnx: Any = require("onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: ArrayLike, dtype: str = "float64") -> str:
        """Add a constant array to the graph and return its name."""
        tensor = self._onnx.numpy_helper.from_array(np.asarray(value, dtype), name)
        self.constants.append(tensor)
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operator to the graph and return the name of its output."""
        output = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def doubles(self, values: str) -> str:
        return self.add("Cast", values, to=self.type_of("float64"))

    def type_of(self, precision: str) -> int:
        """Return ONNX's code for a dtype, such as 11 for "float64"."""
        kind: int = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(precision))
        return kind


def write_graph(
    model: Sum[Any], precision: str, sums_of: Callable[[Graph, str], str]
) -> dict[str, bytes]:
    """Return an ONNX file that computes the scores of a model.

    `precision` is the dtype of features and scores. ``sums_of(graph, input_name)`` must add
    operators to the graph that compute the scores without the offset, in float64, and return the
    name of their output.
    """
    graph = Graph()
    sums = sums_of(graph, "X")
    shifted = graph.add("Add", sums, graph.constant("offset", model.offset))
    graph.add("Cast", shifted, output="scores", to=graph.type_of(precision))
    size = sum(constant.ByteSize() for constant in graph.constants)
    if size > LARGEST_FILE:
        raise ValueError(
            f"the model has {size:,} bytes of numbers, but an ONNX file holds at most 2 GiB; train "
            "a smaller model."
        )
    onnx: Any = require("onnx", "onnx")
    kind = graph.type_of(precision)
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
    return {"": made.SerializeToString(deterministic=True)}
