"""Estimates of F(w) − min F for smooth losses, and checks that they can be trusted.

The estimate is the Newton decrement ½ gᵀH⁻¹g with the gradient g and the Hessian H of F at w: the
decrease of F by a full Newton step if F is quadratic. A *point* is an objective evaluated at one w.
"""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import Point
from marginrank.solvers.smooth.preconditioner import Preconditioner, points_on_parts, stand_ins

# Conjugate gradient steps on a part of a sample. The preconditioner is close to the Hessian there,
# so a few suffice. A bound that is still loose after 16 steps rejects the estimate, which is safe.
MAX_STEPS = 16


def decrement(point: Point, direction: Floats) -> float:
    """Return the decrease of the objective that a Newton step predicts, −½ gᵀd.

    `direction` is the step d, and g is the gradient at `point`.
    """
    return -0.5 * float(point.gradient @ direction)


def bound_by_parts(point: Point, preconditioner: Preconditioner, seed: int, enough: float) -> float:
    """Return an upper bound on the mean predicted decrease ½ gᵀH⁻¹g over two parts of a sample.

    g is the gradient at `point`, and H the Hessian of one part at the same w. The parts have no
    document in common, so an outlier spoils the prediction of one part only, and twice the mean is
    at least the prediction of the other part. Return infinity if the parts are too small to
    estimate the Hessian from. The bound of a part may exceed its value by `enough`.
    """
    parts = points_on_parts(stand_ins(point.objective, seed), point.w)
    if not parts:
        return np.inf
    bounds = [decrement_bound(part, point.gradient, preconditioner, enough) for part in parts]
    return sum(bounds) / len(bounds)


def decrement_bound(
    point: Point,
    gradient: Floats,
    preconditioner: Preconditioner,
    enough: float,
    max_steps: int = MAX_STEPS,
) -> float:
    """Return an upper bound on the decrease ½ gᵀH⁻¹g that a Newton step predicts.

    H is the Hessian at `point`, and g = `gradient`. The bound exceeds this value by at most
    `enough`, or by more after `max_steps` products with H.
    """
    # Conjugate gradients on H d = g. A residual r hides at most ½ rᵀH⁻¹r ≤ ½‖r‖² / ρ. Estimating it
    # by the preconditioner would prove nothing, because the preconditioner is what is in doubt.
    residual, direction, gained = gradient, np.zeros_like(gradient), 0.0
    rho = np.inf
    for _ in range(max_steps):
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
    """Return an estimate of the decrease of the objective that rounding of the gradient may hide.

    Return 0 if the decrease is certainly at most `allowed`.
    """
    if not rounding_hides(point, allowed):
        return 0.0
    return preconditioner.hidden_by(point.slope_rounding * point.objective.feature_magnitudes)


def rounding_hides(point: Point, allowed: float) -> bool:
    """Return True if rounding of the gradient may hide a decrease of F by over `allowed`."""
    # ½ eᵀH⁻¹e ≤ ½‖e‖² / ρ for an error e of the gradient.
    return 0.5 * point.gradient_rounding**2 / point.objective.ridge > allowed
