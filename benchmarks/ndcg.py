"""NDCG as the objective on real data: the table of docs/how_to/optimize_ndcg.md.

    MARGINRANK_DATA=folder python benchmarks/ndcg.py [--json FILE] [--only NAME …] [--quick]

Each set is divided at random, by query, into three fifths to learn from, one to choose C by, and
one for evaluation, ten times. C is the one of a grid that ranks validation queries best, for
every learner by itself. Differences are to pair_cost="ndcg", paired by division, with their
standard error. California housing is one query; it is dealt out into queries of 40, with prices in
100,000 dollars as labels. "listed" has the rounds of objective="ndcg@10" on listed pairs that weigh
exactly what swapping their documents changes in NDCG@10. --seed makes other divisions. --quick
makes two divisions and a short grid, to see that the script works.
"""

import argparse
import gzip
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marginrank import RankingData, RankSVM, load_letor
from marginrank.data.pair_lists import PairList
from marginrank.fit.inputs import Preferences, objective_on
from marginrank.fit.linear import Parameters, minimize, preferences_of
from marginrank.fit.rounds import Problems, Top, fit_in_rounds
from marginrank.fit.scaling import find_scale
from marginrank.metrics import ndcg
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import get_loss
from marginrank.objective.pair_weights import exponential_gain

K = 10
GRID = 4.0 ** np.arange(-10, 1)
QUICK_GRID = 4.0 ** np.arange(-5, -3)
HOUSES = 40  # in a query
BASE = "pair_cost=ndcg"


class Division(NamedTuple):
    """Data for training, for the selection of C, and for evaluation."""

    train: RankingData
    valid: RankingData
    test: RankingData


def stacked(parts: list[RankingData]) -> RankingData:
    """Return the documents of several files, whose queries are others in each."""
    width = max(part.n_features for part in parts)
    dense = [part.X.toarray() if hasattr(part.X, "toarray") else part.X for part in parts]
    before = np.cumsum([0, *(part.n_queries for part in parts[:-1])])
    return RankingData(
        np.concatenate([np.pad(X, ((0, 0), (0, width - X.shape[1]))) for X in dense]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.qid + n for part, n in zip(parts, before, strict=True)]),
    )


def lightgbm_example(folder: Path) -> RankingData:
    """Return LightGBM's example, whose queries are in files of their own."""
    files = [folder / f"rank.{part}" for part in ("train", "test")]
    return stacked([load_letor(f"{file}.gz", group=f"{file}.query") for file in files])


def houses(path: Path) -> RankingData:
    """Return California housing, dealt out into queries."""
    X, y, _ = load_letor(path)
    order = np.random.default_rng(0).permutation(len(y))
    return RankingData(X[order], y[order] / 1e5, np.arange(len(y)) // HOUSES)


def querywise(folder: Path) -> RankingData:
    """Return the documents of tab separated files: query, label and features from column 1 on."""
    rows = []
    for part in ("train", "test"):
        with gzip.open(folder / f"{part}.gz", "rt") as file:
            rows += [[part, *line.rstrip("\n").split("\t")] for line in file]
    qid = [f"{row[0]} {row[2]}" for row in rows]
    X = np.array([row[5:] for row in rows], dtype=np.float64)
    return RankingData(X, [float(row[3]) for row in rows], qid)


def data_sets(folder: Path) -> dict[str, Callable[[], RankingData]]:
    """Return the data sets, not yet read."""
    letor = [f"S{f}.txt.gz" for f in range(1, 6)]
    mslr = ["train.txt.gz", "test.txt.gz"]
    return {
        "MSLR-sample": lambda: stacked([load_letor(folder / "MSLR-sample" / f) for f in mslr]),
        "lightgbm-lambdarank": lambda: lightgbm_example(folder / "lightgbm-lambdarank"),
        "MQ2008": lambda: stacked([load_letor(folder / "MQ2008" / f) for f in letor]),
        "OHSUMED": lambda: stacked([load_letor(folder / "OHSUMED" / f) for f in letor]),
        "querywise": lambda: querywise(folder / "querywise"),
        "cadata": lambda: houses(folder / "cadata" / "cadata.txt.gz"),
    }


def divisions(data: RankingData, count: int, seed: int) -> Iterator[Division]:
    """Yield random divisions by query."""
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        fifth = rng.integers(0, 5, data.n_queries)[data.qid]
        yield Division(
            *(
                RankingData(data.X[which], data.y[which], data.qid[which])
                for which in (fifth < 3, fifth == 3, fifth == 4)
            )
        )


def judge(w: Any, data: RankingData) -> float:
    """Return NDCG@10 of some weights."""
    return float(ndcg(data.y, data.matrix.dot(w, None, 1), qid=data.qid, k=K, ties="average"))


def fitted(train: RankingData, C: float, **how: Any) -> Any:
    """Return the weights of a RankSVM."""
    return RankSVM(C=C, scale="standard", tol=1e-4, **how).fit(train).coef_


class ListedTop(Top):
    """The first documents of the rankings so far, and the pairs that have one of them."""

    def weigh(self, scores: Any) -> Any:
        """Return the pairs, and what swapping them changes in NDCG@10 at the mean discounts."""
        super().weigh(scores)
        data, discount, gain = self.data, self.mean, exponential_gain(self.data.y)
        listed, weights = [], []
        for q in range(data.n_queries):
            rows = np.flatnonzero(data.qid == q)
            ideal = np.sort(gain[rows] - 1.0)[::-1][:K]
            ideal_dcg = ideal @ (1.0 / np.log2(np.arange(2, ideal.size + 2)))
            touches = (discount[rows, None] > 0) | (discount[rows] > 0)
            i, j = rows[np.argwhere(touches & (data.y[rows, None] > data.y[rows]))].T
            listed.append(np.stack([i, j], axis=1))
            weights.append((gain[i] - gain[j]) * abs(discount[i] - discount[j]) / (ideal_dcg or 1))
        return PairList(np.concatenate(listed), np.concatenate(weights))


def fitted_to_lists(train: RankingData, C: float) -> Any:
    """Return the weights of rounds on listed pairs."""
    parameters = Parameters(C=C, pair_cost="ndcg", tol=1e-4)
    scale, loss = find_scale(train, "standard"), get_loss(parameters.loss)

    def choose(listed: PairList | None = None) -> Preferences:
        if listed is None:
            return preferences_of(train, parameters)
        return Preferences(ListedPairs.from_data(train, listed, margins=None, threads=1), loss)

    def solve(chosen: Preferences, w0: Any, callback: Any) -> Any:
        objective = objective_on(train, chosen, C=C)
        return minimize(objective, parameters, scale=scale, seed=0, w0=w0, callback=callback)

    problems = Problems(choose, solve, lambda w: train.matrix.dot(w, None, 1))
    return fit_in_rounds(problems, ListedTop(train, K, 1), w0=None, callback=None)[0]


LEARNERS: dict[str, Callable[[RankingData, float], Any]] = {
    "pairs": fitted,
    BASE: partial(fitted, pair_cost="ndcg"),
    f"objective=ndcg@{K}": partial(fitted, objective=f"ndcg@{K}"),
    "listed": fitted_to_lists,
}


def learn_and_judge(
    learn: Callable[[RankingData, float], Any], division: Division, grid: Any
) -> tuple[float, float]:
    """Return NDCG@10 of test queries with the best C, and the seconds of a fit."""
    begin = time.perf_counter()
    models = [learn(division.train, C) for C in grid]
    seconds = (time.perf_counter() - begin) / len(models)
    best = int(np.argmax([judge(w, division.valid) for w in models]))
    return judge(models[best], division.test), seconds


def compare(data: RankingData, count: int, seed: int, grid: Any) -> dict[str, dict[str, float]]:
    """Return the score of each learner."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in LEARNERS}
    for division in divisions(data, count, seed):
        for name, learn in LEARNERS.items():
            found[name].append(learn_and_judge(learn, division, grid))
    values = {name: np.array(pairs).T for name, pairs in found.items()}
    return {
        name: {
            "ndcg": float(value.mean()),
            "difference": float((value - values[BASE][0]).mean()),
            "error": float((value - values[BASE][0]).std(ddof=1) / np.sqrt(count)),
            "seconds": float(np.median(seconds)),
        }
        for name, (value, seconds) in values.items()
    }


def main() -> None:
    """Print a line for each data set and learner."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--only", nargs="+", help="names of data sets")
    parser.add_argument("--seed", type=int, default=0, help="of the divisions")
    parser.add_argument("--quick", action="store_true", help="two divisions and a short grid")
    arguments = parser.parse_args()
    folder = os.environ.get("MARGINRANK_DATA")
    if folder is None:
        raise SystemExit("MARGINRANK_DATA must name the folder of real ranking data.")
    warnings.simplefilter("ignore")  # of features that no pair sees, and of optima out of reach
    count, grid = (2, QUICK_GRID) if arguments.quick else (10, GRID)
    figures = {}
    for name, read in data_sets(Path(folder)).items():
        if arguments.only is not None and name not in arguments.only:
            continue
        figures[name] = compare(read(), count, arguments.seed, grid)
        for learner, line in figures[name].items():
            print(
                f"{name:20s} {learner:18s} {line['ndcg']:.4f}  {line['difference']:+.4f} ± "
                f"{line['error']:.4f}  {line['seconds']:.2f} s a fit",
                flush=True,
            )
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
