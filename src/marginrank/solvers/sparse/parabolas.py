"""A lower bound on the minimum of a squared hinge loss plus a regularizer, by parabolas.

Each group g of queries, with loss L_g, is bounded below by a parabola that touches its loss at the
current w. With regularizer Ω, any w and F* the minimum of Σ_g L_g + Ω,

    F* ≥ min_u Ω(u) + Σ_g max(0, a_g + ⟨∇L_g(w), u⟩)² / (4 L_g(w)),   a_g = 2 L_g(w) − ⟨w, ∇L_g(w)⟩.

This follows from the dual bound in `objective/composite.py`, which takes one multiple τ of the
derivative of the loss, if each group has its own multiple τ_g ≥ 0, because f_g*(τα) = −τ a_g + τ²
L_g for the squared hinge. With more groups than features, F(w) − bound falls with the square of the
gradient's error, as F(w) − F* itself does.
"""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.composite import L1Point, L1Problem, scaled_bound
from marginrank.objective.protocols import GroupedLoss
from marginrank.objective.regularizers import L1Regularizer
from marginrank.solvers.smooth.preconditioner import HESSIAN_FEATURES
from marginrank.solvers.sparse.quadratic_model import QuadraticModel

PARABOLA_TOL = 1e-3  # accuracy of the minimum over u, relative to the violation at w
GROUPS_PER_FEATURE = 8  # with fewer, the parabolas are too flat in some directions


def has_parabolas(composite: L1Problem) -> bool:
    """Return True if :func:`tighten` has an effect: squared hinge, and few features."""
    # With more features the Gram matrix of the gradients takes too much memory and time.
    n, n_queries = composite.objective.n_features, composite.objective.pairs.n_queries
    return composite.is_squared_hinge and n <= min(n_queries, HESSIAN_FEATURES)


def tighten(point: L1Point) -> None:
    """Tighten the bound on F(w) − min F of `point` by a bound with one parabola per group.

    Does nothing if the loss is not the squared hinge or queries are few. Takes one pass over X,
    unless `point` has its gradients by group already.
    """
    if has_parabolas(point.composite):
        grouped = point.by_group(GROUPS_PER_FEATURE * point.w.size)
        point.bound_below(parabola_bound(point.w, grouped, point.composite.regularizer))


def parabola_bound(w: Floats, grouped: GroupedLoss, regularizer: L1Regularizer) -> float:
    """Return a lower bound on the minimum of a squared hinge loss plus a regularizer.

    The bound adds up one parabola per group of queries; the docstring of the module derives it.
    `grouped` has the loss and the gradient of each group at the current w.
    """
    # The parabolas are minimized like a model of the loss. Whatever u results, its multiples make a
    # valid bound once they are scaled to be feasible.
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
    return scaled_bound(conjugate, strength, regularizer.ray(multiples @ gradients)).bound
