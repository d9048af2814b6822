"""A basis of curves in which the penalty of an additive model is ½‖u‖².

The curve of a feature is given by its values c at the knots t_0 < … < t_m, and straight between
them. It is a line, the one that fits it best on the documents, and what is left, r:

    c = a (t − mean) + r,    mean(r) = 0,  cov(r, x) = 0

The penalty is that of RankSVM for the line, and λ times the roughness of r:

    ½ σ² a² + ½ λ (σ / τ)² R(r),    R(r) = m Σ (Δr)² + m³/π² Σ (Δ²r)²

with the scale σ that the feature is divided by, its standard deviation τ, and differences from knot
to knot. As knots are quantiles, R is about ∫ r'² + r''² / π² over the share of documents below x.
So a straight line costs what it costs in RankSVM, whatever λ is.

On the space of all r, eigenvectors of the covariance relative to R make a basis of curves that are
uncorrelated on the documents and ordered by how much they vary; scaled by their penalty and
together with the line, they have the penalty ½‖u‖². Missing values, and categories, are columns of
zeros and ones with a weight of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh, null_space

from marginrank._base.cached import cached_property
from marginrank._base.types import Floats, Integers
from marginrank.data.grids import CLASSES
from marginrank.data.knots import Knots, Places
from marginrank.objective.backends.transformed import Transformation

STEP = 2.0**-15  # of what places count in
SAMPLE = 20_000  # documents that tell means and covariances
SEED = 1  # of the sample
BLOCK = 4096  # documents that are looked at at a time
FEW = 1e-6  # documents that each knot has beside its own, so that none has no weight


@dataclass(frozen=True)
class CurveBasis(Transformation):
    """Basis functions by their values at the knots.

    Attributes
    ----------
    blocks : sequence of ndarray
        For each feature, the values of its basis functions (columns) at its knots (rows), of which
        the first is for missing values.
    variances : ndarray of shape (n_weights,)
        How much each function varies over documents, about.
    n_grids : int
        How many of the last blocks are those of grids, which are several features of hat functions.
    """

    blocks: Sequence[Floats]
    variances: Floats
    n_grids: int = 0

    @cached_property
    def starts(self) -> Integers:
        """The first weight of each feature, and the number of all."""
        sizes = [block.shape[1] for block in self.blocks]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def _matrix(self) -> Any:
        return sp.csr_array(sp.block_diag(self.blocks, format="csr"))

    @cached_property
    def _transposed(self) -> Any:
        return sp.csr_array(self._matrix.T)

    def hats(self, k: int) -> range:
        """Return the features of hat functions that block k is made of."""
        n_curves = len(self.blocks) - self.n_grids
        first = n_curves + CLASSES * (k - n_curves)
        return range(k, k + 1) if k < n_curves else range(first, first + CLASSES)

    def and_grids(self, blocks: Sequence["Block"]) -> "CurveBasis":
        """Return the same with functions of grids behind."""
        return CurveBasis(
            blocks=[*self.blocks, *(block.functions for block in blocks)],
            variances=np.concatenate([self.variances, *(block.variances for block in blocks)]),
            n_grids=self.n_grids + len(blocks),
        )

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.variances.size

    @property
    def magnitudes(self) -> Floats:
        """The largest absolute value of each function between its outer knots."""
        return np.concatenate([np.abs(block).max(axis=0) for block in self.blocks])

    def inner(self, u: Floats) -> Floats:
        """Return the values of the curves with weights u at the knots."""
        values: Floats = self._matrix @ u
        return values

    def outer(self, sums: Floats) -> Floats:
        """Return sums over the documents by weight, from those by knot."""
        by_weight: Floats = (self._transposed @ sums.T).T
        return by_weight


def make_basis(
    knots: Knots, places: Places, smoothness: float, scale: Floats | None = None
) -> CurveBasis:
    """Return the basis of the curves of all features.

    Parameters
    ----------
    knots : Knots
        The knots of the features.
    places : Places
        Where the values of the documents lie among them.
    smoothness : float
        λ, the weight of roughness; infinite for lines alone.
    scale : ndarray of shape (n_features,), optional
        σ, what features are divided by; without it, they are not.
    """
    scale = np.ones(knots.n_features) if scale is None else scale
    some = sample(places)
    missing = _with_gaps(places)
    blocks = []
    for k in range(knots.n_features):
        moments = Moments.of(some.codes[:, k], some.steps[:, k], knots.of(k).size + 1)
        if knots.categorical[k]:
            blocks.append(_steps(moments, has_missing=bool(missing[k])))
        else:
            curve = _curve(knots.of(k), moments.present(), smoothness, float(scale[k]))
            blocks.append(_with_missing(curve, moments) if missing[k] else curve)
    return CurveBasis(
        blocks=[block.functions for block in blocks],
        variances=np.concatenate([block.variances for block in blocks]),
    )


def sample(places: Places) -> Places:
    """Return the places of the documents that tell means and covariances."""
    n_documents = places.codes.shape[0]
    if n_documents <= SAMPLE:
        return places
    rows = np.random.default_rng(SEED).choice(n_documents, SAMPLE, replace=False)
    return places.take(np.sort(rows))


def _with_gaps(places: Places) -> NDArray[np.bool_]:
    """Return which features have missing values.

    A few documents at a time, as there is no room for a number a value.
    """
    n_documents, n_features = places.codes.shape
    found = np.zeros(n_features, dtype=np.bool_)
    for first in range(0, n_documents, BLOCK):
        block = slice(first, first + BLOCK)
        found |= np.any((places.codes[block] == 0) & (places.steps[block] == 0), axis=0)
    return found


class Moments(NamedTuple):
    """Means and products of the hat functions of a feature, over documents.

    Attributes
    ----------
    mean : ndarray of shape (n_columns,)
        The mean of each function.
    products : ndarray of shape (n_columns, n_columns)
        The mean of the product of each two.
    """

    mean: Floats
    products: Floats

    @classmethod
    def of(cls, codes: Any, steps: Any, n_columns: int) -> "Moments":
        """Return those of some documents."""
        right = STEP * steps
        left = 1.0 - right

        def total(weights: Floats) -> Floats:
            sums = np.bincount(codes, weights, minlength=n_columns)
            return sums[: n_columns - 1].astype(np.float64)

        mean, products = np.zeros(n_columns), np.zeros((n_columns, n_columns))
        at = np.arange(n_columns - 1)
        mean[at] += total(left)
        mean[at + 1] += total(right)
        products[at, at] += total(left * left)
        products[at + 1, at + 1] += total(right * right)
        products[at, at + 1] = products[at + 1, at] = total(left * right)
        return cls(mean / codes.size, products / codes.size)

    def present(self) -> "Moments":
        """Return those over documents that have a value, without the column of missing ones.

        Every knot gets a tiny bit of a document, so that there is always something to go by.
        """
        mean, products = self.mean[1:] + FEW, self.products[1:, 1:].copy()
        products[np.diag_indices_from(products)] += FEW
        total = float(mean.sum())
        return Moments(mean / total, products / total)

    @property
    def covariance(self) -> Floats:
        """The covariance of each two functions."""
        return self.products - np.outer(self.mean, self.mean)


class Block(NamedTuple):
    """Basis functions of a feature, or grid, by their values at its columns; how much they vary."""

    functions: Floats
    variances: Floats


def _curve(t: Floats, moments: Moments, smoothness: float, scale: float) -> Block:
    """Return the line and the curves of a feature with these knots; zero where values are missing.

    They have a mean of zero over the documents that have a value.
    """
    centred = t - moments.mean @ t
    variance = float(centred @ moments.products @ centred)
    functions = [centred[:, None] / scale]
    variances = [np.array([variance / scale**2])]
    if t.size > 2 and np.isfinite(smoothness):
        ratio = np.sqrt(smoothness) * scale / np.sqrt(variance)
        curves, spread = _eigencurves(centred, moments)
        functions.append(curves / ratio)
        variances.append(spread / ratio**2)
    values = np.hstack(functions)
    return Block(np.vstack([np.zeros(values.shape[1]), values]), np.concatenate(variances))


def _eigencurves(line: Floats, moments: Moments) -> tuple[Floats, Floats]:
    """Return curves of roughness one that are uncorrelated with the line and with each other.

    And their variances, which fall.
    """
    along = moments.products @ line
    conditions = np.vstack([moments.mean, along / np.linalg.norm(along)])
    free = null_space(conditions, rcond=1e-12)
    rough = free.T @ roughness(line.size) @ free
    variances, vectors = eigh(free.T @ moments.covariance @ free, rough)
    return free @ vectors[:, ::-1], np.maximum(variances[::-1], 0.0)


def roughness(n_knots: int) -> Floats:
    """Return R as a quadratic form of the values at the knots."""
    m = n_knots - 1
    first = np.diff(np.eye(n_knots), axis=0)
    second = np.diff(first, axis=0)
    form: Floats = m * first.T @ first + m**3 / np.pi**2 * second.T @ second
    return form


def _with_missing(curve: Block, moments: Moments) -> Block:
    """Add the weight of missing values."""
    share = float(moments.mean[0])
    functions = block_diag(1.0, curve.functions[1:])
    return Block(functions, np.concatenate([[share * (1.0 - share)], curve.variances]))


def _steps(moments: Moments, *, has_missing: bool) -> Block:
    """Return a weight for each category, and for missing values if there are any."""
    first = 0 if has_missing else 1
    share = moments.mean[first:]
    return Block(np.eye(moments.mean.size)[:, first:], share * (1.0 - share))
