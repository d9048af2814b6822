"""The constraint that effects of positions never increase from a position to the next one.

A *cell* is a position in one context; it has one effect. In each context, the effect of a position
must be at least the effect of the next position that was shown. These effects form a cone. Solvers
minimize on faces of the cone, on which some adjacent effects are equal. Their cells are *pooled*:
they share one indicator column, as positions from the 20th on always do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import scipy.sparse as sp

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.positions import PositionCodes
from marginrank.objective.cones import Cone, ConeBlock
from marginrank.objective.faces import Face
from marginrank.objective.losses import Loss
from marginrank.objective.objective import Objective
from marginrank.operators.native import NativeMatrix, as_native
from marginrank.operators.transformed import ScaledMatrix
from marginrank.solvers.registry import find_solver
from marginrank.solvers.result import SolverResult


@dataclass(frozen=True)
class PositionCone(Cone):
    """The constraints between effects of adjacent positions; all cells have the same scale."""

    n_features: int  # number of columns of features, which precede the columns of positions
    first: Integers  # the cells with the larger effect, one per constraint
    second: Integers  # the cells with the smaller effect

    phrase = Message("with ", Mention("monotonic_position"))

    @classmethod
    def of(cls, codes: PositionCodes, n_features: int) -> "PositionCone":
        """Return the constraints for position columns that follow `n_features` other columns."""
        shown = np.unique(codes.codes).astype(np.int64)
        context, n = shown // codes.n_positions, codes.n_positions
        first, second = (cells[context[1:] == context[:-1]] for cells in (shown[:-1], shown[1:]))
        blocks = []
        for k in np.unique(first // n).tolist():
            own = first // n == k
            rows = np.eye(n)[first[own] % n] - np.eye(n)[second[own] % n]
            start = n_features + k * n
            blocks.append(ConeBlock.of(k, slice(start, start + n), rows))
        return cls(blocks, n_features, first, second)

    def face(self, objective: Objective, held: Booleans) -> Face:
        """Return an objective restricted to weights that are equal for pairs of cells in `held`."""
        scaled = cast(ScaledMatrix, objective.matrix)
        inner = cast(NativeMatrix, scaled.inner)
        assert inner.categories is not None
        pool = self._pools(inner.categories.n, held)
        sizes = np.bincount(pool)
        n = self.n_features
        matrix = ScaledMatrix(
            as_native(inner.X).with_categories(
                pool.astype(np.uint16)[inner.categories.codes], sizes.size
            ),
            np.concatenate([scaled.scale[:n], scaled.scale[n] * np.sqrt(sizes)]),
        )
        entries = 1.0 / np.sqrt(sizes[pool])
        shares = sp.csr_array((entries, (np.arange(pool.size), pool)))
        basis = sp.block_diag([sp.eye_array(n), shares], format="csr")
        return Face(objective.on(matrix), sp.csr_array(basis))

    def _pools(self, n_cells: int, held: Booleans) -> Integers:
        """Return the index of the pool of each cell; cells with equal effects share a pool."""
        begins = np.ones(n_cells, dtype=bool)
        begins[self.second[held]] = False
        before = np.arange(n_cells)  # the pool of a cell begins with the cell before it, or itself
        before[self.second[held]] = self.first[held]
        for cell in np.flatnonzero(~begins).tolist():
            before[cell] = before[before[cell]]
        pools: Integers = (np.cumsum(begins) - 1)[before]
        return pools


def monotone_solver(
    solver: str, loss: Loss, codes: PositionCodes, n_features: int
) -> Callable[..., SolverResult] | None:
    """Return a solver for effects that never increase, or None if there are no two positions."""
    cone = PositionCone.of(codes, n_features)
    return find_solver(solver, loss, cone) if cone.n_constraints else None


def exactly_decreasing(effects: Floats) -> Floats:
    """Return effects, one row per context, corrected for rounding; NaN are kept."""
    lowest = np.fmin.accumulate(effects, axis=-1)
    return np.where(np.isnan(effects), np.nan, lowest)
