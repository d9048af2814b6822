"""One query of a hundred documents at a time: microseconds, beside NumPy and onnxruntime.

    python benchmarks/serving.py [--json results.json] [--quick]

Every row ranks the same documents. onnxruntime and onnx are left out where they are not installed.
--quick makes fewer repetitions, to see that the script works.
"""

import argparse
import json
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from marginrank import LinearScorer, RankSVM
from marginrank.models import LinearModel

DOCUMENTS, FEATURES, BATCH = 100, 136, 100_000
NAMES = [f"f{k}" for k in range(FEATURES)]

Ways = dict[str, Callable[[], Any]]


def microseconds(function: Callable[[], Any], repeats: int) -> float:
    """Return the least mean time of a call over some runs."""
    function()
    number = max(1, int(0.02 / max(timeit.timeit(function, number=3) / 3, 1e-7)))
    return 1e6 * min(timeit.repeat(function, number=number, repeat=repeats)) / number


def model() -> LinearModel:
    """Return a model of MSLR's size."""
    coef = np.random.default_rng(0).normal(size=FEATURES)
    return LinearModel(coef, {}, feature_names=NAMES)


def documents(n: int) -> np.ndarray:
    """Return features in float32, as most services have them."""
    return np.random.default_rng(1).normal(size=(n, FEATURES)).astype(np.float32)


def arrow(X: np.ndarray) -> pa.RecordBatch:
    """Return the same features by column."""
    return pa.RecordBatch.from_arrays([pa.array(column.copy()) for column in X.T], names=NAMES)


def one_query(X: np.ndarray) -> Ways:
    """Return ways to rank the documents of a query."""
    record = model()
    scorer, w = LinearScorer(record), record.coef
    estimator = RankSVM.from_linear_model(LinearModel(w, {}))
    columns, batch = {name: X[:, k].copy() for k, name in enumerate(NAMES)}, arrow(X)
    return {
        "NumPy: X @ w, argsort": lambda: np.argsort(-(X @ w), kind="stable"),
        "LinearScorer.rank_one, array": lambda: scorer.rank_one(X),
        "LinearScorer.top_k of 10, array": lambda: scorer.top_k(X, 10),
        "LinearScorer.rank_one, dict of columns": lambda: scorer.rank_one(columns),
        "LinearScorer.rank_one, Arrow batch": lambda: scorer.rank_one(batch),
        "RankSVM.rank, array": lambda: estimator.rank(X),
        **onnx_way(w, X),
    }


def large_batch(X: np.ndarray) -> Ways:
    """Return ways to score many documents."""
    scorer, batch = LinearScorer(model()), arrow(X)

    def copied() -> np.ndarray:
        return scorer.scores(np.column_stack([column.to_numpy() for column in batch.columns]))

    return {
        "LinearScorer.scores, array": lambda: scorer.scores(X),
        "LinearScorer.scores, Arrow batch where it is": lambda: scorer.scores(batch),
        "LinearScorer.scores, Arrow batch copied into a table": copied,
    }


def onnx_way(w: np.ndarray, X: np.ndarray) -> Ways:
    """Return the same model in onnxruntime, with one thread, if it is installed."""
    try:
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper
    except ImportError:
        return {}
    weights = numpy_helper.from_array(w.astype(np.float32)[:, None], "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["X", "w"], ["scores"])],
        "linear",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, w.size])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 1])],
        [weights],
    )
    opset = [helper.make_opsetid("", 13)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)

    def run() -> np.ndarray:
        return np.argsort(-session.run(None, {"X": X})[0].ravel(), kind="stable")

    return {"onnxruntime (float32), argsort": run}


def main() -> None:
    """Print a table for each section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    repeats = 2 if arguments.quick else 15
    batch = BATCH // 10 if arguments.quick else BATCH
    sections = {
        f"one query of {DOCUMENTS} documents × {FEATURES} features [µs]": one_query(
            documents(DOCUMENTS)
        ),
        f"{batch:,} documents × {FEATURES} features [µs]": large_batch(documents(batch)),
    }
    found = {}
    for title, ways in sections.items():
        print(f"\n{title}")
        found[title] = {name: microseconds(way, repeats) for name, way in ways.items()}
        for name, value in found[title].items():
            print(f"  {name:50} {value:10.1f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
