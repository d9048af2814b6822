"""Bundle methods for the hinge loss: BMRM (paper 4) and its optimised variant OCAS.

The loss is bounded from below by planes L(w) ≥ b_k + g_kᵀw, each touching it at some w. The next w
minimises ½ρ‖w‖² + max_k (b_k + g_kᵀw), through the dual of this small problem:

    max_β  Σ β_k b_k − ‖Σ β_k g_k‖² / 2ρ,   β ≥ 0, Σ β_k = 1,   w = −Σ β_k g_k / ρ.

Its value is a lower bound on F*, and any β in the simplex gives one, so that the certificate does
not depend on how well the small problem was solved. It is taken from the sum Σ β_k g_k itself, and
what rounding may have added to it is taken off. The small problem is solved by
:func:`~marginrank.solvers.hinge.lowest_point.lowest_point`.

BMRM touches the loss at each new w. OCAS (Franc and Sonnenburg, 2009; named as future work by paper
4) searches the line from the best point so far to the new w exactly, in score space, and touches
the loss near the best point.
"""

from typing import Any

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import PRECISION, Objective, Point
from marginrank.objective.protocols import Scores, meets
from marginrank.solvers.hinge.cutting_search import cutting_search
from marginrank.solvers.hinge.lowest_point import lowest_point
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, SolverResult

IDLE = 30  # rounds after which a plane that was not used is dropped
STUCK = 100  # rounds in which neither bound on F* moved: the gap has come down to rounding
MOVED = 1e-11  # change of a bound, relative to itself: a long way off, the gap may fall by less
SPARE_PLANES = 60  # beside one a feature
TOUCH = 0.1  # OCAS: where between the best point and the new w the loss is touched
OUTSIDE = 4.0 * PRECISION  # part of a gradient that rounding may leave outside a span


def _solve_bundle(
    objective: Objective,
    *,
    line_search: bool,
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a hinge loss by cutting planes; stops on the certificate."""
    progress = Progress(objective, callback)
    w = np.zeros(objective.n_features) if w0 is None else w0
    best = touched = start(objective, w, scores0)
    bundle = Bundle(objective.feature_magnitudes, objective.ridge)
    stop = StopReason.MAX_ITER
    bounds: list[tuple[float, float]] = []
    try:
        for _ in range(max_iter):
            bundle.add(touched)
            w = bundle.minimise()
            bounds.append((bundle.lower, best.value))
            if meets(tol, best.value, bundle.gap(best)):
                stop = StopReason.CERTIFIED
                break
            if _is_stuck(bounds):
                stop = StopReason.PRECISION
                break
            if line_search:
                best, touched = _ocas_step(best, w)
            else:
                touched = objective.at(w)
                best = min(best, touched, key=lambda point: point.value)
            gap = bundle.gap(best)
            progress.record(best, gap, bundle.size, gap=gap, gradient=touched.gradient)
    except KeyboardInterrupt:
        stop = StopReason.INTERRUPTED
    gap = bundle.gap(best)
    return progress.result(best, gap, stop, gap=gap)


def _is_stuck(bounds: list[tuple[float, float]]) -> bool:
    if len(bounds) <= STUCK:
        return False
    lower, upper = bounds[-1]
    last_lower, last_upper = bounds[-1 - STUCK]
    return lower <= (1.0 + MOVED) * last_lower and upper >= (1.0 - MOVED) * last_upper


def bmrm(objective: Objective, **options: Any) -> SolverResult:
    """Minimise an objective with a hinge loss by cutting planes at each new w (paper 4)."""
    return _solve_bundle(objective, line_search=False, **options)


def ocas(objective: Objective, **options: Any) -> SolverResult:
    """Minimise an objective with a hinge loss by cutting planes near the best point so far."""
    return _solve_bundle(objective, line_search=True, **options)


def _ocas_step(best: Point, w: Floats) -> tuple[Point, Point]:
    """Return the best point on the line to w, and the point at which to touch the loss."""
    direction = w - best.w
    # Not a difference of scores: a long step would blow up the rounding of that.
    objective = best.objective
    direction_scores = objective.scores(direction)
    found = cutting_search(best, direction, direction_scores)
    there = objective.space.add(best.scores, 1.0, direction_scores)
    rest = objective.space.add(there, -1.0, found.scores)
    touched = found.move(TOUCH, w - found.w, rest)
    return found, touched


class Bundle:
    """The planes below the loss, and the small problem over them.

    Attributes
    ----------
    lower : float
        The best certified lower bound on F* so far.
    """

    def __init__(self, magnitudes: Floats, ridge: float) -> None:
        self._ridge = ridge
        self._magnitudes = magnitudes  # of the features
        # The loss is not negative: the first plane is zero.
        self._gradients = np.zeros((1, magnitudes.size))
        self._intercepts = np.zeros(1)
        self._slope_rounding = np.zeros(1)
        self._rounding = np.zeros(1)
        # Gradients as combinations of orthonormal rows: short where there are many features.
        self._basis = np.zeros((0, magnitudes.size))
        self._coordinates = np.zeros((1, 0))
        self._idle = np.zeros(1, dtype=np.int64)
        self._beta = np.ones(1)
        self.lower = 0.0

    @property
    def size(self) -> int:
        """Number of planes."""
        return self._intercepts.size

    def gap(self, point: Point) -> float:
        """Return a certified bound on F − F* at a point."""
        return max(point.value - self.lower, 0.0) + point.rounding

    def add(self, point: Point) -> None:
        """Add the plane that touches the loss at a point."""
        gradient = point.gradient - self._ridge * point.w
        intercept = point.loss_value - float(gradient @ point.w)
        # The point's scores are off, and so is the product that was taken off.
        rounding = point.sum_rounding + 2.0 * point.score_rounding
        self.add_plane(gradient, intercept, point.slope_rounding, rounding)

    def add_plane(
        self,
        gradient: Floats,
        intercept: float,
        slope_rounding: float = 0.0,
        rounding: float = 0.0,
    ) -> None:
        """Add the plane intercept + gradientᵀ w, which must be below the loss up to rounding."""
        self._slope_rounding = np.append(self._slope_rounding, slope_rounding)
        self._rounding = np.append(self._rounding, rounding)
        self._extend_basis(gradient)
        self._gradients = np.vstack([self._gradients, gradient])
        self._intercepts = np.append(self._intercepts, intercept)
        self._idle = np.append(self._idle, 0)
        self._beta = np.append(self._beta, 0.0)

    def _extend_basis(self, gradient: Floats) -> None:
        """Add the coordinates of a gradient, and its direction if it is a new one."""
        coordinates = np.zeros(len(self._basis))
        rest = gradient
        for _ in range(2):  # once leaves too much rounding
            inside = self._basis @ rest
            coordinates += inside
            rest = rest - inside @ self._basis
        length = float(np.linalg.norm(rest))
        if length > OUTSIDE * float(np.linalg.norm(gradient)):
            self._basis = np.vstack([self._basis, rest / length])
            self._coordinates = np.pad(self._coordinates, ((0, 0), (0, 1)))
            coordinates = np.append(coordinates, length)
        self._coordinates = np.vstack([self._coordinates, coordinates])

    def minimise(self) -> Floats:
        """Return the w at which the regulariser plus the highest plane is smallest.

        Sets: lower
        """
        root = np.sqrt(self._ridge)
        slopes = self._coordinates / root
        v, beta = lowest_point(slopes, self._intercepts, self._beta)
        w: Floats = v @ self._basis / root
        self._beta = beta
        self.lower = max(self.lower, self._bound(beta))
        self._idle = np.where(beta > 0.0, 0, self._idle + 1)
        self._drop((self._idle >= IDLE) | self._least_used(beta))
        return w

    def _least_used(self, beta: Floats) -> Booleans:
        """Tell which planes are too many: a solution needs one more than there are features."""
        least = np.zeros(self.size, dtype=bool)
        least[np.argsort(-beta, kind="stable")[self._magnitudes.size + SPARE_PLANES :]] = True
        return least

    def _bound(self, beta: Floats) -> float:
        """Return the dual value at β less what rounding may have added to it."""
        w = -(beta @ self._gradients) / self._ridge
        value = float(beta @ self._intercepts) - 0.5 * self._ridge * float(w @ w)
        flat = float(beta @ (self._rounding + PRECISION * np.abs(self._intercepts)))
        # By this much the sum of the gradients may be off, and then the minimum of the planes.
        slope = float(beta @ self._slope_rounding) * self._magnitudes
        return value - flat - float(slope @ np.abs(w)) - 0.5 * float(slope @ slope) / self._ridge

    def _drop(self, idle: Booleans) -> None:
        if idle.any():
            keep = ~idle
            self._gradients = self._gradients[keep]
            self._intercepts = self._intercepts[keep]
            self._slope_rounding = self._slope_rounding[keep]
            self._rounding = self._rounding[keep]
            self._coordinates = self._coordinates[keep]
            self._idle = self._idle[keep]
            self._beta = self._beta[keep]
            if len(self._basis) > 2 * self.size:
                basis, coordinates = np.linalg.qr(self._gradients.T)
                self._basis, self._coordinates = basis.T, coordinates.T
