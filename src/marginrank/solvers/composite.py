"""Loss plus regulariser, F(w) = L(w) + Ω(w), with a certificate by Fenchel duality.

With t = Kw the differences of scores of the pairs, L(w) = f(t) = Σ c ℓ(t). For every α,

    F* ≥ −f*(α) − Ω*(−Kᵀα).

Take α = τ f'(t), a multiple 0 ≤ τ ≤ 1 of the derivative of the loss at the current w. Then
Kᵀα = τ∇L(w). As f* is convex with f*(0) = 0, and strongly convex because ℓ'' ≤ M,

    f*(τf'(t)) ≤ τ f*(f'(t)) − τ(1 − τ) Σ c ℓ'(t)² / (2M),    f*(f'(t)) = ⟨w, ∇L(w)⟩ − L(w).

(For squared hinge and Huber it is an equation.) Everything in it is a sum over pairs that the
kernels give from scores. The gap F(w) − (lower bound) is convex in τ, and the best τ is taken. In
the l1 ball τ = 1 gives the gap of Frank-Wolfe, ⟨w, ∇L⟩ + r‖∇L‖∞; for an l1 penalty τ must make
τ‖∇L‖∞ ≤ l1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginrank.objective import Objective, Point
from marginrank.solvers.regularizers import Ray, Regularizer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Composite:
    """L(w) + Ω(w) for an objective without a ridge of its own."""

    objective: Objective
    regularizer: Regularizer

    def __post_init__(self) -> None:
        """Refuse a loss that has no second derivative to work with."""
        if not self.objective.loss.smooth:
            raise ValueError(
                f"loss={self.objective.loss.name!r} has a kink, and sparse solvers need a smooth "
                "loss."
            )

    def at(self, w: Floats, scores: Floats | None = None) -> "CompositePoint":
        """Look at w: a sweep, that also gives the gradient; none if its scores Xw are known."""
        return self.wrap(self.objective.at(w, scores))

    def wrap(self, loss: Point) -> "CompositePoint":
        """Add the regulariser to a point of the objective."""
        return CompositePoint(self, loss)

    @cached_property
    def _squares(self) -> Objective:
        return self.objective.with_loss(self.objective.loss.squared_derivative())

    def strength(self, loss: Point) -> float:
        """Return Σ c ℓ'² / (2M); no sweep."""
        if len(self.objective.loss.pieces) == 1:  # there ℓ'² = 2M ℓ
            return loss.loss_value
        squares = self._squares.at(loss.w, loss.scores).loss_value
        return max(squares, 0.0) / (2.0 * self.objective.loss.largest_curvature)


class CompositePoint:
    """L + Ω at one w."""

    def __init__(self, composite: Composite, loss: Point) -> None:
        self.composite = composite
        self.loss = loss

    @property
    def objective(self) -> Objective:
        """The objective L."""
        return self.composite.objective

    @property
    def w(self) -> Floats:
        """The weights."""
        return self.loss.w

    @property
    def scores(self) -> Floats:
        """Xw."""
        return self.loss.scores

    @cached_property
    def value(self) -> float:
        """F(w)."""
        return self.loss.value + self.composite.regularizer.value(self.w)

    @property
    def gradient(self) -> Floats:
        """The gradient mapping w − prox(w − ∇L(w)): zero exactly at the optimum."""
        step = self.w - self.loss.gradient
        return self.w - self.composite.regularizer.prox(step, 1.0)

    @cached_property
    def gap(self) -> float:
        """Certificate: F(w) − F* is not larger, up to rounding."""
        regularizer = self.composite.regularizer
        loss, gradient = self.loss.loss_value, self.loss.gradient
        strength = self.composite.strength(self.loss)
        inner = float(self.w @ gradient)
        ray = regularizer.ray(gradient)
        tau = _best_scaling(inner - loss, strength, ray)
        conjugate = tau * inner - tau * loss - tau * (1.0 - tau) * strength
        bound = -conjugate - ray.conjugate(tau)[0]
        return max(self.value - bound, 0.0)

    def move(self, step: float, direction: Floats, direction_scores: Floats) -> "CompositePoint":
        """Look at w + step · direction, given X · direction; no sweep."""
        return self.composite.wrap(self.loss.move(step, direction, direction_scores))

    def slope(self, direction: Floats, direction_scores: Floats) -> float:
        """Return the derivative of F along a direction, given X · direction; no sweep."""
        return self.loss.slope(direction, direction_scores) + self.composite.regularizer.slope(
            self.w, direction
        )

    def curvature(self, direction: Floats, direction_scores: Floats) -> float:
        """Return the second derivative along a direction, given X · direction; no sweep."""
        return self.loss.curvature(
            direction, direction_scores
        ) + self.composite.regularizer.curvature(direction)


def _best_scaling(linear: float, strength: float, ray: Ray) -> float:
    """Minimise τ · linear − τ(1 − τ) · strength + Ω*(−τ∇L) over 0 ≤ τ ≤ min(1, limit).

    Its derivative is convex and increases: Newton's method from the right does not overshoot.
    """
    tau = min(1.0, ray.limit)
    for _ in range(50):
        _, slope, curvature = ray.conjugate(tau)
        total = linear - (1.0 - 2.0 * tau) * strength + slope
        if total <= 0.0:
            break
        curvature += 2.0 * strength
        before, tau = tau, max(tau - total / curvature, 0.0) if curvature > 0 else 0.0
        if before - tau <= 1e-12:
            break
    return tau
