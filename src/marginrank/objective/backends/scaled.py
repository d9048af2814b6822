"""X with its features divided by positive numbers: any backend's X, which stays as it is.

With σ the numbers and u the weights of X / σ, the scores are X (u / σ), and what comes back as a
sum over documents is divided by σ. So solvers work with u, as if X had been scaled; the backend
sees w = u / σ, the weights of the features as they are. Nothing of the size of X is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from marginrank._utils.types import Floats, Integers
from marginrank.objective.backends.interface import Kernels, Matrix, QueryLosses, Scores, State
from marginrank.objective.backends.transformed import (
    Transformation,
    TransformedKernels,
    TransformedSweeps,
)
from marginrank.objective.gram import Gram
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairCounts, PairSet


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

    def kernels(self, pairs: PairCounts, loss: Loss, threads: int) -> "ScaledKernels":
        """Return what computes with it."""
        return ScaledKernels(self.inner.kernels(pairs, loss, threads), self.scale)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[Matrix, PairSet]:
        """Return a sample of the pairs and X / σ of their documents."""
        inner, sample = self.inner.sample(pairs, fraction, seed, threads)
        return ScaledMatrix(inner, self.scale), sample

    def on_host(self) -> "ScaledMatrix | None":
        """Return X / σ for the native kernels."""
        inner = self.inner.on_host()
        return None if inner is None else ScaledMatrix(inner, self.scale)

    @property
    def largest_sample(self) -> float:
        """The share of the documents up to which samples are to be had at once."""
        return self.inner.largest_sample

    def share(self, kernels: Sequence[Kernels]) -> TransformedSweeps:
        """Return sweeps for several kernels, each with a scale of its own."""
        scaled = [cast(ScaledKernels, kernel) for kernel in kernels]
        return TransformedSweeps.of(self.inner.share([k.inner for k in scaled]), scaled)


@dataclass(frozen=True)
class Division(Transformation):
    """The diagonal matrix of 1 / σ."""

    scale: Floats

    def inner(self, u: Floats) -> Floats:
        """Return u / σ."""
        return u / self.scale

    def outer(self, sums: Floats) -> Floats:
        """Return sums / σ."""
        return sums / self.scale


class ScaledKernels(TransformedKernels):
    """Kernels of X that are asked about X / σ; scores are the same."""

    def __init__(self, inner: Kernels, scale: Floats) -> None:
        super().__init__(inner, Division(scale))
        self.scale = scale

    def column(self, j: int) -> Scores:
        """Return a column of X / σ."""
        return self.inner.add(self.zero(), 1.0 / float(self.scale[j]), self.inner.column(j))

    def query_squares(self, by_query: QueryLosses) -> Floats:
        """Return what errors of the queries' gradients sum to, squared; a sweep."""
        return self.inner.query_squares(by_query) / self.scale**2

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
