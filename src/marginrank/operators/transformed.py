"""A product XT of the feature matrix and a linear map T, without computing it.

For example, T divides each column by its scale. With u the weights of XT, the scores are X (Tu),
and a sum over documents Xᵀz becomes TᵀXᵀz. Solvers work with u as if X had been transformed; the
backend gets w = Tu. X is not copied.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from marginrank._utils.types import Floats, Integers
from marginrank.objective.gram import Rows
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import ActiveDocuments, PairCounts, PairSet
from marginrank.objective.protocols import (
    Design,
    Evaluation,
    GroupedLoss,
    Matrix,
    PairLoss,
    QueryLosses,
    Scores,
    SharedSweeps,
    State,
)


class Transformation(ABC):
    """A linear map T of features: weights u for XT correspond to weights w = Tu for X."""

    @abstractmethod
    def inner(self, u: Floats) -> Floats:
        """Return the weights w = Tu of X for weights u of the transformed features XT."""

    @abstractmethod
    def outer(self, sums: Floats) -> Floats:
        """Return gradients Tᵀg in the weights of XT, given gradients g in the weights of X.

        The gradients g are along the last axis of `sums`.
        """

    def apply(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation at w = Tu with the gradient with respect to u instead of w."""
        assert evaluation.gradient is not None
        return evaluation._replace(gradient=self.outer(evaluation.gradient))


class TransformedDesign(Design):
    """A product XT with one row per document; scores and losses are computed with X."""

    def __init__(self, matrix: Matrix, inner: Design, transformation: Transformation) -> None:
        super().__init__(matrix, inner.pairs, inner.threads)
        self.space = inner.space
        self.inner = inner
        self.transformation = transformation

    def pair_loss(self, loss: Loss) -> PairLoss:
        return self.inner.pair_loss(loss)

    def dot(self, w: Floats) -> Scores:
        return self.inner.dot(self.transformation.inner(w))

    def transpose_dot(self, z: Scores) -> Floats:
        return self.transformation.outer(self.inner.transpose_dot(z))

    def evaluate(self, loss: PairLoss, w: Floats, like: State | None) -> Evaluation:
        found = self.inner.evaluate(loss, self.transformation.inner(w), like)
        return self.transformation.apply(found)

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        product, scores = self.inner.hess_vec(loss, state, self.transformation.inner(v))
        return self.transformation.outer(product), scores

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        grouped = self.inner.by_group(by_query, z, n_groups)
        return grouped._replace(gradients=self.transformation.outer(grouped.gradients))

    def share(self, designs: Sequence[Design]) -> SharedSweeps:
        transformed = cast(Sequence[TransformedDesign], designs)
        inner = self.inner.share([design.inner for design in transformed])
        return _TransformedSweeps(inner, [design.transformation for design in transformed])


class _TransformedSweeps(SharedSweeps):
    """Products that read X once for several linear maps of its features."""

    def __init__(self, inner: SharedSweeps, transformations: Sequence[Transformation]) -> None:
        self._inner = inner
        self._transformations = transformations

    def evaluate(
        self, losses: Sequence[PairLoss], ws: Sequence[Floats], likes: Sequence[State | None]
    ) -> list[Evaluation]:
        found = self._inner.evaluate(losses, self._inside(ws), likes)
        return [t.apply(one) for t, one in zip(self._transformations, found, strict=True)]

    def dot(self, ws: Sequence[Floats]) -> list[Scores]:
        return self._inner.dot(self._inside(ws))

    def transpose_dot(self, zs: Sequence[Scores]) -> list[Floats]:
        sums = self._inner.transpose_dot(zs)
        return [t.outer(one) for t, one in zip(self._transformations, sums, strict=True)]

    def hess_vec(
        self, losses: Sequence[PairLoss], states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        found = zip(
            self._transformations,
            self._inner.hess_vec(losses, states, self._inside(vs)),
            strict=True,
        )
        return [(t.outer(product), scores) for t, (product, scores) in found]

    def _inside(self, ws: Sequence[Floats]) -> list[Floats]:
        return [t.inner(w) for t, w in zip(self._transformations, ws, strict=True)]


@dataclass(frozen=True)
class ScaledMatrix(Matrix):
    """The feature matrix X with each column divided by a positive number, its scale; not copied."""

    inner: Matrix
    scale: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def n_entries(self) -> int:
        return self.inner.n_entries

    def magnitudes(self, threads: int) -> Floats:
        return self.inner.magnitudes(threads) / self.scale

    def restrict(self, columns: Integers, threads: int) -> "ScaledMatrix":
        return ScaledMatrix(self.inner.restrict(columns, threads), self.scale[columns])

    def design(self, pairs: PairCounts, threads: int) -> "_ScaledDesign":
        return _ScaledDesign(self, self.inner.design(pairs, threads), _Division(self.scale))

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[Matrix, PairSet]:
        inner, sample = self.inner.sample(pairs, fraction, seed, threads)
        return ScaledMatrix(inner, self.scale), sample

    def on_host(self) -> "ScaledMatrix | None":
        inner = self.inner.on_host()
        return None if inner is None else ScaledMatrix(inner, self.scale)

    @property
    def largest_sample(self) -> float:
        return self.inner.largest_sample


@dataclass(frozen=True)
class _Division(Transformation):
    """The linear map T that divides each feature by its scale σ."""

    scale: Floats

    def inner(self, u: Floats) -> Floats:
        return u / self.scale

    def outer(self, sums: Floats) -> Floats:
        return sums / self.scale


class _ScaledDesign(TransformedDesign):
    """The scaled feature matrix X / σ with one row per document."""

    matrix: ScaledMatrix

    def __init__(self, matrix: ScaledMatrix, inner: Design, transformation: Transformation) -> None:
        super().__init__(matrix, inner, transformation)
        self.has_rough_hessian = inner.has_rough_hessian

    def rows(self, rows: Integers) -> Rows:
        return self.inner.rows(rows).over(self.matrix.scale)

    def active_rows(self) -> tuple[Rows, ActiveDocuments]:
        rows, active = self.inner.active_rows()
        return rows.over(self.matrix.scale), active

    def column(self, j: int) -> Scores:
        factor = 1.0 / float(self.matrix.scale[j])
        return self.space.add(self.space.zero(), factor, self.inner.column(j))

    def query_squares(self, by_query: QueryLosses) -> Floats:
        return self.inner.query_squares(by_query) / self.matrix.scale**2

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        return self._divided(self.inner.hessian(loss, state))

    def rough_hessian(self, loss: PairLoss, state: State) -> Floats:
        return self._divided(self.inner.rough_hessian(loss, state))

    def rough_sweeps(self, n_pieces: int) -> float:
        return self.inner.rough_sweeps(n_pieces)

    def _divided(self, hessian: Floats) -> Floats:
        hessian /= self.matrix.scale
        hessian /= self.matrix.scale[:, None]
        return hessian

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        return self.inner.hess_diag(loss, state) / self.matrix.scale**2
