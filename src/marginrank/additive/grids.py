"""Grids over two features: where they have nodes, and how documents lie among them.

A grid has a row for missing values of its first feature and one for each of some of its knots, and
columns alike for its second feature. A document lies in a cell: between two rows and two columns.
It has the weights (1 − p)(1 − q), (1 − p) q, p (1 − q) and p q at the four corners, where p and q
tell how far it is from one row, and one column, to the next.

Of two neighbouring rows one is even, and so it is with columns. So of the four corners one is in
each of four *classes* of nodes, even or odd by row and by column. For the native hat functions a
class is a feature of its own: every node has a column there, with one before it that stands for
nothing. A document is between these two, as far towards the node as its weight there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.additive.knots import WHOLE, HatCodes, encode
from marginrank.data.knots import Knots

CLASSES = 4
MOST_NODES = 20  # of an axis beside that of missing values, so that a byte tells those of a class


@dataclass(frozen=True)
class FeatureGrid:
    """The nodes of a grid.

    Attributes
    ----------
    features : tuple of int
        The columns of the two features.
    axes : tuple of ndarray
        Knots of each, ascending, or categories.
    categorical : tuple of bool
        Which of them has categories.
    """

    features: tuple[int, int]
    axes: tuple[Floats, Floats]
    categorical: tuple[bool, bool]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns, those of missing values included."""
        return self.axes[0].size + 1, self.axes[1].size + 1

    @property
    def knots(self) -> Knots:
        """The axes as knots of two features."""
        return Knots.of_features(list(self.axes), np.flatnonzero(self.categorical).tolist())

    @property
    def widths(self) -> Integers:
        """Numbers of columns that the classes have as features of hat functions."""
        n, m = self.shape
        even, odd = (n + 1) // 2, n // 2
        counts = [even * ((m + 1) // 2), even * (m // 2), odd * ((m + 1) // 2), odd * (m // 2)]
        return 2 * np.array(counts, dtype=np.int64)

    @property
    def columns(self) -> Integers:
        """The column of each node among those of all classes, row by row."""
        row, column = np.indices(self.shape)
        kind = 2 * (row % 2) + column % 2
        starts = np.concatenate([[0], np.cumsum(self.widths)])[:-1]
        columns: Integers = starts[kind] + 2 * self._place(row, column) + 1
        return columns.ravel()

    def _place(self, row: Integers, column: Integers) -> Integers:
        """Return the number of a node in its class."""
        in_a_row = (self.shape[1] + 1 - column % 2) // 2
        place: Integers = (row // 2) * in_a_row + column // 2
        return place

    def corners(self, axes: HatCodes) -> HatCodes:
        """Return how documents lie in each class, from where they lie on the two axes."""
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
    """Return the values of a feature with these codes, about; NaN where one is missing."""
    left, p = codes.codes[:, k].astype(np.int64), codes.steps[:, k] / WHOLE
    at = knots.at[knots.columns(k)]
    first, second = at[left], at[left + 1]
    between = np.where(p < 1.0, first + p * (second - first), second)
    return np.where((left == 0) & (p == 0.0), np.nan, between)


def axis_codes(grid: FeatureGrid, knots: Knots, codes: HatCodes, threads: int) -> HatCodes:
    """Return the codes of documents on the axes of a grid, from those among all knots."""
    values = np.stack([values_at(knots, codes, k) for k in grid.features], axis=1)
    return encode(grid.knots, values, threads)


def with_grids(codes: HatCodes, corners: Sequence[HatCodes]) -> HatCodes:
    """Return the codes of features and of the classes of grids, side by side."""
    return HatCodes(
        np.hstack([codes.codes, *(one.codes for one in corners)]),
        np.hstack([codes.steps, *(one.steps for one in corners)]),
    )


def hat_starts(knots: Knots, grids: Sequence[FeatureGrid]) -> Integers:
    """Return the first column of each feature of the hat functions, classes of grids included."""
    widths = [np.diff(knots.starts), *(grid.widths for grid in grids)]
    return np.concatenate([[0], np.cumsum(np.concatenate(widths))]).astype(np.int64)
