"""X times a matrix T that is never multiplied out: any backend's X, which stays as it is.

With u the weights of XT, the scores are X (Tu), and sums over documents, Xᵀz, become TᵀXᵀz. So
solvers work with u, as if X had been transformed; the backend gets w = Tu.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import cast

from marginrank._utils.types import Floats
from marginrank.objective.losses import Loss
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
    """T."""

    @abstractmethod
    def inner(self, u: Floats) -> Floats:
        """Return Tu, the weights of X."""

    @abstractmethod
    def outer(self, sums: Floats) -> Floats:
        """Return Tᵀg for the last axis of sums g over documents."""


class TransformedDesign(Design):
    """XT; scores and losses are those of X."""

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
        return _transformed(self.transformation, found)

    def hess_vec(self, loss: PairLoss, state: State, v: Floats) -> tuple[Floats, Scores]:
        product, scores = self.inner.hess_vec(loss, state, self.transformation.inner(v))
        return self.transformation.outer(product), scores

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        grouped = self.inner.by_group(by_query, z, n_groups)
        return grouped._replace(gradients=self.transformation.outer(grouped.gradients))

    def share(self, designs: Sequence[Design]) -> SharedSweeps:
        transformed = cast(Sequence[TransformedDesign], designs)
        inner = self.inner.share([design.inner for design in transformed])
        return TransformedSweeps(inner, [design.transformation for design in transformed])


class TransformedSweeps(SharedSweeps):
    """Sweeps over X that several designs share, each of which has its own T."""

    def __init__(self, inner: SharedSweeps, transformations: Sequence[Transformation]) -> None:
        self._inner = inner
        self._transformations = transformations

    def evaluate(
        self, losses: Sequence[PairLoss], ws: Sequence[Floats], likes: Sequence[State | None]
    ) -> list[Evaluation]:
        found = self._inner.evaluate(losses, self._inside(ws), likes)
        return [_transformed(t, one) for t, one in zip(self._transformations, found, strict=True)]

    def dot(self, ws: Sequence[Floats]) -> list[Scores]:
        return self._inner.dot(self._inside(ws))

    def transpose_dot(self, zs: Sequence[Scores]) -> list[Floats]:
        return self._outside(self._inner.transpose_dot(zs))

    def hess_vec(
        self, losses: Sequence[PairLoss], states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        found = self._inner.hess_vec(losses, states, self._inside(vs))
        products = self._outside([product for product, _ in found])
        return [(product, one[1]) for product, one in zip(products, found, strict=True)]

    def _inside(self, ws: Sequence[Floats]) -> list[Floats]:
        return [t.inner(w) for t, w in zip(self._transformations, ws, strict=True)]

    def _outside(self, sums: Sequence[Floats]) -> list[Floats]:
        return [t.outer(one) for t, one in zip(self._transformations, sums, strict=True)]


def _transformed(transformation: Transformation, evaluation: Evaluation) -> Evaluation:
    assert evaluation.gradient is not None
    return evaluation._replace(gradient=transformation.outer(evaluation.gradient))
