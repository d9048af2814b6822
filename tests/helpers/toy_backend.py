"""A backend that writes every pair down and hides its scores: slow, and obviously right."""

import numpy as np
import scipy.sparse as sp

from marginrank.objective.gram import Rows
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.protocols import (
    Design,
    Evaluation,
    LossSums,
    Matrix,
    PairLoss,
    ScoreSpace,
)


class ToyMatrix(Matrix):
    """X as an array of doubles."""

    def __init__(self, X):
        self.X = X.toarray().astype(np.float64) if sp.issparse(X) else np.array(X, dtype=np.float64)
        self.shape = self.X.shape

    shape = None
    of = classmethod(lambda cls, data: cls(data.X))

    def magnitudes(self, threads):
        return np.abs(self.X).max(axis=0)

    def restrict(self, columns, threads):
        return ToyMatrix(self.X[:, columns])

    def design(self, pairs, threads):
        return ToyDesign(self, pairs, threads)


class ToySpace(ScoreSpace):
    """Scores are functions that return a vector: only this file calls them."""

    def __init__(self, n_documents):
        self.zero = lambda: self.vector(np.zeros(n_documents))

    zero = None

    def add(self, a, step, b):
        return self.vector(a() + step * b())

    def dot(self, a, b):
        return float(a() @ b())

    def entries(self, a, documents=None):
        return a() if documents is None else a()[documents]

    def vector(self, entries):
        return lambda: entries


class ToyDesign(Design):
    """Rows of X in the order of the documents."""

    def __init__(self, matrix, pairs, threads):
        super().__init__(matrix, pairs, threads)
        rows = pairs.documents.rows
        self.X = matrix.X if rows is None else matrix.X[rows]
        self.space = ToySpace(len(self.X))

    def pair_loss(self, loss):
        return ToyLoss(self.pairs, loss, self.space)

    def dot(self, w):
        return self.space.vector(self.X @ w)

    def transpose_dot(self, z):
        return self.X.T @ z()

    def rows(self, rows):
        return Rows.of(self.matrix.X[rows])


class ToyLoss(PairLoss):
    """Every sum over an explicit list of pairs of documents."""

    def __init__(self, pairs, loss, space):
        self.loss, self.space, self.n_queries = loss, space, pairs.n_queries
        self.i, self.j, self.query, self.c = written_down(pairs)
        d = np.zeros(pairs.n_documents) if pairs.margins is None else pairs.margins
        self.shift, self.n_documents = d[self.i] - d[self.j], pairs.n_documents

    def scatter(self, values):
        sums = (np.bincount(side, values, self.n_documents) for side in (self.i, self.j))
        return self.space.vector(np.subtract(*sums))

    def evaluate(self, scores, like):
        t = scores()[self.i] - scores()[self.j] - self.shift
        value, slope = self.c * self.loss.value(t), self.c * self.loss.derivative(t)
        sizes = value, 99 * np.abs(value), 9 * np.abs(slope)
        table = np.stack([np.bincount(self.query, s, self.n_queries) for s in sizes], axis=1)
        slopes, curvature = self.scatter(slope), self.c * self.loss.curvature(t)
        losses = LossSums.of(table, np.count_nonzero(slopes()))
        return Evaluation(scores, losses, table, slopes, curvature)

    def hess_vec(self, state, u):
        return self.scatter(state * (u()[self.i] - u()[self.j]))


def written_down(pairs):
    """Return the documents, the query and the weight of each pair."""
    query = pairs.documents.query_of_document
    if isinstance(pairs, ListedPairs):
        i, j = pairs.pairs.T
        weight = np.ones(i.size) if pairs.pair_weight is None else pairs.pair_weight
    else:
        level = pairs.queries.level.astype(int)
        step = level[:, None] - level[None, :]
        wanted = step == 1 if pairs.adjacent else step > 0
        i, j = np.nonzero(wanted & (query[:, None] == query[None, :]))
        weight = np.ones(i.size)
        if pairs.factors is not None:
            weight = np.sum(pairs.factors.preferred[i] * pairs.factors.other[j], axis=1)
    return i, j, query[i], weight * pairs.query_weight[query[i]]
