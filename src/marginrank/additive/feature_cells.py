"""A feature in a few cells, and functions of these that are orthonormal over the documents."""

from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.additive.curve_matrix import CurveMatrix
from marginrank.additive.grid_matrix import column_counts, scale_ratio

CELLS = 8  # of a feature, beside that of missing values
COSINES = 5  # of a feature


class Cells(NamedTuple):
    """A feature in a few cells, and functions of these.

    Attributes
    ----------
    of_column : ndarray of shape (n_columns,)
        The cell of each column of the feature; that of missing values is 0.
    functions : ndarray of shape (CELLS + 1, CELLS)
        Values of the functions in the cells, orthonormal over the documents; zero behind the last.
    orders : ndarray of shape (CELLS,)
        p² for the cosine cos(πpu); zero for indicators.
    costs : ndarray of shape (CELLS,)
        What multiplies the penalty: (σ / τ)² of a cosine, 1 / share for an indicator.
    """

    of_column: Integers
    functions: Floats
    orders: Floats
    costs: Floats

    @classmethod
    def of(cls, matrix: CurveMatrix, k: int, scale: Floats | None) -> "Cells":
        """Return those of a feature."""
        knots = matrix.knots
        counts = column_counts(knots, matrix.codes, k)
        below = np.cumsum(counts[1:]) - 0.5 * counts[1:]
        if knots.categorical[k]:
            rank = np.argsort(np.argsort(-counts[1:], kind="stable"), kind="stable")
            cell = np.where(rank < CELLS, rank + 1, 0)
        else:
            cell = 1 + (CELLS * below / max(counts[1:].sum(), 1)).astype(np.int64)
        of_column = np.concatenate([[0], np.minimum(cell, CELLS)])
        shares = np.bincount(of_column, counts, minlength=CELLS + 1) / counts.sum()
        if knots.categorical[k]:
            functions, costs = _indicators(shares)
            return cls(of_column, functions, np.zeros(CELLS), costs)
        return cls(of_column, *_cosines(shares, scale_ratio(matrix, k, scale)))


def _indicators(shares: Floats) -> tuple[Floats, Floats]:
    """Return indicators of cells less their means, and the inverse of their shares."""
    functions, costs = np.zeros((CELLS + 1, CELLS)), np.ones(CELLS)
    used = np.flatnonzero(shares)[1:]
    raw = np.eye(CELLS + 1)[:, used]
    functions[:, : used.size] = _orthonormal(raw, shares)
    costs[: used.size] = 1.0 / shares[used]
    return functions, costs


def _cosines(shares: Floats, ratio: float) -> tuple[Floats, Floats, Floats]:
    """Return functions of the cells of a feature with an order, their orders and their costs."""
    functions, orders, costs = np.zeros((CELLS + 1, CELLS)), np.zeros(CELLS), np.ones(CELLS)
    n_cosines = min(COSINES, int(np.count_nonzero(shares[1:])) - 1)
    order = np.arange(1, n_cosines + 1)
    below = (np.cumsum(shares) - 0.5 * shares - shares[0]) / max(1.0 - shares[0], 1e-300)
    raw = np.cos(np.pi * np.outer(below, order))
    raw[0] = 0.0
    if shares[0] > 0:
        raw = np.column_stack([np.eye(CELLS + 1)[0], raw])
    first = raw.shape[1] - n_cosines
    functions[:, : raw.shape[1]] = _orthonormal(raw, shares)
    orders[first : raw.shape[1]] = order**2
    costs[first : raw.shape[1]] = ratio
    costs[:first] = 1.0 / shares[0] if first else 1.0
    return functions, orders, costs


def _orthonormal(raw: Floats, shares: Floats) -> Floats:
    """Return functions of cells made orthonormal to the constant and to each other."""
    used = shares > 0
    root = np.sqrt(shares[used])[:, None]
    with_constant = np.column_stack([np.ones(int(used.sum())), raw[used]])
    result = np.zeros_like(raw)
    result[used] = np.linalg.qr(root * with_constant)[0][:, 1:] / root
    return result
