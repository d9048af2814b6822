"""Base classes for an objective plus a regularizer or constraint, evaluated at one w."""

from abc import ABC, abstractmethod

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats
from marginrank.objective.objective import PRECISION, Point


class DerivedPoint(ABC):
    """An objective plus a regularizer or constraint at one w; `base` is the objective alone."""

    def __init__(self, base: Point) -> None:
        self.base = base
        self.objective = base.objective
        self.w = base.w
        self.scores = base.scores
        self.accumulated_update = base.accumulated_update

    @property
    @abstractmethod
    def gradient(self) -> Floats:
        """A vector that replaces the gradient in stopping rules; it is zero only at the minimum."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Proven upper bound on F(w) − min F; includes the rounding error."""

    @property
    def penalty(self) -> float:
        """The value of the penalty at w; zero for constraints."""
        return 0.0

    @cached_property
    def value(self) -> float:
        """The value F(w) of the objective, penalty included."""
        return self.base.value + self.penalty

    @property
    def sum_rounding(self) -> float:
        return self.base.sum_rounding

    @property
    def rounding(self) -> float:
        """Upper bound on the rounding error of F(w): the exact value minus the computed one."""
        return self.base.rounding + PRECISION * self.penalty


class StructuredPoint(DerivedPoint):
    """An objective with linear constraints or a group penalty at one w, with an error bound.

    The bound is F(w) − min F ≤ ½‖r‖² / ρ + slack, with ρ the weight of the ridge. r (the attribute
    `gradient`) is the part of ∇F that neither Lagrange multipliers nor the penalty cancel.
    """

    @property
    @abstractmethod
    def gradient_rounding(self) -> float:
        """Upper bound on the norm of the rounding error of the attribute `gradient`."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """The part of the error bound `gap` that ½‖r‖² / ρ and rounding errors do not cover."""

    @property
    def gradient_gap(self) -> float:
        """The term ½‖r‖² / ρ of the error bound `gap`, including the rounding error of r.

        r is the attribute `gradient`, and ρ the weight of the ridge.
        """
        length = float(np.linalg.norm(self.gradient)) + self.gradient_rounding
        return 0.5 * length**2 / self.objective.ridge

    @cached_property
    def gap(self) -> float:
        return self.gradient_gap + self.slack + self.base.rounding
