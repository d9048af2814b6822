"""Record the golden values: ``python tests/golden/record.py`` writes ``golden.json``.

Run it with the code whose results are right, never to make a failing comparison pass. Numbers are
written with all their digits, so equal text means equal bits. Long lists are kept as a hash with
their first and last entries.
"""

import hashlib
import io
import json
import re
import runpy
import signal
import sys
import warnings
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import cases
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

import marginrank
from marginrank import RankingData, _core, dump_letor, make_ranking

GOLDEN = Path(__file__).with_name("golden.json")
LONG = 50  # longer lists are hashed
KEPT = 3  # entries at either end of a hashed list
FITTED = [
    "coef_", "dual_coef_", "landmark_rows_", "landmarks_", "scale_", "objective_", "gap_",
    "n_iter_", "n_pairs_", "n_rounds_", "stop_reason_", "smoothness_", "gamma_", "C_", "sparsity_",
]  # fmt: skip
SEARCHED = ["best_params_", "best_score_", "best_index_"]


def instruction_set():
    """Return the instruction set of all golden values: the kernels round differently in others."""
    known = _core.instruction_sets()
    return "x86-64-v3" if "x86-64-v3" in known else known[0]


def machine():
    """Return everything of this machine that the last bits depend on."""
    import torch

    simd = np._core._multiarray_umath.__cpu_features__
    blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return {
        "instruction_set": instruction_set(),
        "blas": sorted({f"{lib['version']} {lib.get('architecture')}" for lib in blas}),
        "numpy": f"{np.__version__} {'AVX512_SKX' if simd.get('AVX512_SKX') else 'AVX2'}",
        "torch": f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()}",
    }


@contextmanager
def fixed_arithmetic():
    """Compute as on every machine: one instruction set, one thread of BLAS."""
    _core.use_instruction_set(instruction_set())
    try:
        with threadpool_limits(1, "blas"):
            yield
    finally:
        _core.use_instruction_set(_core.instruction_sets()[-1])


def make_data(kind):
    """Return X, y and qid of a small data set; everything random is drawn here."""
    if kind == "wide":
        return make_ranking(8, 12, 120, n_levels=3, random_state=1)
    if kind == "few":
        return make_ranking(10, 8, 3, n_levels=3, random_state=2)
    if kind == "real":
        return make_ranking(20, (4, 12), 6, n_levels=None, random_state=3)
    if kind == "csr":
        return make_ranking(24, (4, 14), 6, n_levels=4, density=0.4, random_state=4)
    if kind == "shuffled":
        return make_ranking(24, (4, 14), 6, n_levels=4, shuffle=True, random_state=5)
    X, y, qid = make_ranking(24, (4, 14), 6, n_levels=4, random_state=6)
    if kind == "binary":
        y = (y > 1).astype(np.float64)
    if kind == "rounded":
        X = np.round(X)
    if kind == "missing":
        X = np.where(np.random.default_rng(7).random(X.shape) < 0.1, np.nan, X)
    if kind == "float32":
        X = X.astype(np.float32)
    return X, y, qid


def make_argument(name, y, qid):
    """Return an argument of fit that has an entry for each document, query or pair."""
    rng = np.random.default_rng(8)
    if name == "weights":
        return rng.uniform(0.2, 1.0, y.size)
    if name == "query_weights":
        return rng.uniform(0.2, 1.0, np.unique(qid).size)
    if name == "pairs":
        i, j = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
        return np.stack([i, j], axis=1)[::7]
    if name == "pair_weights":
        return rng.uniform(0.2, 1.0, len(make_argument("pairs", y, qid)))
    return name


def fit(case, folder):
    """Return the fitted estimator of a case."""
    if case.data == "dask":
        return fit_on_dask(case)
    X, y, qid = make_data(case.data)
    arguments = {name: make_argument(value, y, qid) for name, value in case.arguments.items()}
    model = getattr(marginrank, case.estimator)(**case.parameters)
    if case.data == "store":
        store = folder / f"{case.name}.store"
        RankingData(X, y, qid=qid).save(store)
        return model.fit(store, **arguments)
    return model.fit(X, y, qid=qid, **arguments)


def fit_on_dask(case):
    import dask.array
    from distributed import Client, LocalCluster

    import marginrank.dask

    X, y, qid = make_data("levels")
    cut = int(np.flatnonzero(np.diff(qid))[10]) + 1  # between two queries
    chunks = (cut, y.size - cut)
    X, y, qid = (dask.array.from_array(a, chunks=(chunks, *a.shape[1:])) for a in (X, y, qid))
    model = getattr(marginrank.dask, case.estimator)(**case.parameters)
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        return model.fit(X, y, qid=qid, client=client)


def record_fit(case):
    """Return everything of a fit that must stay: its results and its model file."""
    with TemporaryDirectory() as folder:
        model = fit(case, Path(folder))
        found = {name: plain(getattr(model, name)) for name in FITTED if hasattr(model, name)}
        found |= record_search(model)
        found["file"] = read_model(model, Path(folder))
        if case.name in ("default", "additive-interactions"):
            found["text"] = timeless_text((Path(folder) / "model.json").read_text())
        return found


def record_search(model):
    """Return the result of a search; that of sparse models was recorded with other names."""
    if isinstance(model, marginrank.SparseRankSVMCV):
        (best,) = model.best_params_.values()
        search = model.search_
        return {
            "best_value_": best,
            "values_": plain(search.values),
            "scores_": plain(search.scores),
        }
    return {name: plain(getattr(model, name)) for name in SEARCHED if hasattr(model, name)}


def read_model(model, folder):
    if hasattr(model, "dual_coef_"):
        path = folder / "model.npz"
        model.save(path)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("marginrank").tobytes())
        return {"header": timeless(header)} | {name: plain(a) for name, a in arrays.items()}
    path = folder / "model.json"
    model.save(path)
    return plain(timeless(json.loads(path.read_text())))


def record_function(case):
    """Return what a function over several fits returns."""
    _, function, arguments, attributes = case
    X, y, qid = make_data("levels")
    if "validation" in arguments:
        arguments = arguments | {"validation": make_data("levels")}
    result = getattr(marginrank, function)(X, y, qid=qid, **arguments)
    return {name: plain(getattr(result, name)) for name in attributes}


def record_commands(folder):
    """Run all commands in a folder, and return what each prints as JSON, and the models' files."""
    X, y, qid = make_data("levels")
    dump_letor(RankingData(X, y, qid=qid), folder / "data.txt")
    pairs = make_argument("pairs", y, qid)
    (folder / "data.pairs").write_text("".join(f"{i} {j}\n" for i, j in pairs))
    printed = {}
    with chdir(folder):
        for command in cases.COMMANDS:
            printed[command] = plain(timeless(json.loads(run_command(command))))
        files = {p.name: plain(timeless(json.loads(p.read_text()))) for p in Path().glob("*.json")}
    return printed, files


def run_command(command):
    """Run ``python -m marginrank`` in this process, for the sake of time."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    argv, on_broken_pipe = sys.argv, signal.getsignal(signal.SIGPIPE)
    sys.argv = ["marginrank", *command.split(), "--json"]
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            runpy.run_module("marginrank", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{command}: {written(errors)}") from end
    finally:
        sys.argv = argv
        signal.signal(signal.SIGPIPE, on_broken_pipe)
    return written(out)


def written(stream):
    stream.flush()
    return stream.buffer.getvalue().decode()


def record_exports(name):
    """Return the files that a model is exported to, for all targets that have it."""
    with TemporaryDirectory() as folder:
        model = fit(cases.EXPORTED[name], Path(folder))
        found = {}
        for target in cases.EXPORTS[name]:
            paths = model.export(Path(folder) / "Ranker.out", target)
            found[target] = {Path(p).name: contents(Path(p).read_bytes()) for p in paths}
        return found


def contents(data):
    try:
        return data.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(data).hexdigest()


def timeless(value):
    """Return JSON without times and versions."""
    if isinstance(value, dict):
        if value.get("columns", [None, None])[1:2] == ["seconds"]:
            return value | {"rows": [[row[0], 0.0, *row[2:]] for row in value["rows"]]}
        kept = {k: timeless(v) for k, v in value.items() if "seconds" not in k}
        return kept | ({"written_by": "marginrank"} if "written_by" in kept else {})
    return [timeless(v) for v in value] if isinstance(value, list) else value


def timeless_text(text):
    """Return a model file without times and versions, to compare even how it is laid out."""
    text = re.sub(r"(\[\d+, )[^,]+,", r"\g<1>0.0,", text)
    return re.sub(r'"marginrank [^"]+"', '"marginrank"', text)


def plain(value):
    """Return something as JSON holds it, with long lists as a hash and their ends."""
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, marginrank.StopReason):
        return value.name
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        value = [plain(v) for v in value]
        flat = json.dumps(value)
        if flat.count(",") >= LONG and not isinstance(value[0], dict):
            digest = hashlib.sha256(flat.encode()).hexdigest()[:16]
            return {"length": len(value), "hash": digest, "ends": value[:KEPT] + value[-KEPT:]}
    return value


def record():
    """Return all golden values."""
    with fixed_arithmetic(), TemporaryDirectory() as folder:
        printed, files = record_commands(Path(folder))
        return {
            "machine": machine(),
            "fits": {case.name: record_fit(case) for case in cases.FITS},
            "functions": {case[0]: record_function(case) for case in cases.FUNCTIONS},
            "commands": printed,
            "files": files,
            "exports": {name: record_exports(name) for name in cases.EXPORTS},
        }


def write(golden, path):
    """Write golden values with one line per case, so that a diff says which ones differ."""
    sections = []
    for name, section in golden.items():
        lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in section.items()]
        sections.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(sections) + "\n}\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write(record(), Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
