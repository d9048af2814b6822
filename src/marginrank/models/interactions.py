"""Functions of two features, given at the nodes of a grid, and their sum."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from marginrank import _core
from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats
from marginrank.data.knots import Knots, dense_blocks, with_known_categories


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

    def name(self, names: Sequence[str] | None) -> str:
        """Return the names of both features as one."""
        return " × ".join(name_of(k, names) for k in self.features)


def scores_of(interactions: Sequence[Interaction], X: Any, threads: int) -> Floats:
    """Return the sum of what pairs of features add, for checked features.

    Beyond its outer rows and columns, a grid goes on as it is there.
    """
    if not interactions:
        return np.zeros(X.shape[0])
    axes = Knots.of_features(
        [axis for one in interactions for axis in one.knots],
        np.flatnonzero([axis for one in interactions for axis in one.categorical]).tolist(),
    )
    features = np.array([one.features for one in interactions], dtype=np.int64).ravel()
    at_nodes = np.concatenate([np.ravel(one.values) for one in interactions])
    scores = np.empty(X.shape[0])
    categories = [(int(features[k]), known) for k, known in axes.categories()]
    for rows, block in dense_blocks(X):
        block = with_known_categories(block, categories)
        scores[rows] = _core.grid_scores(
            block, axes.at, axes.starts, axes.categorical, features, at_nodes, threads
        )
    return scores
