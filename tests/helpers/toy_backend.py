"""A backend that writes every pair down and hides its scores: slow, and obviously right."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from marginrank.objective.backends.interface import Evaluation, Kernels, LossSums, Matrix
from marginrank.objective.gram import Gram
from marginrank.objective.grouped_loss import GroupedLoss
from marginrank.objective.listed_pairs import ListedPairs


class Hidden:
    """A vector that only this file can look into."""

    def __init__(self, values):
        self.__values = np.asarray(values, dtype=np.float64)

    @staticmethod
    def open(scores):
        return scores.__values


class ToyMatrix(Matrix):
    """X as an array of doubles."""

    def __init__(self, X):
        self.X = X.toarray().astype(np.float64) if sp.issparse(X) else np.array(X, dtype=np.float64)

    @classmethod
    def of(cls, data):
        return cls(data.X)

    @property
    def n_features(self):
        return self.X.shape[1]

    @property
    def n_rows(self):
        return self.X.shape[0]

    @property
    def n_entries(self):
        return self.X.size

    def magnitudes(self, threads):
        return np.abs(self.X).max(axis=0)

    def restrict(self, columns, threads):
        return ToyMatrix(self.X[:, columns])

    def sample(self, pairs, fraction, seed, threads):
        return self, pairs.sample(fraction, seed)

    def kernels(self, pairs, loss, threads):
        return ToyKernels(self.X, pairs, loss)


@dataclass
class ToyKernels(Kernels):
    """Every sum over an explicit list of pairs of documents."""

    X: np.ndarray
    pair_set: object
    loss: object

    def __post_init__(self):
        documents = self.pair_set.documents
        rows = slice(None) if documents.rows is None else documents.rows
        self.X = self.X[rows]
        self.query = documents.query_of_document
        self.i, self.j, self.c = _written_down(self.pair_set)
        margins = self.pair_set.margins
        d = np.zeros(len(self.X)) if margins is None else margins
        self.shift = d[self.i] - d[self.j]

    def _t(self, s):
        return s[self.i] - s[self.j] - self.shift

    def _scatter(self, values):
        z = np.zeros(len(self.X))
        np.add.at(z, self.i, values)
        np.add.at(z, self.j, -values)
        return z

    def _by_query(self, values):
        return np.bincount(self.query[self.i], values, self.pair_set.documents.n_queries)

    def evaluate(self, w, like):
        found = self.evaluate_scores(Hidden(self.X @ w), like)
        return found._replace(gradient=self.combine(found.score_gradient))

    def evaluate_scores(self, scores, like):
        t = self._t(Hidden.open(scores))
        value, slope = self.c * self.loss.value(t), self.c * self.loss.derivative(t)
        size = np.stack([self._by_query(v) for v in (value, 99 * np.abs(value), 9 * np.abs(slope))])
        slopes, curvature = self._scatter(slope), self.c * self.loss.curvature(t)
        losses = LossSums.of(size.T, np.count_nonzero(slopes))
        return Evaluation(scores, losses, Hidden(size), Hidden(slopes), curvature, None)

    def scores(self, w):
        return Hidden(self.X @ w)

    def column(self, j):
        return Hidden(self.X[:, j])

    def combine(self, z):
        return self.X.T @ Hidden.open(z)

    def by_group(self, by_query, z, n_groups):
        losses, rows = Hidden.open(by_query)[0], Hidden.open(z)[:, None] * self.X
        groups = np.array_split(np.arange(losses.size), min(n_groups, losses.size))
        gradients = [rows[np.isin(self.query, group)].sum(axis=0) for group in groups]
        return GroupedLoss(np.array([losses[g].sum() for g in groups]), np.stack(gradients))

    def query_squares(self, by_query):
        sizes = Hidden.open(by_query)[2]
        largest = [np.abs(self.X[self.query == q]).max(axis=0) for q in range(len(sizes))]
        return np.sum((sizes[:, None] * np.stack(largest)) ** 2, axis=0)

    def _curved(self, state, u):
        return self._scatter(state * (u[self.i] - u[self.j]))

    def hess_vec(self, state, v):
        u = self.X @ v
        return self.X.T @ self._curved(state, u), Hidden(u)

    def hess_vec_scores(self, state, u):
        return Hidden(self._curved(state, Hidden.open(u)))

    def hessian(self, state):
        rows = self.X[self.i] - self.X[self.j]
        return rows.T @ (state[:, None] * rows)

    def hess_diag(self, state):
        return np.diag(self.hessian(state)).copy()

    def gram(self, scale=None):
        active = np.flatnonzero(self.pair_set.active_queries[self.query])
        offsets = np.searchsorted(self.query[active], np.unique(self.query[active]))
        offsets = np.append(offsets, active.size)
        n = self.X.shape[1]
        return Gram.of_rows(self.X, active, np.arange(n), active, offsets, scale)

    def curved_gram(self, state, gram):
        return gram.curved(lambda u: self._curved(state, u), len(self.X))

    def select(self, gram, scores):
        return Hidden.open(scores)[gram.documents]

    def combine_selected(self, gram, values):
        return self.X.T @ gram.spread(values, len(self.X))

    def zero(self):
        return Hidden(np.zeros(len(self.X)))

    def add(self, a, step, b):
        return Hidden(Hidden.open(a) + step * Hidden.open(b))

    def dot(self, a, b):
        return float(Hidden.open(a) @ Hidden.open(b))

    def spread(self, a):
        return float(np.std(Hidden.open(a)))

    def is_finite(self, a):
        return bool(np.isfinite(Hidden.open(a)).all())


def _written_down(pair_set):
    """Return the documents and the weight of each pair."""
    query = pair_set.documents.query_of_document
    if isinstance(pair_set, ListedPairs):
        i, j = pair_set.pairs.T
        weight = np.ones(i.size) if pair_set.pair_weight is None else pair_set.pair_weight
    else:
        level = pair_set.queries.level.astype(int)
        step = level[:, None] - level[None, :]
        wanted = step == 1 if pair_set.adjacent else step > 0
        i, j = np.nonzero(wanted & (query[:, None] == query[None, :]))
        weight = np.ones(i.size)
        if pair_set.factors is not None:
            weight = np.sum(pair_set.factors.preferred[i] * pair_set.factors.other[j], axis=1)
    return i, j, weight * pair_set.query_weight[query[i]]
