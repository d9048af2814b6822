"""Fits and reading on two cores, one of which another process keeps busy.

    python benchmarks/neighbor.py [--json results.json] [--quick]

The process is held to two cores. Its neighbor, an endless loop, is either pinned to one of them or
left to the scheduler. Runs with one and with two threads alternate, because a shared machine
drifts; figures are medians. --quick uses a tenth of the data, to see that the script works; its
ratios mean little.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from files import write_text

from core import make
from marginrank import RankSVM, load_letor

LIMIT = 1.25  # two threads against one, beside the neighbor
REPEATS = 9
ENDLESS = "while True: pass"
Rows = list[tuple[str, str, float | None]]


@contextmanager
def neighbor(cores: set[int]) -> Iterator[None]:
    """Keep a process busy that may run on the given cores."""
    process = subprocess.Popen([sys.executable, "-c", ENDLESS])
    try:
        os.sched_setaffinity(process.pid, cores)
        time.sleep(0.2)
        yield
    finally:
        process.kill()
        process.wait()


def clocks() -> np.ndarray:
    """Return wall time and the processor time of all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def measure(work: Callable[[int], object]) -> tuple[np.ndarray, np.ndarray]:
    """Return the median (seconds, processor seconds) of work(threads) for one and two threads."""
    times = []
    for _ in range(REPEATS + 1):
        for threads in (1, 2):
            start = clocks()
            work(threads)
            times.append(clocks() - start)
    one, two = np.median(np.reshape(times, (-1, 2, 2))[1:], axis=0)  # the first run warms up
    return one, two


def compare(name: str, work: Callable[[int], object], cores: list[int]) -> Rows:
    """Measure one kind of work alone and beside a neighbor."""
    places = {
        "alone": nullcontext(),
        "pinned neighbor": neighbor({cores[-1]}),
        "free neighbor": neighbor(set(cores)),
    }
    rows: Rows = []
    for place, company in places.items():
        with company:
            one, two = measure(work)
        limit = None if place == "alone" else LIMIT
        rows += [
            (f"{name}, {place}: one thread [s]", f"{one[0]:.3f}", None),
            (f"{name}, {place}: two threads [s]", f"{two[0]:.3f}", None),
            (f"{name}, {place}: two threads / one", f"{two[0] / one[0]:.2f}", limit),
            (f"{name}, {place}: their processor time", f"{two[1] / one[1]:.2f}", None),
        ]
    return rows


def fitting(scale: float, cores: list[int]) -> Rows:
    """Fit 240,000 × 136, dense, float32."""
    X, y, qid = make(round(240_000 * scale))
    return compare("fit", lambda threads: RankSVM(n_jobs=threads).fit(X, y, qid=qid), cores)


def reading(scale: float, cores: list[int]) -> Rows:
    """Read about 100 MB of LETOR text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        write_text(path, round(600 * scale), 100, 136)
        print(f"file [MB]: {path.stat().st_size / 1e6:.0f}", flush=True)
        return compare("reading", lambda threads: load_letor(path, n_jobs=threads), cores)


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description="Fits and reading beside a busy process.")
    parser.add_argument("--json", help="also write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    args = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("This needs two cores; the process may use only one.")
    os.sched_setaffinity(0, cores)
    results = {}
    for part in (fitting, reading):
        for name, value, limit in part(0.1 if args.quick else 1.0, cores):
            note = "" if limit is None else f"   (at most {limit})"
            print(f"{name:50} {value:>8}{note}", flush=True)
            results[name] = float(value)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
