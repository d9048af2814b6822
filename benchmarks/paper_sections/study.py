"""Shared by all sections: the data, the scale, fits and their times."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import minmax_scale

from marginrank import RankingData, RankSVM, load_letor


class Split(NamedTuple):
    """The parts of a fold."""

    train: RankingData
    valid: RankingData
    test: RankingData


@dataclass(frozen=True)
class Study:
    """Where the data is, on what scale to run, and the programs of others."""

    folder: Path
    quick: bool
    liblinear_ranksvm: str | None = None
    svm_rank: str | None = None

    @property
    def repeats(self) -> int:
        """Number of times a run is measured; the minimum counts."""
        return 1 if self.quick else 5

    def folds(self, name: str) -> list[Split]:
        """Return LETOR's five folds, or the first."""
        return [self.fold(name, first) for first in range(1 if self.quick else 5)]

    def fold(self, name: str, first: int = 0) -> Split:
        """Return a fold: three parts to train on, one to choose by, one to test on."""
        parts = [self.folder / name / f"S{k}.txt.gz" for k in range(1, 6)]
        order = [parts[(first + k) % 5] for k in range(5)]
        return Split(*(load_letor(p, dtype=np.float64) for p in (order[:3], order[3], order[4])))

    def cadata(self) -> RankingData:
        """Return cadata in random order, features scaled to [0, 1] as paper 1 scales its data."""
        data = load_letor(self.folder / "cadata" / "cadata.txt.gz", dtype=np.float64)
        order = np.random.default_rng(0).permutation(data.n_documents)
        one_query = [data.n_documents]
        return RankingData(minmax_scale(data.X)[order], data.y[order], group=one_query)


def part(data: RankingData, rows: slice) -> RankingData:
    """Return some documents of data that are one query."""
    y = data.y[rows]
    return RankingData(data.X[rows], y, group=[len(y)])


def fit(model: Any, data: RankingData, **keywords: Any) -> Any:
    """Fit a ranker, or a model of scikit-learn's that sees no queries."""
    with warnings.catch_warnings():
        # Some of the papers' fits end at a limit, and their tables say so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(model, RankSVM):
            return model.fit(data, **keywords)
        return model.fit(data.X, data.y, **keywords)


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Return the least time that a call takes."""
    return min(_once(call) for _ in range(repeats))


def _once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def explicit_pairs(data: RankingData) -> np.ndarray:
    """Return all pairs of documents of one query with different labels, the preferred one first."""
    pairs = []
    for query in range(data.n_queries):
        rows = np.flatnonzero(data.qid == query)
        y = data.y[rows]
        preferred, other = np.nonzero(y[:, None] > y)
        pairs.append(np.column_stack([rows[preferred], rows[other]]))
    return np.concatenate(pairs)
