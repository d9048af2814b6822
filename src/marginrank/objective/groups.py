"""The group lasso penalty γ Σ_k ‖u_k‖, which sets whole groups of weights to zero.

u_k are the weights of group k. Let F(u) = ½ρ‖u‖² + L(u) + γ Σ_k ‖u_k‖ with loss L and a ridge of
weight ρ. Let q_k be the projection of −∇_k L(u) onto the ball of radius γ, and p = (−∇L − q) / ρ,
which would be the optimal u if L were linear. Because L is convex,

    F(u) − F* ≤ ½ρ‖u − p‖² + Σ_k (γ‖u_k‖ − q_kᵀu_k),    (the certificate)

where no term is negative, and all terms are zero at the optimum.
"""

from dataclasses import dataclass

import numpy as np

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.objective.derived_point import StructuredPoint
from marginrank.objective.faces import Combination, Face, on_face
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.objective.protocols import Scores


@dataclass(frozen=True)
class Groups:
    """The group lasso penalty γ Σ_k ‖u_k‖, with u_k the weights of group k."""

    weight: float  # γ
    starts: Integers  # index of the first weight of each group, then the number of all weights

    phrase = Message("with ", Mention("group_l1"))

    @cached_property
    def sizes(self) -> Integers:
        return np.diff(self.starts)

    def lengths(self, u: Floats) -> Floats:
        """Return the Euclidean norm ‖u_k‖ of the weights of each group."""
        return np.sqrt(self.sums(u * u))

    def sums(self, by_weight: Floats) -> Floats:
        """Return the sum of each group's entries of `by_weight`, which has one entry per weight."""
        return np.add.reduceat(by_weight, self.starts[:-1])

    def spread(self, by_group: Floats) -> Floats:
        """Return an array with one entry per weight: the entry of its group in `by_group`."""
        return np.repeat(by_group, self.sizes)

    def value(self, u: Floats) -> float:
        return self.weight * float(np.sum(self.lengths(u)))

    def directions(self, u: Floats) -> Floats:
        """Return the weights of each group divided by their norm, u_k / ‖u_k‖, or 0 if u_k = 0."""
        lengths = self.lengths(u)
        return u / self.spread(np.where(lengths > 0.0, lengths, 1.0))

    def held(self, pull: Floats) -> Floats:
        """Return the projection of each group of a vector onto the ball of radius γ.

        The vector `pull` is the negative gradient of the loss; γ is the weight of the penalty.
        """
        lengths = self.lengths(pull)
        return pull * self.spread(self.weight / np.maximum(lengths, self.weight))

    def face(self, objective: Objective, u: Floats) -> Face:
        """Return an objective restricted to the non-zero groups of u, with a quadratic penalty.

        The penalty γ‖v_k‖ of group k is replaced by γ‖v_k‖² / 2‖u_k‖, which has the same gradient
        at v = u and, up to a constant, is an upper bound on γ‖v_k‖. The weights of each group are
        rescaled so that this term and the ridge together are a ridge of the same weight as before.
        """
        of_columns = objective.feature_variances
        assert of_columns is not None
        combinations = {}
        for k, length in enumerate(self.lengths(u)):
            variances = of_columns[self.starts[k] : self.starts[k + 1]]
            scale = self._scale(float(length), objective.ridge)
            columns = np.eye(variances.size) * scale
            combinations[k] = Combination(columns, variances * scale**2)
            if length == 0.0:
                combinations[k] = Combination(columns[:, :0], variances[:0])
        return on_face(objective, combinations)

    def _scale(self, length: float, ridge: float) -> float:
        # √(ρ / (ρ + γ / length)), in a form that is defined for length 0.
        return float(np.sqrt(ridge * length / (ridge * length + self.weight)))


class GroupPoint(StructuredPoint):
    """An objective with a group lasso penalty, evaluated at one u, with a bound on F(u) − min F."""

    def __init__(self, groups: Groups, base: Point) -> None:
        super().__init__(base)
        self.groups = groups

    @cached_property
    def penalty(self) -> float:
        return self.groups.value(self.w)

    @cached_property
    def is_zero(self) -> Booleans:
        zero: Booleans = self.groups.lengths(self.w) == 0.0
        return zero

    @cached_property
    def pull(self) -> Floats:
        """The negative gradient of the loss alone, without ridge and group penalty."""
        return self.objective.ridge * self.w - self.base.gradient

    @cached_property
    def _held(self) -> Floats:
        return self.groups.held(self.pull)

    @cached_property
    def gradient(self) -> Floats:
        """A vector that replaces the gradient under a group penalty; zero only at the minimum.

        It is ρ(u − p), with ρ the weight of the ridge, and p the minimum of the objective if its
        loss were linear.
        """
        return self.base.gradient + self._held

    @cached_property
    def slopes(self) -> Floats:
        """The gradient of the objective with group penalty; valid only for non-zero groups."""
        return self.base.gradient + self.groups.weight * self.groups.directions(self.w)

    @property
    def gradient_rounding(self) -> float:
        size = float(np.linalg.norm(self.pull))
        return self.base.gradient_rounding + 4.0 * PRECISION * size

    @cached_property
    def slack(self) -> float:
        """The sum Σ_k (γ‖u_k‖ − q_kᵀu_k) in the bound on F(u) − min F, rounding error included.

        u_k are the weights of group k, γ is the weight of the penalty, and q_k is the projection of
        −∇_k L(u), the negative gradient of the loss in group k, onto the ball of radius γ.
        """
        groups, gamma = self.groups, self.groups.weight
        lengths, pulls = groups.lengths(self.w), groups.lengths(self.pull)
        apart = groups.lengths(groups.directions(self.w) - self._held / gamma)
        spare = 1.0 - (np.minimum(pulls, gamma) / gamma) ** 2
        total = float(lengths @ (apart**2 + spare))
        return gamma * (0.5 * total + 4.0 * PRECISION * float(np.sum(lengths)))

    def at(self, w: Floats) -> "GroupPoint":
        """Return the objective with group penalty evaluated at weights w; reads X once."""
        return GroupPoint(self.groups, self.objective.at(w, like=self.base))

    def move(self, step: float, direction: Floats, direction_scores: Scores) -> "GroupPoint":
        return GroupPoint(self.groups, self.base.move(step, direction, direction_scores))

    def slope(self, direction: Floats, direction_scores: Scores) -> float:
        # At zero, a norm grows in every direction.
        groups = self.groups
        leaving = float(np.sum(groups.lengths(direction)[self.is_zero]))
        of_norms = float(groups.directions(self.w) @ direction) + leaving
        return self.base.slope(direction, direction_scores) + groups.weight * of_norms

    def curvature(self, direction: Floats, direction_scores: Scores) -> float:
        groups, lengths = self.groups, self.groups.lengths(self.w)
        along = groups.sums(groups.directions(self.w) * direction)
        across = np.maximum(groups.lengths(direction) ** 2 - along**2, 0.0)
        bent = float(np.sum(across[~self.is_zero] / lengths[~self.is_zero]))
        return self.base.curvature(direction, direction_scores) + groups.weight * bent
