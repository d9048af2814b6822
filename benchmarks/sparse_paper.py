"""The protocol of paper 3 (Lai et al., 2013) on MQ2008 and OHSUMED, beside its tables 2 to 8.

Five folds; the regularization is chosen by NDCG@10 on the validation part. Needs the folder that
MARGINRANK_DATA names. `--quick` runs a single fold.

Which NDCG: the paper prints 2^y − 1 over log(1 + rank), but its figures (RankSVM's are the LETOR
site's) come from LETOR's evaluation: discount 1, 1, 1/log₂3, …, and in LETOR 4.0 (MQ2008) a query
with fewer than k documents has NDCG@k = 0. That is why its NDCG@10 of MQ2008 is half its NDCG@5.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel
from sklearn.exceptions import ConvergenceWarning

from marginrank import RankSVM, SelectKBestRanking, SparseRankSVM, load_letor, metrics

RADII = [2.0**k for k in range(9)]
COLUMNS = ("N@1", "N@3", "N@5", "N@10", "MAP")
PAPER = {  # N@1, N@3, N@5, N@10, MAP, sparsity ratio; tables 2, 4, 5, 7
    "OHSUMED": {
        "RankSVM": (0.5460, 0.4855, 0.4689, 0.4504, 0.4446, 0.8),
        "FenchelRank": (0.5456, 0.5166, 0.4826, 0.4637, 0.4486, 0.2889),
        "TGRank": (0.5616, 0.4923, 0.4813, 0.4524, 0.4479, 0.2178),
        "RSRank": (0.5395, 0.4831, 0.4684, 0.4503, 0.4486, 0.5156),
        "FS-Rank(k=10)": (0.5426, 0.5018, 0.4722, 0.4528, 0.4486, None),
        "FS-Rank(k=20)": (0.5457, 0.4989, 0.4758, 0.4573, 0.4489, None),
    },
    "MQ2008": {
        "RankSVM": (None, None, None, None, 0.4744, 0.8697),
        "FenchelRank": (0.3762, 0.4402, 0.4790, 0.2317, 0.4785, 0.3435),
        "TGRank": (0.3626, 0.4303, 0.4712, 0.2277, 0.4709, 0.3957),
        "RSRank": (0.3686, 0.4340, 0.4734, 0.2282, 0.4781, 0.5261),
    },
}


class Model:
    """A linear model on some of the features."""

    def __init__(self, coef: Any, seconds: float) -> None:
        self.coef = coef
        self.seconds = seconds

    @property
    def sparsity(self) -> float:
        """Share of the weights that are not zero."""
        return float(np.mean(self.coef != 0))


def _fit(estimator: Any, data: Any) -> Model:
    start = time.perf_counter()
    with warnings.catch_warnings():
        # The paper, too, stops FenchelRank early.
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(data.X, data.y, qid=data.qid)
    return Model(estimator.coef_, time.perf_counter() - start)


def rank_svm(data: Any) -> Iterator[Model]:
    """RankSVM over a grid of C."""
    for C in 10.0 ** np.arange(-6, 2):
        yield _fit(RankSVM(C=C), data)


def fenchel_rank(data: Any) -> Iterator[Model]:
    """FenchelRank with the paper's radii, T = 1,000 and its gap of 0.001."""
    for radius in RADII:
        yield _fit(_paper_limits(SparseRankSVM(radius=radius, scale=None, solver="fenchel")), data)


def optimum(data: Any) -> Iterator[Model]:
    """The optima of FenchelRank's problems."""
    for radius in RADII:
        yield _fit(SparseRankSVM(radius=radius, scale=None), data)


def tg_rank(data: Any) -> Iterator[Model]:
    """Truncated gradient on the squared hinge."""
    for C in 10.0 ** np.arange(-1, 4):
        yield _fit(_paper_limits(SparseRankSVM(C=C, scale=None, solver="truncated_gradient")), data)


def rs_rank(data: Any) -> Iterator[Model]:
    """Truncated gradient on the Huber loss with pair weights."""
    for C in 10.0 ** np.arange(-1, 4):
        model = SparseRankSVM(
            C=C, scale=None, solver="truncated_gradient", loss="huber", pair_cost="gain"
        )
        yield _fit(_paper_limits(model), data)


def fs_rank(k: int) -> Callable[[Any], Iterator[Model]]:
    """RankSVM on the k features that rank best alone."""

    def fits(data: Any) -> Iterator[Model]:
        start = time.perf_counter()
        selector = SelectKBestRanking(k=k, metric="ndcg@10").fit(data.X, data.y, qid=data.qid)
        selecting = time.perf_counter() - start
        X = selector.transform(data.X)
        for C in 10.0 ** np.arange(-6, 2):
            start = time.perf_counter()
            model = RankSVM(C=C).fit(X, data.y, qid=data.qid)
            coef = selector.inverse_transform(model.coef_[None])[0]
            yield Model(coef, selecting + time.perf_counter() - start)

    return fits


def _paper_limits(model: SparseRankSVM) -> SparseRankSVM:
    # The paper's ε = 0.001 is a gap of a mean loss that is at most 1.
    return model.set_params(tol=1e-3, max_iter=1000)


METHODS = {
    "RankSVM": rank_svm,
    "FenchelRank": fenchel_rank,
    "its optimum": optimum,
    "TGRank": tg_rank,
    "RSRank": rs_rank,
    "FS-Rank(k=10)": fs_rank(10),
    "FS-Rank(k=20)": fs_rank(20),
}


@dataclass
class Outcome:
    """Values by query on all test parts, one column per metric; sparsity and seconds by fold."""

    values: np.ndarray
    sparsity: list[float]
    seconds: list[float]


def by_query(data: Any, scores: Any, short_queries_count: bool) -> np.ndarray:
    """Return the five metrics of each query as LETOR's scripts have them."""
    sizes = np.bincount(data.qid)
    columns = []
    for k in (1, 3, 5, 10):
        values = metrics.ndcg(data.y, scores, qid=data.qid, k=k, discount="letor", per_query=True)
        columns.append(values if short_queries_count else np.where(sizes >= k, values, 0.0))
    columns.append(metrics.average_precision(data.y, scores, qid=data.qid, per_query=True))
    return np.nan_to_num(np.column_stack(columns))


def run(name: str, fits: Callable, folder: Path, folds: range, letor3: bool) -> Outcome:
    """Choose by validation and test, fold by fold."""
    outcome = Outcome(np.empty((0, len(COLUMNS))), [], [])
    parts = [folder / f"S{k}.txt.gz" for k in range(1, 6)]
    for fold in folds:
        train = load_letor([parts[(fold + k) % 5] for k in range(3)])
        valid, test = (load_letor(parts[(fold + k) % 5]) for k in (3, 4))
        best, best_value = None, -np.inf
        for model in fits(train):
            value = by_query(valid, valid.X @ model.coef, letor3)[:, 3].mean()
            if value > best_value:
                best, best_value = model, value
        outcome.values = np.vstack([outcome.values, by_query(test, test.X @ best.coef, letor3)])
        outcome.sparsity.append(best.sparsity)
        outcome.seconds.append(best.seconds)
    return outcome


def report(dataset: str, outcomes: dict[str, Outcome]) -> None:
    """Print our figures above the paper's, and paired t-tests against RankSVM."""
    print(f"\n{dataset:16s}" + "".join(f"{c:>8s}" for c in COLUMNS) + "  nonzero  seconds")
    for name, outcome in outcomes.items():
        means = "".join(f"{v:8.4f}" for v in outcome.values.mean(axis=0))
        print(f"{name:16s}{means} {np.mean(outcome.sparsity):8.4f} {np.mean(outcome.seconds):8.3f}")
        if name in PAPER[dataset]:
            figures = ["        " if v is None else f"{v:8.4f}" for v in PAPER[dataset][name]]
            print(f"{'  in the paper':16s}{''.join(figures[:5])} {figures[5]}")
    base = outcomes["RankSVM"].values
    print("p of a paired t-test against RankSVM, one-sided")
    for name, outcome in outcomes.items():
        if name != "RankSVM":
            p = ttest_rel(outcome.values, base, alternative="greater").pvalue
            print(f"{name:16s}" + "".join(f"{v:8.4f}" for v in p))


def main() -> None:
    """Run both data sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one fold instead of five")
    arguments = parser.parse_args()
    folder = os.environ.get("MARGINRANK_DATA")
    if not folder:
        raise SystemExit("MARGINRANK_DATA must name the folder of MQ2008 and OHSUMED.")
    folds = range(1 if arguments.quick else 5)
    for dataset, letor3 in (("OHSUMED", True), ("MQ2008", False)):
        outcomes = {
            name: run(name, fits, Path(folder) / dataset, folds, letor3)
            for name, fits in METHODS.items()
        }
        report(dataset, outcomes)


if __name__ == "__main__":
    main()
