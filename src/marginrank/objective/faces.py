"""An objective restricted to a linear subspace of weights, u = Nv, as a function of v.

The restricted objective has the matrix XN, which has fewer columns than X. The columns of X come in
blocks, and each column of N combines columns of one block. The penalty is ½‖v‖², which equals ½‖u‖²
if the columns of N are orthonormal.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats, Integers
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Matrix


class Combination(NamedTuple):
    """New features as linear combinations of a block of columns of X, with their variances."""

    columns: Floats  # coefficients, with one column per new feature
    variances: Floats


@runtime_checkable
class BlockMatrix(Protocol):
    """A feature matrix X whose blocks of columns can be replaced by linear combinations."""

    @property
    def block_starts(self) -> Integers:
        """Index of the first column of each block of X, followed by the number of all columns."""

    def combine_blocks(self, combinations: Mapping[int, Combination]) -> Matrix:
        """Return a matrix with some blocks of columns of X replaced by linear combinations of them.

        `combinations` maps the index of a block to its combinations. Other columns of X are
        unchanged.
        """


class Face(NamedTuple):
    """An objective restricted to weights u = Nv, as a function of v; and the sparse matrix N."""

    objective: Objective
    basis: Any  # N, a sparse array


def on_face(objective: Objective, combinations: Mapping[int, Combination]) -> Face:
    """Return an objective restricted to weights u = Nv, as a function of v, and the matrix N.

    N is block-diagonal. `combinations` maps the index of a block of features to its block of N;
    the weights of all other features are unrestricted.
    """
    matrix = objective.matrix
    if not isinstance(matrix, BlockMatrix):
        raise TypeError(f"{type(matrix).__name__} does not have blocks of columns to combine.")
    columns = [sp.eye_array(size) for size in np.diff(matrix.block_starts)]
    for k, combination in combinations.items():
        columns[k] = combination.columns
    combined = objective.on(matrix.combine_blocks(combinations))
    return Face(combined, sp.csr_array(sp.block_diag(columns, format="csr")))
