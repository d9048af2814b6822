"""Features with missing values, for what cannot do with NaN."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats
from marginrank.data.knots import Knots
from marginrank.data.ranking_data import RankingData


class FilledRows:
    """Features with the knot in the middle in the place of NaN.

    Rows are made when they are asked for, so that X is not copied.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Checked features.
    knots : Knots
        Their knots.
    """

    def __init__(self, X: Any, knots: Knots) -> None:
        self._X = X
        self._middle: Floats = np.array(
            [knots.of(k)[knots.of(k).size // 2] for k in range(knots.n_features)]
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and features."""
        n_rows, n_features = self._X.shape
        return n_rows, n_features

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows, as X has them; a copy if a value is missing."""
        block = self._X[rows]
        values = block.data if sp.issparse(block) else block
        missing = np.isnan(values)
        if not missing.any():
            return block
        filled = block.copy()
        if sp.issparse(block):
            filled.data[missing] = self._middle[block.indices[missing]]
        else:
            filled[missing] = self._middle[np.nonzero(missing)[1]]
        return filled


def with_filled(data: RankingData, knots: Knots) -> RankingData:
    """Return the documents with features whose rows are filled when they are read."""
    filled = FilledRows(data.X, knots)
    return data._from_parts(
        data._parts()._replace(X=filled, feature_names=None, stored=None, has_nan=False)
    )
