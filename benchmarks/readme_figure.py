"""The picture of the README: quality and time of linear and additive models beside others.

    MARGINRANK_DATA=folder python benchmarks/readme_figure.py [--splits 5] [--out FILE.svg]

Data, divisions and learners are as in benchmarks/additive.py: every learner chooses its parameters
on validation queries by NDCG@10, and is evaluated on test queries. scikit-learn's LinearSVC
minimizes the objective of RankSVM on written-down pair differences, with LIBLINEAR's solver. It is
left out where that takes many minutes, on data with more than MOST_PAIRS pairs. Times are processor
times for choice and fit.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from additive import GRID, LEARNERS, Judged, choose, data_sets, dense
from matplotlib.figure import Figure
from scaling import Fold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from marginrank.plots.style import PALETTE, in_style

DATA = ("MQ2008", "MSLR sample", "LightGBM's example")
MOST_PAIRS = 100_000
OUT = Path(__file__).resolve().parents[1] / "docs" / "_static" / "quality_and_time.svg"


class TooManyPairsError(Exception):
    """Data with too many pairs to write down."""


def pair_differences(fold: Fold, _: Any) -> Iterator[tuple[Callable[[Any], Any], int]]:
    """Yield a LinearSVC on the differences of all pairs for each C."""
    scaler = StandardScaler().fit(fold.train.X)
    X, y, qid = scaler.transform(fold.train.X), fold.train.y, fold.train.qid
    i, j = np.concatenate([pairs_of(y, np.flatnonzero(qid == q)) for q in np.unique(qid)], axis=1)
    if len(i) > MOST_PAIRS:
        raise TooManyPairsError
    sign = np.where(np.arange(len(i)) % 2, 1.0, -1.0)  # two classes, as LinearSVC needs
    differences = sign[:, None] * (X[i] - X[j])
    for C in GRID / len(i):
        svc = LinearSVC(C=C, dual=False, fit_intercept=False, tol=1e-3).fit(differences, sign)
        yield lambda rows, svc=svc: scaler.transform(rows) @ svc.coef_[0], X.shape[1]


def pairs_of(y: Any, rows: Any) -> Any:
    """Return the rows of the pairs of a query, the preferred documents first."""
    return rows[np.array(np.nonzero(y[rows][:, None] > y[rows]))]


SHOWN = {
    "scikit-learn LinearSVC\non pair differences": pair_differences,
    "RankSVM": LEARNERS["RankSVM"],
    "AdditiveRankSVM": LEARNERS['AdditiveRankSVM, pair_cost="ndcg"'],
    "LightGBM lambdarank": LEARNERS["LightGBM lambdarank"],
}


def measure(folder: Path, n_splits: int) -> dict[str, list[Judged]]:
    """Return the means over splits: for each learner one per data set."""
    found: dict[str, list[Judged]] = {learner: [] for learner in SHOWN}
    for name in DATA:
        folds = [dense(fold) for fold in data_sets(folder, n_splits)[name]()]
        for learner, fits in SHOWN.items():
            try:
                mean = Judged(*np.mean([choose(fold, fits(fold, None)) for fold in folds], axis=0))
            except TooManyPairsError:
                mean = Judged(*np.full(len(Judged._fields), np.nan))
            found[learner].append(mean)
            print(f"{name:20} {learner!r:50} {mean.ndcg:.4f} {mean.seconds:8.2f} s", flush=True)
    return found


def draw(found: dict[str, list[Judged]], out: Path) -> None:
    """Draw one panel for the quality and one for the time, with a row of dots per data set."""
    with in_style():
        figure = Figure((9.6, 3.0), layout="constrained", facecolor="white")
        quality, seconds = figure.subplots(1, 2, sharey=True)
    rows = np.arange(len(DATA))
    for k, (color, (learner, values)) in enumerate(zip(PALETTE, found.items(), strict=False)):
        place = rows + 0.15 * (k - (len(found) - 1) / 2)
        style = {"marker": "o", "markersize": 8, "linestyle": "none", "color": color}
        quality.plot([v.ndcg for v in values], place, label=learner, **style)
        seconds.plot([v.seconds for v in values], place, **style)
    quality.set(xlabel="NDCG@10 of test queries", ylim=(len(DATA) - 0.5, -0.5))
    quality.set_yticks(rows, DATA)
    seconds.set(xlabel="processor seconds, log scale", xscale="log")
    seconds.set_xticks([0.1, 1.0], ["0.1", "1"])
    figure.legend(loc="outside right center", frameon=False, labelspacing=1.0)
    figure.savefig(out, metadata={"Date": None})  # the same bytes in every run


def main() -> None:
    """Measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    folder = os.environ.get("MARGINRANK_DATA")
    if folder is None:
        parser.error("MARGINRANK_DATA must name the folder of the data sets.")
    draw(measure(Path(folder), args.splits), args.out)


if __name__ == "__main__":
    main()
