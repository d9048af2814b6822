"""An operator that writes every pair down and hides its scores: slow, and obviously right."""

import numpy as np

from helpers.brute_force import written_down
from marginrank.objective import protocols
from marginrank.objective.gram import Rows


class ToyMatrix(protocols.Matrix):
    def __init__(self, X):
        self.X = np.array(getattr(X, "toarray", lambda: X)(), dtype=np.float64)

    of = classmethod(lambda cls, data: cls(data.X))
    shape = property(lambda self: self.X.shape)

    def magnitudes(self, threads):
        return np.abs(self.X).max(axis=0)

    def restrict(self, columns, threads):
        return ToyMatrix(self.X[:, columns])

    def design(self, pairs, threads):
        return ToyDesign(self, pairs, threads)


class ToyDesign(protocols.Design):
    def __init__(self, matrix, pairs, threads):
        super().__init__(matrix, pairs, threads)
        rows = pairs.documents.rows
        self.X = matrix.X if rows is None else matrix.X[rows]
        self.space = ToySpace(pairs.n_documents)

    def pair_loss(self, loss):
        return ToyLoss(self.pairs, loss, self.space)

    def dot(self, w):
        return self.space.vector(self.X @ w)

    def transpose_dot(self, z):
        return self.X.T @ z()

    def rows(self, rows):
        return Rows.of(self.matrix.X[rows])


class ToySpace(protocols.ScoreSpace):
    """Scores are functions that return a vector; nobody else calls them."""

    def __init__(self, n_documents):
        self.n_documents = n_documents

    def zero(self):
        return self.vector(np.zeros(self.n_documents))

    def add(self, a, step, b):
        return self.vector(a() + step * b())

    def dot(self, a, b):
        return float(a() @ b())

    def entries(self, a, documents=None):
        return a()[slice(None) if documents is None else documents]

    def vector(self, entries):
        return lambda: entries


class ToyLoss(protocols.PairLoss):
    """Sums over an explicit list of pairs of documents."""

    def __init__(self, pairs, loss, space):
        self.loss, self.space, self.n_queries = loss, space, pairs.n_queries
        self.i, self.j, self.query, self.weight, self.margin = written_down(pairs)

    def scatter(self, values):
        won, lost = (np.bincount(k, values, self.space.n_documents) for k in (self.i, self.j))
        return self.space.vector(won - lost)

    def evaluate(self, scores, like):
        t = scores()[self.i] - scores()[self.j] - self.margin
        value, slope = self.weight * self.loss.value(t), self.weight * self.loss.derivative(t)
        sizes = value, 99 * np.abs(value), 9 * np.abs(slope)
        table = np.stack([np.bincount(self.query, s, self.n_queries) for s in sizes], axis=1)
        slopes, curvature = self.scatter(slope), self.weight * self.loss.curvature(t)
        losses = protocols.LossSums.of(table, np.count_nonzero(slopes()))
        return protocols.Evaluation(scores, losses, table, slopes, curvature)

    def hess_vec(self, state, u):
        return self.scatter(state * (u()[self.i] - u()[self.j]))
