"""A part that is one query with more rows than are read at a time.

Its scores come from one pass over the rows, and sums over documents from another, as all scores of
a query must be known before anything can be said of its pairs.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import Queries
from marginrank.objective.backends.interface import (
    Evaluation,
    PartKernels,
    QueryLosses,
    Scores,
    State,
)
from marginrank.objective.backends.native import NativeKernels, NativeMatrix
from marginrank.objective.backends.parts.ordered_sum import OrderedSum
from marginrank.objective.backends.parts.stacking import stacked
from marginrank.objective.grouped_loss import GroupedLoss
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.losses import LOSSES
from marginrank.objective.pair_sets import PairSet

COLUMNS_AT_ONCE = 32  # of a Hessian: more need more memory, fewer need more passes


class Slice(NamedTuple):
    """Some of the rows: the first and the last of them, and what they are."""

    first: int
    last: int
    matrix: NativeMatrix


class SlicedKernels(PartKernels):
    """Kernels of a query whose rows come in slices.

    Parameters
    ----------
    pairs : NativeKernels
        For all that needs no X.
    slices : callable
        Begins a pass over the rows.
    n_features : int
        Number of columns.
    """

    def __init__(
        self, pairs: NativeKernels, slices: Callable[[], Iterator[Slice]], n_features: int
    ) -> None:
        self._pairs = pairs
        self._slices = slices
        self._n_features = n_features

    @property
    def pair_set(self) -> PairSet:
        """The pairs."""
        return self._pairs.pair_set

    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at w: two passes."""
        found = self._pairs.evaluate_scores(self.scores(w), like)
        return found._replace(gradient=self.combine(found.score_gradient))

    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores."""
        return self._pairs.evaluate_scores(scores, like)

    def scores(self, w: Floats) -> Scores:
        """Return Xw."""
        return Scores(np.concatenate([k.entries(k.scores(w)) for _, k in self._pass()]))

    def column(self, j: int) -> Scores:
        """Return a column of X."""
        return Scores(np.concatenate([k.entries(k.column(j)) for _, k in self._pass()]))

    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz."""
        total, values = OrderedSum(), self.entries(z)
        for documents, kernels in self._pass():
            total.add(kernels.combine(Scores(values[documents])))
        return total.total

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return the loss and Xᵀz of the one query, if it has pairs."""
        losses = np.asarray(by_query)[:, 0]
        return GroupedLoss(losses, self.combine(z)[None, :][: losses.size])

    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return what errors of the query's gradient are, squared; zero if it has no pairs."""
        size = np.sum(np.asarray(by_query)[:, 2])
        squares: Floats = (size * self.magnitudes()) ** 2
        return squares

    def hess_vec(self, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return XᵀAXv and Xv: two passes."""
        image = self.scores(v)
        return self.combine(self._pairs.hess_vec_scores(state, image)), image

    def hess_vec_scores(self, state: State, u: Scores) -> Scores:
        """Return A u."""
        return self._pairs.hess_vec_scores(state, u)

    def hessian(self, state: State) -> Floats:
        """Return XᵀAX: two passes for some columns at a time."""
        strips = [self._strip(state, columns) for columns in self._strips()]
        return np.concatenate(strips, axis=1)

    def hess_diag(self, state: State) -> Floats:
        """Return the diagonal of XᵀAX."""
        parts = [np.diag(self._strip(state, some)[some]) for some in self._strips()]
        return np.concatenate(parts)

    def _strips(self) -> Iterator[Integers]:
        for first in range(0, self._n_features, COLUMNS_AT_ONCE):
            yield np.arange(first, min(first + COLUMNS_AT_ONCE, self._n_features))

    def _strip(self, state: State, columns: Integers) -> Floats:
        """Return some columns of XᵀAX."""
        images = np.concatenate([_dense(k, columns) for _, k in self._pass()])
        curved = np.empty_like(images.T)
        for c, image in enumerate(np.ascontiguousarray(images.T)):
            curved[c] = self.entries(self._pairs.hess_vec_scores(state, Scores(image)))
        total = OrderedSum()
        for documents, kernels in self._pass():
            some = np.ascontiguousarray(curved[:, documents])
            total.add(np.stack([kernels.combine(Scores(z)) for z in some], axis=1))
        return total.total

    def zero(self) -> Scores:
        """Return the scores of w = 0."""
        return self._pairs.zero()

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return a + step · b."""
        return self._pairs.add(a, step, b)

    def dot(self, a: Scores, b: Scores) -> float:
        """Return aᵀb."""
        return self._pairs.dot(a, b)

    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""
        return self._pairs.is_finite(a)

    def entries(self, a: Scores) -> Floats:
        """Return the entries of a vector."""
        return self._pairs.entries(a)

    def magnitudes(self) -> Floats:
        """Return the largest absolute value of each feature."""
        largest: Floats = np.max([k.magnitudes() for _, k in self._pass()], axis=0)
        return largest

    def take_rows(self, rows: Integers) -> Any:
        """Return some rows of X (ascending)."""
        taken = []
        for piece in self._slices():
            first, last = np.searchsorted(rows, [piece.first, piece.last])
            # A copy: the slice gives way to the next one.
            taken.append(piece.matrix.take_rows(rows[first:last] - piece.first))
        return stacked(taken)

    def _pass(self) -> Iterator[tuple[slice, NativeKernels]]:
        """Yield the documents of each slice, with kernels that know of no pairs among them."""
        documents, threads = self._pairs.pair_set.documents, self._pairs.threads
        for piece in self._slices():
            rows = None
            some = slice(piece.first, piece.last)
            if documents.rows is not None:
                some = slice(*np.searchsorted(documents.rows, [piece.first, piece.last]).tolist())
                rows = documents.rows[some] - piece.first
            pairs = _no_pairs(some.stop - some.start, piece.last - piece.first, rows, threads)
            yield some, piece.matrix.kernels(pairs, LOSSES["squared_hinge"], threads)


def _no_pairs(n_documents: int, n_rows: int, rows: Integers | None, threads: int) -> LevelPairs:
    """Return documents of one query, that all have the same label."""
    ends = np.array([0, n_documents], dtype=np.int64)
    return LevelPairs(
        n_rows=n_rows,
        query_weight=np.ones(1),
        margins=None,
        threads=threads,
        queries=Queries.from_labels(np.zeros(n_documents), ends, rows, threads),
        adjacent=False,
        factors=None,
    )


def _dense(kernels: NativeKernels, columns: Integers) -> Floats:
    """Return some columns of X."""
    return np.stack([kernels.entries(kernels.column(j)) for j in columns.tolist()], axis=1)
