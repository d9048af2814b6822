"""Basis functions for interactions of two features, scaled so the penalty of weights u is ½‖u‖².

A function of two features is given by its values at the nodes of a grid
(:mod:`marginrank.additive.grids`). It is the part that a sum of two curves cannot represent: over
the documents it is uncorrelated with every function of one of the two features that is linear
between the rows, or columns, of the grid.

The penalty of such a function g of features a and b is ½ (σ_a / τ_a)² (σ_b / τ_b)² (∫∫ g² + λ R /
3). As in :mod:`marginrank.additive.curve_basis`, σ is the scale that a feature is divided by, τ its
standard deviation and λ the parameter `smoothness`. R extends the roughness of curves to two
directions,

    R(g) = ∫∫ g_u² + g_v² + (g_uu² + 2 g_uv² + g_vv²) / π²   by differences from node to node,

where u and v are shares of the rows and columns. A row or column of missing values, or of a
category, has no neighbors: it has the penalty of a curve along itself, and a value v where two of
them cross has the penalty ½ v².

As for curves, the basis functions are eigenvectors of the covariance on the documents relative to
the penalty.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh, null_space

from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats, Integers
from marginrank.additive.curve_basis import FEW, BasisBlock, sample
from marginrank.additive.curve_matrix import CurveMatrix
from marginrank.additive.grids import CLASSES, MOST_NODES, FeatureGrid, axis_codes, with_grids
from marginrank.additive.knots import WHOLE, HatCodes
from marginrank.data.knots import Knots
from marginrank.models.additive_model import Interaction

BINS = 16  # most bins between the knots of a grid axis
CATEGORIES = MOST_NODES  # most categories with a row each; rarer ones share the missing values' row

SHARE = 1 / 3  # factor on λ: per variance, cos πu cos πv then has the same penalty as cos πu


class GridAxis(NamedTuple):
    """One of the two features of a grid, the domain of a joint function of two features.

    It computes the matrices of the roughness penalty along this axis. A *node* of the axis is a
    knot of the feature, a category, or the missing value.
    """

    ratio: float  # (σ / τ)²; 1 for categories
    used: NDArray[np.bool_]  # for each node, whether it has documents; others keep the value zero
    categorical: bool  # whether the nodes have no neighbors

    @property
    def alone(self) -> Floats:
        """Diagonal matrix with 1 for nodes of the axis without neighbors, and 0 for other nodes.

        Nodes without neighbors are categories and the missing value.
        """
        alone = np.ones(self.used.size) if self.categorical else np.eye(self.used.size)[0]
        return np.diag(alone)

    @property
    def mass(self) -> Floats:
        """Matrix M with gᵀMg = ∫ g² along the axis, for a function with values g at the nodes."""
        n = self.used.size - 1
        return self.alone + self.ratio / n * (np.eye(n + 1) - self.alone)

    def differences(self, order: int) -> Floats:
        """Return the matrix M with gᵀMg = ∫ (g')² (`order` 1) or ∫ (g'')² (`order` 2).

        The function has the values g at the nodes of the axis.
        """
        n = self.used.size - 1
        form = np.zeros((n + 1, n + 1))
        if not self.categorical:
            steps = np.diff(np.eye(n), order, axis=0)
            form[1:, 1:] = self.ratio * (n - 1.0) ** (2 * order - 1) * steps.T @ steps
        return form


def penalty(rows: GridAxis, columns: GridAxis, smoothness: float) -> Floats:
    """Return the matrix A of the roughness penalty ½ vᵀAv of a function on a grid.

    v are the values of the function at the nodes of the grid, row by row.
    """
    slope = rows.differences(1), columns.differences(1)
    bend = [axis.differences(1) + axis.differences(2) / np.pi**2 for axis in (rows, columns)]
    rough = np.kron(bend[0], columns.mass) + np.kron(rows.mass, bend[1])
    rough += 2.0 / np.pi**2 * np.kron(*slope)
    form: Floats = SHARE * smoothness * rough + np.kron(rows.mass, columns.mass)
    return form


def node_weights(grid: FeatureGrid, axes: HatCodes) -> sp.csr_array:
    """Return the weights of bilinear interpolation: one row per document, one column per node.

    A node is a crossing of a row and a column of the grid. `axes` has the encoded values of the
    grid's two features. The matrix is sparse.
    """
    left, p = axes.codes.astype(np.int64), axes.steps / WHOLE
    n_documents, width = len(left), grid.shape[1]
    rows = np.stack([left[:, 0], left[:, 0], left[:, 0] + 1, left[:, 0] + 1], axis=1)
    columns = np.stack([left[:, 1], left[:, 1] + 1, left[:, 1], left[:, 1] + 1], axis=1)
    p, q = p[:, :1], p[:, 1:]
    weights = np.hstack([(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q])
    indptr = 4 * np.arange(n_documents + 1)
    shape = (n_documents, grid.shape[0] * width)
    return sp.csr_array((weights.ravel(), (rows * width + columns).ravel(), indptr), shape=shape)


def _make_block(
    grid: FeatureGrid, axes: HatCodes, rows: GridAxis, columns: GridAxis, smoothness: float
) -> BasisBlock:
    """Return the basis functions of a grid, as weights of its hat functions.

    There are none if the smoothness is infinite.
    """
    values, variances = np.zeros((grid.columns.size, 0)), np.zeros(0)
    if np.isfinite(smoothness):
        with serial_blas():
            values, variances = _eigenfunctions(grid, axes, rows, columns, smoothness)
    functions = np.zeros((int(grid.widths.sum()), values.shape[1]))
    functions[grid.columns] = values
    return BasisBlock(functions, variances)


def _eigenfunctions(
    grid: FeatureGrid, axes: HatCodes, rows: GridAxis, columns: GridAxis, smoothness: float
) -> tuple[Floats, Floats]:
    """Return the basis functions of a grid, as values at its nodes, and their variances."""
    weights = node_weights(grid, axes)
    used = np.flatnonzero(np.outer(rows.used, columns.used))
    products = (weights.T @ weights).toarray() / weights.shape[0]
    products = products[np.ix_(used, used)] + FEW / used.size * np.eye(used.size)
    row, column = np.unravel_index(used, grid.shape)
    alone = [np.equal.outer(np.unique(at), at).astype(np.float64) for at in (row, column)]
    conditions = np.vstack(alone) @ products  # products with functions of one feature
    free = null_space(conditions / np.linalg.norm(conditions, axis=1)[:, None], rcond=1e-10)
    form = penalty(rows, columns, smoothness)[np.ix_(used, used)]
    variances, vectors = eigh(free.T @ products @ free, free.T @ form @ free)
    values = np.zeros((grid.columns.size, free.shape[1]))
    values[used] = free @ vectors[:, ::-1]
    return values, np.maximum(variances[::-1], 0.0)


def add_grids(
    matrix: CurveMatrix,
    pairs: Sequence[tuple[int, int]],
    smoothness: float,
    scale: Floats | None,
    threads: int,
) -> CurveMatrix:
    """Return the design matrix with the basis functions of a grid for each given feature pair."""
    knots, codes = matrix.knots, matrix.codes
    grids, corners, blocks = [], [], []
    for pair in pairs:
        grid = FeatureGrid(
            pair,
            (axis_knots(knots, codes, pair[0]), axis_knots(knots, codes, pair[1])),
            (bool(knots.categorical[pair[0]]), bool(knots.categorical[pair[1]])),
        )
        axes = axis_codes(grid, knots, codes, threads)
        rows, columns = (
            GridAxis(
                scale_ratio(matrix, k, scale),
                _used_nodes(axes, side, grid.shape[side]),
                grid.categorical[side],
            )
            for side, k in enumerate(pair)
        )
        grids.append(grid)
        corners.append(grid.corners(axes))
        blocks.append(_make_block(grid, sample(axes), rows, columns, smoothness))
    basis, codes = matrix.basis.and_grids(blocks), with_grids(codes, corners)
    return CurveMatrix.of(codes, knots, basis, (*matrix.grids, *grids))


def axis_knots(knots: Knots, codes: HatCodes, k: int) -> Floats:
    """Return the values of feature k that become rows or columns of a grid: some of its knots.

    They are at most BINS + 1, evenly chosen. For a categorical feature, they are its most frequent
    categories.
    """
    of_feature = knots.of(k)
    if not knots.categorical[k]:
        kept = np.unique(np.linspace(0, of_feature.size - 1, BINS + 1).round().astype(np.int64))
    else:
        counts = column_counts(knots, codes, k)[1:]
        kept = np.sort(np.argsort(-counts, kind="stable")[:CATEGORIES])
    some: Floats = of_feature[kept]
    return some


def nearest_columns(codes: HatCodes, k: int) -> Integers:
    """Return the number of the knot nearest to each value of feature k, from 1; 0 if missing."""
    return codes.codes[:, k].astype(np.int64) + (codes.steps[:, k] >= WHOLE // 2)


def column_counts(knots: Knots, codes: HatCodes, k: int) -> Integers:
    """Return the number of missing values of feature k, then of values nearest to each knot."""
    n_columns = knots.of(k).size + 1
    return np.bincount(nearest_columns(codes, k), minlength=n_columns)


def _used_nodes(axes: HatCodes, side: int, n_nodes: int) -> NDArray[np.bool_]:
    left, steps = axes.codes[:, side].astype(np.int64), axes.steps[:, side]
    used = np.zeros(n_nodes, dtype=bool)
    used[left[steps < WHOLE]] = True
    used[left[steps > 0] + 1] = True
    return used


def scale_ratio(matrix: CurveMatrix, k: int, scale: Floats | None) -> float:
    """Return (σ / τ)² of feature k, with the scale σ that divides it and its standard deviation τ.

    Return 1 for a categorical feature.
    """
    if matrix.knots.categorical[k]:
        return 1.0
    sigma = 1.0 if scale is None else float(scale[k])
    return (sigma / float(matrix.basis.deviations[k])) ** 2


def interactions_of(matrix: CurveMatrix, at_columns: Floats) -> list[Interaction]:
    """Return the interactions of an additive model: its joint functions of two features.

    `at_columns` has the values of all curves at their knots and of all interactions at grid nodes.
    """
    starts = matrix.starts[matrix.knots.n_features : -1 : CLASSES]
    return [
        Interaction(
            grid.features,
            grid.axes,
            at_columns[first + grid.columns].reshape(grid.shape),
            grid.categorical,
        )
        for first, grid in zip(starts, matrix.grids, strict=True)
    ]
