"""Sums over pairs by direct counting, as in PRSVM+ (paper 2) and section 2.2 of paper 1.

One pass over the sorted documents per level: O(l k) for k levels. It is a reference; the kernels
count so for up to seven levels only.
"""

import numpy as np


class DirectCounting:
    """Products with the Hessian of the squared hinge at some scores, for documents of one query."""

    def __init__(self, y: np.ndarray, scores: np.ndarray) -> None:
        order = np.argsort(scores, kind="stable")
        ranked = scores[order]
        self._order = order
        self._levels = np.unique(y[order], return_inverse=True)[1]
        # A pair (i, j) is active if s_i − s_j < 1: partners of a document end and begin here.
        self._end = np.searchsorted(ranked, ranked + 1.0, side="left")
        self._begin = np.searchsorted(ranked, ranked - 1.0, side="right")
        self._counts = self._partners(np.ones(len(y)))

    def hess_vec(self, u: np.ndarray) -> np.ndarray:
        """Return A u, where A is the Hessian of Σ max(0, 1 − (s_i − s_j))² by the scores."""
        ranked = u[self._order]
        product = np.empty_like(ranked)
        product[self._order] = 2.0 * (self._counts * ranked - self._partners(ranked))
        return product

    def _partners(self, u: np.ndarray) -> np.ndarray:
        """Return the sum of u over the active partners of each document, level by level."""
        sums, levels = np.empty_like(u), self._levels
        above, below = np.zeros((2, u.size + 1))  # sums over the documents before a position
        for level in range(levels.max() + 1):
            own = np.flatnonzero(levels == level)
            np.cumsum(u * (levels > level), out=above[1:])
            np.cumsum(u * (levels < level), out=below[1:])
            sums[own] = above[self._end[own]] + below[-1] - below[self._begin[own]]
        return sums
