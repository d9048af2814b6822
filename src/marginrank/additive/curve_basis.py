"""Basis functions for the curves of an additive model, scaled so that the penalty is ½‖u‖².

The curve of a feature x is piecewise linear: it is given by its values c at the knots t_0 < … <
t_m. It is the sum of the straight line a (t − mean) that fits it best on the documents, and a
remainder r:

    c = a (t − mean) + r,    mean(r) = 0,  cov(r, x) = 0

The penalty is the ridge penalty of RankSVM for the line, plus λ times the roughness R of r:

    ½ σ² a² + ½ λ (σ / τ)² R(r),    R(r) = m Σ (Δr)² + m³/π² Σ (Δ²r)²

Here λ is the parameter `smoothness`, σ is the scale that the feature is divided by, τ is its
standard deviation, and Δ is the difference between adjacent knots. Knots are quantiles, so R
approximates ∫ r'² + r''² / π², with r as a function of the share of documents below x. A line has
the same penalty as in RankSVM, for any λ.

The basis functions of a feature are the line and the generalized eigenvectors of the covariance of
r over the documents, relative to R. They are uncorrelated on the documents and ordered by variance.
Each is divided by the square root of its penalty, so the penalty of weights u is ½‖u‖². Missing
values and categories have indicator functions with one weight each.

A *hat function* is piecewise linear, one at a single knot and zero at all other knots; see
:mod:`marginrank.additive.knots`. A *block* contains the basis functions of one feature, or of one
grid over two features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import block_diag

from marginrank._utils.threads import cached_property, serial_blas
from marginrank._utils.types import Floats, Integers
from marginrank.additive.grids import CLASSES
from marginrank.additive.knots import SAMPLE, WHOLE, HatCodes
from marginrank.data.knots import Knots
from marginrank.objective.faces import Combination
from marginrank.operators.transformed import Transformation

STEP = 1.0 / WHOLE
SEED = 1  # random seed of the document sample
BLOCK_ENTRIES = 1 << 20  # number of codes processed at a time, to bound the memory
LEAST, MOST = 1e-290, 1e290  # variances in this range do not under- or overflow in products
FEW = 1e-6  # added to the count of each knot: a knot without documents makes matrices singular


@dataclass(frozen=True)
class CurveBasis(Transformation):
    """The basis functions of all features and grids of an additive model, by their values at knots.

    As a Transformation, it maps the weights u of basis functions to the values of curves at knots.
    These values are the weights of hat functions: piecewise linear functions, one at a single knot
    and zero at all others.
    """

    # For each feature or grid, one row per knot and one column per function; row 0 is for missing
    # values.
    blocks: Sequence[Floats]
    variances: Floats  # approximate variance of each function over the documents
    deviations: Floats  # τ of each feature; 0 if it has no curves
    n_grids: int = 0  # number of grids over two features; they are the last blocks

    @cached_property
    def starts(self) -> Integers:
        """Index of the first basis function of each feature or grid, then their total number."""
        sizes = [block.shape[1] for block in self.blocks]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def _matrix(self) -> Any:
        return _block_diagonal(self.blocks)

    @cached_property
    def _transposed(self) -> Any:
        return _block_diagonal([block.T for block in self.blocks])

    def hats(self, k: int) -> range:
        """Return the indices of the columns of ``HatCodes.codes`` for feature or grid k.

        A feature has one column. A grid over two features has one column per class of its nodes,
        see :mod:`marginrank.additive.grids`.
        """
        n_curves = len(self.blocks) - self.n_grids
        first = n_curves + CLASSES * (k - n_curves)
        return range(k, k + 1) if k < n_curves else range(first, first + CLASSES)

    def and_grids(self, blocks: Sequence["BasisBlock"]) -> "CurveBasis":
        return replace(
            self,
            blocks=[*self.blocks, *(block.functions for block in blocks)],
            variances=np.concatenate([self.variances, *(block.variances for block in blocks)]),
            n_grids=self.n_grids + len(blocks),
        )

    def combine(self, combinations: Mapping[int, Combination]) -> "CurveBasis":
        """Return a basis with linear combinations of the functions of some features or grids.

        `combinations` maps the index of a feature or grid to the coefficients.
        """
        functions, variances = list(self.blocks), np.split(self.variances, self.starts[1:-1])
        for k, combination in combinations.items():
            functions[k] = functions[k] @ combination.columns
            variances[k] = combination.variances
        return replace(self, blocks=functions, variances=np.concatenate(variances))

    @property
    def n_weights(self) -> int:
        return self.variances.size

    @cached_property
    def magnitudes(self) -> Floats:
        """Largest absolute value of each basis function between its smallest and largest knot."""
        return np.concatenate([np.abs(block).max(axis=0) for block in self.blocks])

    def inner(self, u: Floats) -> Floats:
        """Return the values of the curves at their knots, for weights u of the basis functions."""
        values: Floats = self._matrix @ u
        return values

    def outer(self, sums: Floats) -> Floats:
        """Return sums over documents for basis functions, given the sums for hat functions.

        A sum is Σ_i z_i f(x_i) over documents i with numbers z_i. The last axis of `sums` has one
        entry per hat function f: piecewise linear, one at a knot and zero at the other knots. In
        the result it has one entry per basis function.
        """
        by_weight: Floats = (self._transposed @ sums.T).T
        return by_weight


def _block_diagonal(blocks: Sequence[Floats]) -> Any:
    """Return the sparse matrix with the given diagonal blocks; faster than scipy's block_diag."""
    heights, widths = np.array([block.shape for block in blocks], dtype=np.int64).T
    first = np.repeat(np.cumsum(widths) - widths, heights)
    in_row = np.repeat(widths, heights)
    ends = np.cumsum(in_row)
    indices = np.arange(ends[-1]) + np.repeat(first - (ends - in_row), in_row)
    data = np.concatenate([block.ravel() for block in blocks])
    shape = int(heights.sum()), int(widths.sum())
    return sp.csr_array((data, indices, np.concatenate([[0], ends])), shape=shape)


class BasisBlock(NamedTuple):
    """Basis functions of one feature, or of one grid over two features, with their variances."""

    functions: Floats  # values: one row per column of hat functions, one column per basis function
    variances: Floats


@dataclass(frozen=True)
class CurveShapes:
    """Basis functions of an additive model before they are scaled by smoothness and scale.

    For each feature they are indicators of missing values or categories, the straight line of slope
    one, and curves whose roughness (squared first and second differences) is one.
    """

    blocks: list[BasisBlock]  # one per feature
    n_steps: Integers  # number of indicators of each feature
    deviations: Floats  # τ of each feature; 0 if it has no curves

    @classmethod
    def of(cls, knots: Knots, codes: HatCodes) -> "CurveShapes":
        """Return basis functions of each feature, computed from its knots and its encoded values.

        They are not yet scaled for a smoothness and a scale of the features.
        """
        sums = HatSums.of(sample(codes), knots)
        missing = _with_gaps(codes)
        blocks: list[BasisBlock] = [BasisBlock(np.empty((0, 0)), np.empty(0))] * knots.n_features
        n_steps, deviations = missing.astype(np.int64), np.zeros(knots.n_features)
        widths = np.where(knots.categorical, 0, np.diff(knots.starts))
        with serial_blas():
            for width in np.unique(widths[widths > 0]):
                features = np.flatnonzero(widths == width)
                first = knots.starts[features]
                t = knots.at[first[:, None] + np.arange(1, width)]
                lines = _lines(t, sums.moments(first, int(width)).present())
                deviations[features] = np.sqrt(lines.variances)
                if width > 2:
                    _check_variances(features, lines.variances)
                curves = _curves(lines)
                for k, curve in zip(features.tolist(), curves, strict=True):
                    share = float(sums.mean[knots.starts[k]])  # share of missing values
                    blocks[k] = _with_missing(curve, share) if missing[k] else curve
        for k in np.flatnonzero(knots.categorical).tolist():
            blocks[k] = _steps(sums.mean[knots.columns(k)], has_missing=bool(missing[k]))
            n_steps[k] = blocks[k].variances.size
        return cls(blocks, n_steps, deviations)

    def with_ridge(self, feature: int, ridge: float) -> "CurveShapes":
        """Return basis functions with the penalty ½ `ridge` ‖b‖² for one categorical feature.

        b are the values of the model for the categories.
        """
        blocks = list(self.blocks)
        functions, variances = blocks[feature]
        blocks[feature] = BasisBlock(functions / ridge**0.5, variances / ridge)
        return replace(self, blocks=blocks)

    def sizes(self, smoothness: float, scale: Floats | None = None) -> Floats:
        """Return one factor per basis function that scales it for a smoothness and feature scales.

        Factors of curves are 0 if the smoothness is infinite: all curves are then straight lines.
        """
        counts = np.array([block.variances.size for block in self.blocks])
        feature = np.repeat(np.arange(counts.size), counts)
        position = np.arange(feature.size) - np.repeat(np.cumsum(counts) - counts, counts)
        position -= self.n_steps[feature]  # 0 for the line
        sigma = np.ones(feature.size) if scale is None else scale[feature]
        of_curve = self.deviations[feature] / (np.sqrt(smoothness) * sigma)
        return np.select([position < 0, position == 0], [1.0, 1.0 / sigma], of_curve)

    def basis(self, smoothness: float, scale: Floats | None = None) -> CurveBasis:
        """Return the basis functions of all features, scaled for a penalty ½‖u‖² of weights u.

        The scaling depends on the smoothness λ and the divisors σ of the features (`scale`, by
        default 1). If λ is infinite, all curves are straight lines.
        """
        sizes = self.sizes(smoothness, scale)
        starts = np.cumsum([block.variances.size for block in self.blocks])[:-1]
        by_feature = zip(self.blocks, np.split(sizes, starts), strict=True)
        variances = np.concatenate([block.variances for block in self.blocks])
        return CurveBasis(
            blocks=[block.functions[:, size > 0] * size[size > 0] for block, size in by_feature],
            variances=(variances * sizes**2)[sizes > 0],
            deviations=self.deviations,
        )


def sample(codes: HatCodes) -> HatCodes:
    """Return the encoded values of a random sample of at most SAMPLE documents."""
    n_documents = codes.codes.shape[0]
    if n_documents <= SAMPLE:
        return codes
    rows = np.random.default_rng(SEED).choice(n_documents, SAMPLE, replace=False)
    return codes.take(np.sort(rows))


def _with_gaps(codes: HatCodes) -> NDArray[np.bool_]:
    """Return a mask of the features that have missing values."""
    n_documents, n_features = codes.codes.shape
    found = np.zeros(n_features, dtype=np.bool_)
    height = max(BLOCK_ENTRIES // max(n_features, 1), 1)
    for first in range(0, n_documents, height):
        block = slice(first, first + height)
        found |= np.any((codes.codes[block] == 0) & (codes.steps[block] == 0), axis=0)
    return found


class HatSums(NamedTuple):
    """Means over documents of hat functions, of their squares and of products of neighboring ones.

    A hat function is piecewise linear, one at a knot and zero at the other knots, so products of
    functions that are not neighbors are zero.
    """

    mean: Floats
    squares: Floats
    with_next: Floats  # means of products of each function with the next

    @classmethod
    def of(cls, codes: HatCodes, knots: Knots) -> "HatSums":
        n_documents, n_features = codes.codes.shape
        sums = np.zeros((5, knots.n_columns + 1))
        width = max(BLOCK_ENTRIES // n_documents, 1)
        for k in range(0, n_features, width):
            some = slice(k, min(k + width, n_features))
            at = (codes.codes[:, some] + knots.starts[:-1][some]).ravel()
            right = STEP * codes.steps[:, some].ravel()
            left = 1.0 - right
            for total, weights in zip(
                sums, (left, right, left * left, right * right, left * right), strict=True
            ):
                total += np.bincount(at, weights, minlength=total.size)
        left, right, left_left, right_right, left_right = sums[:, :-1] / n_documents
        # The weight to the right of a column belongs to the next column.
        mean, squares = left + np.roll(right, 1), left_left + np.roll(right_right, 1)
        return cls(mean, squares, left_right)

    def moments(self, first: Integers, width: int) -> "HatMoments":
        """Return means of hat functions and their products, for features with equally many knots.

        A hat function is one at a knot and zero at the other knots. Each feature has `width`
        functions; `first` has the indices of their first ones.
        """
        at = first[:, None] + np.arange(width)
        products = self.squares[at][:, :, None] * np.eye(width)
        j = np.arange(width - 1)
        products[:, j, j + 1] = products[:, j + 1, j] = self.with_next[at[:, :-1]]
        return HatMoments(self.mean[at], products)


class HatMoments(NamedTuple):
    """Means of the hat functions of several features, and means of products of two of them.

    A hat function is piecewise linear, one at a knot and zero at the other knots. All features have
    the same number of them.
    """

    mean: Floats  # (n_features, n_columns)
    products: Floats  # (n_features, n_columns, n_columns): means of products of two functions

    def present(self) -> "HatMoments":
        """Return the means over only those documents in which the feature has a value.

        The first function of each feature, the indicator of missing values, is dropped.
        """
        mean = self.mean[:, 1:] + FEW
        products = self.products[:, 1:, 1:] + FEW * np.eye(mean.shape[1])
        total = mean.sum(axis=1)
        return HatMoments(mean / total[:, None], products / total[:, None, None])

    @property
    def covariance(self) -> Floats:
        return self.products - self.mean[:, :, None] * self.mean[:, None, :]


class FeatureLines(NamedTuple):
    """Straight lines of slope one, one per feature, as values at the feature's knots.

    All features have the same number of knots.
    """

    values: Floats  # (n_features, n_knots): mean zero over the documents that have a value
    along: Floats  # (n_features, n_knots): mean products of lines with hat functions
    variances: Floats  # τ² of each feature
    moments: HatMoments  # moments of the features' hat functions


def _lines(t: Floats, moments: HatMoments) -> FeatureLines:
    with np.errstate(over="ignore", invalid="ignore"):  # _check_variances raises a clear error
        line = t - np.sum(moments.mean * t, axis=1, keepdims=True)
        along = np.einsum("kij,kj->ki", moments.products, line)
        return FeatureLines(line, along, np.sum(line * along, axis=1), moments)


def _check_variances(features: Integers, variances: Floats) -> None:
    """Raise ValueError if the variance of a feature under- or overflows."""
    odd = np.flatnonzero(~((variances >= LEAST) & (variances <= MOST)))
    if odd.size:
        size = "small" if variances[odd[0]] < LEAST else "large"
        raise ValueError(
            f"X[:, {features[odd[0]]}] has values so {size} that their squares under- or overflow. "
            "Multiply the feature by a constant."
        )


def _curves(lines: FeatureLines) -> list[BasisBlock]:
    """Return one block per feature with its basis functions: the line, then curves.

    All are zero for missing values, and have mean zero over the documents that have a value.
    """
    functions, variances = lines.values[:, :, None], lines.variances[:, None]
    if lines.values.shape[1] > 2:
        curves, of_curves = _eigencurves(lines.along, lines.moments)
        functions = np.concatenate([functions, curves], axis=2)
        variances = np.concatenate([variances, of_curves], axis=1)
    missing = np.zeros((len(functions), 1, functions.shape[2]))
    functions = np.concatenate([missing, functions], axis=1)
    return [BasisBlock(*one) for one in zip(functions, variances, strict=True)]


def _eigencurves(along: Floats, moments: HatMoments) -> tuple[Floats, Floats]:
    """Return basis curves of roughness 1 for each feature, and their variances in descending order.

    The curves are uncorrelated with the straight line of the feature and with each other. `along`
    has the mean products of hat functions with lines.
    """
    conditions = np.stack([moments.mean, along], axis=2)
    conditions /= np.linalg.norm(conditions, axis=1, keepdims=True)
    free = np.linalg.qr(conditions, mode="complete").Q[:, :, 2:]
    across = np.swapaxes(free, 1, 2)
    # With R = LLᵀ, eigenvectors relative to R are L⁻ᵀ times the eigenvectors of L⁻¹ Cov L⁻ᵀ.
    back = np.linalg.inv(np.linalg.cholesky(across @ roughness(along.shape[1]) @ free))
    inner = back @ (across @ moments.covariance @ free) @ np.swapaxes(back, 1, 2)
    variances, vectors = np.linalg.eigh(inner)
    curves = free @ np.swapaxes(back, 1, 2) @ vectors
    return curves[:, :, ::-1], np.maximum(variances[:, ::-1], 0.0)


def roughness(n_knots: int) -> Floats:
    """Return the matrix M of the roughness rᵀMr of a curve with values r at `n_knots` knots."""
    m = n_knots - 1
    first = np.diff(np.eye(n_knots), axis=0)
    second = np.diff(first, axis=0)
    form: Floats = m * first.T @ first + m**3 / np.pi**2 * second.T @ second
    return form


def _with_missing(curve: BasisBlock, share: float) -> BasisBlock:
    functions = block_diag(1.0, curve.functions[1:])
    return BasisBlock(functions, np.concatenate([[share * (1.0 - share)], curve.variances]))


def _steps(shares: Floats, *, has_missing: bool) -> BasisBlock:
    """Return the basis functions of a categorical feature: one indicator per category.

    Missing values also have an indicator if `has_missing`.
    """
    first = 0 if has_missing else 1
    own = shares[first:]
    return BasisBlock(np.eye(shares.size)[:, first:], own * (1.0 - own))
