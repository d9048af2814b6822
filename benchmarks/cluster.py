"""A fit on worker processes of this machine against one in one process: docs/how_to/cluster.md.

    python benchmarks/cluster.py [--documents 2000000] [--workers 2] [--folder FOLDER]

Both read the same store, of float32 features, 136 by default, and come to the same optimum. The
workers have one thread each, the single process as many threads as there are workers. Seconds are
given for loading and for the fit, the fastest of a few runs; "round trips" count how often the
client waits for results of tasks.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, LocalCluster

from marginrank import RankingData, RankSVM, make_ranking
from marginrank.dask import executor
from marginrank.dask.clusters import fetch
from marginrank.dask.fit import fit_on_dask
from marginrank.dask.loading import load_parts
from marginrank.fit.linear import Parameters
from marginrank.models.fit_report import report_of

QUERY = 100  # documents
BATCH = 1000  # queries that are made at a time
REPEATS = 4


def write_store(path: Path, n_documents: int, n_features: int) -> None:
    """Write a store of queries of a hundred documents."""
    X = np.empty((n_documents, n_features), dtype=np.float32)
    y = np.empty(n_documents)
    for first in range(0, n_documents, QUERY * BATCH):
        last = min(first + QUERY * BATCH, n_documents)
        some, labels, _ = make_ranking(
            (last - first) // QUERY, QUERY, n_features, random_state=first
        )
        X[first:last], y[first:last] = some, labels
    RankingData(X, y, np.repeat(np.arange(n_documents // QUERY), QUERY)).save(path)


class RoundTrips:
    """Counts waits for workers."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0

    def fetch(self, client: Client, futures: Any) -> Any:
        """Wait for the results of tasks."""
        start = time.perf_counter()
        found = fetch(client, futures)
        self.count += 1
        self.seconds += time.perf_counter() - start
        return found


class Run(NamedTuple):
    """Time of a fit, and its report."""

    fit_seconds: float
    load_seconds: float
    text: str


def in_one_process(path: Path, parameters: Parameters) -> Run:
    """Fit in this process."""
    start = time.perf_counter()
    data = RankingData.open(path, verify=False)
    data = data.with_features(np.array(data.X))
    loaded = time.perf_counter()
    model = RankSVM(C=parameters.C, tol=parameters.tol, n_jobs=parameters.n_jobs).fit(data)
    return Run(
        time.perf_counter() - loaded,
        loaded - start,
        f"objective {model.objective_:.10g}, {model.stop_reason_.name}, "
        f"{model.history_[-1].sweeps:.1f} sweeps",
    )


def on_workers(client: Client, path: Path, parameters: Parameters) -> Run:
    """Fit on workers."""
    trips = RoundTrips()
    executor.fetch = trips.fetch  # type: ignore[attr-defined]
    start = time.perf_counter()
    parts = load_parts(client, [path])
    loaded = time.perf_counter()
    report = report_of(fit_on_dask(client, parts, parameters))
    return Run(
        time.perf_counter() - loaded,
        loaded - start,
        f"objective {report.objective:.10g}, {report.stop_reason.name}, "
        f"{report.history[-1].sweeps:.1f} sweeps, {len(parts.facts)} parts, {trips.count} round "
        f"trips of {1e3 * trips.seconds / trips.count:.1f} ms",
    )


def fastest(who: str, fit: Callable[[], Run]) -> float:
    """Print the fastest of a few fits, and return its seconds."""
    run = min(fit() for _ in range(REPEATS))
    print(f"{who}: load {run.load_seconds:.2f} s, fit {run.fit_seconds:.2f} s, {run.text}")
    return run.fit_seconds


def warm_up() -> None:
    """Import what tasks need."""
    import marginrank.dask.fit  # noqa: F401


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keep the store there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        path = (given.folder or Path(temporary)) / f"store-{given.documents}x{given.features}"
        if not path.exists():
            write_store(path, given.documents, given.features)
        parameters = Parameters(C=1e-4, n_jobs=given.workers)
        one = f"one process, {given.workers} threads"
        alone = fastest(one, lambda: in_one_process(path, parameters))
        options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
        cluster = LocalCluster(n_workers=given.workers, **options)
        with cluster, Client(cluster) as client:
            client.run(warm_up)
            many = f"{given.workers} workers of a thread"
            together = fastest(many, lambda: on_workers(client, path, parameters))
        print(f"the workers took {together / alone:.2f} times as long")


if __name__ == "__main__":
    main()
