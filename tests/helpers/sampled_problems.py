"""Random problems of a size at which samples stand for the data: outliers and heavy tails."""

from dataclasses import dataclass

import numpy as np

from helpers.oracle import LONG
from marginrank.objective.losses import get_loss

LOSSES = ("squared_hinge", "squared_hinge", "huber", "logistic")
HEAVY = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t1.2": lambda rng, size: rng.standard_t(1.2, size=size),
    "t2": lambda rng, size: rng.standard_t(2, size=size),
    "lognormal": lambda rng, size: np.exp(1.5 * rng.normal(size=size)),
}


@dataclass
class SampledProblem:
    """Data and parameters, and the objective in long double precision."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    parameters: dict

    def value(self, w, C=None):
        """Return F(w), summed over explicit pairs; some seconds for one query."""
        w = np.asarray(w, dtype=LONG)
        scores = (self.X.astype(LONG) * w).sum(axis=1)
        loss = get_loss(self.parameters["loss"])
        starts = np.flatnonzero(np.diff(self.qid, prepend=-1))
        sums = [
            _query_sum(scores[a:b], self.y[a:b], loss)
            for a, b in zip(starts, [*starts[1:], len(self.y)], strict=True)
        ]
        losses, counts = (np.array(column, dtype=LONG) for column in zip(*sums, strict=True))
        counting = counts > 0
        total = {
            "none": losses.sum(),
            "pairs": losses.sum() / counts.sum(),
            "query": np.sum(losses[counting] / counts[counting]) / counting.sum(),
        }[self.parameters["normalization"]]
        return w @ w / 2 + LONG(self.parameters["C"] if C is None else C) * total

    def excess(self, w, reference, objective, optimum, tol, C=None):
        """Return how far w is above the weights of a reference, relative.

        Objectives of fits are off by rounding, so what looks like more than tol is summed again.
        """
        if objective <= (1 + tol) * optimum:
            return (objective - optimum) / optimum
        optimum = self.value(reference, C)
        return float((self.value(w, C) - optimum) / optimum)


def _query_sum(scores, y, loss, height=500):
    """Return the loss of all pairs of a query, and their number."""
    total, count = LONG(0), 0
    for label in np.unique(y):
        better, worse = scores[y > label], scores[y == label]
        for first in range(0, worse.size, height):
            t = better[:, None] - worse[None, first : first + height]
            for piece in loss.pieces:
                slack = np.maximum(LONG(0), LONG(piece.theta) - t)
                total += LONG(piece.coefficient) * np.sum(slack**piece.power)
            count += t.size
    return total, count


def sampled_problem(seed):
    """Draw a problem of 13,000 to 26,000 documents, some of which may have huge values."""
    rng = np.random.default_rng([seed, 24])
    size, n = int(rng.integers(13_000, 26_000)), int(rng.integers(2, 30))
    per_query = size if rng.random() < 0.1 else int(rng.choice([5, 10, 40, 200]))
    X = HEAVY[str(rng.choice(list(HEAVY)))](rng, (size, n))
    noise = rng.choice([0.1, 1.0, 3.0]) * rng.normal(size=size)
    y = (np.clip(X, -3, 3) @ rng.normal(size=n) / np.sqrt(n) + noise).round().clip(-2, 2)
    for row in rng.choice(size, int(rng.choice([0, 1, 1, 1, 2, 3, 5, 20])), replace=False):
        columns = rng.choice(n, int(rng.integers(1, min(n, 4) + 1)), replace=False)
        X[row, columns] = 10.0 ** rng.uniform(2, 7) * rng.choice([-1, 1])
        y[row] = rng.choice([-3, -2, 2, 3])
    normalization = str(rng.choice(["pairs", "query", "none"]))
    parameters = {
        "C": 10.0 ** rng.uniform(-4, 2) * (1e-4 if normalization == "none" else 1.0),
        "normalization": normalization,
        "loss": str(rng.choice(LOSSES)),
        "tol": float(rng.choice([1e-3, 1e-4, 1e-6, 1e-6, 1e-8])),
    }
    return SampledProblem(X, y, np.arange(size) // per_query, parameters)


def outlier_problem(seed, value):
    """Return data in which one document of the best label has a huge value of one feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15_000, 26))
    y = (X.sum(axis=1) / 3 + rng.normal(size=15_000)).round().clip(0, 4)
    X[3687, 0], y[3687] = value, 5
    parameters = {"C": 0.04, "normalization": "pairs", "loss": "squared_hinge", "tol": 1e-6}
    return SampledProblem(X, y, np.arange(15_000) // 10, parameters)
