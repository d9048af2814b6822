"""The cost of fitting many models on one X, measured side by side in one run, as ratios.

    MARGINRANK_DATA=folder python benchmarks/selection.py [--json results.json] [--quick]
        [--instruction-set NAME] [--only SECTION …]

The section `any_data` searches 26 values of C from the data on 5 folds, and compares the processor
time of one thread with one cold fit: a RankSVM at the selected C with the default tol. It also
counts passes over X, which are the same in every run. Without MARGINRANK_DATA it leaves out real
data.

In the other sections, a *sweep* is the time of one multi-threaded pass that sums X. All figures of
a row take turns, and the best of their runs count, because a shared machine drifts. --quick uses a
tenth of the data, to see that the script works; its ratios mean little.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

from core import DOCS_PER_QUERY, FEATURES, Rows, make
from marginrank import (
    RankingData,
    RankSVM,
    RankSVMCV,
    _core,
    linear_path,
    load_letor,
    make_ranking,
)
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank.fit.linear import Parameters, make_objective
from marginrank.metrics import make_ranking_scorer
from marginrank.objective.objective import Objective
from marginrank.objective.together import hess_vecs, points_at, scores_of

TOGETHER = (1, 2, 4, 5, 8, 16)
LIMITS = {8: 3.0}  # Hessian-vector products, against one
CS = 2.0 ** np.arange(-15, 11)
NOISE = 1.0  # of the labels, so that C matters
NORMALIZATIONS = ("none", "query", "pairs")
MOST_FITS = 15.0  # cold fits that a search of 26 values of C on 5 folds may cost


def best(*functions: Callable[[], object], repeats: int) -> list[float]:
    """Return the shortest seconds of each function, all taking turns."""
    shortest = [np.inf for _ in functions]
    for function in functions:
        function()
    for _ in range(repeats):
        for k, function in enumerate(functions):
            start = time.perf_counter()
            function()
            shortest[k] = min(shortest[k], time.perf_counter() - start)
    return shortest


def shared_sweeps(scale: int) -> Rows:
    """Several problems in one sweep over X, against one problem alone."""
    data = RankingData(*make(scale, n_levels=5))
    threads = effective_threads(None)
    problems = [
        make_objective(data, Parameters(n_jobs=threads, C=10.0 ** (-k / 4)))
        for k in range(max(TOGETHER))
    ]
    rows: Rows = []
    with serial_blas():
        for count in TOGETHER:
            rows += shared_sweep_rows(data, problems[:count], threads)
    return rows


def shared_sweep_rows(data: RankingData, problems: list[Objective], threads: int) -> Rows:
    """Measure one number of problems."""
    count = len(problems)
    rng = np.random.default_rng(0)
    ws, vs = 0.1 * rng.normal(size=(2, count, FEATURES))
    points = points_at(problems, list(ws), [None] * count)
    one, design = problems[0], problems[0].design
    shared = design.share([o.design for o in problems])
    slopes = [point.score_gradient for point in points]
    sweep, product, products, dot, dots, sum_, sums, look, looks = best(
        lambda: data.matrix.sum(threads),
        lambda: points[0].hess_vec(vs[0]),
        lambda: hess_vecs(points, list(vs)),
        lambda: design.dot(vs[0]),
        lambda: scores_of(problems, list(vs)),
        lambda: design.transpose_dot(slopes[0]),
        lambda: shared.transpose_dot(slopes),
        lambda: one.at(ws[0], like=points[0]),
        lambda: points_at(problems, list(ws), points),
        repeats=15,
    )
    return [
        (f"{count} Hessian-vector products / one", f"{products / product:.2f}", LIMITS.get(count)),
        (f"{count} Hessian-vector products [sweeps]", f"{products / sweep:.2f}", None),
        (f"{count} X w / one", f"{dots / dot:.2f}", None),
        (f"{count} X' z / one", f"{sums / sum_:.2f}", None),
        (f"{count} values and gradients / one", f"{looks / look:.2f}", None),
    ]


def selection(scale: int) -> Rows:
    """26 values of C and 5 folds, against one fit at C = 1; everything to tol 1e-4."""
    rows: Rows = []
    for normalization in ("none", "pairs"):
        rows += selection_rows(scale, normalization)
    return rows


def selection_rows(scale: int, normalization: str) -> Rows:
    """Measure one normalization; the limits are for the default one."""
    X, y, qid = make(scale, n_levels=5, noise=NOISE)
    data = RankingData(X, y, qid)
    options = {"tol": 1e-4, "normalization": normalization}
    search = RankSVMCV(Cs=CS, cv=GroupKFold(5), refit=False, **options)
    fit, path, cv = best(
        lambda: RankSVM(**options).fit(data),
        lambda: linear_path(data, Cs=CS, **options),
        lambda: search.fit(data),
        repeats=5,
    )
    grid, seconds = grid_search(X, y, qid, options)
    chosen, expected = search.best_index_, grid.best_index_
    means = grid.cv_results_["mean_test_score"]
    limited = normalization == "none"
    what = f"normalization={normalization}: "
    return [
        (f"{what}one fit [s]", f"{fit:.3f}", None),
        (f"{what}path of 26 / one", f"{path / fit:.2f}", 5.0 if limited else None),
        (f"{what}RankSVMCV, 130 fits / one", f"{cv / fit:.2f}", 15.0 if limited else None),
        (f"{what}GridSearchCV / one", f"{seconds / fit:.1f}", None),
        (f"{what}log2 C by RankSVMCV", f"{np.log2(CS[chosen]):.0f}", None),
        (f"{what}log2 C by GridSearchCV", f"{np.log2(CS[expected]):.0f}", None),
        (f"{what}what the latter gains, by itself", f"{means[expected] - means[chosen]:.1e}", None),
    ]


def grid_search(X, y, qid, options) -> tuple[GridSearchCV, float]:
    """Return scikit-learn's search on the same folds, and its seconds."""
    scorer = make_ranking_scorer("ndcg@10", ties="average")
    search = GridSearchCV(
        RankSVM(**options), {"C": CS}, cv=GroupKFold(5), scoring=scorer, refit=False
    )
    start = time.perf_counter()
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, y, qid=qid, groups=qid)
    return search, time.perf_counter() - start


def any_data(scale: int) -> Rows:
    """26 values of C from the data and 5 folds, against one cold fit, on data of every kind."""
    rows: Rows = []
    for name, data, metric in searched_data(scale):
        for normalization in NORMALIZATIONS:
            rows += search_rows(name, data, metric, normalization)
    return rows


def searched_data(scale: int) -> Iterator[tuple[str, RankingData, str]]:
    """Yield data with their names and metrics."""
    n_queries = scale // (4 * DOCS_PER_QUERY)
    heavy = {"heavy_tail": 1.5, "correlation": 0.5, "noise": 2.0, "informative": 20}
    X, y, qid = make_ranking(
        n_queries, DOCS_PER_QUERY, FEATURES, dtype=np.float32, random_state=0, **heavy
    )
    yield "heavy tails", RankingData(X, y, qid), "ndcg@10"
    yield "embeddings", embeddings(scale // 12), "ndcg@10"
    folder = os.environ.get("MARGINRANK_DATA")
    if folder is not None:
        yield "MSLR sample", load_letor(Path(folder, "MSLR-sample", "train.txt.gz")), "ndcg@10"
        cadata = load_letor(Path(folder, "cadata", "cadata.txt.gz"))
        yield "cadata, one query", cadata, "pairwise_accuracy"


def embeddings(n_documents: int, n: int = 768, per_query: int = 50) -> RankingData:
    """Return normalized vectors of a decaying spectrum, with graded labels."""
    rng = np.random.default_rng(0)
    n_documents -= n_documents % per_query
    spectrum = np.arange(1, n + 1) ** -0.7
    X = spectrum * rng.normal(size=(n_documents, n)) + 0.02 * rng.normal(size=(n_documents, n))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ (rng.normal(size=n) / np.sqrt(0.05 + spectrum))
    scores = scores / scores.std() + rng.normal(size=n_documents)
    qid = np.repeat(np.arange(n_documents // per_query), per_query)
    return RankingData(X.astype(np.float32), np.digitize(scores, [0.0, 0.8, 1.5, 2.2]), qid)


@contextmanager
def counted() -> Iterator[list[float]]:
    """Count the passes over X of all fits; one that several problems share counts once."""
    passes = [0.0]
    count_sweep = Objective.count_sweep

    def count(self: Objective, sweeps: float = 1.0) -> None:
        passes[0] += sweeps * self.fraction * self.share
        count_sweep(self, sweeps)

    with mock.patch.object(Objective, "count_sweep", count):
        yield passes


def processor_time(run: Callable[[], object]) -> float:
    """Return the seconds of processor time of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def search_rows(name: str, data: RankingData, metric: str, normalization: str) -> Rows:
    """Measure one search against a fit with the parameters that it selects."""
    options = {"normalization": normalization, "n_jobs": 1}
    search = RankSVMCV(n_points=26, scale="none", refit=False, scoring=metric, **options)
    with counted() as search_passes:
        seconds = min(processor_time(lambda: search.fit(data)) for _ in range(2))
    fit = RankSVM(C=search.best_params_["C"], **options)
    with counted() as fit_passes:
        cold = min(processor_time(lambda: fit.fit(data)) for _ in range(3))
    what = f"{name}, normalization={normalization}: "
    return [
        (f"{what}130 fits / one", f"{seconds / cold:.1f}", MOST_FITS),
        (f"{what}passes of 130 fits", f"{search_passes[0] / 2:.0f}", None),
        (f"{what}passes of one", f"{fit_passes[0] / 3:.0f}", None),
        (f"{what}position of the best C of 26", f"{search.best_index_ + 1}", None),
    ]


SECTIONS = [shared_sweeps, selection, any_data]


def main() -> None:
    """Run all sections, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument(
        "--instruction-set",
        choices=_core.instruction_sets(),
        default=_core.instruction_sets()[-1],
        help="variant of the kernels; the best by default",
    )
    names = [section.__name__ for section in SECTIONS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="some sections")
    arguments = parser.parse_args()
    _core.use_instruction_set(arguments.instruction_set)
    scale = 24_000 if arguments.quick else 240_000
    figures = {}
    for section in [section for section in SECTIONS if section.__name__ in arguments.only]:
        print(f"\n{section.__doc__.splitlines()[0]}")
        for name, value, limit in section(scale):
            print(f"  {name:62s} {value:>10s}" + (f"   (at most {limit})" if limit else ""))
            figures[name] = {"value": value, "limit": limit}
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main()
