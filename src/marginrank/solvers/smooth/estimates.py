"""Estimates of F(w) − F* for smooth losses: Newton decrements, and how they are checked."""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import Point
from marginrank.solvers.smooth.preconditioner import Preconditioner, points_on_parts, stand_ins

MAX_STEPS = 16  # of conjugate gradients on a part of a sample


def decrement(point: Point, direction: Floats) -> float:
    """Return how much a step in a Newton direction promises to gain."""
    return -0.5 * float(point.gradient @ direction)


def bound_by_parts(point: Point, preconditioner: Preconditioner, seed: int, enough: float) -> float:
    """Return a bound on the mean of the Newton decrements by Hessians of two parts of a sample.

    Twice the mean, by SAFETY, is at least the larger one: that of the part without the document
    that spoils the other. Infinity if the parts are too small to show the shape of the Hessian.
    `enough` is by how much a bound may exceed the decrement.
    """
    parts = points_on_parts(stand_ins(point.objective, seed), point.w)
    if not parts:
        return np.inf
    bounds = [_decrement_bound(part, point.gradient, preconditioner, enough) for part in parts]
    return sum(bounds) / len(bounds)


def _decrement_bound(
    point: Point, gradient: Floats, preconditioner: Preconditioner, enough: float
) -> float:
    """Return a bound on ½ gᵀH⁻¹g for the Hessian H at a point, by conjugate gradients.

    What a residual r hides is ½ rᵀH⁻¹r, and H ≥ ρ. An estimate by the preconditioner would not do
    instead, because that is the one in doubt.
    """
    residual, direction, gained = gradient, np.zeros_like(gradient), 0.0
    rho = np.inf
    for _ in range(MAX_STEPS):
        z = preconditioner.solve(residual)
        rho, rho_before = float(residual @ z), rho
        direction = z + rho / rho_before * direction
        image, _ = point.hess_vec(direction)
        alpha = rho / float(direction @ image)
        gained += 0.5 * alpha * rho
        residual = residual - alpha * image
        hidden = 0.5 * float(residual @ residual) / point.objective.ridge
        if not hidden > enough:
            break
    return gained + hidden


def hidden_by_rounding(point: Point, preconditioner: Preconditioner, allowed: float) -> float:
    """Return how much there may be to gain that the rounding of the gradient hides.

    Zero if even the simplest bound on it is no more than `allowed`.
    """
    if not rounding_hides(point, allowed):
        return 0.0
    return preconditioner.hidden_by(point.slope_rounding * point.objective.feature_magnitudes)


def rounding_hides(point: Point, allowed: float) -> bool:
    """Return True if the rounding of the gradient may hide more than `allowed`, as H ≥ ρ."""
    return 0.5 * point.gradient_rounding**2 / point.objective.ridge > allowed
