"""Curves that may only rise, or only fall: a cone of the weights of their basis.

The values of a curve at its knots are c = Tu. It rises where no difference from knot to knot is
negative: DTu ≥ 0. Where some differences are held at zero, what is left of the weights is a space
of its own, and an orthonormal basis N of it makes an additive problem of the same kind: its basis
functions are TN, and its penalty is ½‖v‖² again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import scipy.sparse as sp

from marginrank._base.types import Booleans, Floats
from marginrank.objective.backends.curves import CurveMatrix
from marginrank.objective.cones import Block, Cone, Face
from marginrank.objective.curve_basis import CurveBasis
from marginrank.objective.gram import GramStore
from marginrank.objective.objective import Objective

GRID = 2.0**-50  # of the largest value: differences of its multiples are exact


@dataclass(frozen=True)
class MonotoneCurves(Cone):
    """Weights of a basis whose curves rise or fall.

    Attributes
    ----------
    features : tuple of int
        The feature of each block.
    """

    features: tuple[int, ...]

    @classmethod
    def of(cls, basis: CurveBasis, signs: Mapping[int, int]) -> "MonotoneCurves":
        """Return the cone of curves that rise (1) or fall (−1), by feature; a constant has none."""
        signs = {k: sign for k, sign in sorted(signs.items()) if len(basis.blocks[k]) > 2}
        blocks = [
            Block.of(
                slice(int(basis.starts[k]), int(basis.starts[k + 1])),
                sign * np.diff(basis.blocks[k][1:], axis=0),
            )
            for k, sign in signs.items()
        ]
        return cls(blocks, tuple(signs))

    def face(self, objective: Objective, held: Booleans) -> Face:
        """Return an objective on the curves that are flat where conditions hold them."""
        matrix = cast(CurveMatrix, objective.matrix)
        basis = matrix.basis
        turns = [sp.eye_array(block.shape[1]) for block in basis.blocks]
        functions, variances = list(basis.blocks), np.split(basis.variances, basis.starts[1:-1])
        for k, block, here in zip(self.features, self.blocks, self.by_block(held), strict=True):
            if here.any():
                turns[k], variances[k] = _uncorrelated(block.free(here), variances[k])
                functions[k] = functions[k] @ turns[k]
        turned = CurveBasis(functions, np.concatenate(variances))
        on_face = replace(objective, matrix=replace(matrix, basis=turned), grams=GramStore())
        return Face(on_face, sp.csr_array(sp.block_diag(turns, format="csr")))


def _uncorrelated(free: Floats, variances: Floats) -> tuple[Floats, Floats]:
    """Return a basis of the same space whose functions vary less and less; and how much."""
    spread, vectors = np.linalg.eigh((free.T * variances) @ free)
    return free @ vectors[:, ::-1], np.maximum(spread[::-1], 0.0)


def monotone(values: Floats, sign: int) -> Floats:
    """Return values that rise or fall but for rounding, so that they do.

    They are multiples of a number, so that differences are exact: what is between them rises or
    falls then, too.
    """
    raised: Floats = sign * np.maximum.accumulate(sign * values)
    _, exponent = np.frexp(np.abs(raised).max())
    step = np.ldexp(GRID, exponent)
    return np.round(raised / step) * step if step > 0.0 else raised
