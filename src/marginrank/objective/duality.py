"""Lower bounds on the optimum of L(w) + Ω(w) by Fenchel duality.

With t = Kw the score differences of the pairs, L(w) = f(t) = Σ c ℓ(t). For every α,

    F* ≥ −f*(α) − Ω*(−Kᵀα).

:func:`scaled_bound` takes α = τ f'(t), a multiple 0 ≤ τ ≤ 1 of the derivative of the loss at the
current w, so Kᵀα = τ∇L(w). f* is convex with f*(0) = 0, and strongly convex because ℓ'' ≤ M, so

    f*(τf'(t)) ≤ τ f*(f'(t)) − τ(1 − τ) Σ c ℓ'(t)² / (2M),    f*(f'(t)) = ⟨w, ∇L(w)⟩ − L(w),

with equality for squared hinge and Huber. Everything in it is a sum over pairs that the kernels
compute from scores. In the l1 ball τ = 1 gives the gap of Frank-Wolfe, ⟨w, ∇L⟩ + r‖∇L‖∞; for an l1
penalty τ‖∇L‖∞ ≤ l1 must hold. So one feature that pulls too strongly scales all of α down, and
F(w) − bound falls only as fast as the gradient's error.
"""

from marginrank.objective.regularizers import Ray


def scaled_bound(conjugate: float, strength: float, ray: Ray) -> float:
    """Return the best lower bound over the multiples 0 ≤ τ ≤ 1 of one α.

    `conjugate` is f*(α), `strength` Σ α² / (2Mc), and `ray` Ω* along −τKᵀα.
    """
    tau = _best_scaling(conjugate, strength, ray)
    return tau * (1.0 - tau) * strength - tau * conjugate - ray.conjugate(tau)[0]


def _best_scaling(conjugate: float, strength: float, ray: Ray) -> float:
    # Minimizes τ · conjugate − τ(1 − τ) · strength + Ω*(−τKᵀα). Its derivative is convex and
    # increasing, so Newton's method from the right does not overshoot.
    tau = min(1.0, ray.limit)
    for _ in range(50):
        _, slope, curvature = ray.conjugate(tau)
        total = conjugate - (1.0 - 2.0 * tau) * strength + slope
        if total <= 0.0:
            break
        curvature += 2.0 * strength
        before, tau = tau, max(tau - total / curvature, 0.0) if curvature > 0 else 0.0
        if before - tau <= 1e-12:  # the bound is flat at its maximum: closer is of no use
            break
    return tau
