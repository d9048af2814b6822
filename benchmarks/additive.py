"""Additive models against linear models and trees: the tables of docs/how_to/additive_models.md.

    MARGINRANK_DATA=folder python benchmarks/additive.py quality [--splits 10] [--quick]
    python benchmarks/additive.py speed [--documents 240000] [--json results.json]

quality: on every data set and split, each learner chooses its parameters on validation queries, by
NDCG@10, and is evaluated on test queries. MQ2008 and OHSUMED have the five folds of LETOR; others
are divided at random, 60, 20 and 20 of 100 queries, as often as --splits says. California housing
is one query, divided into random queries of 100 documents, with labels by quintiles of the price.
querywise has relevances from 0 to 1, rounded to labels from 0 to 4. RankSVM and AdditiveRankSVM
choose C, the latter also its smoothness, as `tune --additive --valid` does: plainly, with pairs of
documents weighted by what they are worth to NDCG, and with pairs of features that act together;
LightGBM (lambdarank) and XGBoost (rank:ndcg) have the parameters of
LightGBM's own example and stop early. Times are processor times of one thread, for choice
and fit.

speed: a product with one thread and with all, a fit to tol=1e-4 and the memory of a fit, against
RankSVM on the same float32 data and against their limits. Products of both learners take turns, by
the best of many, in time of the processor and on the wall. Memory is the peak of anonymous memory
above the data in a process of its own, in bytes per value of X, less the O(l) memory of RankSVM and
the sample of the preconditioner, whose size does not depend on the data.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _memory import MemoryWatch, anonymous_bytes
from ndcg import querywise
from scaling import Fold, letor_folds, rows

from marginrank import AdditiveRankSVM, RankingData, RankSVM, load_letor, make_ranking, metrics
from marginrank._utils.threads import effective_threads
from marginrank.additive.fit import AdditiveParameters, prepare
from marginrank.additive.selection import AdditiveLearner
from marginrank.fit.linear import Parameters, make_objective
from marginrank.models.parameters import SMOOTHNESS_TRIED
from marginrank.selection.scoring import Split, SplitScorer
from marginrank.selection.search import Search
from marginrank.selection.space import SearchSpace
from marginrank.solvers.smooth.preconditioner import MOST_LEADING, SAMPLE_PER_LEADING

GRID = 10.0 ** np.arange(-2, 4)
TREES = 500
QUERY = 100  # documents
PAIRS = 3  # of features that act together
FIT: dict[str, Any] = {"C": 1.0, "normalization": "pairs", "scale": "standard", "tol": 1e-4}
PRODUCT_LIMIT, FIT_LIMIT, MEMORY_LIMIT = 2.0, 15.0, 3.0


class Judged(NamedTuple):
    """Quality of a model on test queries, time to select and fit it, and its size."""

    ndcg: float
    map: float
    seconds: float
    numbers: int


def ndcg(data: RankingData, scores: Any) -> float:
    """Return NDCG@10, the same for any order of ties."""
    return float(metrics.ndcg(data.y, scores, qid=data.qid, k=10, ties="average"))


def mean_precision(data: RankingData, scores: Any) -> float:
    """Return MAP; a document with a label is relevant."""
    return float(metrics.average_precision((data.y > 0).astype(int), scores, qid=data.qid))


def choose(fold: Fold, fits: Iterator[tuple[Callable[[Any], Any], int]]) -> Judged:
    """Fit one model after the other, and evaluate the best on validation queries."""
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


def curves(fold: Fold, grid: Any, **parameters: Any) -> Iterator[tuple[Callable[[Any], Any], int]]:
    """Yield the additive model that a search by validation queries has found, as tune does."""
    learner = AdditiveLearner()
    base = AdditiveParameters(normalization="pairs", tol=learner.search_tol, n_jobs=1, **parameters)
    space = SearchSpace(base, {"smoothness": SMOOTHNESS_TRIED}, grid, learner=learner)
    scorer = SplitScorer([Split(None, fold.valid)], "ndcg@10", 1, learner)
    search = Search(fold.train, space, scorer)
    for _ in search.run():
        pass
    result = search.result(compare=False)
    (model,) = search.models(result.candidates[result.best_index])
    yield model.scores, sum(one.values.size for one in (*model.curves, *model.interactions))


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
    'AdditiveRankSVM, pair_cost="ndcg"': partial(curves, pair_cost="ndcg"),
    f"AdditiveRankSVM, interactions={PAIRS}": partial(curves, interactions=PAIRS),
    "LightGBM lambdarank": lambdarank,
    "XGBoost rank:ndcg": xgboost,
}


def sorted_by_query(data: RankingData) -> RankingData:
    """Return the documents sorted by query, as trees need them."""
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
    """Evaluate all learners on all data, and print one line each."""
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
                f"{name:20} {learner:33} NDCG@10 {mean.ndcg:.4f} ({gain.mean():+.4f} ± {error:.4f})"
                f"  MAP {mean.map:.4f}  {mean.seconds:6.1f} s  {mean.numbers:7.0f} numbers",
                flush=True,
            )
    return found


class Seconds(NamedTuple):
    """Processor and wall time of a run."""

    processor: float
    wall: float

    def over(self, other: "Seconds") -> "Seconds":
        """Return the ratio of each to another's."""
        return Seconds(self.processor / other.processor, self.wall / other.wall)


def seconds(function: Callable[[], Any]) -> Seconds:
    """Return how long a call takes."""
    begin, wall = time.process_time(), time.perf_counter()
    function()
    return Seconds(time.process_time() - begin, time.perf_counter() - wall)


def best_in_turns(functions: list[Callable[[], Any]], times: int) -> list[Seconds]:
    """Return the shortest times of functions that take turns."""
    found = [[seconds(function) for function in functions] for _ in range(times)]
    return [Seconds(*np.min(column, axis=0)) for column in zip(*found, strict=True)]


def timed_data(n_documents: int) -> RankingData:
    """Return documents of 136 features."""
    X, y, qid = make_ranking(n_documents // QUERY, QUERY, 136, random_state=0)
    return RankingData(X.astype(np.float32), y, qid)


def product_ratio(data: RankingData, n_jobs: int | None, times: int) -> Seconds:
    """Return and print the time of an additive product relative to a linear one."""
    rng = np.random.default_rng(0)
    parameters = AdditiveParameters(n_jobs=n_jobs)
    objectives = (
        prepare(data, parameters).objective(data, parameters),
        make_objective(data, Parameters(n_jobs=n_jobs)),
    )
    functions = []
    for objective in objectives:
        v = 0.01 * rng.normal(size=objective.n_features)
        functions.append(partial(objective.at(v).hess_vec, v))
    curves, line = best_in_turns(functions, times)
    ratio = curves.over(line)
    print(
        f"product, {effective_threads(n_jobs)} threads: processor {1e3 * curves.processor:.1f} and "
        f"{1e3 * line.processor:.1f} ms, ratio {ratio.processor:.2f}; wall {1e3 * curves.wall:.1f} "
        f"and {1e3 * line.wall:.1f} ms, ratio {ratio.wall:.2f} (limit {PRODUCT_LIMIT})",
        flush=True,
    )
    return ratio


def fit_ratio(data: RankingData, times: int) -> Seconds:
    """Return and print the time of an additive fit relative to a linear one."""
    fits = [partial(kind(**FIT, n_jobs=1).fit, data) for kind in (AdditiveRankSVM, RankSVM)]
    curves, line = best_in_turns(fits, times)
    ratio = curves.over(line)
    print(
        f"fit: processor {curves.processor:.2f} and {line.processor:.2f} s, ratio "
        f"{ratio.processor:.1f} (limit {FIT_LIMIT})",
        flush=True,
    )
    return ratio


def memory_of(kind: str, n_documents: int) -> float:
    """Return the bytes that a fit takes above the data, in a process of its own."""
    watch = MemoryWatch()
    data = timed_data(n_documents)
    learner = {"curves": AdditiveRankSVM, "lines": RankSVM}[kind](**FIT)
    few = rows(data, np.arange(data.n_documents) < 100 * QUERY, data.n_features)
    learner.fit(few)  # what libraries take once
    before = anonymous_bytes()
    watch.start()
    learner.fit(data)
    return float(watch.peak - before)


def bytes_a_value(n_documents: int) -> float:
    """Return and print the memory of a fit per value of X."""
    options = ("--documents", str(n_documents))
    curves, line = (
        float(
            subprocess.run(
                [sys.executable, __file__, "memory", *options, "--kind", kind],
                capture_output=True, text=True, check=True,
            ).stdout
        )
        for kind in ("curves", "lines")
    )  # fmt: skip
    sample = 8.0 * MOST_LEADING * MOST_LEADING * SAMPLE_PER_LEADING
    found = (curves - line - sample) / (136 * n_documents)
    print(
        f"memory: {curves / 1e6:.0f} MB above the data, of which {line / 1e6:.0f} MB are O(l) and "
        f"{sample / 1e6:.0f} MB the preconditioner's: {found:.2f} bytes per value (limit "
        f"{MEMORY_LIMIT})"
    )
    return found


def speed(n_documents: int) -> dict[str, Any]:
    """Print the time of products and fits relative to linear models, and the memory."""
    data = timed_data(n_documents)
    return {
        "product, 1 thread": product_ratio(data, 1, 40)._asdict(),
        "product, all threads": product_ratio(data, None, 40)._asdict(),
        "fit": fit_ratio(data, 3)._asdict(),
        "bytes per value": bytes_a_value(n_documents),
    }


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("quality", "speed", "memory"))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--documents", type=int, default=240_000)
    parser.add_argument("--kind", choices=("curves", "lines"), default="curves")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.part == "memory":
        print(memory_of(arguments.kind, arguments.documents))
        return
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
