"""Learning from simulated clicks: the tables of docs/how_to/clicks.md.

    MARGINRANK_DATA=folder python benchmarks/clicks.py [--only NAME …] [--quick] [--no-lightgbm]
    MARGINRANK_DATA=folder python benchmarks/clicks.py --order 0.25 --shown 10 --cut
    python benchmarks/clicks.py --cost

Each set is divided into five folds by query. As in Joachims, Swaminathan and Schnabel (2017), lists
are ordered by a linear model of the judgments of one percent of the training queries (at least
three), and they show all documents of the query. For lists of a length that users read, queries
keep 20 documents (--shown) at random. 5,000 sessions (--sessions) draw queries at random, and
clicks follow the position-based model with the bias exponents 0.5, 1 and 1.5, and three seeds.

--order 0.25 orders lists by one feature instead, which ranks better than three quarters of the
features; --order 0 takes the best one. --cut keeps all documents, of which lists show the top
only. --shuffle adds Gumbel noise to the order in each session, times this number of standard
deviations, so that documents change their positions.

Every learner gets the same clicks and the same parameters; NDCG@10 is by the labels of the held-out
fold. ± is the standard error of the difference to naive clicks, over folds and seeds. "recovered"
is the share of the difference between naive clicks and full labels. --quick has one fold and one
seed. --cost measures what positions add to a fit.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from ndcg import data_sets

from marginrank import ClickLog, RankingData, RankSVM, make_clicks, make_ranking, rank_features
from marginrank.metrics import ndcg

SETS = ("MQ2008", "OHSUMED", "MSLR")
EXPONENTS = (0.5, 1.0, 1.5)
FOLDS = 5
JUDGED_SHARE, LEAST_JUDGED = 0.01, 3  # queries behind the ranker that orders the lists
LEAST_LOST = 0.01  # a share of less would be noise
C = 0.3  # the best of 0.01, 0.1, 0.3, 1, 3 and 10 for full labels, on one fold of MQ2008
Learner = Callable[[RankingData, ClickLog], Callable[[Any], Any]]


def ranker() -> RankSVM:
    """Return the learner, with the same parameters for all kinds of labels."""
    return RankSVM(C=C, normalization="pairs", scale="standard", tol=1e-4, n_jobs=1)


def naive(data: RankingData, log: ClickLog) -> Callable[[Any], Any]:
    """Treat clicks as labels."""
    return ranker().fit(data.X[log.document], log.click, qid=log.session).predict


def weighted(data: RankingData, log: ClickLog) -> Callable[[Any], Any]:
    """Divide by the true propensities."""
    model = ranker()
    model.fit(data.X[log.document], log.click, qid=log.session, propensity=log.propensity)
    return model.predict


def position(monotone: bool) -> Learner:
    """Learn the effects of positions in the same fit."""

    def fit(data: RankingData, log: ClickLog) -> Callable[[Any], Any]:
        given = {"qid": log.session, "position": log.position, "monotonic_position": monotone}
        return ranker().fit(data.X[log.document], log.click, **given).predict

    return fit


def full(data: RankingData, _: ClickLog) -> Callable[[Any], Any]:
    """Learn from the judgments."""
    return ranker().fit(data).predict


def boosted(debiased: bool) -> Learner:
    """Return LightGBM's lambdarank, with or without its own debiasing."""

    def fit(data: RankingData, log: ClickLog) -> Callable[[Any], Any]:
        import lightgbm

        sizes = np.bincount(log.session)
        train = lightgbm.Dataset(
            data.X[log.document],
            log.click,
            group=sizes[sizes > 0],
            position=log.position - 1 if debiased else None,
        )
        options = {"objective": "lambdarank", "verbose": -1, "num_threads": 1, "num_leaves": 15}
        booster = lightgbm.train({**options, "learning_rate": 0.05}, train, num_boost_round=100)
        return booster.predict

    return fit


def shown_by(train: RankingData, order: float | None, seed: int) -> Any:
    """Return the scores by which lists are ordered, with a standard deviation of 1."""
    if order is None:
        has_pairs = [q for q in range(train.n_queries) if np.ptp(train.y[train.qid == q]) > 0]
        drawn = np.random.default_rng([7, seed]).permutation(has_pairs)
        few = taken(train, drawn[: max(round(JUDGED_SHARE * len(drawn)), LEAST_JUDGED)])
        values = ranker().fit(few).predict(train.X)
    else:
        ranking = rank_features(train.X, train.y, qid=train.qid)
        j = ranking.order[int(len(ranking.order) * order)]
        values = ranking.direction[j] * train.X[:, j]
    return values / values.std()


def rows_of(data: RankingData, rows: Any) -> RankingData:
    """Return some documents of a data set whose X is an array."""
    return RankingData(np.ascontiguousarray(data.X[rows]), data.y[rows], data.qid[rows])


def taken(data: RankingData, queries: Any) -> RankingData:
    """Return the documents of some queries."""
    return rows_of(data, np.isin(data.qid, queries))


def thinned(data: RankingData, most: int) -> RankingData:
    """Return at most this number of documents of each query, drawn at random."""
    order = np.lexsort((np.random.default_rng(0).random(data.n_documents), data.qid))
    sizes = np.bincount(data.qid)
    rank = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rows_of(data, np.sort(order[rank < most]))


def read(name: str, options: Any) -> RankingData:
    """Return a data set with a dense X, with fewer documents per query unless lists are cut."""
    readers = data_sets(Path(os.environ["MARGINRANK_DATA"]))
    data = readers[next(key for key in readers if key.lower().startswith(name.lower()[:4]))]()
    if hasattr(data.X, "toarray"):
        data = data.with_features(data.X.toarray())
    return data if options.cut else thinned(data, options.shown)


def values(data: RankingData, learners: dict[str, Learner], eta: float, options: Any) -> Any:
    """Return NDCG@10 by learner, fold and seed."""
    order = np.random.default_rng(0).permutation(data.n_queries)
    folds = np.array_split(order, FOLDS)
    found: dict[str, list[float]] = {name: [] for name in learners}
    for k in range(1 if options.quick else FOLDS):
        test = taken(data, folds[k])
        train = taken(data, np.concatenate([fold for j, fold in enumerate(folds) if j != k]))
        for seed in options.seeds[: 1 if options.quick else None]:
            log = make_clicks(
                train.y,
                qid=train.qid,
                scores=shown_by(train, options.order, seed),
                temperature=options.shuffle,
                n_sessions=options.sessions,
                shown=options.shown,
                eta=eta,
                random_state=seed,
            )
            for name, learn in learners.items():
                scores = learn(train, log)(test.X)
                found[name].append(float(ndcg(test.y, scores, qid=test.qid, k=10)))
    return {name: np.array(found[name]) for name in found}


def print_cost() -> None:
    """Print processor time and passes over 240,000 × 136 features, with and without positions."""
    X, y, qid = make_ranking(n_queries=12_000, docs_per_query=20, n_features=136, random_state=0)
    click = (y > np.median(y)).astype(float)
    shown = np.tile(np.arange(1, 21), 12_000)
    for round_ in range(3):
        for name, given in {"without": {}, "with": {"position": shown}}.items():
            begin, cpu = time.perf_counter(), time.process_time()
            model = RankSVM(C=1e-4).fit(X, click, qid=qid, **given)
            print(
                f"{round_} {name:8} {time.process_time() - cpu:6.2f} s of processors, "
                f"{time.perf_counter() - begin:6.2f} s, {model.history_[-1].sweeps:5.1f} passes, "
                f"{model.n_iter_} iterations, {model.stop_reason_.name}",
                flush=True,
            )


def main() -> None:
    """Print one line per set, exponent and learner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=SETS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-lightgbm", action="store_true")
    parser.add_argument("--order", type=float, help="share of the features that are better")
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--shown", type=int, default=20, help="documents per list")
    parser.add_argument("--cut", action="store_true", help="show the top of longer lists")
    parser.add_argument("--shuffle", type=float, default=0.0)
    parser.add_argument("--exponents", type=float, nargs="*", default=EXPONENTS)
    parser.add_argument("--seeds", type=int, nargs="*", default=(0, 1, 2))
    parser.add_argument("--cost", action="store_true", help="measure the cost of positions")
    options = parser.parse_args()
    if options.cost:
        print_cost()
        return
    warnings.filterwarnings("ignore")
    learners: dict[str, Learner] = {
        "naive clicks": naive,
        "true propensities": weighted,
        "position term": position(monotone=False),
        "monotone position term": position(monotone=True),
        "full labels": full,
    }
    if not options.no_lightgbm:
        learners |= {"LightGBM, naive": boosted(False), "LightGBM, position": boosted(True)}
    shares = []
    for name in options.only:
        data = read(name, options)
        for eta in options.exponents:
            found = values(data, learners, eta, options)
            lost = np.mean(found["full labels"] - found["naive clicks"])
            for learner, scores in found.items():
                gain = scores - found["naive clicks"]
                error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else np.nan
                share = np.mean(gain) / lost if lost > LEAST_LOST else np.nan  # of what was lost
                if learner == "position term":
                    shares.append(share)
                print(
                    f"{name:8} {eta:3.1f}  {learner:22} {scores.mean():.4f}  "
                    f"{gain.mean():+.4f} ± {error:.4f}  recovered {share:+.2f}",
                    flush=True,
                )
    print(f"recovered by the position term, mean: {np.nanmean(shares):+.2f}")


if __name__ == "__main__":
    main()
