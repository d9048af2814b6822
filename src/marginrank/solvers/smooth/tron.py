"""Trust region Newton (TRON) of Lee and Lin (2014), section 4.1: the reference solver.

Each step minimizes the quadratic model ∇Fᵀd + ½dᵀ∇²F d over ‖d‖ ≤ Δ by conjugate gradients, and Δ
follows from the ratio of the actual to the predicted change. There are two differences from the
authors' program. After a rejected step, products use the Hessian at the current iterate, not at the
rejected one. And `tol` is the relative distance to the optimal objective, as everywhere here. Their
rule (38), ‖∇F(w)‖ ≤ ε‖∇F(0)‖, says nothing about that distance when features differ in scale. So it
must hold with ε = √tol *and* a proven bound on the distance must be small enough: without a
preconditioner, TRON has no estimate of the distance that can be trusted.
"""

from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores, is_certified
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, SolverResult

# Constants of rules (36) and (37) of Lee and Lin (2014): when a step is accepted, and the next Δ.
ETA0, ETA1, ETA2 = 1e-4, 0.25, 0.75
SIGMA1, SIGMA2, SIGMA3 = 0.25, 0.5, 4.0
CG_TOL = 0.1  # relative residual at which conjugate gradients stop


class TrustRegionStep(NamedTuple):
    """A step d of the trust region method, its scores Xd, and the predicted change of F."""

    vector: Floats
    scores: Scores
    model_change: float
    n_products: int


def tron(
    objective: Objective,
    *,
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimize an objective with a smooth loss by the trust region Newton method of LIBLINEAR.

    Stops only when a proven bound on F − min F shows that `tol` is reached. `max_iter` counts
    rejected steps, too. `seed` is not used because nothing here is random. The other parameters are
    as in :func:`~marginrank.solvers.smooth.newton.newton`.
    """
    progress = Progress(objective, callback)
    point = start(objective, np.zeros(objective.n_features) if w0 is None else w0, scores0)
    stop = StopReason.MAX_ITER
    try:
        # Relative to w = 0, so a warm start does not change the meaning of the rule.
        zero = objective.at_zero() if point.w.any() else point
        small = np.sqrt(tol) * float(np.linalg.norm(zero.gradient))
        radius = float(np.linalg.norm(point.gradient))
        for iteration in range(max_iter):
            if _is_solved(point, tol, small):
                stop = StopReason.CERTIFIED
                break
            step = _steihaug(point, radius)
            trial = point.move(1.0, step.vector, step.scores)
            change = trial.value - point.value
            length = float(np.linalg.norm(step.vector))
            if iteration == 0:  # ‖∇F‖ says nothing about the length of a good step
                radius = min(radius, length)
            slope = point.slope(step.vector, step.scores)
            radius = _resize(radius, length, change, step.model_change, slope)
            accepted = change < ETA0 * step.model_change
            if accepted:
                point = trial
            progress.record(point, point.gap, step.n_products)
            # The model's change is rounding of F itself: no further step can be accepted.
            if not accepted and abs(step.model_change) <= 1e-15 * abs(point.value):
                stop = StopReason.PRECISION
                break
    except KeyboardInterrupt:
        stop = StopReason.INTERRUPTED
    if stop is StopReason.MAX_ITER and _is_solved(point, tol, small):
        stop = StopReason.CERTIFIED
    return progress.result(point, point.gap, stop)


def _is_solved(point: Point, tol: float, small: float) -> bool:
    return bool(is_certified(point, tol) and np.linalg.norm(point.gradient) <= small)


def _resize(
    radius: float, length: float, change: float, model_change: float, slope: float
) -> float:
    # Rule (37); alpha minimizes the parabola with this slope and this change (Lin and Moré, 1999).
    curvature = change - slope
    alpha = SIGMA3 if curvature <= 0 else max(SIGMA1, -0.5 * slope / curvature)
    if change > ETA0 * model_change:
        return min(max(alpha, SIGMA1) * length, SIGMA2 * radius)
    if change > ETA1 * model_change:
        return max(SIGMA1 * radius, min(alpha * length, SIGMA2 * radius))
    if change > ETA2 * model_change:
        return max(SIGMA1 * radius, min(alpha * length, SIGMA3 * radius))
    return max(radius, min(alpha * length, SIGMA3 * radius))


def _steihaug(point: Point, radius: float) -> TrustRegionStep:
    # Conjugate gradients on the quadratic model, up to the boundary of the trust region (Steihaug).
    residual = -point.gradient
    enough = CG_TOL * float(np.linalg.norm(residual))
    d, d_scores = np.zeros_like(residual), point.objective.space.zero()
    p = residual.copy()
    rho = float(residual @ residual)
    n_products = 0
    at_boundary = False
    # In exact arithmetic n steps suffice; rounding may take more, but not without limit.
    while np.sqrt(rho) > enough and not at_boundary and n_products < 10 * len(d) + 50:
        hp, p_scores = point.hess_vec(p)
        n_products += 1
        alpha = rho / float(p @ hp)
        if np.linalg.norm(d + alpha * p) > radius:
            alpha, at_boundary = _to_boundary(d, p, radius), True
        d += alpha * p
        d_scores = point.objective.space.add(d_scores, alpha, p_scores)
        residual -= alpha * hp
        rho, rho_before = float(residual @ residual), rho
        p = residual + (rho / rho_before) * p
    model_change = -0.5 * float(d @ (residual - point.gradient))
    return TrustRegionStep(d, d_scores, model_change, n_products)


def _to_boundary(d: Floats, p: Floats, radius: float) -> float:
    # The a > 0 with ‖d + a p‖ = radius; of the two forms of the root, the one without cancellation.
    pp, pd, dd = float(p @ p), float(p @ d), float(d @ d)
    root = np.sqrt(pd * pd + pp * (radius * radius - dd))
    return float((radius * radius - dd) / (pd + root) if pd >= 0 else (root - pd) / pp)
