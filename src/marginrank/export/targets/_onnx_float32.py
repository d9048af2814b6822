"""Curves and grids whose knots are where float32 has them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.curve_sum import Axis, CurveSum, CurveTerm, GridTerm
from marginrank.export.names import shown
from marginrank.export.numbers import FLOAT32_ACCURACY
from marginrank.models.additive_model import Curve


def in_float32(model: CurveSum) -> CurveSum:
    """Return a sum whose knots are where float32 has them, or refuse one that would be another.

    A value of a feature is rounded as the knot that it equals, and so stays on it: at a knot,
    where curves may jump, and with categories.
    """
    spreads = [np.ptp(term.at_nodes[1:]) for term in model.terms]
    spreads += [np.ptp(term.at_nodes[1:, 1:]) for term in model.grids]
    spread = float(max(spreads, default=0.0))
    return replace(
        model,
        terms=tuple(_rounded_curve(term, spread) for term in model.terms),
        grids=tuple(_rounded_grid(term, spread) for term in model.grids),
    )


def _rounded_curve(term: CurveTerm, spread: float) -> CurveTerm:
    knots = _rounded_knots(*term.axes, [term.curve], spread)
    return replace(term, curve=term.curve._replace(knots=knots))


def _rounded_grid(term: GridTerm, spread: float) -> GridTerm:
    first, second = term.axes
    columns, rows = term.transposed.rows, term.rows  # curves of the first, and of the second
    axes = (
        replace(first, knots=_rounded_knots(first, columns, spread)),
        replace(second, knots=_rounded_knots(second, rows, spread)),
    )
    return replace(term, axes=axes)


def _rounded_knots(axis: Axis, curves: Sequence[Curve], spread: float) -> Floats:
    """Return the knots in float32, or refuse what changes one of the curves on them too much."""
    with np.errstate(over="ignore"):
        knots = axis.knots.astype(np.float32).astype(np.float64)
    merged = not np.isfinite(knots).all() or np.any(np.diff(knots) <= 0)
    if merged or max(_blur(curve, knots) for curve in curves) > FLOAT32_ACCURACY * spread:
        raise ValueError(
            f"the feature {shown(axis.name)} has knots that float32 does not hold, or cannot tell "
            "apart well enough; export it in float64."
        )
    return knots


def _blur(curve: Curve, rounded: Floats) -> float:
    """Return how far a curve is off between knots, as float32 rounds them and what is there.

    Nothing, if knots need no rounding: they are values of features, which were float32 then.
    """
    if curve.categorical or np.array_equal(curve.knots, rounded):
        return 0.0
    slopes = np.abs(np.diff(curve.values) / np.diff(curve.knots))
    sizes = np.maximum(np.abs(rounded[:-1]), np.abs(rounded[1:]))
    return float(np.max(slopes * sizes, initial=0.0) * np.finfo(np.float32).eps)
