"""Algorithms 2 and 3 of paper 2 (Chapelle and Keerthi, 2010) as printed, as a reference.

Both start at w = 0 and make steps of 1/t; the loss is the squared hinge. A pass reads as many rows
as X has: half as many pairs, or all queries. Pairs and queries are drawn with replacement.
"""

from collections.abc import Callable

import numpy as np

from marginrank import RankingData


def by_pair(data: RankingData, C: float, n_passes: int, seed: int = 0) -> np.ndarray:
    """Algorithm 2: w ← w − (w / |P| + C ℓ'(wᵀd) d) / t for the difference d of a random pair."""
    rng = np.random.default_rng(seed)
    queries, w = data.queries, np.zeros(data.n_features)
    n_steps = n_passes * data.n_documents // 2
    drawn = rng.choice(data.n_queries, n_steps, p=queries.n_pairs / data.n_pairs)
    for t, query in enumerate(drawn, 1):
        first, last = queries.offsets[query : query + 2]
        i = j = first
        while data.y[i] == data.y[j]:  # then every pair of the query is equally likely
            i, j = rng.integers(first, last, 2)
        i, j = (i, j) if data.y[i] > data.y[j] else (j, i)
        difference = data.X[i].astype(np.float64) - data.X[j]
        slack = max(1.0 - difference @ w, 0.0)
        w -= (w / data.n_pairs - 2.0 * C * slack * difference) / t
    return w


def by_query(data: RankingData, C: float, n_passes: int, seed: int = 0) -> np.ndarray:
    """Algorithm 3: w ← w − (w / Q + C Σ ℓ'(wᵀd) d) / t over the pairs of a random query."""
    rng = np.random.default_rng(seed)
    offsets, w = data.queries.offsets, np.zeros(data.n_features)
    for t, query in enumerate(rng.integers(data.n_queries, size=n_passes * data.n_queries), 1):
        rows = slice(*offsets[query : query + 2])
        X, y = data.X[rows].astype(np.float64), data.y[rows]
        scores = X @ w
        slack = np.maximum(1.0 - scores[:, None] + scores, 0.0) * (y[:, None] > y)
        slopes = 2.0 * C * (slack.sum(axis=0) - slack.sum(axis=1))
        w -= (w / data.n_queries + X.T @ slopes) / t
    return w


ALGORITHMS: dict[str, Callable[..., np.ndarray]] = {"pair": by_pair, "query": by_query}
