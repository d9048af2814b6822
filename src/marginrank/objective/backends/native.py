"""The backend of this machine: C++ kernels on arrays in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from marginrank import _core
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import as_matrix
from marginrank.objective.backends.interface import (
    Evaluation,
    Kernels,
    LossSums,
    Matrix,
    PartKernels,
    QueryLosses,
    Scores,
    SharedSweeps,
    State,
)
from marginrank.objective.gram import Gram
from marginrank.objective.grouped_loss import GroupedLoss
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairCounts, PairSet


def native_matrix(data: RankingData) -> "NativeMatrix":
    """Return X where it is."""
    return NativeMatrix(data.X, data.matrix)


def as_native(X: Any) -> "NativeMatrix":
    """Return an array or CSR matrix that was checked before."""
    return NativeMatrix(X, as_matrix(X))


@dataclass(frozen=True)
class NativeMatrix(Matrix):
    """An array or CSR matrix, and the view that the kernels have of it or of some columns.

    Attributes
    ----------
    X : array or sparse matrix
        All columns.
    view : _core.Matrix
        Those in use.
    columns : ndarray of int64 or None
        Which these are; None for all.
    """

    X: Any
    view: _core.Matrix
    columns: Integers | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.view.n_columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.view.n_rows

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return self.view.n_entries

    def magnitudes(self, threads: int) -> Floats:
        """Return the largest absolute value of each column."""
        return self.view.magnitudes(threads)

    def restrict(self, columns: Integers, threads: int) -> "NativeMatrix":
        """Return some columns alone, which are copied."""
        kept = columns if self.columns is None else self.columns[columns]
        return NativeMatrix(self.X, self.view.take_columns(columns, threads), kept)

    def take_rows(self, rows: Integers) -> Any:
        """Return a copy of some rows."""
        taken = self.X[rows]
        return taken if self.columns is None else taken[:, self.columns]

    def kernels(self, pairs: PairCounts, loss: Loss, threads: int) -> "NativeKernels":
        """Return what computes with it."""
        in_memory = cast(PairSet, pairs)
        return NativeKernels(self, in_memory, in_memory.native(loss), threads)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> "tuple[NativeMatrix, PairSet]":
        """Return a sample of the pairs; its documents are rows of this matrix."""
        return self, cast(PairSet, pairs).sample(fraction, seed)

    def share(self, kernels: Sequence[Kernels]) -> "NativeSharedSweeps":
        """Return sweeps that read X once for all."""
        return NativeSharedSweeps(self.view, cast(Sequence[NativeKernels], kernels))


class NativeKernels(Kernels, PartKernels):
    """C++ kernels; scores are NumPy vectors."""

    def __init__(
        self, matrix: NativeMatrix, pairs: PairSet, native: _core.Pairs, threads: int
    ) -> None:
        self._matrix = matrix
        self._view = matrix.view
        self._pair_set = pairs
        self._pairs = native
        self._threads = threads

    @property
    def pairs(self) -> _core.Pairs:
        """What the C++ kernels take."""
        return self._pairs

    @property
    def pair_set(self) -> PairSet:
        """The pairs."""
        return self._pair_set

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self._threads

    def on(self, matrix: NativeMatrix) -> "NativeKernels":
        """Return the same sums over pairs, with sweeps over another X of the same documents."""
        return NativeKernels(matrix, self._pair_set, self._pairs, self._threads)

    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at w: a sweep."""
        return _evaluation(_core.evaluate(self._view, self._pairs, w, _native(like), self._threads))

    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores; no sweep."""
        losses, slopes, state = _core.evaluate_scores(
            self._pairs, _vector(scores), _native(like), self._threads
        )
        sums = LossSums.of(losses, int(np.count_nonzero(slopes)))
        return Evaluation(scores, sums, QueryLosses(losses), Scores(slopes), State(state), None)

    def scores(self, w: Floats) -> Scores:
        """Return Xw; a sweep."""
        return Scores(self._view.dot(w, self._pair_set.documents.rows, self._threads))

    def column(self, j: int) -> Scores:
        """Return a column of X."""
        return Scores(self._view.column(j, self._pair_set.documents.rows, self._threads))

    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz; a sweep."""
        return _core.transpose_dot(self._view, self._pairs, _vector(z), self._threads)

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return the loss and Xᵀz by groups of neighbouring queries; a sweep."""
        documents = self._pair_set.documents
        n_groups = min(n_groups, documents.n_queries)
        queries = np.linspace(0, documents.n_queries, n_groups + 1).astype(np.int64)
        gradients = _core.transpose_dot_by_group(
            self._view, self._pairs, _vector(z), documents.offsets[queries], self._threads
        )
        return GroupedLoss(np.add.reduceat(_table(by_query)[:, 0], queries[:-1]), gradients)

    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return what errors of the queries' gradients sum to, squared; a sweep."""
        sizes = np.ascontiguousarray(_table(by_query)[:, 2])
        return _core.query_squares(self._view, self._pairs, sizes, self._threads)

    def hess_vec(self, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return XᵀAXv and Xv; a sweep."""
        product, scores = _core.hess_vec(self._view, _native(state), v, self._threads)
        return product, Scores(scores)

    def hess_vec_scores(self, state: State, u: Scores) -> Scores:
        """Return A u; no sweep."""
        return Scores(_core.hess_vec_scores(_native(state), _vector(u), self._threads))

    def hessian(self, state: State) -> Floats:
        """Return XᵀAX."""
        return _core.hessian(self._view, _native(state), self._threads)

    def hess_diag(self, state: State) -> Floats:
        """Return the diagonal of XᵀAX."""
        return _core.hess_diag(self._view, _native(state), self._threads)

    def gram(self, scale: Floats | None = None) -> Gram:
        """Return the inner products of the active documents."""
        active = self._pair_set.active_documents
        columns = self._matrix.columns
        columns = np.arange(self._matrix.n_features) if columns is None else columns
        return Gram.of_rows(
            self._matrix.X, active.rows, columns, active.documents, active.offsets, scale
        )

    def curved_gram(self, state: State, gram: Gram) -> Floats:
        """Return A K; no sweep."""
        point, threads = _native(state), self._threads
        return gram.curved(
            lambda u: _core.hess_vec_scores(point, u, threads), self._pair_set.documents.n_documents
        )

    def select(self, gram: Gram, scores: Scores) -> Floats:
        """Return the entries of the active documents."""
        entries: Floats = _vector(scores)[gram.documents]
        return entries

    def combine_selected(self, gram: Gram, values: Floats) -> Floats:
        """Return XᵀJc; a sweep."""
        return self.combine(Scores(gram.spread(values, self._pair_set.documents.n_documents)))

    def entries(self, a: Scores) -> Floats:
        """Return the entries of a vector."""
        return _vector(a)

    def magnitudes(self) -> Floats:
        """Return the largest absolute value of each feature."""
        return self._matrix.magnitudes(self._threads)

    def take_rows(self, rows: Integers) -> Any:
        """Return some rows of X."""
        return self._matrix.take_rows(rows)

    def zero(self) -> Scores:
        """Return the scores of w = 0."""
        return Scores(np.zeros(self._pair_set.documents.n_documents))

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return a + step · b."""
        return Scores(_vector(a) + step * _vector(b))

    def dot(self, a: Scores, b: Scores) -> float:
        """Return aᵀb."""
        return float(_vector(a) @ _vector(b))

    def spread(self, a: Scores) -> float:
        """Return the standard deviation of the entries."""
        return float(np.std(_vector(a)))

    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""
        return bool(np.isfinite(_vector(a)).all())


class NativeSharedSweeps(SharedSweeps):
    """C++ kernels that read X once for all.

    Problems must have the same documents in the same queries, and may differ in pairs, in weights
    and in the loss. What one gets is the same bit by bit whoever the others are.
    """

    def __init__(self, view: _core.Matrix, kernels: Sequence[NativeKernels]) -> None:
        super().__init__(kernels)
        self._view = view
        self._pairs = [k.pairs for k in kernels]
        self._threads = kernels[0].threads

    def evaluate(self, ws: Sequence[Floats], likes: Sequence[State | None]) -> list[Evaluation]:
        """Look at a w each; one sweep."""
        found = _core.evaluate_together(
            self._view, self._pairs, list(ws), [_native(like) for like in likes], self._threads
        )
        return [_evaluation(parts) for parts in found]

    def scores(self, ws: Sequence[Floats]) -> list[Scores]:
        """Return Xw for a w each; one sweep."""
        found = _core.dot_together(self._view, self._pairs, list(ws), self._threads)
        return [Scores(scores) for scores in found]

    def combine(self, zs: Sequence[Scores]) -> list[Floats]:
        """Return Xᵀz for a z each; one sweep."""
        vectors = [_vector(z) for z in zs]
        return _core.transpose_dot_together(self._view, self._pairs, vectors, self._threads)

    def hess_vec(
        self, states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        """Return XᵀAXv and Xv for a state and a v each; one sweep."""
        points = [_native(state) for state in states]
        found = _core.hess_vec_together(self._view, points, list(vs), self._threads)
        return [(product, Scores(scores)) for product, scores in found]


def _evaluation(parts: tuple[Floats, Floats, Floats, Floats, _core.Point]) -> Evaluation:
    losses, slopes, gradient, scores, state = parts
    return Evaluation(
        scores=Scores(scores),
        losses=LossSums.of(losses, int(np.count_nonzero(slopes))),
        by_query=QueryLosses(losses),
        score_gradient=Scores(slopes),
        state=State(state),
        gradient=gradient,
    )


def _vector(scores: Scores) -> Floats:
    return cast(Floats, scores)


def _table(by_query: QueryLosses) -> Floats:
    return cast(Floats, by_query)


def _native(state: State | None) -> Any:
    return state
