"""The objective written down pair by pair: slow, obvious, and the reference for every kernel."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from marginrank.objective.listed_pairs import ListedPairs


@dataclass
class ExplicitPairs:
    """All pairs of a problem, with weight and margin shift each."""

    preferred: np.ndarray
    other: np.ndarray
    weight: np.ndarray
    shift: np.ndarray


def explicit_pairs(
    y,
    qid,
    *,
    sample_weight=None,
    query_weight=None,
    pair_weight=None,
    margin=None,
    close=None,
):
    """List the pairs of rows of one query with y_i > y_j; `query_weight` is by row.

    `margin` is by row, or a function of two labels; `close(i, j)` is true for pairs that count.
    """
    y, qid = np.asarray(y), np.asarray(qid)
    n = len(y)
    a = np.ones(n) if sample_weight is None else np.asarray(sample_weight)
    omega = np.ones(n) if query_weight is None else np.asarray(query_weight)
    i, j = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    if close is not None:
        counts = np.array([close(*rows) for rows in zip(i, j, strict=True)], dtype=bool)
        i, j = i[counts], j[counts]
    if callable(margin):
        shift = np.array([margin(*labels) for labels in zip(y[i], y[j], strict=True)], dtype=float)
    else:
        d = np.zeros(n) if margin is None else np.asarray(margin)
        shift = d[i] - d[j]
    delta = np.ones(len(i))
    if pair_weight is not None:
        delta[:] = [pair_weight(*labels) for labels in zip(y[i], y[j], strict=True)]
    return ExplicitPairs(i, j, omega[i] * a[i] * a[j] * delta, shift)


def written_down(pair_set):
    """Return the documents, the query, the weight and the margin of each pair of a set."""
    query = pair_set.documents.query_of_document
    margin = 0.0
    if isinstance(pair_set, ListedPairs):
        i, j = pair_set.pairs.T
        weight = np.ones(i.size) if pair_set.pair_weight is None else pair_set.pair_weight
        margin = 0.0 if pair_set.pair_margin is None else pair_set.pair_margin
    else:
        level = pair_set.queries.level.astype(int)
        step = level[:, None] - level[None, :]
        wanted = (step > 0) & (step <= (pair_set.width or step.max()))
        i, j = np.nonzero(wanted & (query[:, None] == query[None, :]))
        weight = np.ones(i.size)
        if pair_set.factors is not None:
            weight = np.sum(pair_set.factors.preferred[i] * pair_set.factors.other[j], axis=1)
        if pair_set.label_margins is not None:
            margin = pair_set.label_margins.between(i, j)
    d = np.zeros(query.size) if pair_set.margins is None else pair_set.margins
    return i, j, query[i], weight * pair_set.query_weight[query[i]], d[i] - d[j] + margin


class BruteForce:
    """F(w) = ½‖w‖² + C Σ weight · ℓ(s_i − s_j − shift) and its derivatives, over explicit pairs."""

    def __init__(self, X, pairs, loss, C):
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        X = X.astype(np.float64)
        self.differences = X[pairs.preferred] - X[pairs.other]
        self.pairs, self.loss, self.C = pairs, loss, C
        self.n = X.shape[1]

    def _t(self, w):
        return self.differences @ w - self.pairs.shift

    def value(self, w):
        return 0.5 * w @ w + self.C * np.sum(self.pairs.weight * self.loss.value(self._t(w)))

    def gradient(self, w):
        slope = self.pairs.weight * self.loss.derivative(self._t(w))
        return w + self.C * self.differences.T @ slope

    def hessian(self, w):
        curvature = self.pairs.weight * self.loss.curvature(self._t(w))
        return np.eye(self.n) + self.C * self.differences.T @ (
            curvature[:, None] * self.differences
        )
