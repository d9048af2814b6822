"""Lower bounds on the optimum of L(w) + Ω(w) by Fenchel duality.

With t = Kw the differences of scores of the pairs, L(w) = f(t) = Σ c ℓ(t). For every α,

    F* ≥ −f*(α) − Ω*(−Kᵀα).

:func:`scaled_bound` takes α = τ f'(t), a multiple 0 ≤ τ ≤ 1 of the derivative of the loss at the
current w. Then Kᵀα = τ∇L(w). As f* is convex with f*(0) = 0, and strongly convex because ℓ'' ≤ M,

    f*(τf'(t)) ≤ τ f*(f'(t)) − τ(1 − τ) Σ c ℓ'(t)² / (2M),    f*(f'(t)) = ⟨w, ∇L(w)⟩ − L(w).

(For squared hinge and Huber it is an equation.) Everything in it is a sum over pairs that the
kernels give from scores. The best τ is taken. In the l1 ball τ = 1 gives the gap of Frank-Wolfe,
⟨w, ∇L⟩ + r‖∇L‖∞; for an l1 penalty τ must make τ‖∇L‖∞ ≤ l1. So one feature that pulls too strongly
scales all of α down, and F(w) − bound falls only as fast as the gradient's error.

:func:`parabola_bound` has a multiple τ_g ≥ 0 of its own for each group g of queries. For the
squared hinge, f_g*(τα) = −τ a_g + τ² L_g with a_g = 2 L_g(w) − ⟨w, ∇L_g(w)⟩, and the best of these
bounds is

    F* ≥ min_u Ω(u) + Σ_g max(0, a_g + ⟨∇L_g(w), u⟩)² / (4 L_g(w)):

a parabola below the loss of each group, which it touches at w. With more groups than features
F(w) − bound falls as the square of the gradient's error, as F(w) − F* itself does.
"""

import numpy as np

from marginrank._base.types import Floats
from marginrank.objective.objective import GroupedLoss
from marginrank.objective.regularizers import Ray, Regularizer
from marginrank.solvers.sparse.quadratic_model import QuadraticModel

PARABOLA_TOL = 1e-3  # how well their minimum is found, against the violation at w


def scaled_bound(conjugate: float, strength: float, ray: Ray) -> float:
    """Return the best bound of the multiples 0 ≤ τ ≤ 1 of one α.

    Parameters
    ----------
    conjugate : float
        f*(α).
    strength : float
        Σ α² / (2Mc).
    ray : Ray
        Ω* along −τKᵀα.
    """
    tau = _best_scaling(conjugate, strength, ray)
    return tau * (1.0 - tau) * strength - tau * conjugate - ray.conjugate(tau)[0]


def parabola_bound(w: Floats, grouped: GroupedLoss, regularizer: Regularizer) -> float:
    """Return the best bound of a multiple for each group of queries, for the squared hinge.

    The parabolas are minimised by the same means as a model of the loss. Whatever u comes out, the
    multiples that belong to it make a valid bound, once they are scaled to be feasible.
    """
    used = grouped.losses > 0
    losses, gradients = grouped.losses[used], grouped.gradients[used]
    if not losses.size:
        return -regularizer.ray(np.zeros_like(w)).conjugate(0.0)[0]
    gradient = gradients.sum(axis=0)
    towards = gradients / np.sqrt(2.0 * losses)[:, None]
    model = QuadraticModel(towards.T @ towards, complete=True)
    enough = PARABOLA_TOL * regularizer.violation(w, gradient)
    u = model.minimize(w, gradient, regularizer, enough)
    multiples = np.maximum(1.0 + gradients @ (u - w) / (2.0 * losses), 0.0)
    strength = float(multiples**2 @ losses)
    offsets = 2.0 * losses - gradients @ w
    conjugate = strength - float(multiples @ offsets)
    return scaled_bound(conjugate, strength, regularizer.ray(multiples @ gradients))


def _best_scaling(conjugate: float, strength: float, ray: Ray) -> float:
    """Minimise τ · conjugate − τ(1 − τ) · strength + Ω*(−τKᵀα) over 0 ≤ τ ≤ min(1, limit).

    Its derivative is convex and increases: Newton's method from the right does not overshoot.
    """
    tau = min(1.0, ray.limit)
    for _ in range(50):
        _, slope, curvature = ray.conjugate(tau)
        total = conjugate - (1.0 - 2.0 * tau) * strength + slope
        if total <= 0.0:
            break
        curvature += 2.0 * strength
        before, tau = tau, max(tau - total / curvature, 0.0) if curvature > 0 else 0.0
        if before - tau <= 1e-12:
            break
    return tau
