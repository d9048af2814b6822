"""What pairs of features add to a score, as plain data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats
from marginrank.data.grids import Grid, grid_scores


class Interaction(NamedTuple):
    """What two features add to a score together, beside their curves.

    Attributes
    ----------
    features : tuple of int
        Columns of the two features.
    knots : tuple of ndarray
        Values of the first and of the second feature, ascending; categories, if that has some.
    values : ndarray of shape (n_first + 1, n_second + 1)
        What is added at each two knots, in rows of the first feature and columns of the second;
        the first row and the first column are for missing values. Between knots it is bilinear,
        and beyond the outer ones it is what it is there.
    categorical : tuple of bool
        Which of the two features has categories; one that is none of the knots counts as missing.
    """

    features: tuple[int, int]
    knots: tuple[Floats, Floats]
    values: Floats
    categorical: tuple[bool, bool]

    @property
    def spread(self) -> float:
        """The largest difference that the pair makes between two points of values at knots."""
        return float(np.ptp(self.values[1:, 1:]))

    @property
    def grid(self) -> Grid:
        """Its nodes."""
        return Grid(self.features, self.knots, self.categorical)

    def name(self, names: Sequence[str] | None) -> str:
        """Return the names of both features as one."""
        return " × ".join(name_of(k, names) for k in self.features)


def interactions_of(grids: Sequence[Grid], values: Sequence[Floats]) -> list[Interaction]:
    """Return the grids of a fit, with their values."""
    return [
        Interaction(grid.features, grid.axes, at_nodes.copy(), grid.categorical)
        for grid, at_nodes in zip(grids, values, strict=True)
    ]


def scores_of(interactions: Sequence[Interaction], X: Any, threads: int) -> Floats:
    """Return the sum of what pairs of features add, for checked features."""
    grids = [one.grid for one in interactions]
    return grid_scores(grids, [one.values for one in interactions], X, threads)
