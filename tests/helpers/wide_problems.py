"""Random wide dense problems: more than a few hundred features, and a few documents for each."""

from typing import NamedTuple

import numpy as np

from marginrank import RankSVM

LOSSES = ("squared_hinge", "squared_hinge", "huber", "logistic")
DOCS_PER_QUERY = 25


class WideProblem(NamedTuple):
    """Documents with labels in queries, or with listed pairs, and parameters."""

    X: np.ndarray
    y: np.ndarray | None
    qid: np.ndarray | None
    pairs: np.ndarray | None
    parameters: dict

    def fit(self, **other):
        """Fit the problem, with other parameters."""
        model = RankSVM(**self.parameters | other)
        if self.pairs is not None:
            return model.fit(self.X, pairs=self.pairs)
        return model.fit(self.X, self.y, qid=self.qid)


def embedded(rng, size, n, decay=0.5, noise=0.1):
    """Return normalized float32 vectors with a decaying spectrum plus noise."""
    sizes = np.arange(1, n + 1) ** -decay
    X = rng.normal(size=(size, n)) * sizes @ np.linalg.qr(rng.normal(size=(n, n)))[0]
    X += noise * sizes.mean() * rng.normal(size=(size, n))
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)


def preferences(rng, utility, kind):
    """Return labels and queries, or pairs of one document of each half."""
    size = utility.size
    if kind == "labels":
        return np.digitize(utility, [-1, 0, 1, 1.8]), np.arange(size) // DOCS_PER_QUERY, None
    first = np.arange(size // 2)
    pairs = np.column_stack([first, size // 2 + first])
    if kind == "graph":
        pairs = np.concatenate([pairs, rng.integers(0, size, pairs.shape)])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    better = utility[pairs[:, 0]] >= utility[pairs[:, 1]]
    return None, None, np.where(better[:, None], pairs, pairs[:, ::-1])


def wide_problem(seed):
    """Draw a problem whose features may differ in scale and whose documents may have outliers."""
    rng = np.random.default_rng([seed, 27])
    n = int(rng.integers(257, 330))
    size = 2 * int(n * rng.uniform(3.0, 6.0))
    X = embedded(rng, size, n, rng.choice([0.0, 0.5, 1.0]), rng.choice([0.0, 0.1, 1.0]))
    utility = X @ rng.normal(size=n)
    utility = utility / utility.std() + rng.choice([0.1, 0.5, 2.0]) * rng.normal(size=size)
    if rng.random() < 0.3:
        X = (X * 10.0 ** rng.uniform(-2, 2, n)).astype(rng.choice([np.float32, np.float64]))
    for row in rng.choice(size, int(rng.choice([0, 0, 0, 1, 5])), replace=False):
        X[row, rng.integers(n)] = 10.0 ** rng.uniform(1, 5) * rng.choice([-1, 1])
    kind = str(rng.choice(["labels", "pairs", "graph"]))
    parameters = {
        "C": 10.0 ** rng.uniform(-3, 3),
        "loss": str(rng.choice(LOSSES)),
        "tol": float(rng.choice([1e-3, 1e-4, 1e-6, 1e-6, 1e-8])),
        "normalization": str(rng.choice(["none", "none", "pairs", "query"])),
    }
    return WideProblem(X, *preferences(rng, utility, kind), parameters)
