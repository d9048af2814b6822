"""Base classes for an objective plus a penalty (regularizer, cone or group norm) at one w."""

from abc import ABC, abstractmethod

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats
from marginrank.objective.objective import PRECISION, Point


class DerivedPoint(ABC):
    """An objective F plus a penalty, evaluated at one w; `base` is F alone at this w."""

    def __init__(self, base: Point) -> None:
        self.base = base
        self.objective = base.objective
        self.w = base.w
        self.scores = base.scores
        self.accumulated_update = base.accumulated_update

    @property
    @abstractmethod
    def gradient(self) -> Floats:
        """A vector for stopping tests that replaces ∇F and is zero only at the optimum."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """The certificate: an upper bound on F(w) − F*, with F* the minimum; rounding included."""

    @property
    def penalty(self) -> float:
        """The value of the penalty at w; a cone has none, so it is zero."""
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
        """Upper bound on the exact F(w) minus its computed value."""
        return self.base.rounding + PRECISION * self.penalty


class StructuredPoint(DerivedPoint):
    """An objective with a cone or a group penalty at one w, with the bound that certifies it.

    The bound is F(w) − F* ≤ ½‖r‖² / ρ + slack, where r (the property `gradient`) is the part of ∇F
    that neither multipliers of the cone nor the penalty cancel, and ρ is the weight of the ridge.
    """

    @property
    @abstractmethod
    def gradient_rounding(self) -> float:
        """Upper bound on the norm of the rounding error of r."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """The second term of the bound on F(w) − F*."""

    @property
    def gradient_gap(self) -> float:
        """The first term ½‖r‖² / ρ of the bound on F(w) − F*, rounding error of r included."""
        length = float(np.linalg.norm(self.gradient)) + self.gradient_rounding
        return 0.5 * length**2 / self.objective.ridge

    @cached_property
    def gap(self) -> float:
        return self.gradient_gap + self.slack + self.base.rounding
