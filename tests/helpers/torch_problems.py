"""The same objective on the native kernels and on PyTorch's, for tests."""

import numpy as np

from helpers.objectives import make_objective
from marginrank import RankingData

N_FEATURES = 4


def labels_of(k, n, rng):
    """Return labels of k levels, or all different."""
    if k == "l":
        return rng.permutation(n).astype(float)
    return rng.integers(0, k, n).astype(float)


def make_data(k, n, n_queries, *, layout=np.asarray, weights=False, seed=0):
    """Return documents in a shuffled order, with features of few digits: ties and hit margins."""
    rng = np.random.default_rng(seed)
    X = np.round(2.0 * rng.normal(size=(n, N_FEATURES))) / 2.0
    weight = rng.uniform(0.5, 2.0, n) if weights else None
    return RankingData(
        layout(X), labels_of(k, n, rng), rng.integers(0, n_queries, n), sample_weight=weight
    )


def both(data, loss, **options):
    """Return the objective on the native kernels, and on PyTorch's."""
    return [make_objective(data, loss, backend=name, **options) for name in ("native", "torch")]


def relative_error(found, expected):
    """Return the largest error, against the largest entry."""
    size = np.max(np.abs(expected))
    return float(np.max(np.abs(found - expected)) / (size if size > 0 else 1.0))
