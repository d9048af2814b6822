"""Every performance figure of the core, measured side by side in one run and printed as ratios.

    python benchmarks/core.py [--json results.json] [--quick] [--instruction-set NAME]

A *sweep* is the time of one multi-threaded pass that sums X. Each figure is the median of runs that
alternate with sweeps, because a shared machine drifts. --quick uses a tenth of the data, to see
that the script works; its ratios mean little.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from _memory import peak_bytes, reset_peak
from sklearn.svm import LinearSVC

from marginrank import RankingData, RankSVM, _core, make_ranking
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank.fit.linear import Parameters, make_objective

FEATURES = 136
DOCS_PER_QUERY = 120
Rows = list[tuple[str, str, float | None]]


def make(n_documents: int, **options):
    """Return MSLR-like data: 136 correlated float32 features, queries of 120 documents."""
    options = {"correlation": 0.5, "dtype": np.float32, "random_state": 0} | options
    return make_ranking(n_documents // DOCS_PER_QUERY, DOCS_PER_QUERY, FEATURES, **options)


def alternate(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Return the median seconds of each function, all taking turns."""
    seconds: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for times, function in zip(seconds, functions, strict=True):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
    return [float(np.median(times)) for times in seconds]


def fit_in_sweeps(X, y, qid, *, repeats: int = 5, **options) -> tuple[float, float, RankSVM]:
    """Return the time of a fit in sweeps, in seconds, and the model."""
    data = RankingData(X, y, qid)
    threads = effective_threads(options.get("n_jobs"))
    model = RankSVM(**options)
    sweep, fit = alternate(
        lambda: [data.matrix.sum(threads) for _ in range(5)],
        lambda: model.fit(X, y, qid=qid),
        repeats=repeats,
    )
    return fit / (sweep / 5), fit, model


def products(scale: int) -> Rows:
    """One Hessian-vector product, value and gradient, against a sweep."""
    return [
        *product_rows(scale, "five levels", 5, limit=1.5),
        *product_rows(scale, "real-valued labels", None, limit=None),
    ]


def product_rows(scale: int, name: str, levels: int | None, limit: float | None) -> Rows:
    """Measure one kind of labels."""
    X, y, qid = make(scale, n_levels=levels)
    data = RankingData(X, y, qid)
    threads = effective_threads(None)
    objective = make_objective(data, Parameters(n_jobs=threads))
    w = RankSVM(tol=1e-2).fit(X, y, qid=qid).coef_
    v = np.random.default_rng(0).normal(size=FEATURES)
    point = objective.at(w)
    with serial_blas():
        sweep, product, gradient, scores = alternate(
            lambda: data.matrix.sum(threads),
            lambda: point.hess_vec(v),
            lambda: objective.at(w),
            lambda: point.move(1e-3, v, point.scores),
            repeats=41,
        )
    return [
        (f"Hessian-vector product, {name} [sweeps]", f"{product / sweep:.2f}", limit),
        (f"value and gradient, {name} [sweeps]", f"{gradient / sweep:.2f}", None),
        (f"trial step of a line search, {name} [sweeps]", f"{scores / sweep:.2f}", None),
    ]


def fits(scale: int) -> Rows:
    """Fits to tol 1e-6 against sweeps."""
    five, seconds, _ = fit_in_sweeps(*make(scale))
    real, _, _ = fit_in_sweeps(*make(scale, n_levels=None))
    raw, _, model = fit_in_sweeps(*make(scale, heavy_tail=1.0, correlation=0.6))
    rows: Rows = [
        ("fit, five levels [sweeps]", f"{five:.1f}", 40),
        ("fit, five levels [s]", f"{seconds:.3f}", None),
        ("fit, real-valued labels / five levels", f"{real / five:.2f}", 3),
        ("fit, raw heavy-tailed features [sweeps]", f"{raw:.1f}", None),
        ("fit, raw heavy-tailed features [iterations]", str(model.n_iter_), 30),
    ]
    n = scale * 5 // 3
    X, y, qid = make_ranking(1, n, 20, n_levels=None, dtype=np.float32, random_state=0)
    start = time.perf_counter()
    model = RankSVM().fit(X, y, qid=qid)
    label = f"one query of {n:,} documents, {model.n_pairs_:.1e} pairs [s]"
    return [*rows, (label, f"{time.perf_counter() - start:.2f}", None)]


def scaling(scale: int) -> Rows:
    """Time against documents, levels and threads."""
    rows: Rows = []
    base = None
    for n in (scale // 4, scale, scale * 25 // 6):
        _, seconds, _ = fit_in_sweeps(*make(n), repeats=3)
        base = base or seconds / n
        rows.append(
            (f"{n:,} documents: time a document, relative", f"{seconds / n / base:.2f}", None)
        )
    base = None
    for levels in (2, 5, 20, 60, None):
        _, seconds, _ = fit_in_sweeps(*make(scale, n_levels=levels), repeats=3)
        base = base or seconds
        rows.append(
            (f"{levels or 'all different'} levels: time, relative", f"{seconds / base:.2f}", None)
        )
    X, y, qid = make(scale)
    one, two = alternate(
        lambda: RankSVM(n_jobs=1).fit(X, y, qid=qid),
        lambda: RankSVM(n_jobs=2).fit(X, y, qid=qid),
        repeats=3,
    )
    same = np.array_equal(
        RankSVM(n_jobs=1).fit(X, y, qid=qid).coef_, RankSVM(n_jobs=2).fit(X, y, qid=qid).coef_
    )
    rows.append(("speed-up of two threads", f"{one / two:.2f}", None))
    rows.append(("one and two threads give the same bits", str(same), None))
    return rows


def against_linear_svc(scale: int) -> Rows:
    """LinearSVC on explicit pair differences, to the same objective."""
    X, y, qid = make_ranking(scale // 400, 40, 46, correlation=0.5, random_state=0)
    C = 1e-2
    preferred, other = [], []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        i, j = np.nonzero(y[rows][:, None] > y[rows][None, :])
        preferred.append(rows[i])
        other.append(rows[j])
    differences = X[np.concatenate(preferred)] - X[np.concatenate(other)]
    # LinearSVC wants two classes: every second pair is turned round.
    sign = np.where(np.arange(len(differences)) % 2, -1.0, 1.0)
    differences *= sign[:, None]
    svc = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-5, max_iter=10_000)
    ours = RankSVM(C=C)
    theirs_seconds, our_seconds = alternate(
        lambda: svc.fit(differences, sign), lambda: ours.fit(X, y, qid=qid), repeats=3
    )
    margin = sign * (differences @ svc.coef_[0])
    objective = 0.5 * np.sum(svc.coef_**2) + C * np.sum(np.maximum(0, 1 - margin) ** 2)
    return [
        (
            f"LinearSVC on {len(sign):,} pairs / ours: time",
            f"{theirs_seconds / our_seconds:.0f}",
            None,
        ),
        ("LinearSVC / ours: objective - 1", f"{objective / ours.objective_ - 1:.1e}", None),
        ("LinearSVC / ours: bytes of the features", f"{differences.nbytes / X.nbytes:.0f}", None),
    ]


def peak_memory(scale: int) -> Rows:
    """Peak memory of a fit, in a process of its own."""
    command = [sys.executable, __file__, "--measure-memory", str(scale)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    growth, x_bytes = map(float, out.split())
    return [("peak memory of data and fit / X", f"{1 + growth / x_bytes:.2f}", 1.25)]


def measure_memory(scale: int) -> None:
    """Print by how many bytes a fit raises the peak, and the size of X."""
    X, y, qid = make(DOCS_PER_QUERY * 20)
    RankSVM().fit(X, y, qid=qid)
    X, y, qid = make(scale)
    reset_peak()
    before = peak_bytes()
    RankSVM().fit(X, y, qid=qid)
    print(peak_bytes() - before, X.nbytes)


def main() -> None:
    """Run all parts, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument(
        "--instruction-set",
        choices=_core.instruction_sets(),
        default=_core.instruction_sets()[-1],
        help="variant of the kernels; the best by default",
    )
    parser.add_argument("--measure-memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    _core.use_instruction_set(arguments.instruction_set)
    if arguments.measure_memory:
        measure_memory(arguments.measure_memory)
        return
    scale = 24_000 if arguments.quick else 240_000
    figures = {}
    for part in (products, fits, scaling, against_linear_svc, peak_memory):
        print(f"\n{part.__doc__.splitlines()[0]}")
        for name, value, limit in part(scale):
            print(f"  {name:62s} {value:>10s}" + (f"   (at most {limit})" if limit else ""))
            figures[name] = {"value": value, "limit": limit}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main()
