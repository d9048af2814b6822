"""Regularizers Ω(w), l1 ball and elastic net, that are added to a loss L(w).

A regularizer computes Ω, its proximal operator and, for lower bounds on the minimum of L + Ω, its
conjugate Ω*(v) = sup_w ⟨v, w⟩ − Ω(w) along the ray v = −τ∇L(w), 0 ≤ τ ≤ 1. Its *domain* is the set
of w with finite Ω(w).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.types import Booleans, Floats

EASE = 10.0  # smallest ratio of successive penalties in a continuation from a large penalty
MOST_EASIER = 12  # most penalties of a continuation; after 12 powers of 10 the loss hardly changes


class Ray(NamedTuple):
    """The convex conjugate Ω* of a regularizer along a ray: the function τ → Ω*(−τ∇L).

    ∇L is the gradient of the loss. The function is finite for 0 ≤ τ ≤ `limit`; `conjugate` maps τ
    to its value and its first and second derivative.
    """

    limit: float
    conjugate: Callable[[float], tuple[float, float, float]]


class Regularizer(ABC):
    """A regularizer Ω(w), a convex function of the weights; infinite where w is not allowed."""

    is_constraint: bool  # whether it is zero wherever it is finite
    phrase: str  # describes it in messages: "loss='hinge' in an l1 ball (…)"

    @abstractmethod
    def value(self, w: Floats) -> float:
        """Return the regularizer Ω(w), for weights that satisfy the constraints."""

    @abstractmethod
    def slope(self, w: Floats, direction: Floats) -> float:
        """Return the derivative of the regularizer at w along a feasible direction."""

    @abstractmethod
    def curvature(self, direction: Floats) -> float:
        """Return the second derivative of the regularizer along a direction, where it exists."""

    @abstractmethod
    def prox(self, v: Floats, step: float) -> Floats:
        """Return the proximal operator: the w that minimizes step · Ω(w) + ½‖w − v‖²."""

    @abstractmethod
    def ray(self, gradient: Floats) -> Ray:
        """Return the convex conjugate Ω* of the regularizer along a ray: τ → Ω*(−τ · gradient).

        It is used for lower bounds on the minimum.
        """

    @abstractmethod
    def inside(self, w: Floats) -> Floats:
        """Return w, corrected if rounding errors made it violate the constraints."""


class L1Regularizer(Regularizer):
    """A regularizer with an l1 norm as penalty or constraint; also w ≥ 0 if `positive`."""

    positive: bool

    @abstractmethod
    def multiplier(self, w: Floats, gradient: Floats) -> float:
        """Return the factor of ‖w‖₁ in the optimality conditions at w.

        It is l1 for a penalty, and the Lagrange multiplier for a constraint. `gradient` is the
        gradient of the loss at w.
        """

    @property
    @abstractmethod
    def ridge(self) -> float:
        """The factor of ½‖w‖² in the regularizer."""

    @abstractmethod
    def easier(self, gradient: Floats) -> Iterator["ElasticNet"]:
        """Yield elastic nets with decreasing penalties, to be solved in turn as warm starts.

        `gradient` is the gradient of the loss at w = 0.
        """

    @abstractmethod
    def excludes(self, gradient: Floats, error: Floats) -> Booleans:
        """Return a mask of weights that are proven to be zero at the minimum of L + Ω.

        `gradient` approximates the gradient ∇L of the loss at the minimum; `error` bounds the
        error of each entry.
        """

    def contains(self, w: Floats) -> bool:
        """Return True if w satisfies the constraint on its norm; does not check signs."""
        return True

    def violation(self, w: Floats, gradient: Floats) -> float:
        """Return the largest entry of the smallest subgradient of loss plus regularizer at w.

        `gradient` is the gradient of the loss.
        """
        l1 = self.multiplier(w, gradient)
        smooth = gradient + self.ridge * w
        at_zero = np.maximum(self.pull(gradient) - l1, 0.0)
        return float(np.max(np.where(w == 0, at_zero, np.abs(smooth + l1 * np.sign(w)))))

    def pull(self, gradient: Floats) -> Floats:
        """Return, for each weight, how fast the loss decreases as the weight moves away from 0.

        `gradient` is the gradient of the loss. With `positive`, weights can only increase.
        """
        return np.maximum(-gradient, 0.0) if self.positive else np.abs(gradient)

    def inside(self, w: Floats) -> Floats:
        """Return w, with negative entries set to zero if weights must be positive."""
        return np.maximum(w, 0.0) if self.positive else w


@dataclass(frozen=True)
class L1Ball(L1Regularizer):
    """The constraint ‖w‖₁ ≤ radius as a regularizer; also w ≥ 0 if `positive`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.objective.regularizers import L1Ball
    >>> L1Ball(1.0).prox(np.array([3.0, -1.0, 2.5]), 1.0)
    array([0.75, 0.  , 0.25])
    """

    radius: float
    positive: bool = False

    is_constraint = True
    phrase = Message("in an l1 ball (", Mention("radius"), ")")
    ridge = 0.0

    def value(self, w: Floats) -> float:
        return 0.0

    def slope(self, w: Floats, direction: Floats) -> float:
        return 0.0

    def curvature(self, direction: Floats) -> float:
        return 0.0

    def prox(self, v: Floats, step: float) -> Floats:
        # The projection onto the ball (Duchi et al., 2008).
        size = np.maximum(v, 0.0) if self.positive else np.abs(v)
        if np.sum(size) > self.radius:
            ordered = np.sort(size)[::-1]
            thresholds = (np.cumsum(ordered) - self.radius) / np.arange(1, v.size + 1)
            # With a tiny radius, rounding may leave no entry above its threshold.
            n_positive = max(int(np.count_nonzero(ordered > thresholds)), 1)
            size = np.maximum(size - thresholds[n_positive - 1], 0.0)
        return self.inside(np.copysign(size, v) + 0.0)  # no −0

    def ray(self, gradient: Floats) -> Ray:
        # Ω* is τ · radius · ‖gradient‖∞; if `positive`, only negative entries of gradient count.
        slope = self.radius * float(np.max(self.pull(gradient)))
        return Ray(np.inf, lambda tau: (tau * slope, slope, 0.0))

    def easier(self, gradient: Floats) -> Iterator["ElasticNet"]:
        largest = float(np.max(self.pull(gradient)))
        for k in range(1, MOST_EASIER + 1):
            yield ElasticNet(largest * EASE**-k, positive=self.positive)

    def excludes(self, gradient: Floats, error: Floats) -> Booleans:
        # At the minimum, only features with the largest pull have nonzero weights, unless every
        # pull is zero.
        pull = self.pull(gradient)
        largest = float(np.max(pull - error))
        return (pull + error < largest) & (largest > 0.0)

    def contains(self, w: Floats) -> bool:
        return float(np.sum(np.abs(w))) <= self.radius

    def multiplier(self, w: Floats, gradient: Floats) -> float:
        # Zero inside the ball; on its boundary, the mean of −gradient · sign(w), weighted by |w|.
        size = float(np.sum(np.abs(w)))
        if size < self.radius * (1 - 1e-9):
            return 0.0
        return max(-float(gradient @ w) / size, 0.0)

    def inside(self, w: Floats) -> Floats:
        # Scale until Σ |w_j|, summed in any order, is at most the radius.
        w = super().inside(w)
        size = float(np.abs(w).sum())
        limit = target = self.radius * (1.0 - 2.0**-52 * (np.count_nonzero(w) - 1))
        while size > limit:
            w = w * (target / size)
            size = float(np.abs(w).sum())
            target *= 1.0 - 2.0**-52
        return w


@dataclass(frozen=True)
class ElasticNet(L1Regularizer):
    """The elastic net penalty l1 · ‖w‖₁ + l2 · ½‖w‖²; also w ≥ 0 if `positive`.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank.objective.regularizers import ElasticNet
    >>> ElasticNet(1.0, 1.0).prox(np.array([3.0, -0.5]), 1.0)
    array([1., 0.])
    """

    l1: float
    l2: float = 0.0
    positive: bool = False

    is_constraint = False
    phrase = Message("with a penalty (", Mention("C"), ", no ", Mention("radius"), ")")

    @property
    def ridge(self) -> float:
        return self.l2

    def value(self, w: Floats) -> float:
        return self.l1 * float(np.sum(np.abs(w))) + 0.5 * self.l2 * float(w @ w)

    def slope(self, w: Floats, direction: Floats) -> float:
        # At w_j = 0, |w_j| grows in both directions.
        change = np.where(w == 0, np.abs(direction), np.sign(w) * direction)
        return self.l1 * float(np.sum(change)) + self.l2 * float(w @ direction)

    def curvature(self, direction: Floats) -> float:
        return self.l2 * float(direction @ direction)

    def prox(self, v: Floats, step: float) -> Floats:
        size = np.maximum((v if self.positive else np.abs(v)) - step * self.l1, 0.0)
        return np.copysign(size, v) / (1.0 + step * self.l2) + 0.0  # no −0

    def ray(self, gradient: Floats) -> Ray:
        # Ω* is Σ max(0, τ · pull_j − l1)² / (2 · l2); for l2 = 0 it is 0 or infinite.
        pull = self.pull(gradient)
        if self.l2 == 0:
            largest = float(np.max(pull))
            limit = self.l1 / largest if largest > self.l1 else np.inf
            return Ray(limit, lambda tau: (0.0, 0.0, 0.0))
        pull = pull[pull > self.l1]  # the others stay below l1 for every τ ≤ 1

        def conjugate(tau: float) -> tuple[float, float, float]:
            excess = np.maximum(tau * pull - self.l1, 0.0)
            return (
                0.5 * float(excess @ excess) / self.l2,
                float(excess @ pull) / self.l2,
                float(np.sum(pull[excess > 0] ** 2)) / self.l2,
            )

        return Ray(np.inf, conjugate)

    def easier(self, gradient: Floats) -> Iterator["ElasticNet"]:
        # Yield multiples of this penalty, from one whose solution is nearly 0.
        largest = float(np.max(self.pull(gradient)))
        if not largest > self.l1 > 0:
            return
        ratio = largest / self.l1
        ease = max(EASE, ratio ** (1.0 / MOST_EASIER))
        for k in range(int(np.log(ratio) / np.log(ease)), 0, -1):
            yield ElasticNet(self.l1 * ease**k, self.l2 * ease**k, self.positive)

    def excludes(self, gradient: Floats, error: Floats) -> Booleans:
        return self.pull(gradient) + error < self.l1

    def multiplier(self, w: Floats, gradient: Floats) -> float:
        return self.l1
