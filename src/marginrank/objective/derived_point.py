"""Points of problems with a penalty: an objective plus a regularizer, cone or group norm."""

from abc import ABC, abstractmethod

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats
from marginrank.objective.objective import PRECISION, Point


class DerivedPoint(ABC):
    """An objective plus a penalty, at one w; `base` is the point of the objective alone."""

    def __init__(self, base: Point) -> None:
        self.base = base
        self.objective = base.objective
        self.w = base.w
        self.scores = base.scores
        self.accumulated_update = base.accumulated_update

    @property
    @abstractmethod
    def gradient(self) -> Floats:
        """A vector that replaces ∇F and is zero only at the optimum."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Certificate: an upper bound on F(w) − F*, rounding included; F* is the minimum."""

    @property
    def penalty(self) -> float:
        """The value of the penalty; zero inside a cone."""
        return 0.0

    @cached_property
    def value(self) -> float:
        """F(w), penalty included."""
        return self.base.value + self.penalty

    @property
    def sum_rounding(self) -> float:
        return self.base.sum_rounding

    @property
    def rounding(self) -> float:
        """Upper bound on F(w) minus its computed value."""
        return self.base.rounding + PRECISION * self.penalty


class StructuredPoint(DerivedPoint):
    """A point in a cone, or with a penalty on groups: F(w) − F* ≤ ½‖r‖² / ρ + slack.

    r (the property `gradient`) is the part of ∇F that neither multipliers of the cone nor the
    penalty cancel, and ρ is the weight of the ridge.
    """

    @property
    @abstractmethod
    def gradient_rounding(self) -> float:
        """Upper bound on the norm of the rounding error of r."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """The slack, the second term of the bound."""

    @property
    def gradient_gap(self) -> float:
        """½‖r‖² / ρ, the first term of the bound, increased by the rounding error of r."""
        length = float(np.linalg.norm(self.gradient)) + self.gradient_rounding
        return 0.5 * length**2 / self.objective.ridge

    @cached_property
    def gap(self) -> float:
        return self.gradient_gap + self.slack + self.base.rounding
