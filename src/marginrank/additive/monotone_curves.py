"""Curves that may only rise, or only fall: a cone of the weights of their basis.

The values of a curve at its knots are c = Tu. It rises if no difference from knot to knot is
negative: DTu ≥ 0. If some differences are held at zero, the remaining weights are a space of their
own, and an orthonormal basis N of it makes an additive problem of the same kind: its basis
functions are TN, and its penalty is ½‖v‖² again.
"""

from collections.abc import Mapping

import numpy as np

from marginrank._utils.types import Floats
from marginrank.additive.curve_basis import CurveBasis
from marginrank.objective.cones import Cone, ConeBlock

GRID = 2.0**-50  # of the largest value: differences of its multiples are exact


def monotone_cone(basis: CurveBasis, signs: Mapping[int, int]) -> Cone:
    """Return the cone of curves that rise (1) or fall (−1), by feature; constants have no cone."""
    return Cone(
        [
            ConeBlock.of(
                k,
                slice(int(basis.starts[k]), int(basis.starts[k + 1])),
                sign * np.diff(basis.blocks[k][1:], axis=0),
            )
            for k, sign in sorted(signs.items())
            if len(basis.blocks[k]) > 2
        ]
    )


def exactly_monotone(values: Floats, sign: int) -> Floats:
    """Return values that rise or fall but for rounding, changed so that they do.

    They are multiples of a number, so that differences are exact: the values between them rise or
    fall then, too.
    """
    raised: Floats = sign * np.maximum.accumulate(sign * values)
    _, exponent = np.frexp(np.abs(raised).max())
    step = np.ldexp(GRID, exponent)
    return np.round(raised / step) * step if step > 0.0 else raised
