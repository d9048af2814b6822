"""Newton's method for an l1 norm and too many non-zero weights for a Hessian.

As long as no weight changes its sign, the l1 norm is linear. So the non-zero weights, and the zero
weights that the loss pulls out of zero strongly enough, take a Newton step for that linear penalty;
weights that would change their sign become zero (Byrd, Chin, Nocedal and Oztoprak, 2016). The
Newton system is solved by conjugate gradients with the diagonal of the Hessian, in O(n) memory for
n features. If such a step gains too little, a proximal gradient step is taken. A *face* is a set of
weights with fixed signs, some of them fixed at zero; the others are *free*.
"""

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.objective.composite import L1Point
from marginrank.objective.objective import Point
from marginrank.objective.regularizers import L1Ball

MAX_CG = 100  # steps; an inexact solution is still a direction of descent
CG_TOL = 0.05  # relative residual to stop at, in the norm of the preconditioner
FACES = 10  # most faces per step
TINY = 1e-10  # floor of diagonal entries, relative to the largest: a feature may have no curvature


def face_step(point: L1Point) -> Floats:
    """Return weights that nearly minimize a quadratic model of the loss plus an l1 norm.

    Non-zero weights of `point` keep their sign or become zero.
    """
    regularizer, w, gradient = point.composite.regularizer, point.w, point.base.gradient
    l1, l2 = regularizer.multiplier(w, gradient), regularizer.ridge
    sign = np.where(w != 0, np.sign(w), -np.sign(gradient))
    free = (w != 0) | (regularizer.pull(gradient) > l1)
    diagonal = point.base.hess_diag() + l2
    diagonal = np.maximum(diagonal, TINY * np.max(diagonal))
    slope = gradient + l2 * w + l1 * sign
    if isinstance(regularizer, L1Ball):
        step = _solve(point.base, l2, free, diagonal, -np.where(free, slope, 0.0))
        step = _keep_in_ball(point, regularizer, free, diagonal, np.where(free, sign, 0.0), step)
        u = np.where(free, w + step, 0.0)
    else:
        u = _on_smaller_faces(point, l2, free, diagonal, sign, slope)
    return regularizer.inside(np.where(u * sign > 0, u, 0.0))


def _on_smaller_faces(
    point: L1Point, l2: float, free: Booleans, diagonal: Floats, sign: Floats, slope: Floats
) -> Floats:
    # Weights that would change their sign are fixed at zero, and the model is minimized again over
    # the other weights, whose optimum depends on which weights are zero.
    w = point.w
    for _ in range(FACES):
        to_zero = np.where(free, 0.0, -w)
        target = -slope
        if to_zero.any():
            target = target - point.base.hess_vec(to_zero)[0]
        u = w + _solve(point.base, l2, free, diagonal, np.where(free, target, 0.0)) + to_zero
        crossing = free & (u * sign < 0)
        if not crossing.any():
            break
        free = free & ~crossing
    return u


def _keep_in_ball(
    point: L1Point, ball: L1Ball, free: Booleans, diagonal: Floats, sign: Floats, step: Floats
) -> Floats:
    # If the step would leave the ball, change the multiplier so that it ends on the boundary.
    room = ball.radius - float(np.sum(np.abs(point.w)))
    excess = float(sign @ step) - room
    on_boundary = room <= 1e-9 * ball.radius  # up to rounding
    if excess <= 0 and not on_boundary:
        return step
    shift = _solve(point.base, 0.0, free, diagonal, sign)
    slope = float(sign @ shift)
    return step - (excess / slope) * shift if slope > 0 else step


def gradient_step(point: L1Point) -> Floats:
    """Return the weights after a proximal gradient step from `point`, of size gᵀg / gᵀHg.

    g and H are the gradient and the Hessian of the loss.
    """
    gradient = point.base.gradient
    image, _ = point.base.hess_vec(gradient)
    curvature = float(gradient @ image)
    size = float(gradient @ gradient) / curvature if curvature > 0 else 1.0
    return point.composite.regularizer.prox(point.w - size * gradient, size)


def _solve(loss: Point, l2: float, free: Booleans, diagonal: Floats, target: Floats) -> Floats:
    # (∇²L + l2) x = target over the free weights, by preconditioned conjugate gradients.
    x = np.zeros_like(target)
    residual = target.copy()
    z = residual / diagonal
    rho = float(residual @ z)
    enough = CG_TOL**2 * rho
    p = z
    for _ in range(MAX_CG):
        if rho <= enough or rho == 0.0:
            break
        image, _ = loss.hess_vec(p)
        image = np.where(free, image + l2 * p, 0.0)
        curvature = float(p @ image)
        if curvature <= 0.0:
            break
        x += (rho / curvature) * p
        residual -= (rho / curvature) * image
        z = residual / diagonal
        rho, before = float(residual @ z), rho
        p = z + (rho / before) * p
    return x
