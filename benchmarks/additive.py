"""Additive rankers against lines and trees: the tables of docs/learners/additive.md.

    MARGINRANK_DATA=folder python benchmarks/additive.py quality [--splits 10] [--quick]
    python benchmarks/additive.py speed [--documents 240000] [--json results.json]

quality: on every data set and split, each learner chooses its parameters on validation queries, by
NDCG@10, and is judged on test queries. MQ2008 and OHSUMED have the five folds of LETOR; the others
are divided at random, 60, 20 and 20 of 100 queries, as often as --splits says. California housing
is one query, divided into random queries of 100 documents, with labels by quintiles of the price.
querywise has relevances from 0 to 1, rounded to labels from 0 to 4. RankSVM and AdditiveRankSVM
choose C, the latter also its smoothness, as `tune --additive --valid` does, with and without pairs
of features that act together; LightGBM (lambdarank) and XGBoost (rank:ndcg) have the parameters of
LightGBM's own example and stop early. Times are those of the processor on one thread, for choice
and fit.

speed: a product, a fit to tol=1e-4 and the memory of a fit, against RankSVM on the same float32
data; times are those of the processor, by the best of several.
"""

import argparse
import json
import os
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ndcg import querywise
from scaling import Fold, letor_folds, rows

from marginrank import AdditiveRankSVM, RankingData, RankSVM, load_letor, make_ranking, metrics
from marginrank.training.additive import AdditiveParameters, prepare
from marginrank.training.additive_selection import Curves
from marginrank.training.declarations import SMOOTHNESS_TRIED
from marginrank.training.exploration import Count, Exploration
from marginrank.training.judges import HeldOutJudge
from marginrank.training.linear import Parameters, make_objective
from marginrank.training.selection import Search, grids_of

GRID = 10.0 ** np.arange(-2, 4)
TREES = 500
QUERY = 100  # documents
PAIRS = 3  # of features that act together


class Judged(NamedTuple):
    """How good a model is on test queries, what it took to choose and fit it, and its size."""

    ndcg: float
    map: float
    seconds: float
    numbers: int


def ndcg(data: RankingData, scores: Any) -> float:
    """Return NDCG@10, the same for any order of ties."""
    return float(metrics.ndcg(data.y, scores, data.qid, k=10, ties="average"))


def mean_precision(data: RankingData, scores: Any) -> float:
    """Return MAP; a document with a label is relevant."""
    return float(metrics.average_precision((data.y > 0).astype(int), scores, data.qid))


def choose(fold: Fold, fits: Iterator[tuple[Callable[[Any], Any], int]]) -> Judged:
    """Fit one model after the other, and judge the one that is best on validation queries."""
    begin = time.process_time()
    best: Any = None
    for predict, numbers in fits:
        value = ndcg(fold.valid, predict(fold.valid.X))
        if best is None or value > best[0]:
            best = value, predict, numbers
    seconds = time.process_time() - begin
    scores = best[1](fold.test.X)
    return Judged(ndcg(fold.test, scores), mean_precision(fold.test, scores), seconds, best[2])


def lines(fold: Fold, grid: Any) -> Iterator[tuple[Callable[[Any], Any], int]]:
    """Yield a RankSVM for each C."""
    for C in GRID if grid is None else grid:
        model = RankSVM(C=C, normalization="pairs", scale="standard", tol=1e-3).fit(fold.train)
        yield model.predict, model.coef_.size


def curves(
    fold: Fold, grid: Any, interactions: int = 0
) -> Iterator[tuple[Callable[[Any], Any], int]]:
    """Yield the additive model that a search by validation queries has found, as tune does."""
    learner = Curves()
    judge = HeldOutJudge(fold.valid, "ndcg@10", 1, learner)
    search = Search(fold.train, judge, learner=learner)
    base = AdditiveParameters(
        normalization="pairs", tol=learner.search_tol, n_jobs=1, interactions=interactions
    )
    axes = {"smoothness": SMOOTHNESS_TRIED}
    grids = grids_of(fold.train, base, axes, Cs=grid, n_points=learner.n_points, learner=learner)
    room = learner.room if grid is None else None
    run = Exploration(search, None, refines=False, room=room)
    for _ in run.explore(iter(grids), Count(None)):
        pass
    selection = search.selection()
    (model,) = search.models(selection.candidates[selection.best])
    values = model.keywords["values"], *model.keywords["grid_values"]
    yield partial(model, threads=1), sum(part.size for part in values)


def lambdarank(fold: Fold, _: Any) -> Iterator[tuple[Callable[[Any], Any], int]]:
    """Yield LightGBM's lambdarank with the parameters of its example, stopped early."""
    import lightgbm

    model = lightgbm.LGBMRanker(
        n_estimators=TREES, num_leaves=31, min_child_samples=50, min_child_weight=5.0,
        learning_rate=0.1, subsample=0.9, subsample_freq=1, verbose=-1, n_jobs=1, random_state=0,
    )  # fmt: skip
    train, valid = sorted_by_query(fold.train), sorted_by_query(fold.valid)
    model.fit(
        train.X, train.y.astype(int), group=np.bincount(train.qid),
        eval_set=[(valid.X, valid.y.astype(int))], eval_group=[np.bincount(valid.qid)],
        eval_at=[10], callbacks=[lightgbm.early_stopping(50, verbose=False)],
    )  # fmt: skip
    yield model.predict, 3 * 31 * model.best_iteration_


def xgboost(fold: Fold, _: Any) -> Iterator[tuple[Callable[[Any], Any], int]]:
    """Yield XGBoost's rank:ndcg, stopped early."""
    import xgboost

    model = xgboost.XGBRanker(
        objective="rank:ndcg", eval_metric="ndcg@10", n_estimators=TREES, learning_rate=0.1,
        max_depth=5, subsample=0.9, early_stopping_rounds=50, n_jobs=1, random_state=0,
    )  # fmt: skip
    train, valid = sorted_by_query(fold.train), sorted_by_query(fold.valid)
    model.fit(
        train.X, train.y.astype(int), qid=train.qid,
        eval_set=[(valid.X, valid.y.astype(int))], eval_qid=[valid.qid], verbose=False,
    )  # fmt: skip
    yield model.predict, 3 * 31 * (model.best_iteration + 1)


LEARNERS = {
    "RankSVM": lines,
    "AdditiveRankSVM": curves,
    f"AdditiveRankSVM, interactions={PAIRS}": partial(curves, interactions=PAIRS),
    "LightGBM lambdarank": lambdarank,
    "XGBoost rank:ndcg": xgboost,
}


def sorted_by_query(data: RankingData) -> RankingData:
    """Return the documents with those of a query together, as trees want them."""
    order = np.argsort(data.qid, kind="stable")
    return RankingData(data.X[order], data.y[order], data.qid[order])


def divided(data: RankingData, n_splits: int) -> Iterator[Fold]:
    """Yield random divisions of the queries."""
    for seed in range(n_splits):
        share = np.random.default_rng(seed).random(data.n_queries)[data.qid]
        parts = (share < 0.6, (share >= 0.6) & (share < 0.8), share >= 0.8)
        yield Fold(*(rows(data, part, data.n_features) for part in parts))


def housing(path: Path) -> RankingData:
    """Return California housing in random queries, with labels by quintiles of the price."""
    X, y, _ = load_letor(path)
    X = X.toarray() if hasattr(X, "toarray") else X
    label = np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y)
    order = np.random.default_rng(0).permutation(len(y))
    return RankingData(X[order], label[order], np.arange(len(y)) // QUERY)


def graded(data: RankingData) -> RankingData:
    """Return relevances between 0 and 1 as labels 0 to 4, which trees want."""
    return RankingData(data.X, np.round(4 * data.y), data.qid)


def together(*parts: RankingData) -> RankingData:
    """Return the documents of several parts, whose queries are others."""
    width = max(part.n_features for part in parts)
    same = [rows(part, np.ones(part.n_documents, dtype=bool), width) for part in parts]
    first = np.cumsum([0, *(part.n_queries for part in same)])
    return RankingData(
        np.vstack([part.X for part in same]),
        np.concatenate([part.y for part in same]),
        np.concatenate([part.qid + first[k] for k, part in enumerate(same)]),
    )


def data_sets(folder: Path, n_splits: int) -> dict[str, Callable[[], Iterator[Fold]]]:
    """Return the folds of each data set, not yet read."""
    example = folder / "lightgbm-lambdarank"
    return {
        "MQ2008": lambda: letor_folds(folder / "MQ2008"),
        "OHSUMED": lambda: letor_folds(folder / "OHSUMED"),
        "MSLR sample": lambda: divided(
            together(*(load_letor(folder / f"MSLR-sample/{p}.txt.gz") for p in ("train", "test"))),
            n_splits,
        ),
        "LightGBM's example": lambda: divided(
            together(
                *(
                    load_letor(example / f"rank.{p}.gz", group=example / f"rank.{p}.query")
                    for p in ("train", "test")
                )
            ),
            n_splits,
        ),
        "querywise": lambda: divided(graded(querywise(folder / "querywise")), n_splits),
        "California housing": lambda: divided(housing(folder / "cadata/cadata.txt.gz"), n_splits),
    }


def dense(fold: Fold) -> Fold:
    """Return the same with dense features, which all learners take."""
    width = max(part.n_features for part in fold)
    return Fold(*(rows(part, np.ones(part.n_documents, dtype=bool), width) for part in fold))


def quality(folder: Path, n_splits: int, *, quick: bool) -> dict[str, Any]:
    """Judge all learners on all data, and print a line each."""
    found: dict[str, Any] = {}
    for name, folds in data_sets(folder, n_splits).items():
        splits = [dense(fold) for fold in folds()][: 1 if quick else None]
        base = None
        for learner, fits in LEARNERS.items():
            judged = [choose(fold, fits(fold, GRID[2:4] if quick else None)) for fold in splits]
            values = np.array([one.ndcg for one in judged])
            base = values if base is None else base
            gain = values - base
            error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else np.nan
            mean = Judged(*np.mean(judged, axis=0))
            found.setdefault(name, {})[learner] = mean._asdict() | {
                "gain": gain.mean(),
                "error": error,
            }
            print(
                f"{name:20} {learner:31} NDCG@10 {mean.ndcg:.4f} ({gain.mean():+.4f} ± {error:.4f})"
                f"  MAP {mean.map:.4f}  {mean.seconds:6.1f} s  {mean.numbers:7.0f} numbers",
                flush=True,
            )
    return found


def best_time(function: Callable[[], Any], times: int) -> float:
    """Return the shortest time of the processor."""
    seconds = []
    for _ in range(times):
        begin = time.process_time()
        function()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def speed(n_documents: int) -> dict[str, float]:
    """Print how much longer products and fits take than those of lines, and the memory."""
    X, y, qid = make_ranking(n_documents // QUERY, QUERY, 136, random_state=0)
    data = RankingData(X.astype(np.float32), y, qid)
    del X
    rng = np.random.default_rng(0)
    parameters = AdditiveParameters(n_jobs=1)
    additive = prepare(data, parameters).objective(data, parameters)
    line = make_objective(data, Parameters(n_jobs=1))
    products = []
    for objective in (additive, line):
        v = 0.01 * rng.normal(size=objective.n_features)
        point = objective.at(v)
        products.append(best_time(lambda point=point, v=v: point.hess_vec(v), 10))
    del additive, line, objective, point
    options: Any = {"C": 1.0, "normalization": "pairs", "scale": "standard", "tol": 1e-4}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fits = [
        best_time(lambda kind=kind: kind(**options, n_jobs=1).fit(data), 3)
        for kind in (AdditiveRankSVM, RankSVM)
    ]
    found = {
        "product": products[0] / products[1],
        "fit": fits[0] / fits[1],
        "bytes a value above the first peak": 1024
        * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        / data.X.size,
    }
    print(f"products {products[0]:.4f} s and {products[1]:.4f} s, ratio {found['product']:.2f}")
    print(f"fits {fits[0]:.2f} s and {fits[1]:.2f} s, ratio {found['fit']:.1f}")
    return found


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("quality", "speed"))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--documents", type=int, default=240_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.part == "speed":
        found: Any = speed(arguments.documents)
    else:
        folder = os.environ.get("MARGINRANK_DATA")
        if not folder:
            parser.error("MARGINRANK_DATA must name the folder of the data sets.")
        found = quality(Path(folder), arguments.splits, quick=arguments.quick)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
