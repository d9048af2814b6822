"""A basis of functions of two features in which their penalty is ½‖u‖².

A function of two features is given by its values at the nodes of a grid
(:mod:`marginrank.additive.grids`). It holds what no sum of two curves can say: over the documents
it is uncorrelated with every function of one of the two features that is straight between the rows,
or columns, of the grid.

Its penalty is ½ (σ_a / τ_a)² (σ_b / τ_b)² (∫∫ g² + λ R / 3) with the roughness of curves in two
directions,

    R(g) = ∫∫ g_u² + g_v² + (g_uu² + 2 g_uv² + g_vv²) / π²   by differences from node to node,

where u and v are shares of the rows and columns. Rows and columns of missing values, and of
categories, have no neighbours: each has the penalty of a function along itself, and where two of
them meet, a value v costs ½ v².

As with curves, eigenvectors of the covariance on the documents relative to the penalty are the
basis.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh, null_space

from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats
from marginrank.additive.curve_basis import FEW, BasisBlock
from marginrank.additive.grids import FeatureGrid
from marginrank.additive.knots import WHOLE, HatCodes

SHARE = 1 / 3  # of λ, with which cos πu cos πv costs as much by variance as cos πu of a curve


class GridAxis(NamedTuple):
    """What tells the penalty along one of the two features.

    Attributes
    ----------
    ratio : float
        (σ / τ)²; 1 for categories.
    used : ndarray of bool, shape (n_nodes,)
        Which rows, or columns, have documents; others stay zero.
    categorical : bool
        Whether they have no neighbours.
    """

    ratio: float
    used: NDArray[np.bool_]
    categorical: bool

    @property
    def alone(self) -> Floats:
        """One for rows without neighbours, zero for others."""
        alone = np.ones(self.used.size) if self.categorical else np.eye(self.used.size)[0]
        return np.diag(alone)

    @property
    def mass(self) -> Floats:
        """∫ g² along the axis, as a quadratic form of values at the nodes."""
        n = self.used.size - 1
        return self.alone + self.ratio / n * (np.eye(n + 1) - self.alone)

    def differences(self, order: int) -> Floats:
        """Return ∫ (g')² or ∫ (g'')² as a quadratic form of values at the nodes."""
        n = self.used.size - 1
        form = np.zeros((n + 1, n + 1))
        if not self.categorical:
            steps = np.diff(np.eye(n), order, axis=0)
            form[1:, 1:] = self.ratio * (n - 1.0) ** (2 * order - 1) * steps.T @ steps
        return form


def penalty(rows: GridAxis, columns: GridAxis, smoothness: float) -> Floats:
    """Return twice the penalty as a quadratic form of the values at the nodes, row by row."""
    slope = rows.differences(1), columns.differences(1)
    bend = [axis.differences(1) + axis.differences(2) / np.pi**2 for axis in (rows, columns)]
    rough = np.kron(bend[0], columns.mass) + np.kron(rows.mass, bend[1])
    rough += 2.0 / np.pi**2 * np.kron(*slope)
    form: Floats = SHARE * smoothness * rough + np.kron(rows.mass, columns.mass)
    return form


def node_weights(grid: FeatureGrid, axes: HatCodes) -> sp.csr_array:
    """Return the weights of documents at the nodes, from where they lie on the axes."""
    left, p = axes.codes.astype(np.int64), axes.steps / WHOLE
    n_documents, width = len(left), grid.shape[1]
    rows = np.stack([left[:, 0], left[:, 0], left[:, 0] + 1, left[:, 0] + 1], axis=1)
    columns = np.stack([left[:, 1], left[:, 1] + 1, left[:, 1], left[:, 1] + 1], axis=1)
    p, q = p[:, :1], p[:, 1:]
    weights = np.hstack([(1 - p) * (1 - q), (1 - p) * q, p * (1 - q), p * q])
    indptr = 4 * np.arange(n_documents + 1)
    shape = (n_documents, grid.shape[0] * width)
    return sp.csr_array((weights.ravel(), (rows * width + columns).ravel(), indptr), shape=shape)


def make_grid_block(
    grid: FeatureGrid, axes: HatCodes, rows: GridAxis, columns: GridAxis, smoothness: float
) -> BasisBlock:
    """Return the basis functions of a grid, by their values at the columns of its classes.

    Parameters
    ----------
    grid : FeatureGrid
        The nodes.
    axes : HatCodes
        Where some documents lie on its axes.
    rows, columns : GridAxis
        Its two features.
    smoothness : float
        λ, as that of curves; there are no functions if it is infinite.
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
    """Return functions of penalty ½ by their values at the nodes, and their variances."""
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
