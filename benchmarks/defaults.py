"""Default parameters against tuned ones: the table of docs/how_to/choose_c.md.

    MARGINRANK_DATA=folder python benchmarks/defaults.py [--splits 1] [--json results.json]
        [--only RankSVM ...] [--quick]

Each estimator is fitted to the training queries of all real data sets and of 20 generated ones, and
evaluated by NDCG@10 on other queries: with earlier defaults ("before"), with its own
defaults ("default"), and with parameters chosen by 3 folds of the training queries ("tuned").
Regret is tuned minus default; a mean counts every data set once. Real data sets are halved at
random as often as --splits says, and generated ones drawn as often; at most 1,500 documents are
learned from (kernels: 500), so that a run takes minutes on one core. All fits have one thread and
tol=1e-3. Kernels need eigenvectors: set OPENBLAS_NUM_THREADS=1 if the machine is busy. --quick runs
one split of four data sets.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _ranking_cases import Case, generated_cases, real_cases, some_queries

from marginrank import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    KernelRankSVM,
    RankingData,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    SparseRankSVM,
    SparseRankSVMCV,
    metrics,
)
from marginrank.selection.folds import query_folds, rows_of

FOLDS = 3
FIT: dict[str, Any] = {"n_jobs": 1, "tol": 1e-3}
NORMALIZATIONS = ("pairs", "query")
SCALES = ("none", "standard", "query")
KERNEL_DOCUMENTS = 500
LIMIT = 0.01  # on the mean regret of an estimator
FORMER_CURVES = {"C": 1.0, "normalization": "none", "smoothness": 1.0, "max_bins": 32}
FORMER_KERNEL = {"C": 1.0, "normalization": "none", "scale": None, "gamma": None}
FORMER_SEARCH = {"normalization": "none", "scale": None}


def ndcg(model: Any, data: RankingData) -> float:
    """Return NDCG@10, the same for any order of ties."""
    return float(metrics.ndcg(data.y, model.predict(data), qid=data.qid, k=10, ties="average"))


def linear(case: Case) -> RankSVMCV:
    """Return the best linear model over C, normalization and scale."""
    search = RankSVMCV(
        n_points=11, cv=FOLDS, max_iter=50, normalization=NORMALIZATIONS, scale=SCALES, **FIT
    )
    return search.fit(case.train)


def stochastic(case: Case) -> SGDRankSVM:
    """Return the stochastic fit of the best linear model: the objective is the same."""
    return SGDRankSVM(n_jobs=1, **linear(case).best_params_).fit(case.train)


def curves(case: Case) -> AdditiveRankSVMCV:
    """Return the best additive model over C, smoothness, bins and normalization."""
    searches = [
        AdditiveRankSVMCV(
            Cs=[0.1, 1, 10, 100], smoothness=[0.03, 0.3, 3], max_bins=[8, 32], cv=FOLDS,
            normalization=normalization, **FIT,
        ).fit(case.train)
        for normalization in NORMALIZATIONS
    ]  # fmt: skip
    return max(searches, key=lambda search: search.best_score_)


def sparse(case: Case) -> SparseRankSVMCV:
    """Return the best sparse model over C, normalization and scale."""
    searches = [
        SparseRankSVMCV(
            n_points=10, cv=FOLDS, max_iter=50, normalization=normalization, scale=scale, **FIT
        ).fit(case.train)
        for normalization, scale in product(NORMALIZATIONS, SCALES)
    ]
    return max(searches, key=lambda search: np.nanmax(search.path_.scores))


def kernels(case: Case) -> KernelRankSVM:
    """Return the best model with a kernel over C, gamma and normalization."""
    data, n_features = case.train, case.train.n_features
    candidates = [
        KernelRankSVM(
            C=C, gamma=gamma / n_features, normalization=normalization, scale="standard", **FIT
        )
        for C, gamma, normalization in product((1, 10, 100), (0.01, 0.1, 1), NORMALIZATIONS)
    ]
    scores = np.zeros(len(candidates))
    for fold in query_folds(data, FOLDS, seed=0):
        train, test = rows_of(data, fold.train), rows_of(data, fold.test)
        scores += [ndcg(model.fit(train), test) for model in candidates]
    return candidates[int(np.argmax(scores))].fit(data)


def smaller(case: Case) -> Case:
    """Return fewer documents to learn from, if there are several queries."""
    queries = np.arange(case.train.n_queries)
    return case._replace(train=some_queries(case.train, queries, KERNEL_DOCUMENTS))


# The estimator, what its defaults were, what is tuned, and what is the same in all of them.
Learner = tuple[Any, dict[str, Any], Callable[[Case], Any], dict[str, Any]]
LEARNERS: dict[str, Learner] = {
    "RankSVM": (RankSVM, {}, linear, FIT),
    "SGDRankSVM": (SGDRankSVM, {}, stochastic, {"n_jobs": 1}),
    "SparseRankSVM": (SparseRankSVM, {"C": 1.0, "scale": None}, sparse, FIT),
    "AdditiveRankSVM": (AdditiveRankSVM, FORMER_CURVES, curves, FIT),
    "KernelRankSVM": (KernelRankSVM, FORMER_KERNEL, kernels, FIT),
    "RankSVMCV": (RankSVMCV, FORMER_SEARCH, linear, {"cv": FOLDS, "max_iter": 50, **FIT}),
    "SparseRankSVMCV": (
        SparseRankSVMCV,
        {"scale": None},
        sparse,
        {"cv": FOLDS, "max_iter": 50, **FIT},
    ),
    "AdditiveRankSVMCV": (AdditiveRankSVMCV, {}, curves, {"cv": FOLDS, **FIT}),
}


def measured(learner: Learner, case: Case, tuned: dict[Any, float]) -> dict[str, float]:
    """Return NDCG@10 before, by default and tuned; what is tuned twice is kept in `tuned`."""
    kind, former, tune, shared = learner
    if kind is KernelRankSVM:
        case = smaller(case)
    default = ndcg(kind(**shared).fit(case.train), case.test)
    before = ndcg(kind(**former, **shared).fit(case.train), case.test) if former else default
    if tune not in tuned:
        tuned[tune] = ndcg(tune(case), case.test)
    return {"before": before, "default": default, "tuned": tuned[tune]}


def means(found: list[tuple[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return means over the splits of each data set."""
    names = dict.fromkeys(name for name, _ in found)
    return {
        name: {
            key: float(np.mean([figures[key] for other, figures in found if other == name]))
            for key in ("before", "default", "tuned")
        }
        for name in names
    }


def regret(table: dict[str, dict[str, float]], which: str) -> float:
    """Return the mean over the data sets of what tuning gains."""
    return float(np.mean([row["tuned"] - row[which] for row in table.values()]))


def main() -> None:
    """Print a line per data set and estimator, then the mean regrets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=1, help="divisions of each data set")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--only", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    parser.add_argument("--quick", action="store_true", help="one split of four data sets")
    arguments = parser.parse_args()
    folder = os.environ.get("MARGINRANK_DATA")
    if folder is None:
        raise SystemExit("MARGINRANK_DATA must name the folder of real ranking data.")
    warnings.simplefilter("ignore")  # of fits that do not reach tol, and of empty models
    n_splits = 1 if arguments.quick else arguments.splits
    cases = [*real_cases(Path(folder), n_splits), *generated_cases(n_splits)]
    if arguments.quick:
        cases = cases[2:6]
    found: dict[str, list[tuple[str, dict[str, float]]]] = {name: [] for name in arguments.only}
    for case in cases:
        begin, tuned = time.perf_counter(), {}
        for name in arguments.only:
            figures = measured(LEARNERS[name], case, tuned)
            found[name].append((case.name, figures))
            line = "  ".join(f"{key} {value:.4f}" for key, value in figures.items())
            print(f"{case.name:20} {name:18} {line}", flush=True)
        print(f"({case.name}: {time.perf_counter() - begin:.1f} s)", flush=True)
    tables = {name: means(rows) for name, rows in found.items()}
    print(f"\nmean regret over {len(next(iter(tables.values())))} data sets (limit {LIMIT})")
    for name, table in tables.items():
        print(
            f"{name:18} before {regret(table, 'before'):+.4f}  now {regret(table, 'default'):+.4f}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(tables, indent=1) + "\n")


if __name__ == "__main__":
    main()
