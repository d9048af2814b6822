"""Faces: an objective restricted to weights u = Nv, so X is replaced by fewer columns XN.

The columns of X come in blocks, and each column of N combines columns of one block. The penalty is
½‖v‖², which equals ½‖u‖² if the columns of N are orthonormal.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats, Integers
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Matrix


class Combination(NamedTuple):
    """The columns of N for one block, and the approximate variance of each combined feature."""

    columns: Floats
    variances: Floats


@runtime_checkable
class BlockMatrix(Protocol):
    """A matrix whose columns come in blocks that can be combined."""

    @property
    def block_starts(self) -> Integers:
        """Index of the first column of each block, followed by the number of all columns."""

    def combine_blocks(self, combinations: Mapping[int, Combination]) -> Matrix:
        """Return XN; blocks (by index) that are not in `combinations` keep their columns."""


class Face(NamedTuple):
    """The objective as a function of v, and the matrix N of u = Nv."""

    objective: Objective
    basis: Any  # N, a sparse array


def on_face(objective: Objective, combinations: Mapping[int, Combination]) -> Face:
    """Return an objective on XN; blocks that are not in `combinations` keep their columns."""
    matrix = objective.matrix
    if not isinstance(matrix, BlockMatrix):
        raise TypeError(f"{type(matrix).__name__} does not have blocks of columns to combine.")
    columns = [sp.eye_array(size) for size in np.diff(matrix.block_starts)]
    for k, combination in combinations.items():
        columns[k] = combination.columns
    combined = objective.on(matrix.combine_blocks(combinations))
    return Face(combined, sp.csr_array(sp.block_diag(columns, format="csr")))
