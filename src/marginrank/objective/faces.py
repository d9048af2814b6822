"""Problems on fewer weights: those of some combinations of the columns of X.

With weights u = Nv, the columns are XN, and ½‖v‖² is the penalty. If the columns of N are
orthonormal, that is also the penalty of u.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats, Integers
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Matrix


class Combination(NamedTuple):
    """Combinations of the columns of a block, and the variance of each of them, about."""

    columns: Floats
    variances: Floats


@runtime_checkable
class BlockMatrix(Protocol):
    """A matrix whose columns come in blocks, and which can combine those of a block."""

    @property
    def block_starts(self) -> Integers:
        """The first column of each block, and the number of all."""

    def combine_blocks(self, combinations: Mapping[int, Combination]) -> Matrix:
        """Return the matrix with combinations of the columns of some blocks."""


class Face(NamedTuple):
    """An objective of weights v that stand for u = Nv.

    Attributes
    ----------
    objective : Objective
        The objective.
    basis : sparse array
        N.
    """

    objective: Objective
    basis: Any


def on_face(objective: Objective, combinations: Mapping[int, Combination]) -> Face:
    """Return an objective on combinations of columns, by block; other blocks stay as they are."""
    matrix = objective.matrix
    if not isinstance(matrix, BlockMatrix):
        raise TypeError(f"{type(matrix).__name__} does not have blocks of columns to combine.")
    columns = [sp.eye_array(size) for size in np.diff(matrix.block_starts)]
    for k, combination in combinations.items():
        columns[k] = combination.columns
    combined = objective.on(matrix.combine_blocks(combinations))
    return Face(combined, sp.csr_array(sp.block_diag(columns, format="csr")))
