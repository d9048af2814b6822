"""Additive problems on fewer weights: those of some combinations of basis functions alone.

With weights u = Nv, the basis functions are TN, and ½‖v‖² is the penalty. Where columns of N are
orthonormal, that is the penalty of u, too.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats
from marginrank.objective.backends.curves import CurveMatrix
from marginrank.objective.objective import Objective


class Turn(NamedTuple):
    """Combinations of the basis functions of a feature, and how much each of them varies."""

    columns: Floats
    variances: Floats


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


def on_face(objective: Objective, turns: Mapping[int, Turn]) -> Face:
    """Return an objective of curves on combinations of basis functions, by feature.

    Features without any keep those that they have.
    """
    matrix = cast(CurveMatrix, objective.matrix)
    basis = matrix.basis
    columns = [sp.eye_array(block.shape[1]) for block in basis.blocks]
    functions, variances = list(basis.blocks), np.split(basis.variances, basis.starts[1:-1])
    for k, turn in turns.items():
        columns[k], variances[k] = turn
        functions[k] = functions[k] @ turn.columns
    turned = replace(basis, blocks=functions, variances=np.concatenate(variances))
    on_turned = objective.on(replace(matrix, basis=turned))
    return Face(on_turned, sp.csr_array(sp.block_diag(columns, format="csr")))
