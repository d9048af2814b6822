"""X times a matrix T that is never multiplied out: any backend's X, which stays as it is.

With u the weights of XT, the scores are X (Tu), and what comes back as a sum over documents, Xᵀz,
becomes TᵀXᵀz. So solvers work with u, as if X had been transformed; the backend sees w = Tu.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from marginrank._utils.types import Floats
from marginrank.objective.backends.interface import (
    Evaluation,
    Kernels,
    QueryLosses,
    Scores,
    SharedSweeps,
    State,
)
from marginrank.objective.gram import Gram
from marginrank.objective.grouped_loss import GroupedLoss


class Transformation(ABC):
    """T."""

    @abstractmethod
    def inner(self, u: Floats) -> Floats:
        """Return Tu, the weights of X."""

    @abstractmethod
    def outer(self, sums: Floats) -> Floats:
        """Return Tᵀg for the last axis of sums g over documents."""


class TransformedKernels(Kernels):
    """Kernels of X that are asked about XT; scores are the same."""

    def __init__(self, inner: Kernels, transformation: Transformation) -> None:
        self.inner = inner
        self.transformation = transformation

    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at weights of XT: a sweep."""
        evaluation = self.inner.evaluate(self.transformation.inner(w), like)
        return _seen_through(self.transformation, evaluation)

    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores; no sweep."""
        return self.inner.evaluate_scores(scores, like)

    def evaluate_along(
        self, scores: Scores, step: float, direction: Scores, like: State | None
    ) -> tuple[Evaluation, float]:
        """Look along a direction; no sweep."""
        return self.inner.evaluate_along(scores, step, direction, like)

    def scores(self, w: Floats) -> Scores:
        """Return X (Tw); a sweep."""
        return self.inner.scores(self.transformation.inner(w))

    def combine(self, z: Scores) -> Floats:
        """Return TᵀXᵀz; a sweep."""
        return self.transformation.outer(self.inner.combine(z))

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        """Return the loss and TᵀXᵀz by groups of queries; a sweep."""
        grouped = self.inner.by_group(by_query, z, n_groups)
        return grouped._replace(gradients=self.transformation.outer(grouped.gradients))

    def hess_vec(self, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return TᵀXᵀAX(Tv) and X (Tv); a sweep."""
        product, scores = self.inner.hess_vec(state, self.transformation.inner(v))
        return self.transformation.outer(product), scores

    def hess_vec_scores(self, state: State, u: Scores) -> Scores:
        """Return A u; no sweep."""
        return self.inner.hess_vec_scores(state, u)

    def curved_gram(self, state: State, gram: Gram) -> Floats:
        """Return A K; no sweep."""
        return self.inner.curved_gram(state, gram)

    def select(self, gram: Gram, scores: Scores) -> Floats:
        """Return the entries of the active documents."""
        return self.inner.select(gram, scores)

    def combine_selected(self, gram: Gram, values: Floats) -> Floats:
        """Return TᵀXᵀJc; a sweep."""
        return self.transformation.outer(self.inner.combine_selected(gram, values))

    def zero(self) -> Scores:
        """Return the scores of w = 0."""
        return self.inner.zero()

    def add(self, a: Scores, step: float, b: Scores) -> Scores:
        """Return a + step · b."""
        return self.inner.add(a, step, b)

    def dot(self, a: Scores, b: Scores) -> float:
        """Return aᵀb."""
        return self.inner.dot(a, b)

    def spread(self, a: Scores) -> float:
        """Return the standard deviation of the entries."""
        return self.inner.spread(a)

    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""
        return self.inner.is_finite(a)


class TransformedSweeps(SharedSweeps):
    """Sweeps over X that several kernels share, each of which sees X through its own T."""

    def __init__(self, inner: SharedSweeps, transformations: Sequence[Transformation]) -> None:
        self._inner = inner
        self._transformations = transformations

    @classmethod
    def of(cls, inner: SharedSweeps, kernels: Sequence[TransformedKernels]) -> "TransformedSweeps":
        """Return sweeps for several kernels, given those for what they transform."""
        return cls(inner, [kernel.transformation for kernel in kernels])

    def evaluate(self, ws: Sequence[Floats], likes: Sequence[State | None]) -> list[Evaluation]:
        """Look at a w each, gradients included."""
        found = self._inner.evaluate(self._inside(ws), likes)
        return [_seen_through(t, one) for t, one in zip(self._transformations, found, strict=True)]

    def scores(self, ws: Sequence[Floats]) -> list[Scores]:
        """Return X (Tw) for a w each."""
        return self._inner.scores(self._inside(ws))

    def combine(self, zs: Sequence[Scores]) -> list[Floats]:
        """Return TᵀXᵀz for a z each."""
        return self._outside(self._inner.combine(zs))

    def hess_vec(
        self, states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        """Return TᵀXᵀAX(Tv) and X (Tv) for a state and a v each."""
        found = self._inner.hess_vec(states, self._inside(vs))
        products = self._outside([product for product, _ in found])
        return [(product, one[1]) for product, one in zip(products, found, strict=True)]

    def _inside(self, ws: Sequence[Floats]) -> list[Floats]:
        return [t.inner(w) for t, w in zip(self._transformations, ws, strict=True)]

    def _outside(self, sums: Sequence[Floats]) -> list[Floats]:
        return [t.outer(one) for t, one in zip(self._transformations, sums, strict=True)]


def _seen_through(transformation: Transformation, evaluation: Evaluation) -> Evaluation:
    """Return an evaluation whose gradient, if it has one, is that of XT."""
    if evaluation.gradient is None:
        return evaluation
    return evaluation._replace(gradient=transformation.outer(evaluation.gradient))
