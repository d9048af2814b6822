"""Loss plus regularizer, F(w) = L(w) + Ω(w), with an upper bound on F(w) − min F by duality.

Let t = Kw be the score differences of the pairs, c the weights of the pairs and ℓ the loss of a
pair, so L(w) = f(t) = Σ c ℓ(t). F* is the minimum of F. For every α,

    F* ≥ −f*(α) − Ω*(−Kᵀα).

:func:`scaled_bound` takes α = τ f'(t), a multiple 0 ≤ τ ≤ 1 of the derivative of the loss at the
current w, so Kᵀα = τ∇L(w). f* is convex with f*(0) = 0, and strongly convex because ℓ'' ≤ M, so

    f*(τf'(t)) ≤ τ f*(f'(t)) − τ(1 − τ) Σ c ℓ'(t)² / (2M),    f*(f'(t)) = ⟨w, ∇L(w)⟩ − L(w),

with equality for squared hinge and Huber. The hinge has no M; there the last term is zero. The
kernels compute these sums over pairs from scores. In the l1 ball of radius r, τ = 1 gives the gap
of Frank-Wolfe, ⟨w, ∇L⟩ + r‖∇L‖∞. For an l1 penalty, τ‖∇L‖∞ ≤ l1 must hold, so a single large
component of ∇L shrinks α for all pairs, and F(w) − bound falls only as fast as the gradient's
error.
"""

from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats
from marginrank.objective.derived_point import DerivedPoint
from marginrank.objective.losses import LOGISTIC
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import GroupedLoss, Scores, meets
from marginrank.objective.regularizers import L1Regularizer, Ray, Regularizer

R_co = TypeVar("R_co", bound=Regularizer, covariant=True)

NEGLIGIBLE = 1e-6  # share of L(0) that replaces F* in the relative gap if F* may be zero


@dataclass(frozen=True)
class Composite(Generic[R_co]):
    """The problem of minimizing a loss plus a regularizer, F(w) = L(w) + Ω(w)."""

    objective: Objective
    regularizer: R_co

    def __post_init__(self) -> None:
        loss = self.objective.loss
        if any(piece.power == LOGISTIC for piece in loss.pieces):
            raise ValueError(
                f"loss={loss.name!r} is not a sum of hinge terms, which is required here; use "
                "another loss."
            )

    def at(
        self, w: Floats, scores: Scores | None = None, accumulated_update: Floats | None = None
    ) -> "CompositePoint[R_co]":
        """Return F = L + Ω evaluated at w; reads X once, unless the scores Xw are given."""
        return self.wrap(self.objective.at(w, scores, accumulated_update=accumulated_update))

    def wrap(self, loss: Point) -> "CompositePoint[R_co]":
        return CompositePoint(self, loss)

    @property
    def is_squared_hinge(self) -> bool:
        """Whether the loss on pairs is a single squared hinge term."""
        return len(self.objective.loss.pieces) == 1 and self.objective.loss.smooth

    @cached_property
    def loss_at_zero(self) -> float:
        """The loss at zero weights; does not read X."""
        return self.objective.at_zero().loss_value

    @cached_property
    def _squares(self) -> Objective:
        return self.objective.with_loss(self.objective.loss.squared_derivative())

    def is_solved(self, value: float, gap: float, tol: float) -> bool:
        """Return True if `gap`, an upper bound on F(w) − min F, proves that `tol` is reached.

        `value` is F(w), and `tol` is a limit on (F(w) − min F) / min F. If min F may be zero, the
        gap is compared with the loss at w = 0 instead.
        """
        if meets(tol, value, gap):
            return True
        # F* is zero if weights that satisfy the constraint separate the data. A relative distance
        # to zero is undefined, so compare with a small part of L(0) instead.
        maybe_zero = self.regularizer.is_constraint and gap > 0.5 * value
        return maybe_zero and gap <= tol * NEGLIGIBLE * self.loss_at_zero

    def strength(self, loss: Point) -> float:
        """Return Σ c ℓ'² / (2M) over all pairs, a term of the lower bound on the minimum.

        c are the pair weights, ℓ' is the slope of the loss and M its largest curvature. The
        docstring of the module derives the bound. The term is zero for losses with kinks.
        """
        if self.is_squared_hinge:  # there ℓ'² = 2M ℓ
            return loss.loss_value
        if not self.objective.loss.smooth:
            return 0.0
        squares = self._squares.at_point(loss).loss_value
        return max(squares, 0.0) / (2.0 * self.objective.loss.largest_curvature)


class CompositePoint(DerivedPoint, Generic[R_co]):
    """Loss plus regularizer, F(w) = L(w) + Ω(w), evaluated at one w.

    It has the value, a vector that replaces the gradient, and a proven upper bound on F(w) − min F.
    `base` is the loss alone at this w.
    """

    def __init__(self, composite: Composite[R_co], base: Point) -> None:
        super().__init__(base)
        self.objective = composite.objective
        self.composite = composite
        self._grouped: dict[int, GroupedLoss] = {}
        self._closer_gap = np.inf

    @property
    def penalty(self) -> float:
        return self.composite.regularizer.value(self.w)

    @property
    def gradient(self) -> Floats:
        """A vector that replaces the gradient of F = L + Ω and is zero exactly at the minimum.

        It is the gradient mapping w − prox(w − ∇L(w)), with prox the proximal operator of Ω.
        """
        step = self.w - self.base.gradient
        return self.w - self.composite.regularizer.prox(step, 1.0)

    @property
    def gap(self) -> float:
        """Proven upper bound on F(w) − min F, which includes the rounding error."""
        return min(self.scaled_gap, self._closer_gap)

    def _gap_to(self, bound: float) -> float:
        # The lower bound was computed at this w, so its rounding counts, too.
        return max(self.value - bound, 0.0) + self.base.rounding + self.base.score_rounding

    @cached_property
    def scaled_gap(self) -> float:
        """Upper bound on F(w) − min F by Fenchel duality; loose near the minimum."""
        return self._gap_to(self.dual_multiple.bound)

    @cached_property
    def dual_multiple(self) -> "DualMultiple":
        """The best lower bound on min F by Fenchel duality for dual vectors τα, 0 ≤ τ ≤ 1.

        α has one entry per pair, the slope of its loss at this w times its weight.
        """
        gradient = self.base.gradient
        return scaled_bound(
            float(self.w @ gradient) - self.base.loss_value,
            self.composite.strength(self.base),
            self.composite.regularizer.ray(gradient),
        )

    def bound_below(self, bound: float) -> None:
        """Tighten the attribute `gap`, the bound on F(w) − min F, by a lower bound on min F."""
        self.certify(self._gap_to(bound))

    def certify(self, gap: float) -> None:
        """Lower the attribute `gap`, the bound on F(w) − min F, to the argument if it is larger."""
        self._closer_gap = min(self._closer_gap, gap)

    def is_solved(self, tol: float) -> bool:
        """Return True if the attribute `gap` proves that (F(w) − min F) / min F ≤ tol."""
        return self.composite.is_solved(self.value, self.gap, tol)

    def by_group(self, n_groups: int) -> GroupedLoss:
        """Return the loss and its gradient for about `n_groups` groups of queries; cached.

        The first call reads X once.
        """
        if n_groups not in self._grouped:
            self._grouped[n_groups] = self.base.by_group(n_groups)
        return self._grouped[n_groups]

    def near(self, w: Floats, *, only_scores: bool = False) -> "CompositePoint[R_co]":
        """Return F evaluated at another w; reads X once.

        Sorting the scores is faster if they rank the documents similarly at both w. With
        `only_scores` the gradient is not computed now, but later by :meth:`by_group`.
        """
        scores = self.objective.scores(w) if only_scores else None
        return self.composite.wrap(self.objective.at(w, scores, like=self.base))

    def move(
        self, step: float, direction: Floats, direction_scores: Scores
    ) -> "CompositePoint[R_co]":
        return self.composite.wrap(self.base.move(step, direction, direction_scores))

    def slope(self, direction: Floats, direction_scores: Scores) -> float:
        return self.base.slope(direction, direction_scores) + self.composite.regularizer.slope(
            self.w, direction
        )

    def curvature(self, direction: Floats, direction_scores: Scores) -> float:
        return self.base.curvature(
            direction, direction_scores
        ) + self.composite.regularizer.curvature(direction)


L1Problem = Composite[L1Regularizer]
L1Point = CompositePoint[L1Regularizer]


class DualMultiple(NamedTuple):
    """A lower bound on min F by Fenchel duality, and the factor τ of its dual vector."""

    tau: float
    bound: float


def scaled_bound(conjugate: float, strength: float, ray: Ray) -> DualMultiple:
    """Return a lower bound on the minimum of L + Ω by Fenchel duality, from one dual vector.

    The best multiple τα, 0 ≤ τ ≤ 1, of a dual vector α is used. `conjugate` is f*(α), `strength` is
    Σ α² / (2Mc), and `ray` is the function τ → Ω*(−τKᵀα); the docstring of the module defines the
    symbols.
    """
    tau = _best_scaling(conjugate, strength, ray)
    bound = tau * (1.0 - tau) * strength - tau * conjugate - ray.conjugate(tau)[0]
    return DualMultiple(tau, bound)


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
        if before - tau <= 1e-12:  # the bound is flat at its maximum: more accuracy is useless
            break
    return tau
