"""Scales of features on real data: the table of docs/how_to/scale_features.md.

    MARGINRANK_DATA=folder python benchmarks/scaling.py [--json results.json] [--quick]

For each data set and scale, C is the one of a grid that ranks validation queries best, by NDCG@10;
the model with it is evaluated on test queries. MQ2008 and OHSUMED have the five folds of LETOR, and
figures are means over these. The sample of MSLR and LightGBM's example have a training and a test
part, which change places in a second fold; every fifth query of the training part validates.
California housing is one query whose labels are prices, divided at random, and C is chosen by
pairwise accuracy. Sweeps over X are counted over the whole grid: how hard it was to come within a
thousandth of each optimum. --quick runs one fold and a short grid, to see that the script works.
"""

import argparse
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marginrank import RankingData, RankSVM, load_letor, metrics

SCALES = (None, "standard", "range", "query")
GRID = 10.0 ** np.arange(-12, 7)
QUICK_GRID = 10.0 ** np.arange(-2, 2)
SEED = 0


class Fold(NamedTuple):
    """Data for training, for the selection of C, and for evaluation."""

    train: RankingData
    valid: RankingData
    test: RankingData


def letor_folds(folder: Path) -> Iterator[Fold]:
    """Yield the five folds of LETOR."""
    for f in range(5):
        parts = [folder / f"S{(f + k) % 5 + 1}.txt.gz" for k in range(5)]
        yield Fold(load_letor(parts[:3]), load_letor(parts[3]), load_letor(parts[4]))


def swapped_folds(a: RankingData, b: RankingData) -> Iterator[Fold]:
    """Yield two folds of two parts; every fifth query of one validates."""
    width = max(a.n_features, b.n_features)
    for train, test in ((a, b), (b, a)):
        held_out = train.qid % 5 == 4
        yield Fold(
            rows(train, ~held_out, width),
            rows(train, held_out, width),
            rows(test, np.ones(test.n_documents, dtype=bool), width),
        )


def rows(data: RankingData, chosen: Any, width: int) -> RankingData:
    """Return some documents, with a column for each feature."""
    X = data.X[chosen]
    X = X.toarray() if hasattr(X, "toarray") else X
    X = np.pad(X, ((0, 0), (0, width - X.shape[1])))
    return RankingData(X, data.y[chosen], data.qid[chosen])


def one_query(path: Path) -> Iterator[Fold]:
    """Yield a random division of a single query."""
    X, y, _ = load_letor(path)
    part = np.random.default_rng(SEED).integers(0, 5, len(y))
    parts = (np.flatnonzero(where) for where in (part < 3, part == 3, part == 4))
    yield Fold(*(RankingData(X[rows], y[rows], group=[rows.size]) for rows in parts))


def data_sets(folder: Path) -> dict[str, Any]:
    """Return the folds of each data set, not yet read."""
    return {
        "MQ2008": lambda: letor_folds(folder / "MQ2008"),
        "OHSUMED": lambda: letor_folds(folder / "OHSUMED"),
        "MSLR sample, raw": lambda: swapped_folds(
            *(load_letor(folder / "MSLR-sample" / f"{part}.txt.gz") for part in ("train", "test"))
        ),
        "LightGBM's example": lambda: swapped_folds(
            *(
                load_letor(
                    folder / "lightgbm-lambdarank" / f"rank.{part}.gz",
                    group=folder / "lightgbm-lambdarank" / f"rank.{part}.query",
                )
                for part in ("train", "test")
            )
        ),
        "California housing": lambda: one_query(folder / "cadata" / "cadata.txt.gz"),
    }


def judge(w: Any, data: RankingData) -> dict[str, float]:
    """Return the metrics of some weights."""
    scores = data.matrix.dot(w, None, 1)
    figures = {"accuracy": metrics.pairwise_accuracy(data.y, scores, qid=data.qid)}
    if data.n_queries > 1:
        figures["ndcg"] = metrics.ndcg(data.y, scores, qid=data.qid, k=10, ties="average")
    return figures


def fit_and_judge(fold: Fold, scale: str | None, grid: Any) -> dict[str, float]:
    """Return the metrics on test queries with the best C, and the sweeps of all fits."""
    goal = "ndcg" if fold.valid.n_queries > 1 else "accuracy"
    best, best_value, chosen, sweeps = None, -np.inf, np.nan, 0.0
    for C in grid:
        model = RankSVM(C=C, normalization="pairs", scale=scale, tol=1e-3).fit(fold.train)
        sweeps += model.history_[-1].sweeps if model.history_ else 0.0
        value = judge(model.coef_, fold.valid)[goal]
        if value > best_value:
            best, best_value, chosen = model.coef_, value, C
    return judge(best, fold.test) | {"C": chosen, "sweeps": sweeps}


def mean_over_folds(folds: list[Fold], scale: str | None, grid: Any) -> dict[str, float]:
    """Return means of metrics, the median C and the largest number of sweeps."""
    found = [fit_and_judge(fold, scale, grid) for fold in folds]
    summary = {"accuracy": np.mean, "ndcg": np.mean, "C": np.median, "sweeps": np.max}
    return {
        name: float(summarize([one[name] for one in found]))
        for name, summarize in summary.items()
        if name in found[0]
    }


def main() -> None:
    """Print a line for each data set and scale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="one fold and a short grid")
    arguments = parser.parse_args()
    folder = os.environ.get("MARGINRANK_DATA")
    if folder is None:
        raise SystemExit("MARGINRANK_DATA must name the folder of real ranking data.")
    warnings.simplefilter("ignore")  # of features that no pair sees, and of optima out of reach
    figures: dict[str, dict[str, float]] = {}
    for name, read in data_sets(Path(folder)).items():
        folds = list(read())[: 1 if arguments.quick else None]
        for scale in SCALES:
            found = mean_over_folds(folds, scale, QUICK_GRID if arguments.quick else GRID)
            figures[f"{name}, {scale or 'none'}"] = found
            line = "  ".join(f"{key} {value:.4g}" for key, value in found.items())
            print(f"{name:20s} {scale or 'none':10s} {line}", flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
