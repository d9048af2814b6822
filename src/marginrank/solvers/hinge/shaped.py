"""The hinge loss with weights in a cone, or with a penalty on groups.

Another method solves the smoothed problems of :mod:`marginrank.solvers.hinge.widths`.
"""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.derived_point import StructuredPoint
from marginrank.objective.objective import PRECISION, Objective
from marginrank.solvers.hinge.widths import Stage, Widths

FIRST_TOL = 1e-3  # for the first width, whose error is larger than this
FAILURES = 4  # smoothed problems in a row that were not solved by far, or did not help
STUCK = 0.99  # of the gap for the last width: more is no help


class SmoothOptimum(NamedTuple):
    """The optimum of a smoothed problem."""

    point: StructuredPoint
    estimate: float
    n_inner: int


class ShapedWidths(Widths[StructuredPoint]):
    """Smoothed problems in a cone, or with a penalty on groups."""

    def __init__(self, objective: Objective, tol: float) -> None:
        super().__init__(objective, self._wrap(objective.at_zero()), tol)
        self._allowed = FIRST_TOL * self.best.value
        self._before: tuple[float, Floats] | None = None
        self._failures = 0
        self._gap_before = np.inf

    @abstractmethod
    def _minimise(self, objective: Objective, tol: float) -> SmoothOptimum:
        """Minimise a smoothed objective, from the optimum of the last one."""

    def _inside(self, w: Floats) -> Floats:
        """Return the nearest weights that are allowed."""
        return w

    def _solve(self) -> Stage[StructuredPoint]:
        """Minimise for the current width.

        Sets: best, lower
        """
        tol = max(self._allowed / self.best.value, PRECISION)
        smooth, estimate, n_inner = self._minimise(self._smoothed(), tol)
        _, found = self._bound_at(smooth.base, smooth)
        self._extrapolate(smooth.w)
        band = max(self.best.value - found.if_solved, 0.0)
        estimate = band + found.rounding + estimate
        return Stage(self.best, smooth, found.plane, band, found.rounding, estimate, n_inner)

    def _extrapolate(self, w: Floats) -> None:
        """Evaluate the weights to which the minima of the last two widths lead for a width of zero.

        Sets: best
        """
        if self._before is not None:
            width, last = self._before
            step = self._width / (width - self._width)
            self._offer(self._objective.at(self._inside(w + step * (w - last))))
        self._before = self._width, w

    def _shrink(self, stage: Stage[StructuredPoint]) -> bool:
        """Choose the next width; return False also if smoothed problems are too hard."""
        unsolved = stage.estimate - stage.band - stage.rounding > self.gap
        is_stuck = self.gap > STUCK * self._gap_before
        self._failures = self._failures + 1 if unsolved or is_stuck else 0
        self._gap_before = self.gap
        return self._failures < FAILURES and super()._shrink(stage)
