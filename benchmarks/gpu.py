"""GPU training compared with the native kernels and with the scheme of paper 5.

    python benchmarks/gpu.py [--device cuda] [--sets MSLR-WEB30K …] [--share 1.0] [--json file]

Data sets have the sizes of table 1 of paper 5 and are generated; with MARGINRANK_DATA set, MQ2008,
OHSUMED and the MSLR sample of that folder come first. Features are scaled to [0, 1]. For each set
the same solver, tron, minimizes the same objective with the paper's C = 1 on the native kernels, on
the device, and by P-SWX, whose work is quadratic in the length of a query and whose products are in
single precision. Printed are

* seconds of a point and of a product, and operations launched on the device for each;
* table 2: seconds until the paper's rule, ‖∇F(w)‖ ≤ 1e-5 ‖∇F(0)‖, stops, and the speedup;
* figure 1: seconds until F is within 1e-1, 1e-2, … of the optimum (relative), which the native
  kernels find with tol 1e-9; a dash if not reached;
* table 3: pairwise accuracy on the training data.

It runs on any device. On "cpu", device times measure PyTorch on the processor, not a GPU: they are
marked so. --share 0.01 makes small sets.
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
import scipy.sparse as sp
import torch
from launches import LaunchCount
from p_swx import SwxMatrix

from marginrank import Iteration, RankingData, load_letor, make_ranking
from marginrank.fit.inputs import choose_pairs, matrix_on, objective_on
from marginrank.metrics import pairwise_accuracy
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective
from marginrank.operators import matrix_of
from marginrank.solvers import find_solver
from marginrank.solvers.result import SolverResult

REPEATS = 5
EPSILON = 1e-5  # of the paper's stopping rule
TOL = 1e-12  # of tron, so that the paper's rule stops it first
OPTIMAL = 1e-9
DISTANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the curve
MAX_ITER = 200
LIMIT = 600.0  # seconds of a run
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
        if folder and (not names or name in names):
            yield name, load_letor(Path(folder, file), dtype="float32")
    for name, shape in SHAPES.items():
        if not names or name in names:
            yield name, generated(shape, share)


def scaled(data: RankingData) -> RankingData:
    """Return the data with features in [0, 1]."""
    X = np.asarray(data.X.todense() if sp.issparse(data.X) else data.X, dtype=np.float32)
    least = X.min(axis=0)
    width = X.max(axis=0) - least
    return data.with_features((X - least) / np.where(width > 0, width, 1))


def objectives(data: RankingData, device: str) -> dict[str, Objective]:
    """Return the same problem for the native kernels, the device and P-SWX."""
    chosen = choose_pairs(data, LOSS)
    matrices = {
        "native": matrix_of(data),
        "torch": matrix_on(data, device),
        "P-SWX": SwxMatrix.on(data, device),
    }
    return {
        name: objective_on(data, chosen, C=1.0, matrix=matrix) for name, matrix in matrices.items()
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
    optimum = find_solver("newton", LOSS)(problems["native"], tol=OPTIMAL).objective
    slope = float(np.linalg.norm(problems["native"].at_zero().gradient))
    figures: dict[str, dict[str, Any]] = {}
    for name, objective in problems.items():
        point = objective.at(w)
        row: dict[str, Any] = {"product s": seconds(lambda p=point: p.hess_vec(v))}
        row["point s"] = seconds(lambda o=objective: o.at(w))
        if name != "native":
            row["point operations"] = launches(lambda o=objective: o.at(w))
            row["product operations"] = launches(lambda p=point: p.hess_vec(v))
        stop = stopping(slope)
        result = find_solver("tron", LOSS)(objective, tol=TOL, max_iter=MAX_ITER, callback=stop)
        row |= run_of(result, slope, optimum)
        row["above the optimum"] = problems["native"].at(result.w).value / optimum - 1
        scores = data.matrix.dot(result.w, None, 1)
        row["accuracy"] = pairwise_accuracy(data.y, scores, qid=data.qid)
        figures[name] = row
    for row in figures.values():
        row["native / this"] = figures["native"]["rule s"] / row["rule s"]
    touched = 2 * data.X.nbytes + PAIR_BYTES * data.n_documents
    figures["torch"]["GB/s"] = touched / figures["torch"]["product s"] / 1e9
    return figures


def stopping(slope: float) -> Callable[[Iteration], None]:
    """Return a callback that stops a run by the paper's rule, or after the time limit."""

    def stop(line: Iteration) -> None:
        if line.gradient_norm <= EPSILON * slope or line.seconds > LIMIT:
            raise KeyboardInterrupt

    return stop


def run_of(result: SolverResult, slope: float, optimum: float) -> dict[str, Any]:
    """Return the times of table 2 and figure 1 from the history of a run."""
    lines = result.history
    stopped = [line for line in lines if line.gradient_norm <= EPSILON * slope]
    curve = {}
    for distance in DISTANCES:
        near = [line.seconds for line in lines if line.objective <= (1 + distance) * optimum]
        curve[f"{distance:g}"] = near[0] if near else None
    return {
        "rule s": (stopped or lines[-1:])[0].seconds,
        "reached the rule": bool(stopped),
        "iterations": len(lines),
        "products": sum(line.inner_iterations for line in lines),
        "curve": curve,
    }


def launches(work: Callable[[], object]) -> int:
    """Return the number of operations that PyTorch and Triton launch; copies count as well."""
    with LaunchCount() as count:
        work()
    return len(count.names)


def describe(device: str) -> str:
    """Return the function that reports a run."""
    name = platform.processor() or platform.machine()
    if device.startswith("cuda"):
        gpu = torch.cuda.get_device_properties(torch.device(device))
        name = f"{gpu.name}, {gpu.total_memory / 1e9:.0f} GB"
    return f"{device}: {name}; PyTorch {torch.__version__}; {torch.get_num_threads()} threads"


def show(figures: dict[str, dict[str, Any]], *, is_gpu: bool) -> None:
    """Print the figures of a data set."""
    for program, row in figures.items():
        shown = "  ".join(
            f"{what} {value:.4g}" if isinstance(value, float) else f"{what} {value}"
            for what, value in row.items()
            if what != "curve"
        )
        on_processor = "" if is_gpu or program == "native" else " (PyTorch on the processor)"
        curve = "  ".join(
            f"{distance}: {'–' if at is None else f'{at:.3g}'}"
            for distance, at in row["curve"].items()
        )
        print(f"  {program}{on_processor}\n    {shown}\n    seconds to a distance of {curve}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sets", nargs="*", default=[], choices=[*REAL, *SHAPES])
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--json")
    options = parser.parse_args()
    print(describe(options.device))
    results = {}
    for name, data in data_sets(options.sets, options.share):
        print(f"\n{name}: {data!r}")
        results[name] = measure(scaled(data), options.device)
        show(results[name], is_gpu=options.device.startswith("cuda"))
    if options.json:
        Path(options.json).write_text(
            json.dumps({"machine": describe(options.device), "sets": results})
        )


if __name__ == "__main__":
    main()
