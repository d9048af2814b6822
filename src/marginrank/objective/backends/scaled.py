"""X with its features divided by positive numbers: any backend's X, which stays as it is.

With σ the numbers and u the weights of X / σ, the scores are X (u / σ), and what comes back as a
sum over documents is divided by σ. So solvers work with u, as if X had been scaled; the backend
sees w = u / σ, the weights of the features as they are. Nothing of the size of X is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from marginrank._base.types import Floats, Integers
from marginrank.objective.backends.interface import (
    Evaluation,
    Kernels,
    Matrix,
    Scores,
    SharedSweeps,
    State,
)
from marginrank.objective.gram import Gram
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet


@dataclass(frozen=True)
class ScaledMatrix(Matrix):
    """X / σ.

    Attributes
    ----------
    inner : Matrix
        X.
    scale : ndarray of shape (n_features,)
        σ, positive.
    """

    inner: Matrix
    scale: Floats

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.inner.n_features

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.inner.n_rows

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return self.inner.n_entries

    def magnitudes(self, threads: int) -> Floats:
        """Return the largest absolute value of each column of X / σ."""
        return self.inner.magnitudes(threads) / self.scale

    def restrict(self, columns: Integers, threads: int) -> "ScaledMatrix":
        """Return some columns alone."""
        return ScaledMatrix(self.inner.restrict(columns, threads), self.scale[columns])

    def kernels(self, pairs: PairSet, loss: Loss, threads: int) -> "ScaledKernels":
        """Return what computes with it."""
        return ScaledKernels(self.inner.kernels(pairs, loss, threads), self.scale)

    def share(self, kernels: Sequence[Kernels]) -> "ScaledSweeps":
        """Return sweeps for several kernels, each with a scale of its own."""
        scaled = [cast(ScaledKernels, kernel) for kernel in kernels]
        shared = self.inner.share([kernel.inner for kernel in scaled])
        return ScaledSweeps(shared, [kernel.scale for kernel in scaled])


class ScaledKernels(Kernels):
    """Kernels of X that are asked about X / σ; scores are the same."""

    def __init__(self, inner: Kernels, scale: Floats) -> None:
        self.inner = inner
        self.scale = scale

    def evaluate(self, w: Floats, like: State | None) -> Evaluation:
        """Look at weights of X / σ: a sweep."""
        return _divided(self.inner.evaluate(w / self.scale, like), self.scale)

    def evaluate_scores(self, scores: Scores, like: State | None) -> Evaluation:
        """Look at some scores; no sweep."""
        return self.inner.evaluate_scores(scores, like)

    def scores(self, w: Floats) -> Scores:
        """Return X (w / σ); a sweep."""
        return self.inner.scores(w / self.scale)

    def column(self, j: int) -> Scores:
        """Return a column of X / σ."""
        return self.inner.add(self.zero(), 1.0 / float(self.scale[j]), self.inner.column(j))

    def combine(self, z: Scores) -> Floats:
        """Return Xᵀz / σ; a sweep."""
        return self.inner.combine(z) / self.scale

    def combine_by_group(self, z: Scores, queries: Integers) -> Floats:
        """Return Xᵀz / σ by groups of queries; a sweep."""
        return self.inner.combine_by_group(z, queries) / self.scale

    def query_squares(self, sizes: Floats) -> Floats:
        """Return what errors of the queries' gradients sum to, squared; a sweep."""
        return self.inner.query_squares(sizes) / self.scale**2

    def hess_vec(self, state: State, v: Floats) -> tuple[Floats, Scores]:
        """Return XᵀAX(v / σ) / σ and X (v / σ); a sweep."""
        product, scores = self.inner.hess_vec(state, v / self.scale)
        return product / self.scale, scores

    def hess_vec_scores(self, state: State, u: Scores) -> Scores:
        """Return A u; no sweep."""
        return self.inner.hess_vec_scores(state, u)

    def hessian(self, state: State) -> Floats:
        """Return XᵀAX / σσᵀ."""
        hessian = self.inner.hessian(state)
        hessian /= self.scale
        hessian /= self.scale[:, None]
        return hessian

    def hess_diag(self, state: State) -> Floats:
        """Return the diagonal of XᵀAX / σσᵀ."""
        return self.inner.hess_diag(state) / self.scale**2

    def gram(self, scale: Floats | None = None) -> Gram:
        """Return the inner products of the active documents of X / σ."""
        return self.inner.gram(self.scale if scale is None else self.scale * scale)

    def curved_gram(self, state: State, gram: Gram) -> Floats:
        """Return A K; no sweep."""
        return self.inner.curved_gram(state, gram)

    def select(self, gram: Gram, scores: Scores) -> Floats:
        """Return the entries of the active documents."""
        return self.inner.select(gram, scores)

    def combine_selected(self, gram: Gram, values: Floats) -> Floats:
        """Return XᵀJc / σ; a sweep."""
        return self.inner.combine_selected(gram, values) / self.scale

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

    def count_nonzero(self, a: Scores) -> int:
        """Return how many entries are not zero."""
        return self.inner.count_nonzero(a)

    def is_finite(self, a: Scores) -> bool:
        """Tell whether all entries are numbers."""
        return self.inner.is_finite(a)


class ScaledSweeps(SharedSweeps):
    """Sweeps over X that several kernels share, each of which sees X divided by its own scale."""

    def __init__(self, inner: SharedSweeps, scales: Sequence[Floats]) -> None:
        self._inner = inner
        self._scales = scales

    def evaluate(self, ws: Sequence[Floats], likes: Sequence[State | None]) -> list[Evaluation]:
        """Look at a w each, gradients included."""
        found = self._inner.evaluate(self._raw(ws), likes)
        return [_divided(one, scale) for one, scale in zip(found, self._scales, strict=True)]

    def scores(self, ws: Sequence[Floats]) -> list[Scores]:
        """Return X (w / σ) for a w each."""
        return self._inner.scores(self._raw(ws))

    def combine(self, zs: Sequence[Scores]) -> list[Floats]:
        """Return Xᵀz / σ for a z each."""
        return self._raw(self._inner.combine(zs))

    def hess_vec(
        self, states: Sequence[State], vs: Sequence[Floats]
    ) -> list[tuple[Floats, Scores]]:
        """Return XᵀAX(v / σ) / σ and X (v / σ) for a state and a v each."""
        found = self._inner.hess_vec(states, self._raw(vs))
        products = self._raw([product for product, _ in found])
        return [(product, one[1]) for product, one in zip(products, found, strict=True)]

    def _raw(self, vectors: Sequence[Floats]) -> list[Floats]:
        """Divide a vector of features each."""
        return [v / scale for v, scale in zip(vectors, self._scales, strict=True)]


def _divided(evaluation: Evaluation, scale: Floats) -> Evaluation:
    """Return an evaluation whose gradient, if it has one, is that of X / σ."""
    gradient = evaluation.gradient
    return evaluation if gradient is None else evaluation._replace(gradient=gradient / scale)
