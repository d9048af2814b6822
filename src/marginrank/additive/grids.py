"""Grids over two features for bilinear interpolation: nodes, and weights of documents at them.

A grid has one row for missing values of its first feature, then one row for each selected knot of
this feature. Its columns are the same for its second feature. A *node* is a crossing of a row and a
column. A document lies between two rows and two columns. Its weights at these four nodes are
(1 − p)(1 − q), (1 − p) q, p (1 − q) and p q, where p and q are its relative positions between rows
and columns.

Nodes form four *classes*: row even or odd, column even or odd. The four nodes around a document are
in four different classes. The native kernels know only hat functions of single features
(:mod:`marginrank.additive.knots`), so each class is stored as one feature, in which each node has a
column after an unused column. A document's code is the unused column before its node, and its
distance from there is its weight at the node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.additive.knots import WHOLE, HatCodes, encode
from marginrank.data.knots import Knots

CLASSES = 4  # classes of nodes: row even or odd, column even or odd
MOST_NODES = 20  # most nodes per axis besides missing values: columns of a class must fit in a byte


@dataclass(frozen=True)
class FeatureGrid:
    """A grid over two features, on which an additive model defines their joint function.

    Rows and columns are knots or categories of the two features.
    """

    features: tuple[int, int]
    axes: tuple[Floats, Floats]  # knots in ascending order, or categories
    categorical: tuple[bool, bool]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns of the grid, including those for missing values."""
        return self.axes[0].size + 1, self.axes[1].size + 1

    @property
    def knots(self) -> Knots:
        """Knots of the two features of the grid, as a Knots object with two features."""
        return Knots.of_features(list(self.axes), np.flatnonzero(self.categorical).tolist())

    @property
    def widths(self) -> Integers:
        """Number of columns of the native matrix for each of the four classes of nodes.

        A class has the nodes in even or odd rows and even or odd columns.
        """
        n, m = self.shape
        even, odd = (n + 1) // 2, n // 2
        counts = [even * ((m + 1) // 2), even * (m // 2), odd * ((m + 1) // 2), odd * (m // 2)]
        return 2 * np.array(counts, dtype=np.int64)

    @property
    def columns(self) -> Integers:
        """Index of the native matrix's column for each node of the grid, row by row."""
        row, column = np.indices(self.shape)
        kind = 2 * (row % 2) + column % 2
        starts = np.concatenate([[0], np.cumsum(self.widths)])[:-1]
        columns: Integers = starts[kind] + 2 * self._place(row, column) + 1
        return columns.ravel()

    def _place(self, row: Integers, column: Integers) -> Integers:
        """Return the position of a node in its class."""
        in_a_row = (self.shape[1] + 1 - column % 2) // 2
        place: Integers = (row // 2) * in_a_row + column // 2
        return place

    def corners(self, axes: HatCodes) -> HatCodes:
        """Return documents encoded by the four grid nodes around them and their weights there.

        A node is a crossing of a row and a column. The result has one column per class of nodes: in
        even or odd rows and columns. `axes` has the encoded values of the grid's two features.
        """
        left, p = axes.codes.astype(np.int64), axes.steps / WHOLE
        n_documents = len(left)
        codes = np.empty((n_documents, CLASSES), dtype=np.uint8)
        steps = np.empty((n_documents, CLASSES), dtype=np.uint16)
        for kind in range(CLASSES):
            of_class = np.array([kind // 2, kind % 2])
            is_left = left % 2 == of_class
            row, column = np.where(is_left, left, left + 1).T
            weight = np.where(is_left, 1.0 - p, p).prod(axis=1)
            codes[:, kind] = 2 * self._place(row, column)
            steps[:, kind] = np.rint(WHOLE * weight)
        return HatCodes(codes, steps)


def values_at(knots: Knots, codes: HatCodes, k: int) -> Floats:
    """Return the values of feature k from its encoded values, up to rounding; nan if missing."""
    left, p = codes.codes[:, k].astype(np.int64), codes.steps[:, k] / WHOLE
    at = knots.at[knots.columns(k)]
    first, second = at[left], at[left + 1]
    between = np.where(p < 1.0, first + p * (second - first), second)
    return np.where((left == 0) & (p == 0.0), np.nan, between)


def axis_codes(grid: FeatureGrid, knots: Knots, codes: HatCodes, threads: int) -> HatCodes:
    """Return the values of two features, encoded by the rows and columns of their grid.

    `codes` has the encoded values of all features, relative to all `knots`.
    """
    values = np.stack([values_at(knots, codes, k) for k in grid.features], axis=1)
    return encode(grid.knots, values, threads)


def with_grids(codes: HatCodes, corners: Sequence[HatCodes]) -> HatCodes:
    """Return the encoded values of all features, followed by the encoded documents of all grids.

    `corners` are results of :meth:`FeatureGrid.corners`, one per grid.
    """
    return HatCodes(*(np.hstack(both) for both in zip(codes, *corners, strict=True)))


def hat_starts(knots: Knots, grids: Sequence[FeatureGrid]) -> Integers:
    """Return the index of the native matrix's first column for each feature and class of nodes.

    A grid has four classes of nodes: in even or odd rows and columns. The last entry is the number
    of all columns.
    """
    widths = [np.diff(knots.starts), *(grid.widths for grid in grids)]
    return np.concatenate([[0], np.cumsum(np.concatenate(widths))]).astype(np.int64)
