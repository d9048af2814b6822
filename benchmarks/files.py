"""Reading text, the command line and the metrics, measured side by side in one run.

    python benchmarks/files.py [--json results.json] [--quick]

Files are generated in a temporary folder. --quick uses a tenth of the data, to see that the script
works.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from _memory import peak_bytes, reset_peak
from sklearn.datasets import load_svmlight_file

from marginrank import RankingData, dump_letor, load_letor, make_ranking, metrics

Rows = list[tuple[str, str]]


def seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the least seconds of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def write_text(path: Path, n_queries: int, docs_per_query: int, n_features: int) -> None:
    """Write data with six decimals, as LETOR files have."""
    X, y, qid = make_ranking(
        n_queries, docs_per_query, n_features, correlation=0.5, dtype=np.float32, random_state=0
    )
    X = np.round(1 / (1 + np.exp(-X)), 6).astype(np.float32)
    dump_letor(RankingData(X, y, qid), path)


def parsing(folder: Path, scale: float) -> Rows:
    """Parsing against scikit-learn's reader, about 30 MB of 136 features."""
    path = folder / "wide.txt"
    write_text(path, round(180 * scale), 100, 136)
    size = path.stat().st_size
    theirs = seconds(lambda: load_svmlight_file(str(path), query_id=True, dtype=np.float32), 1)
    one, two = (seconds(lambda n=n: load_letor(path, n_jobs=n), 7) for n in (1, 2))
    same = np.array_equal(
        load_svmlight_file(str(path), query_id=True, dtype=np.float32)[0].toarray(),
        load_letor(path).X,
    )
    return [
        ("file [MB]", f"{size / 1e6:.0f}"),
        ("scikit-learn / two cores: time (20 or more)", f"{theirs / two:.0f}"),
        ("one core / two cores: time", f"{one / two:.2f}"),
        ("two cores [MB/s]", f"{size / two / 1e6:.0f}"),
        ("same numbers as scikit-learn", str(same)),
    ]


def memory(folder: Path, scale: float) -> Rows:
    """Peak memory of reading, in a process of its own."""
    path = folder / "memory.txt"
    write_text(path, round(2000 * scale), 100, 136)
    command = [sys.executable, __file__, "--measure-memory", str(path)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    growth, result = map(float, out.split())
    return [("peak memory of reading / result (at most 1.5)", f"{growth / result:.2f}")]


def measure_memory(path: str) -> None:
    """Print by how many bytes reading raises the peak, and the size of the result."""
    reset_peak()
    before = peak_bytes()
    data = load_letor(path)
    print(peak_bytes() - before, data.X.nbytes)


def command_line(folder: Path, scale: float) -> Rows:
    """The command `marginrank train` on 400,000 × 46, imports included."""
    path = folder / "narrow.txt"
    write_text(path, round(4000 * scale), 100, 46)
    model = folder / "model.json"
    command = [sys.executable, "-m", "marginrank", "train", str(path), "--model", str(model)]
    run = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    out = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True).stdout
    phases = {name: round(s, 2) for name, s in json.loads(out)["seconds"].items()}
    numpy = seconds(lambda: subprocess.run([sys.executable, "-c", "import numpy"], check=True))
    help_command = [sys.executable, "-m", "marginrank", "--help"]
    usage = seconds(lambda: subprocess.run(help_command, check=True, capture_output=True))
    return [
        ("file [MB]", f"{path.stat().st_size / 1e6:.0f}"),
        ("marginrank train [s] (at most 1.55 for 185 MB)", f"{run:.2f}"),
        ("phases [s]", ", ".join(f"{name} {s}" for name, s in phases.items())),
        ("marginrank --help / import numpy: time (at most 3)", f"{usage / numpy:.2f}"),
    ]


def all_metrics(_: Path, scale: float) -> Rows:
    """All metrics on a million documents in 10,000 queries."""
    n_queries = round(10_000 * scale)
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(n_queries), 100)
    y = rng.integers(0, 5, qid.size).astype(float)
    scores = rng.normal(size=qid.size) + y
    functions = [
        metrics.ndcg,
        metrics.letor_mean_ndcg,
        metrics.dcg,
        metrics.average_precision,
        metrics.reciprocal_rank,
        partial(metrics.precision, k=10),
        partial(metrics.recall, k=10),
        metrics.err,
        metrics.pairwise_accuracy,
        metrics.kendall_tau,
        metrics.auc,
    ]
    total = sum(seconds(lambda f=f: f(y, scores, qid=qid)) for f in functions)
    return [(f"{len(functions)} metrics, {qid.size:,} documents [s]", f"{total:.2f}")]


def main() -> None:
    """Run all parts, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--measure-memory", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure_memory:
        measure_memory(arguments.measure_memory)
        return
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in (parsing, memory, command_line, all_metrics):
            print(f"\n{part.__doc__.splitlines()[0]}")
            for name, value in part(Path(folder), 0.1 if arguments.quick else 1.0):
                print(f"  {name:54s} {value}")
                figures[f"{part.__name__}: {name}"] = value
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
