"""Problems on fewer weights v, with u = Nv: on some combinations XN of the columns of X.

The penalty is ½‖v‖², which equals ½‖u‖² if the columns of N are orthonormal.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats, Integers
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Matrix


class Combination(NamedTuple):
    """Combinations of the columns of a block, and their approximate variances."""

    columns: Floats
    variances: Floats


@runtime_checkable
class BlockMatrix(Protocol):
    """A matrix whose columns come in blocks that can be combined."""

    @property
    def block_starts(self) -> Integers:
        """The first column of each block, and the number of columns."""

    def combine_blocks(self, combinations: Mapping[int, Combination]) -> Matrix:
        """Return the matrix with the columns of some blocks replaced by combinations."""


class Face(NamedTuple):
    """An objective of weights v that stand for u = Nv."""

    objective: Objective
    basis: Any  # N, a sparse array


def on_face(objective: Objective, combinations: Mapping[int, Combination]) -> Face:
    """Return an objective on combinations of columns per block; other blocks do not change."""
    matrix = objective.matrix
    if not isinstance(matrix, BlockMatrix):
        raise TypeError(f"{type(matrix).__name__} does not have blocks of columns to combine.")
    columns = [sp.eye_array(size) for size in np.diff(matrix.block_starts)]
    for k, combination in combinations.items():
        columns[k] = combination.columns
    combined = objective.on(matrix.combine_blocks(combinations))
    return Face(combined, sp.csr_array(sp.block_diag(columns, format="csr")))
