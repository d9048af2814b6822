"""The experiments of paper 3 (Lai et al., 2013) on MQ2008 and OHSUMED: its tables and figures.

Five folds; the regularization is chosen by NDCG@10 on the validation part. Needs the folder that
MARGINRANK_DATA names. `--quick` runs a single fold, `--data` a single set. TD2004, HP2004 and
NP2004 are not among the data; the end of the output lists what is missing because of that.

Which NDCG: the paper prints 2^y − 1 over log(1 + rank), but its figures (RankSVM's are the LETOR
site's) come from LETOR's evaluation: discount 1, 1, 1/log₂3, …, and in LETOR 4.0 (MQ2008) a query
with fewer than k documents has NDCG@k = 0. That is why its NDCG@10 of MQ2008 is half its NDCG@5.

Which C: equation 2 has the mean loss over the pairs. With features in [0, 1] its gradient at w = 0
has entries of at most 2, so w = 0 is optimal up to C = 0.5, and the C = 0.1 of table 6 could not
have given its models. Equation 8.5 (RSRank) has the sum over the pairs. So C multiplies the sum
here, for TGRank and RSRank, and the radius that corresponds to C is ‖w‖₁, not C‖w‖₁.
"""

import argparse
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import ttest_rel
from sklearn.exceptions import ConvergenceWarning

from marginrank import RankSVM, SelectKBestRanking, SparseRankSVM, load_letor, metrics

RADII = [2.0**k for k in range(9)]
RIDGE_CS = 10.0 ** np.arange(-6, 2)
DEPTHS = range(1, 11)  # of NDCG; figure 3
COLUMNS = ("N@1", "N@3", "N@5", "N@10", "MAP")
SHOWN = (0, 2, 4, 9, 10)  # of N@1 to N@10 and MAP
FS_SIZES = (5, 10, 15, 20, 25)
TABLE_6_C = 0.1
N_RANDOM = 10  # random weights of figure 1
LETOR3 = {"OHSUMED": True, "MQ2008": False}  # whether short queries count in NDCG@k
PAPER = {  # N@1, N@3, N@5, N@10, MAP, sparsity ratio; tables 2, 4, 5, 7, 8
    "OHSUMED": {
        "RankSVM": (0.5460, 0.4855, 0.4689, 0.4504, 0.4446, 0.8),
        "FenchelRank": (0.5456, 0.5166, 0.4826, 0.4637, 0.4486, 0.2889),
        "TGRank": (0.5616, 0.4923, 0.4813, 0.4524, 0.4479, 0.2178),
        "RSRank": (0.5395, 0.4831, 0.4684, 0.4503, 0.4486, 0.5156),
        "FS-Rank(k=5)": (0.5228, 0.4811, 0.4633, 0.4494, 0.4416, None),
        "FS-Rank(k=10)": (0.5426, 0.5018, 0.4722, 0.4528, 0.4486, None),
        "FS-Rank(k=15)": (0.5457, 0.5027, 0.4778, 0.4573, 0.4492, None),
        "FS-Rank(k=20)": (0.5457, 0.4989, 0.4758, 0.4573, 0.4489, None),
        "FS-Rank(k=25)": (0.5648, 0.5012, 0.4770, 0.4542, 0.4511, None),
        "RankSVM-Struct": (0.5515, 0.4850, 0.4729, 0.4523, 0.4478, None),
    },
    "MQ2008": {
        "RankSVM": (None, None, None, None, 0.4744, 0.8697),
        "FenchelRank": (0.3762, 0.4402, 0.4790, 0.2317, 0.4785, 0.3435),
        "TGRank": (0.3626, 0.4303, 0.4712, 0.2277, 0.4709, 0.3957),
        "RSRank": (0.3686, 0.4340, 0.4734, 0.2282, 0.4781, 0.5261),
        "RankSVM-Struct": (0.3627, 0.4286, 0.4695, 0.2279, 0.4696, None),
    },
}
PAPER_P = {  # table 3
    "OHSUMED": (0.5, 0.0053, 0.0602, 0.0455, 0.0838),
    "MQ2008": (0.3506, 0.1239, 0.2731, 0.3891, 0.1650),
}
MISSING = """
Not possible here:
tables 2 to 5, 8: TD2004, HP2004 and NP2004 are not among the data.
table 6: measured on the sets above, because HP2004 and NP2004 are not among the data.
table 7: the half of HP2004, for the same reason.
table 8: ListNet, AdaRank-NDCG and RankBoost are figures of the LETOR site; the library does not
  have these methods.
table 9: compares with their predictions, which are not among the data.
figure 1: drawn for the sets above instead of TD2004; so are the most frequent features.
figures 2 and 4: TD2004, NP2004 and HP2004 are not among the data."""


class Model(NamedTuple):
    """A linear model, and the seconds of its fit."""

    coef: Any
    seconds: float

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


def _sparse(max_iter: int = 1000, **parameters: Any) -> SparseRankSVM:
    # The paper's T = 1,000; its ε = 0.001 is a gap of a mean loss that is at most 1.
    return SparseRankSVM(scale=None, tol=1e-3, max_iter=max_iter, **parameters)


def _truncated(C: float, **parameters: Any) -> SparseRankSVM:
    return _sparse(C=C, normalization="none", solver="truncated_gradient", **parameters)


def rank_svm(data: Any) -> Iterator[Model]:
    """RankSVM-Primal over a grid of C."""
    for C in RIDGE_CS:
        yield _fit(RankSVM(C=C), data)


def struct(data: Any) -> Iterator[Model]:
    """RankSVM-Struct, whose problem is RankSVM with the hinge loss."""
    for C in RIDGE_CS:
        yield _fit(RankSVM(C=C, loss="hinge", tol=1e-3), data)


def fenchel_rank(data: Any) -> Iterator[Model]:
    """FenchelRank with the paper's radii."""
    for radius in RADII:
        yield _fit(_sparse(radius=radius, solver="fenchel"), data)


def optimum(data: Any) -> Iterator[Model]:
    """The optima of FenchelRank's problems."""
    for radius in RADII:
        yield _fit(SparseRankSVM(radius=radius, scale=None), data)


def tg_rank(data: Any) -> Iterator[Model]:
    """Truncated gradient on the squared hinge."""
    for C in 10.0 ** np.arange(-4, 1):
        yield _fit(_truncated(C), data)


def rs_rank(data: Any) -> Iterator[Model]:
    """Truncated gradient on the Huber loss with pair weights from the ranks, in rounds."""
    # Ten rounds of 100 steps are the paper's 1,000. Weights of pairs are about a thousandth.
    for C in 10.0 ** np.arange(-1, 4):
        yield _fit(_truncated(C, max_iter=100, loss="huber", objective="ndcg@10"), data)


def fs_rank(k: int) -> Callable[[Any], Iterator[Model]]:
    """RankSVM on the k features that rank best alone."""

    def fits(data: Any) -> Iterator[Model]:
        start = time.perf_counter()
        selector = SelectKBestRanking(k=k, metric="ndcg@10").fit(data.X, data.y, qid=data.qid)
        selecting = time.perf_counter() - start
        X = selector.transform(data.X)
        for C in RIDGE_CS:
            start = time.perf_counter()
            model = RankSVM(C=C).fit(X, data.y, qid=data.qid)
            coef = selector.inverse_transform(model.coef_[None])[0]
            yield Model(coef, selecting + time.perf_counter() - start)

    return fits


METHODS = {
    "RankSVM": rank_svm,
    "RankSVM-Struct": struct,
    **{f"FS-Rank(k={k})": fs_rank(k) for k in FS_SIZES},
    "Fenchel optimum": optimum,
    "FenchelRank": fenchel_rank,
    "TGRank": tg_rank,
    "RSRank": rs_rank,
}


@dataclass
class Outcome:
    """Values by query on all test parts, one column per metric; the chosen model of each fold."""

    values: np.ndarray
    models: list[Model] = field(default_factory=list)


def by_query(data: Any, scores: Any, short_queries_count: bool) -> np.ndarray:
    """Return N@1 to N@10 and MAP of each query as LETOR's scripts have them."""
    sizes = np.bincount(data.qid)
    columns = []
    for k in DEPTHS:
        values = metrics.ndcg(data.y, scores, qid=data.qid, k=k, discount="letor", per_query=True)
        columns.append(values if short_queries_count else np.where(sizes >= k, values, 0.0))
    columns.append(metrics.average_precision(data.y, scores, qid=data.qid, per_query=True))
    return np.nan_to_num(np.column_stack(columns))


def n_at_10(data: Any, coef: Any, letor3: bool) -> float:
    """Return the mean NDCG@10 of a linear model."""
    return float(by_query(data, data.X @ coef, letor3)[:, 9].mean())


def run(fits: Callable, folds: list, letor3: bool) -> Outcome:
    """Choose by validation and test, fold by fold."""
    outcome = Outcome(np.empty((0, len(DEPTHS) + 1)))
    for train, valid, test in folds:
        best = max(fits(train), key=lambda model: n_at_10(valid, model.coef, letor3))
        outcome.values = np.vstack([outcome.values, by_query(test, test.X @ best.coef, letor3)])
        outcome.models.append(best)
    return outcome


def row(name: str, values: Any, form: str = "8.4f") -> str:
    """Return a line of a table; None is left blank."""
    return f"{name:16s}" + "".join(" " * 8 if v is None else f"{v:{form}}" for v in values)


def print_accuracies(dataset: str, folds: list) -> dict[str, Outcome]:
    """Run all methods and print our figures above the paper's."""
    print(f"\n{dataset}: tables 2, 4, 5, 7, 8")
    print(row("", COLUMNS, ">8s") + "  nonzero  seconds", flush=True)
    outcomes = {}
    for name, fits in METHODS.items():
        outcome = outcomes[name] = run(fits, folds, LETOR3[dataset])
        sparsity = np.mean([model.sparsity for model in outcome.models])
        seconds = np.mean([model.seconds for model in outcome.models])
        means = row(name, outcome.values.mean(axis=0)[list(SHOWN)])
        print(f"{means} {sparsity:8.4f} {seconds:8.3f}", flush=True)
        if name in PAPER[dataset]:
            *figures, ratio = PAPER[dataset][name]
            ours = row("  in the paper", figures)
            print(ours + ("" if ratio is None else f" {ratio:8.4f}"), flush=True)
    return outcomes


def print_tests(dataset: str, outcomes: dict[str, Outcome]) -> None:
    """Print paired t-tests against RankSVM."""
    print(f"\n{dataset}: table 3, p of a paired one-sided t-test against RankSVM")
    base = outcomes["RankSVM"].values
    for name, outcome in outcomes.items():
        if name != "RankSVM":
            p = ttest_rel(outcome.values, base, alternative="greater").pvalue
            print(row(name, p[list(SHOWN)]))
        if name == "FenchelRank":
            print(row("  in the paper", PAPER_P[dataset]))


def print_features(dataset: str, folds: list, outcomes: dict[str, Outcome]) -> None:
    """Print the features of FenchelRank's models, and each feature alone against random weights."""
    models = outcomes["FenchelRank"].models
    count = Counter(int(j) + 1 for model in models for j in np.flatnonzero(model.coef))
    always = sorted(j for j, n in count.items() if n == len(folds))
    print(f"\n{dataset}: section 8.4, features in all {len(folds)} models of FenchelRank: {always}")
    train, letor3 = folds[0][0], LETOR3[dataset]
    weights = np.random.default_rng(0).dirichlet(np.ones(train.X.shape[1]), N_RANDOM)
    line = np.mean([n_at_10(train, w, letor3) for w in weights])
    alone = np.array([n_at_10(train, w, letor3) for w in np.eye(train.X.shape[1])])
    best = np.argsort(-alone)[:5] + 1
    print(f"{dataset}: figure 1, training part of fold 1: random weights {line:.4f} on average; "
          f"{np.sum(alone > line)} of {alone.size} features are above, "
          f"{', '.join(map(str, best))} the most (up to {alone.max():.4f})")  # fmt: skip


def print_curves(dataset: str, outcomes: dict[str, Outcome]) -> None:
    """Print NDCG at every depth."""
    print(f"\n{dataset}: figure 3")
    print(row("", [f"N@{k}" for k in DEPTHS], ">8s"))
    for name in ("RankSVM", "FenchelRank"):
        print(row(name, outcomes[name].values.mean(axis=0)[:-1]))


def print_times(dataset: str, folds: list) -> None:
    """Print times of TGRank at one C, and of FenchelRank in the ball of TGRank's solution."""
    print(f"\n{dataset}: table 6, C = {TABLE_6_C}, at most 1,000 iterations")
    print(f"{'':8s}{'r':>8s}{'Fenchel s':>11s}{'ratio':>8s}{'short s':>9s}{'TGRank s':>10s}"
          f"{'ratio':>8s}{'optimum s':>11s}{'ratio':>8s}")  # fmt: skip
    for number, (train, _, _) in enumerate(folds):
        tg = _fit(_truncated(TABLE_6_C), train)
        radius = float(np.abs(tg.coef).sum())
        fenchel = _fit(_sparse(radius=radius, solver="fenchel"), train)
        short = _fit(_sparse(radius=radius, solver="fenchel", variant="short"), train)
        best = _fit(_sparse(radius=radius), train)
        print(
            f"Fold{number + 1:<4d}{radius:8.2f}{fenchel.seconds:11.2f}{fenchel.sparsity:8.4f}"
            f"{short.seconds:9.2f}{tg.seconds:10.2f}{tg.sparsity:8.4f}{best.seconds:11.2f}"
            f"{best.sparsity:8.4f}",
            flush=True,
        )


def print_steps(dataset: str, folds: list) -> None:
    """Print how close both step rules of section 5.6 come in 1,000 iterations."""
    train = folds[0][0]
    print(
        f"\n{dataset}: section 5.6, relative gap after iterations 10, 100 and 1,000, r = 4, fold 1"
    )
    for variant in ("plain", "short", "away"):
        model = SparseRankSVM(radius=4.0, scale=None, solver="fenchel", variant=variant, tol=1e-9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(train.X, train.y, qid=train.qid)
        gaps = [model.history_[min(k, model.n_iter_) - 1].gap / model.objective_
                for k in (10, 100, 1000)]  # fmt: skip
        print(f"{variant:8s}" + "".join(f"{gap:12.2e}" for gap in gaps), flush=True)


def main() -> None:
    """Run both data sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one fold instead of five")
    parser.add_argument("--data", choices=LETOR3, help="one set instead of both")
    arguments = parser.parse_args()
    folder = os.environ.get("MARGINRANK_DATA")
    if not folder:
        raise SystemExit("MARGINRANK_DATA must name the folder of MQ2008 and OHSUMED.")
    for dataset in [arguments.data] if arguments.data else LETOR3:
        parts = [Path(folder) / dataset / f"S{k}.txt.gz" for k in range(1, 6)]
        folds = [
            (load_letor([parts[(fold + k) % 5] for k in range(3)]),
             *(load_letor(parts[(fold + k) % 5]) for k in (3, 4)))
            for fold in range(1 if arguments.quick else 5)
        ]  # fmt: skip
        outcomes = print_accuracies(dataset, folds)
        print_tests(dataset, outcomes)
        print_features(dataset, folds, outcomes)
        print_curves(dataset, outcomes)
        print_steps(dataset, folds)
        print_times(dataset, folds)
    print(MISSING)


if __name__ == "__main__":
    main()
