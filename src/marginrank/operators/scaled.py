"""X with its features divided by positive numbers: any backend's X, which stays as it is.

With σ the numbers and u the weights of X / σ, the scores are X (u / σ), and sums over documents are
divided by σ. So solvers work with u, as if X had been scaled; the backend gets w = u / σ, the
weights of the features as they are. Nothing of the size of X is made.
"""

from dataclasses import dataclass

from marginrank._utils.types import Floats, Integers
from marginrank.objective.gram import Rows
from marginrank.objective.pair_sets import ActiveDocuments, PairCounts, PairSet
from marginrank.objective.protocols import Matrix, PairLoss, QueryLosses, Scores, State
from marginrank.operators.transformed import Transformation, TransformedDesign


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
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def n_entries(self) -> int:
        return self.inner.n_entries

    def magnitudes(self, threads: int) -> Floats:
        return self.inner.magnitudes(threads) / self.scale

    def restrict(self, columns: Integers, threads: int) -> "ScaledMatrix":
        return ScaledMatrix(self.inner.restrict(columns, threads), self.scale[columns])

    def design(self, pairs: PairCounts, threads: int) -> "ScaledDesign":
        return ScaledDesign(self, self.inner.design(pairs, threads), Division(self.scale))

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
class Division(Transformation):
    """The diagonal matrix of 1 / σ."""

    scale: Floats

    def inner(self, u: Floats) -> Floats:
        return u / self.scale

    def outer(self, sums: Floats) -> Floats:
        return sums / self.scale


class ScaledDesign(TransformedDesign):
    """X / σ with one row per document."""

    matrix: ScaledMatrix

    def rows(self, rows: Integers) -> Rows:
        return self.inner.rows(rows).over(self.matrix.scale)

    def active_rows(self) -> tuple[Rows, ActiveDocuments]:
        rows, active = self.inner.active_rows()
        return rows.over(self.matrix.scale), active

    def column(self, j: int) -> Scores:
        return self.space.add(
            self.space.zero(), 1.0 / float(self.matrix.scale[j]), self.inner.column(j)
        )

    def query_squares(self, by_query: QueryLosses) -> Floats:
        return self.inner.query_squares(by_query) / self.matrix.scale**2

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        hessian = self.inner.hessian(loss, state)
        hessian /= self.matrix.scale
        hessian /= self.matrix.scale[:, None]
        return hessian

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        return self.inner.hess_diag(loss, state) / self.matrix.scale**2
