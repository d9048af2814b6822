"""Points of an objective that has a regularizer, a cone or groups of weights beside it."""

from abc import ABC, abstractmethod

import numpy as np

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.objective.protocols import Scores


class DerivedPoint:
    """An objective with a penalty beside it, at one w.

    Attributes
    ----------
    base : Point
        The point of the objective alone.
    """

    def __init__(self, base: Point) -> None:
        self.base = base

    @property
    def objective(self) -> Objective:
        """The objective alone."""
        return self.base.objective

    @property
    def w(self) -> Floats:
        """The weights."""
        return self.base.w

    @property
    def scores(self) -> Scores:
        """Xw."""
        return self.base.scores

    @property
    def accumulated_update(self) -> Floats:
        """The accumulated update of each weight in steps along which scores were updated."""
        return self.base.accumulated_update

    @property
    def sum_rounding(self) -> float:
        """How far F(w) may be off."""
        return self.base.sum_rounding

    @property
    def penalty(self) -> float:
        """The value of the penalty; zero inside a cone."""
        return 0.0

    @cached_property
    def value(self) -> float:
        """F(w)."""
        return self.base.value + self.penalty


class StructuredPoint(DerivedPoint, ABC):
    """A point in a cone, or with a penalty on groups, and its certificate."""

    @property
    @abstractmethod
    def gradient(self) -> Floats:
        """A vector that is zero at the optimum only."""

    @property
    @abstractmethod
    def gradient_rounding(self) -> float:
        """How far the gradient may be off, as a length."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """The part of the certificate beside the square of the gradient."""

    @property
    def rounding(self) -> float:
        """How far F(w) may be above the computed value."""
        return self.base.rounding + PRECISION * self.penalty

    @property
    def gradient_gap(self) -> float:
        """The part of the certificate that is the square of the gradient."""
        length = float(np.linalg.norm(self.gradient)) + self.gradient_rounding
        return 0.5 * length**2 / self.objective.ridge

    @cached_property
    def gap(self) -> float:
        """Certificate: F(u) − F* is not larger."""
        return self.gradient_gap + self.slack + self.base.rounding
