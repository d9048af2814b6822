"""The default backend: C++ kernels for a dense or CSR matrix in memory; scores are NumPy arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import bounded_ranges
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import as_matrix
from marginrank.objective.gram import Rows
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import LOSSES, Loss
from marginrank.objective.pair_sets import PairCounts, PairSet
from marginrank.objective.protocols import (
    Design,
    Evaluation,
    GroupedLoss,
    LossSums,
    Matrix,
    PairLoss,
    QueryLosses,
    Scores,
    ScoreSpace,
    SharedSweeps,
    State,
)
from marginrank.operators.products import ROWS_PER_BLOCK, Singles, sum_of_products

ANY_LOSS = LOSSES["squared_hinge"]  # for kernels that need pairs but evaluate no loss


def native_matrix(data: RankingData) -> "NativeMatrix":
    """Return the feature matrix of `data` for the C++ kernels, without a copy."""
    return NativeMatrix(data.X, data.matrix)


def as_native(X: Any) -> "NativeMatrix":
    """Return an array or CSR matrix for the C++ kernels; its values must have been checked."""
    return NativeMatrix(X, as_matrix(X))


class Categories(NamedTuple):
    """A categorical feature: the category index of each row, and the number of categories."""

    codes: NDArray[np.uint16]
    n: int

    def beside(self, X: Any, rows: Integers) -> Any:
        """Return a copy of some rows of X with one-hot columns for the categories appended."""
        unit = np.ones(rows.size, dtype=X.dtype)
        at = np.arange(rows.size), self.codes[rows].astype(np.int64)
        columns = sp.csr_array((unit, at), shape=(rows.size, self.n))
        if sp.issparse(X):
            return sp.csr_array(sp.hstack([X[rows], columns]))
        return np.hstack([X[rows], columns.toarray()])


@dataclass(frozen=True)
class NativeMatrix(Matrix):
    """A dense array or CSR matrix in memory, or some of its columns, for the C++ kernels."""

    X: Any
    view: _core.Matrix
    columns: Integers | None = None  # columns in use, categories included; None for all
    categories: Categories | None = None  # one column per category, after the columns of X

    @property
    def shape(self) -> tuple[int, int]:
        return self.view.n_rows, self.view.n_columns

    @property
    def n_entries(self) -> int:
        return self.view.n_entries

    def magnitudes(self, threads: int) -> Floats:
        return self.view.magnitudes(threads)

    def restrict(self, columns: Integers, threads: int) -> "NativeMatrix":
        kept = columns if self.columns is None else self.columns[columns]
        return replace(self, view=self.view.take_columns(columns, threads), columns=kept)

    def with_categories(self, codes: NDArray[np.uint16], n: int) -> "NativeMatrix":
        """Return X with one one-hot column appended per category; X is not copied.

        `codes` has the category of each row, from 0 to n − 1.
        """
        return replace(self, view=self.view.coded(codes, n), categories=Categories(codes, n))

    def arranged(self, pairs: PairCounts) -> PairCounts:
        return cast(PairSet, pairs).bundled()

    def rows(self, rows: Integers) -> Rows:
        columns = np.arange(self.n_features) if self.columns is None else self.columns
        if self.categories is None:
            return Rows(self.X, rows, columns)
        return Rows(self.categories.beside(self.X, rows), np.arange(rows.size), columns)

    def design(self, pairs: PairCounts, threads: int) -> "NativeDesign":
        return NativeDesign(self, cast(PairSet, pairs), threads)


class NumPySpace(ScoreSpace):
    """Vector operations on scores that are NumPy arrays."""

    def __init__(self, n_documents: int) -> None:
        self._n_documents = n_documents

    def zero(self) -> Scores:
        return Scores(np.zeros(self._n_documents))

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        return Scores(_vector(a) + step * _vector(b))

    def dot(self, a: Scores, b: Scores) -> float:
        return float(_vector(a) @ _vector(b))

    def entries(self, a: Scores, documents: Integers | None = None) -> Floats:
        return _vector(a) if documents is None else _vector(a)[documents]

    def vector(self, entries: Floats) -> Scores:
        return Scores(entries)


class NativeLoss(PairLoss):
    """The sum of a loss over pairs as a function of the scores, computed by the C++ kernels."""

    def __init__(self, pairs: _core.Pairs, space: ScoreSpace, threads: int) -> None:
        self.pairs = pairs
        self.space = space
        self._threads = threads

    def evaluate(self, scores: Scores, like: State | None) -> Evaluation:
        losses, slopes, point = _core.evaluate_scores(
            self.pairs, _vector(scores), self.point(like), self._threads
        )
        return self.evaluation((losses, slopes, None, _vector(scores), point))

    def hess_vec(self, state: State, u: Scores) -> Scores:
        return Scores(_core.hess_vec_scores(self.point(state), _vector(u), self._threads))

    def point(self, state: State | None) -> Any:
        """Return `state` as the C++ object that has the data for Hessian products."""
        return state

    def evaluation(
        self, found: tuple[Floats, Floats, Floats | None, Floats, _core.Point]
    ) -> Evaluation:
        losses, slopes, gradient, scores, point = found
        return Evaluation(
            scores=Scores(scores),
            losses=LossSums.of(losses, int(np.count_nonzero(slopes))),
            by_query=QueryLosses(losses),
            score_gradient=Scores(slopes),
            state=State(point),
            gradient=gradient,
        )


class NativeDesign(Design):
    """A feature matrix in memory with one row per document, multiplied by the C++ kernels."""

    matrix: NativeMatrix
    pairs: PairSet
    has_rough_hessian = True

    def __init__(
        self,
        matrix: NativeMatrix,
        pairs: PairSet,
        threads: int,
        documents: _core.Pairs | None = None,
    ) -> None:
        super().__init__(matrix, pairs, threads)
        self.space = NumPySpace(pairs.n_documents)
        self._view = matrix.view
        self._documents = documents

    @property
    def documents(self) -> _core.Pairs:
        """The pairs as a C++ object, for kernels that need documents and queries but no loss."""
        if self._documents is None:
            self._documents = self.pairs.native(ANY_LOSS)
        return self._documents

    def on(self, matrix: NativeMatrix) -> "NativeDesign":
        """Return a copy of this object for another feature matrix on the same documents."""
        return NativeDesign(matrix, self.pairs, self.threads, self.documents)

    def pair_loss(self, loss: Loss) -> NativeLoss:
        return NativeLoss(self.pairs.native(loss), self.space, self.threads)

    def dot(self, w: Floats) -> Scores:
        return Scores(self._view.dot(w, self.pairs.documents.rows, self.threads))

    def transpose_dot(self, z: Scores) -> Floats:
        return _core.transpose_dot(self._view, self.documents, _vector(z), self.threads)

    def rows(self, rows: Integers) -> Rows:
        return self.matrix.rows(rows)

    def column(self, j: int) -> Scores:
        return Scores(self._view.column(j, self.pairs.documents.rows, self.threads))

    def evaluate(self, loss: PairLoss, w: Floats, like: State | None) -> Evaluation:
        native = cast(NativeLoss, loss)
        point = native.point(like)
        return native.evaluation(_core.evaluate(self._view, native.pairs, w, point, self.threads))

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        point = cast(NativeLoss, loss).point(state)
        product, scores = _core.hess_vec(self._view, point, v, self.threads)
        return product, Scores(scores)

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        return _core.hessian(self._view, cast(NativeLoss, loss).point(state), self.threads)

    def rough_hessian(self, loss: PairLoss, state: State) -> Floats:
        blocks = self._pair_blocks(loss, state) if self._is_matched else self._blocks(loss, state)
        return sum_of_products(blocks, self._view.n_columns, self.threads)

    def rough_sweeps(self, n_pieces: int) -> float:
        # For pairs without a common document, half as many rows are multiplied for any loss.
        return 0.5 * super().rough_sweeps(0) if self._is_matched else super().rough_sweeps(n_pieces)

    @property
    def _is_matched(self) -> bool:
        # Whether X is dense and each document is in exactly one listed pair.
        pairs, X = self.pairs, self.matrix.X
        listed = isinstance(pairs, ListedPairs) and 2 * len(pairs.pairs) == pairs.n_documents
        is_whole = self.matrix.columns is None and self.matrix.categories is None
        return listed and isinstance(X, np.ndarray) and is_whole

    def _blocks(self, loss: PairLoss, state: State) -> Iterator[tuple[Singles, Singles]]:
        # Yield rows of X and of AX, a few queries at a time.
        point, offsets = cast(NativeLoss, loss).point(state), self.pairs.documents.offsets
        for first, last in bounded_ranges(offsets, ROWS_PER_BLOCK):
            yield _core.curved_rows(self._view, point, first, last, self.threads)

    def _pair_blocks(self, loss: PairLoss, state: State) -> Iterator[tuple[Singles, Singles]]:
        # XᵀAX = Σ c dᵀd over the pairs, with curvature c and the difference d of their rows of X:
        # half as many rows as X.
        pairs = cast(ListedPairs, self.pairs)
        unit = np.zeros(pairs.n_documents)
        unit[pairs.pairs[:, 0]] = 1.0
        curvature = _vector(loss.hess_vec(state, Scores(unit)))[pairs.pairs[:, 0]]
        curved = np.flatnonzero(curvature)
        documents = pairs.pairs[curved]
        rows = documents if pairs.documents.rows is None else pairs.documents.rows[documents]
        for first in range(0, curved.size, ROWS_PER_BLOCK):
            some = slice(first, first + ROWS_PER_BLOCK)
            with np.errstate(over="ignore", invalid="ignore"):
                difference = self.matrix.X[rows[some, 0]] - self.matrix.X[rows[some, 1]]
                single = difference.astype(np.float32, copy=False)
                image = single * curvature[curved[some], None].astype(np.float32)
            yield single, image

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        return _core.hess_diag(self._view, cast(NativeLoss, loss).point(state), self.threads)

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        queries, bounds = self.groups(n_groups)
        gradients = _core.transpose_dot_by_group(
            self._view, self.documents, _vector(z), bounds, self.threads
        )
        return GroupedLoss(np.add.reduceat(cast(Floats, by_query)[:, 0], queries[:-1]), gradients)

    def query_squares(self, by_query: QueryLosses) -> Floats:
        sizes = np.ascontiguousarray(cast(Floats, by_query)[:, 2])
        return _core.query_squares(self._view, self.documents, sizes, self.threads)

    def share(self, designs: Sequence[Design]) -> "NativeSharedSweeps":
        return NativeSharedSweeps(designs)


class NativeSharedSweeps(SharedSweeps):
    """Products with X for several problems, by C++ kernels that read X once for all of them.

    The problems must have the same documents in the same queries; pairs, weights and losses may
    differ. The result of each problem is the same, bit for bit, as without the other problems.
    """

    def __init__(self, designs: Sequence[Design]) -> None:
        super().__init__(designs)
        first = cast(NativeDesign, designs[0])
        self._view, self._threads = first.matrix.view, first.threads

    @property
    def _documents(self) -> list[_core.Pairs]:
        return [cast(NativeDesign, design).documents for design in self._designs]

    def evaluate(
        self, losses: Sequence[PairLoss], ws: Sequence[Floats], likes: Sequence[State | None]
    ) -> list[Evaluation]:
        natives = cast(Sequence[NativeLoss], losses)
        pairs = [loss.pairs for loss in natives]
        points = [loss.point(like) for loss, like in zip(natives, likes, strict=True)]
        found = _core.evaluate_together(self._view, pairs, list(ws), points, self._threads)
        return [loss.evaluation(one) for loss, one in zip(natives, found, strict=True)]

    def dot(self, ws: Sequence[Floats]) -> list[Scores]:
        found = _core.dot_together(self._view, self._documents, list(ws), self._threads)
        return [Scores(scores) for scores in found]

    def transpose_dot(self, zs: Sequence[Scores]) -> list[Floats]:
        vectors = [_vector(z) for z in zs]
        return _core.transpose_dot_together(self._view, self._documents, vectors, self._threads)

    def hess_vec(
        self, losses: Sequence[PairLoss], states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        natives = cast(Sequence[NativeLoss], losses)
        points = [loss.point(state) for loss, state in zip(natives, states, strict=True)]
        found = _core.hess_vec_together(self._view, points, list(vs), self._threads)
        return [(product, Scores(scores)) for product, scores in found]


def _vector(scores: Scores) -> Floats:
    return cast(Floats, scores)
