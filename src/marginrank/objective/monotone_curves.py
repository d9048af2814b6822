"""Curves that may only rise, or only fall: a cone of the weights of their basis.

The values of a curve at its knots are c = Tu. It rises where no difference from knot to knot is
negative: DTu ≥ 0. Where some differences are held at zero, what is left of the weights is a space
of its own, and an orthonormal basis N of it makes an additive problem of the same kind: its basis
functions are TN, and its penalty is ½‖v‖² again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.objective.backends.curves import CurveMatrix
from marginrank.objective.cones import Block, Cone
from marginrank.objective.curve_basis import CurveBasis
from marginrank.objective.faces import Face, Turn, on_face
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
        variances = cast(CurveMatrix, objective.matrix).basis.variances
        turns = {
            k: _uncorrelated(block.free(here), variances[block.weights])
            for k, block, here in zip(self.features, self.blocks, self.by_block(held), strict=True)
            if here.any()
        }
        return on_face(objective, turns)


def _uncorrelated(free: Floats, variances: Floats) -> Turn:
    """Return a basis of the same space whose functions vary less and less."""
    spread, vectors = np.linalg.eigh((free.T * variances) @ free)
    return Turn(free @ vectors[:, ::-1], np.maximum(spread[::-1], 0.0))


def monotone(values: Floats, sign: int) -> Floats:
    """Return values that rise or fall but for rounding, so that they do.

    They are multiples of a number, so that differences are exact: what is between them rises or
    falls then, too.
    """
    raised: Floats = sign * np.maximum.accumulate(sign * values)
    _, exponent = np.frexp(np.abs(raised).max())
    step = np.ldexp(GRID, exponent)
    return np.round(raised / step) * step if step > 0.0 else raised
