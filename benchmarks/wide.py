"""As many features as documents, or more: does every fit converge, and at what cost?"""

import argparse
import time
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginrank import RankingData, make_ranking
from marginrank.fit.linear import Parameters, fit_linear
from marginrank.fit.sparse import SparseParameters, fit_sparse
from marginrank.models.fit_report import FitReport

SIZES = (500, 700, 1000, 1024, 1025, 1500, 2000, 3000, 5000, 7000, 10_000, 14_000, 20_000)
DOCUMENTS = (44, 1000, 10_000)
STRENGTHS = (1e-4, 1.0, 1e4)
ENTRIES = 40  # of a row of CSR
LARGEST_DENSE = 20_000_000  # entries, unless --full
LARGEST_JUMP = 3.0
LONGEST = 30.0  # seconds of the processors for a fit, unless --full
LEAST_SECONDS = 0.05  # a fit that takes less has no cost to speak of


class Cost(NamedTuple):
    """Cost of a fit."""

    n_features: int
    seconds: float  # of the processors
    sweeps: float
    report: FitReport


def data_set(n_documents: int, n_features: int, layout: str) -> RankingData:
    """Random features, queries of eleven documents, five levels that depend on all features."""
    density = 1.0 if layout == "dense" else min(ENTRIES / n_features, 1.0)
    X, y, qid = make_ranking(-(-n_documents // 11), 11, n_features, density=density, random_state=0)
    X = X[:n_documents]
    X = sp.csr_array(X) if layout == "csr" else np.asarray(X)
    return RankingData(X, y[:n_documents], qid[:n_documents])


def measure(data: RankingData, fit: Any, parameters: Any, longest: float) -> Cost:
    """Fit once; a fit that takes too long ends as with Ctrl-C."""
    start = time.process_time()

    def check(_: object) -> None:
        if time.process_time() - start > longest:
            raise KeyboardInterrupt

    report = fit(data, parameters, callback=check).report
    seconds = time.process_time() - start
    sweeps = report.history[-1].sweeps if report.history else 0.0
    return Cost(data.n_features, seconds, sweeps, report)


def line(name: str, cost: Cost, jump: float | None = None) -> str:
    """Return a row of the table."""
    report = cost.report
    flag = "" if report.stop_reason.converged else "   NOT CONVERGED"
    ratio = " " * 7 if jump is None else f"{jump:6.2f} x"
    return (
        f"{name:36s} {cost.n_features:8d} {report.n_iter:5d} {cost.sweeps:9.0f} "
        f"{cost.seconds:8.2f} s {ratio}  {report.stop_reason.name.lower()}{flag}"
    )


def grid(sizes: tuple[int, ...], full: bool) -> tuple[float, int]:
    """Print the table of sizes; return the worst jump and the number of failures."""
    worst, failures = 0.0, 0
    for n_documents, layout, C in product(DOCUMENTS, ("dense", "csr"), STRENGTHS):
        name = f"{n_documents:6d} documents {layout:5s} C {C:7g}"
        costs: list[Cost] = []
        for n_features in sizes:
            if layout == "dense" and n_documents * n_features > LARGEST_DENSE and not full:
                continue
            data = data_set(n_documents, n_features, layout)
            costs.append(measure(data, fit_linear, Parameters(C=C), np.inf if full else LONGEST))
            jump = None
            if len(costs) > 1:
                before, after = (max(cost.seconds, LEAST_SECONDS) for cost in costs[-2:])
                jump = after / before
                worst = max(worst, jump)
            failures += not costs[-1].report.stop_reason.converged
            print(line(name, costs[-1], jump), flush=True)
    return worst, failures


def scaled_features(n_features: int) -> RankingData:
    """44 documents with features that differ in scale by six orders of magnitude."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(44, n_features)) * 10 ** rng.uniform(-3, 3, n_features)
    return RankingData(X, rng.integers(0, 4, size=44), np.arange(44) // 11)


def relatives(full: bool) -> int:
    """Print problems of the same kind; return the number of failures."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3000)), rng.integers(0, 3, size=60)
    separable = RankingData(X, y, np.repeat(np.arange(6), 10))
    many = (200_000, 1_000_000) if full else (50_000, 250_000)
    problems = [
        *(
            ("scales of 10^±3, C 24.8", scaled_features(n), fit_linear, Parameters(C=24.8))
            for n in (1024, 1025)
        ),
        (
            "3,000 documents, Huber, C 1e4",
            data_set(3000, 3000, "csr"),
            fit_linear,
            Parameters(C=1e4, loss="huber"),
        ),
        (f"{many[0]:,} documents, C 1", data_set(*many, "csr"), fit_linear, Parameters()),
        (
            "separable data in a ball",
            separable,
            fit_sparse,
            SparseParameters(radius=5.0, scale=None),
        ),
        (
            "many weights that are not zero",
            data_set(5000, 4000, "csr"),
            fit_sparse,
            SparseParameters(C=100.0, l1_ratio=0.01, scale=None),
        ),
    ]
    failures = 0
    for name, data, fit, parameters in problems:
        cost = measure(data, fit, parameters, np.inf if full else LONGEST)
        failures += not cost.report.stop_reason.converged
        print(line(name, cost), flush=True)
    return failures


def main() -> None:
    """Print the tables and the worst jump."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--full", action="store_true", help="all sizes, dense ones of gigabytes too"
    )
    parser.add_argument("--quick", action="store_true", help="four sizes only")
    arguments = parser.parse_args()
    print(f"{'problem':36s} {'features':>8s} iter    sweeps  processor  ratio   stop")
    failures = relatives(arguments.full)
    worst, more = grid(SIZES[1:5] if arguments.quick else SIZES, arguments.full)
    print(f"worst jump {worst:.2f} x (at most {LARGEST_JUMP:g} x); {failures + more} not converged")


if __name__ == "__main__":
    main()
