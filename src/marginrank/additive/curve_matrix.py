"""The design matrix of an additive model: one row per document, one column per basis function.

It is never stored. The native kernels multiply with a matrix of hat functions (:class:`HatMatrix`),
which takes three bytes per feature value. A hat function is piecewise linear, one at a single knot
of a feature and zero at its other knots. Solvers use the weights of other basis functions
(:mod:`marginrank.additive.curve_basis`), for which the penalty is ½‖u‖². :class:`CurveDesign`
converts between both.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from marginrank import _core
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.additive.curve_basis import STEP, CurveBasis
from marginrank.additive.grids import FeatureGrid, hat_starts
from marginrank.additive.knots import HatCodes
from marginrank.data.knots import Knots
from marginrank.objective.faces import Combination
from marginrank.objective.gram import Gram, Rows
from marginrank.objective.pair_sets import PairCounts, PairSet
from marginrank.objective.protocols import Matrix, PairLoss, State
from marginrank.operators.native import NativeDesign, NativeMatrix, as_native
from marginrank.operators.transformed import TransformedDesign

BLOCK_ENTRIES = 1 << 22  # values of basis functions computed at a time
FULL_HESSIAN = 1024  # with at most this many columns, the diagonal is taken from the full Hessian


class HatMatrix(NativeMatrix):
    """Matrix with one row per document and one column per hat function of an additive model.

    A hat function is piecewise linear, one at a single knot of a feature and zero at its other
    knots. `X` has the encoded feature values, from which the entries are computed.
    """

    @classmethod
    def of(cls, codes: HatCodes, starts: Integers) -> "HatMatrix":
        """Return the matrix of hat functions at encoded feature values, one row per document.

        A hat function is one at a knot of a feature and zero at its other knots. `starts` has the
        index of the first one of each feature.
        """
        return cls(codes, _core.Matrix.hats(codes.codes, codes.steps, starts))


@dataclass(frozen=True)
class CurveMatrix(Matrix):
    """Design matrix of an additive model: one row per document, one column per basis function.

    Its entries are not stored.
    """

    hats: HatMatrix
    knots: Knots
    basis: CurveBasis  # linear combinations of the hat functions
    grids: tuple[FeatureGrid, ...] = ()  # their hat functions follow all for single features

    @classmethod
    def of(
        cls, codes: HatCodes, knots: Knots, basis: CurveBasis, grids: tuple[FeatureGrid, ...] = ()
    ) -> "CurveMatrix":
        return cls(HatMatrix.of(codes, hat_starts(knots, grids)), knots, basis, grids)

    @cached_property
    def starts(self) -> Integers:
        """Index of the first hat function of each feature and class of grid nodes; then the end."""
        return hat_starts(self.knots, self.grids)

    @property
    def codes(self) -> HatCodes:
        return cast(HatCodes, self.hats.X)

    @property
    def shape(self) -> tuple[int, int]:
        return self.hats.n_rows, self.basis.n_weights

    @property
    def n_entries(self) -> int:
        return self.hats.n_entries

    def magnitudes(self, threads: int) -> Floats:
        return self.basis.magnitudes

    def restrict(self, columns: Integers, threads: int) -> NativeMatrix:
        """Return the columns with the ascending indices `columns` as a dense matrix."""
        return as_native(self.values(columns))

    def feature(self, j: Any) -> Any:
        """Return the feature that column j depends on; for a grid, the first of two features."""
        of_blocks = [*range(self.knots.n_features), *(grid.features[0] for grid in self.grids)]
        return np.array(of_blocks)[np.searchsorted(self.basis.starts, j, side="right") - 1]

    @property
    def variances(self) -> Floats:
        return self.basis.variances

    @property
    def block_starts(self) -> Integers:
        return self.basis.starts

    def combine_blocks(self, combinations: Mapping[int, Combination]) -> "CurveMatrix":
        """Return the design matrix with linear combinations of the columns of some features.

        `combinations` maps the index of a feature, or grid over two features, to the coefficients.
        """
        return replace(self, basis=self.basis.combine(combinations))

    def design(self, pairs: PairCounts, threads: int) -> "CurveDesign":
        return CurveDesign(self, self.hats.design(pairs, threads), self.basis)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple["CurveMatrix", PairSet]:
        sample = cast(PairSet, pairs).sample(fraction, seed)
        rows = sample.documents.rows
        codes = self.codes if rows is None else self.codes.take(rows)
        return CurveMatrix.of(codes, self.knots, self.basis, self.grids), sample.compact()

    def values(self, columns: Integers, rows: Integers | None = None) -> Floats:
        """Return the columns with the ascending indices `columns` as an array.

        `rows` are the rows to include, by default all.
        """
        codes = self.codes if rows is None else self.codes.take(rows)
        result = np.empty((codes.codes.shape[0], columns.size))
        feature = np.searchsorted(self.basis.starts, columns, side="right") - 1
        for k in np.unique(feature):
            where = np.flatnonzero(feature == k)
            at_knots = self.basis.blocks[k][:, columns[where] - self.basis.starts[k]]
            result[:, where] = sum(
                (1.0 - p) * at_knots[left] + p * at_knots[left + 1]
                for left, p in self._columns(codes, int(k))
            )
        return result

    def _columns(self, codes: HatCodes, k: int) -> Iterator[tuple[Integers, Any]]:
        """Yield the positions of the values in each column of the codes of feature or grid k.

        A position is the index of the hat function to the left of the value, counted from the first
        one of the feature or grid, and the distance from there to the next, between 0 and 1.
        """
        hats = self.basis.hats(k)
        for j in hats:
            left = codes.codes[:, j].astype(np.int64) + (self.starts[j] - self.starts[hats[0]])
            yield left, (STEP * codes.steps[:, j])[:, None]


class CurveDesign(TransformedDesign):
    """Products with the design matrix of an additive model, for the documents of a pair set.

    They are computed from products with the matrix of hat functions.
    """

    matrix: CurveMatrix
    inner: NativeDesign

    def rows(self, rows: Integers) -> Rows:
        return Rows.of(self.matrix.values(np.arange(self.matrix.n_features), rows))

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        half = self.transformation.outer(self.inner.hessian(loss, state))
        return self.transformation.outer(half.T)

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        if self.matrix.n_features <= FULL_HESSIAN:
            return np.diag(self.hessian(loss, state)).copy()
        some = (self.matrix.restrict(c, 1) for c in self._column_blocks(self.matrix.n_rows))
        return np.concatenate([self.inner.on(block).hess_diag(loss, state) for block in some])

    def make_gram(self) -> Gram:
        active = self.inner.pairs.active_documents
        total = Gram(active.documents, active.offsets, np.zeros((active.rows.size,) * 2))
        for columns in self._column_blocks(active.rows.size):
            rows = Rows.of(self.matrix.values(columns, active.rows))
            total.products[...] += Gram.of_rows(rows, active.documents, active.offsets).products
        return total

    def _column_blocks(self, height: int) -> Iterator[Integers]:
        """Yield the column indices in blocks of about BLOCK_ENTRIES / `height` columns."""
        width = max(BLOCK_ENTRIES // max(height, 1), 8)
        for first in range(0, self.matrix.n_features, width):
            yield np.arange(first, min(first + width, self.matrix.n_features))
