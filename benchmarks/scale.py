"""Fits to a store that is larger than the memory they may have.

    python benchmarks/scale.py [--gb 6] [--limit 2GB] [--folder /tmp] [--json results.json]

A store of --gb gigabytes of float32 (136 features, queries of about 100 documents) is made in
--folder. Every run is a process of its own, that begins with nothing of X in the page cache:

    idle       the reader alone, without a fit
    memory     all in memory
    streamed   X on disk, with memory_limit = --limit, which RLIMIT_DATA enforces
    threads    the same with one thread; the bits must be the same
    roomier    the same with a limit half as large again; the bits must be the same
    pinned     X on disk, with memory for all of it

Anonymous memory is watched from inside, the page cache of X from outside. Figures are from one run
each, as they take long; this script says which limits they keep. Memory is touched once before
they begin, as a virtual machine may have to get it from its host, at half a gigabyte per second.
"""

import argparse
import ctypes
import json
import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _memory import MemoryWatch

from marginrank import RankingData, RankSVM
from marginrank._utils.memory import parse_bytes, private_memory, reserved_memory
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.data.stored_data import open_stored
from marginrank.fit import inputs
from marginrank.operators.parts.streaming import make_plan

N_FEATURES = 136
CHUNK = 1 << 18  # documents made at a time
TOL = 1e-6
LIMITS = {
    "anonymous memory / limit": 1.0,
    "X in the page cache, MB": 256.0,
    "bytes read / (sweeps x unpinned + 1 sweep)": 1.05,
    "seconds / max(reading idle, in memory)": 1.5,
    "pinned seconds / in memory": 1.15,
    "|objective - in memory| / (tol x objective)": 1.0,
}


def make_store(folder: Path, n_bytes: float) -> None:
    """Write a store of random documents whose labels a linear model explains in part."""
    n = round(n_bytes / (4 * N_FEATURES))
    rng = np.random.default_rng(0)
    sizes = rng.integers(50, 151, n // 50)
    sizes = sizes[: np.searchsorted(np.cumsum(sizes), n)]
    n = int(sizes.sum())
    w = rng.normal(size=N_FEATURES).astype(np.float32)
    y = np.empty(n)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        file = Path(temporary, "X.npy")
        X = np.lib.format.open_memmap(file, "w+", np.float32, (n, N_FEATURES))
        for first in range(0, n, CHUNK):
            rows = rng.standard_normal((min(CHUNK, n - first), N_FEATURES), dtype=np.float32)
            X[first : first + CHUNK] = rows
            signal = rows @ w / np.linalg.norm(w) + rng.normal(size=len(rows))
            y[first : first + CHUNK] = np.digitize(signal, [0.0, 1.0, 1.7, 2.4])
        RankingData(X, y, group=sizes).save(folder)


def touch_memory(n_bytes: int) -> None:
    """Touch memory once, so that the system has it ready."""
    np.empty(n_bytes, dtype=np.uint8)[:: mmap.PAGESIZE] = 1


def drop_cache(store: Path) -> None:
    """Write out and forget what the system has of the store."""
    for path in store.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_bytes(path: Path) -> int:
    """Return how much of a file is in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        address = np.frombuffer(view, dtype=np.uint8).ctypes.data
        pages = (ctypes.c_ubyte * -(-len(view) // mmap.PAGESIZE))()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(view)), pages):
            raise OSError(ctypes.get_errno(), "mincore")
        return int(np.count_nonzero(np.frombuffer(pages, dtype=np.uint8) & 1)) * mmap.PAGESIZE


def run_idle(store: str) -> dict:
    """Read all blocks without a fit."""
    data = open_stored(store, verify=False)
    plan = make_plan(data.queries.offsets, data.X.memory_before)
    with FeatureReader(data.X, plan.block_rows, pinned_bytes=0, threads=2) as reader:
        speeds = []
        for _ in range(2):  # the first sweep compares checksums as well
            start = time.perf_counter()
            for _ in reader.sweep(range(plan.block_rows.size - 1)):
                pass
            speeds.append(data.X.n_bytes(0, data.n_documents) / (time.perf_counter() - start))
    return {"bytes_per_second": speeds[-1], "with_checksums": speeds[0]}


def run_fit(store: str, limit: int | None, threads: int, hard: bool) -> dict:
    """Fit, and return times, memory and the weights."""
    matrices = []

    class Watched(inputs.StreamedMatrix):
        def __init__(self, *args, **options) -> None:
            super().__init__(*args, **options)
            matrices.append(self)

        def close(self) -> None:
            if self._reader is not None:
                self.seen = self._reader.bytes_read, self._reader.pinned.unpinned_bytes
            super().close()

    inputs.StreamedMatrix = Watched
    if hard:
        # The system counts addresses that are reserved, memory_limit counts memory that is used.
        allowed = limit + reserved_memory() - private_memory()
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    watch = MemoryWatch()
    watch.start()
    model = RankSVM(tol=TOL, n_jobs=threads, C=1e-3)
    start = time.perf_counter()
    model.fit(store, memory_limit=limit)
    seconds = time.perf_counter() - start
    read, unpinned = matrices[0].seen if matrices else (0, 0)
    return {
        "seconds": seconds,
        "objective": model.objective_,
        "gap": model.gap_,
        "stop": model.stop_reason_.name,
        "sweeps": model.history_[-1].sweeps,
        "anonymous": watch.peak,
        "bytes_read": read,
        "unpinned": unpinned,
        "weights": hex(hash(model.coef_.tobytes())),
    }


def in_child(store: Path, *arguments: str) -> dict:
    """Run one part in a process of its own, and watch the page cache meanwhile."""
    drop_cache(store)
    command = [sys.executable, __file__, "--child", str(store), *arguments]
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    most = 0
    while child.poll() is None:
        time.sleep(0.5)
        most = max(most, cached_bytes(store / "X.npy"))
    output = child.stdout.read()
    if child.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed")
    return json.loads(output.splitlines()[-1]) | {"cached": most}


def judge(runs: dict, limit: int, n_bytes: int) -> dict:
    """Return the figures that have limits."""
    idle, memory, streamed, pinned = (
        runs[name] for name in ("idle", "memory", "streamed", "pinned")
    )
    allowed = streamed["sweeps"] * streamed["unpinned"] + n_bytes
    floor = max(streamed["bytes_read"] / idle["bytes_per_second"], memory["seconds"])
    distance = abs(streamed["objective"] - memory["objective"])
    values = (
        streamed["anonymous"] / limit,
        streamed["cached"] / 1e6,
        streamed["bytes_read"] / allowed,
        streamed["seconds"] / floor,
        pinned["seconds"] / memory["seconds"],
        distance / (TOL * memory["objective"]),
    )
    return dict(zip(LIMITS, values, strict=True))


def main() -> None:
    """Make the store, run all parts, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gb", type=float, default=6.0)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--json")
    options = parser.parse_args()
    limit = parse_bytes("limit", options.limit)
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        store = Path(temporary, "scale.store")
        make_store(store, options.gb * 1e9)
        n_bytes = (store / "X.npy").stat().st_size
        room = str(limit + 2 * n_bytes)
        touch_memory(limit + n_bytes)
        runs = {"idle": in_child(store, "idle")}
        runs["memory"] = in_child(store, "fit", "none", "2", "soft")
        runs["streamed"] = in_child(store, "fit", str(limit), "2", "hard")
        runs["threads"] = in_child(store, "fit", str(limit), "1", "hard")
        runs["roomier"] = in_child(store, "fit", str(limit * 3 // 2), "2", "hard")
        runs["pinned"] = in_child(store, "fit", room, "2", "soft")
    figures = judge(runs, limit, n_bytes)
    bits = {runs[name]["weights"] for name in ("streamed", "threads", "roomier", "pinned")}
    print(f"X {n_bytes / 1e9:.2f} GB, limit {limit / 1e9:.2f} GB")
    for name, run in runs.items():
        print(f"{name:9}", {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in run.items()})
    for name, value in figures.items():
        verdict = "" if value <= LIMITS[name] else "  MISSED"
        print(f"{name:45} {value:8.3f}  (at most {LIMITS[name]:g}){verdict}")
    print(f"the same bits in all four fits from disk: {len(bits) == 1}")
    if options.json:
        Path(options.json).write_text(json.dumps({"runs": runs, "figures": figures}, indent=1))


def child(store: str, what: str, *arguments: str) -> None:
    """Run one part."""
    if what == "idle":
        print(json.dumps(run_idle(store)))
        return
    limit = None if arguments[0] == "none" else int(arguments[0])
    print(json.dumps(run_fit(store, limit, int(arguments[1]), arguments[2] == "hard")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
