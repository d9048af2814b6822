"""GPU training compared with the native kernels and with the scheme of paper 5.

    python benchmarks/gpu.py [--device cuda] [--sets MSLR-WEB30K …] [--share 1.0] [--json file]

Data sets have the sizes of table 1 of paper 5 and are generated; with MARGINRANK_DATA set, MQ2008,
OHSUMED and the MSLR sample of that folder come first. For each: seconds of a product (sweep and
pairs) on the native kernels, on the device and by P-SWX, whose work is quadratic in the length of a
query; then fits to tol 1e-6 by newton on the first two and by tron with P-SWX, with sweeps,
seconds, how far each is above the best objective, by native float64 sums, and pairwise accuracy on
the training data. It runs on any device; on "cpu" figures show that it works and no more. --share
0.01 makes small sets.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from p_swx import SwxMatrix

from marginrank import RankingData, load_letor, make_ranking
from marginrank.fit.inputs import choose_pairs, matrix_on, objective_on
from marginrank.metrics import pairwise_accuracy
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective
from marginrank.operators import matrix_of
from marginrank.solvers import find_solver

REPEATS = 5
TOL = 1e-6
LOSS = LOSSES["squared_hinge"]
PAIR_BYTES = 410  # that a product touches of each document beside X, at five levels


class Shape(NamedTuple):
    """A row of table 1 of paper 5; levels are per query."""

    n_documents: int
    n_features: int
    n_levels: int
    n_queries: int


SHAPES = {
    "MQ2007-list": Shape(743_790, 46, 1268, 1017),
    "MQ2008-list": Shape(540_679, 46, 1831, 471),
    "MSLR-WEB10K": Shape(723_421, 136, 2, 6000),
    "MSLR-WEB30K": Shape(2_270_296, 136, 5, 18_919),
    "MQ2007": Shape(42_158, 46, 2, 1017),
    "MQ2008": Shape(9_630, 46, 3, 471),
}
REAL = {
    "MQ2008 (real)": "MQ2008/S1.txt.gz",
    "OHSUMED": "OHSUMED/S1.txt.gz",
    "MSLR sample": "MSLR-sample/train.txt.gz",
}


def generated(shape: Shape, share: float) -> RankingData:
    """Return data of about this shape, with a part of the queries."""
    n_queries = max(round(share * shape.n_queries), 2)
    size = round(shape.n_documents / shape.n_queries)
    X, y, qid = make_ranking(
        n_queries,
        (max(size // 2, 2), size + size // 2),
        shape.n_features,
        n_levels=shape.n_levels,
        dtype=np.float32,
        random_state=0,
    )
    return RankingData(X, y, qid)


def data_sets(names: list[str], share: float) -> Iterator[tuple[str, RankingData]]:
    """Yield real data, if there are any, and generated ones."""
    folder = os.environ.get("MARGINRANK_DATA")
    for name, file in REAL.items():
        if folder and not names:
            yield name, load_letor(Path(folder, file), dtype="float32")
    for name, shape in SHAPES.items():
        if not names or name in names:
            yield name, generated(shape, share)


def objectives(data: RankingData, device: str) -> dict[str, Objective]:
    """Return the same problem for the native kernels, the device and P-SWX."""
    chosen = choose_pairs(data, LOSS)
    matrices = {
        "native": matrix_of(data),
        "torch": matrix_on(data, device),
        "P-SWX": SwxMatrix.on(data, device),
    }
    return {
        name: objective_on(data, chosen, C=1.0, normalization="pairs", matrix=matrix)
        for name, matrix in matrices.items()
    }


def seconds(work: Callable[[], object]) -> float:
    """Return the median time of something that ends with numbers on the host."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def measure(data: RankingData, device: str) -> dict[str, dict[str, Any]]:
    """Return the figures of a data set, by program."""
    problems = objectives(data, device)
    rng = np.random.default_rng(0)
    w, v = 0.1 * rng.normal(size=(2, data.n_features))
    figures: dict[str, dict[str, Any]] = {}
    weights = {}
    for name, objective in problems.items():
        point = objective.at(w)
        row: dict[str, Any] = {"product s": seconds(lambda p=point: p.hess_vec(v))}
        row["point s"] = seconds(lambda o=objective: o.at(w))
        solver = find_solver("tron" if name == "P-SWX" else "newton", LOSS)
        start = time.perf_counter()
        result = solver(objective, tol=TOL, max_iter=200)
        row |= {"fit s": time.perf_counter() - start, "sweeps": objective.sweeps}
        row["stop"] = result.stop.name
        weights[name], figures[name] = result.w, row
    values = {name: problems["native"].at(found) for name, found in weights.items()}
    best = min(point.value for point in values.values())
    for name, row in figures.items():
        row["above the best"] = values[name].value / best - 1
        row["gap"] = values[name].gap / values[name].value
        scores = data.matrix.dot(weights[name], None, 1)
        row["accuracy"] = pairwise_accuracy(data.y, scores, qid=data.qid)
        row["native / this"] = figures["native"]["product s"] / row["product s"]
    n_bytes = 2 * data.X.nbytes if not hasattr(data.X, "indptr") else 2 * data.X.data.nbytes
    touched = n_bytes + PAIR_BYTES * data.n_documents
    figures["torch"]["GB/s"] = touched / figures["torch"]["product s"] / 1e9
    return figures


def describe(device: str) -> str:
    """Return the function that reports a run."""
    name = platform.processor() or platform.machine()
    if device.startswith("cuda"):
        gpu = torch.cuda.get_device_properties(torch.device(device))
        name = f"{gpu.name}, {gpu.total_memory / 1e9:.0f} GB"
    return f"{device}: {name}; PyTorch {torch.__version__}; {torch.get_num_threads()} threads"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sets", nargs="*", default=[], choices=SHAPES)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--json")
    options = parser.parse_args()
    print(describe(options.device))
    results = {}
    for name, data in data_sets(options.sets, options.share):
        print(f"\n{name}: {data!r}, {data.X.dtype}")
        results[name] = measure(data, options.device)
        for program, row in results[name].items():
            shown = "  ".join(
                f"{what} {value:.4g}" if isinstance(value, float) else f"{what} {value}"
                for what, value in row.items()
            )
            print(f"  {program:7s} {shown}")
    if options.json:
        Path(options.json).write_text(
            json.dumps({"machine": describe(options.device), "sets": results})
        )


if __name__ == "__main__":
    main()
