"""Cutting-plane (bundle) methods for the hinge loss: BMRM and its optimized variant OCAS.

F(w) = ½ρ‖w‖² + L(w) with minimum F*. The loss L is bounded below by cutting planes L(w) ≥ b_k +
g_kᵀw, each of which touches L at one w. The next w minimizes ½ρ‖w‖² + max_k (b_k + g_kᵀw), through
the dual of this small problem:

    max_β  Σ β_k b_k − ‖Σ β_k g_k‖² / 2ρ,   β ≥ 0, Σ β_k = 1,   w = −Σ β_k g_k / ρ.

Any β in the simplex gives a lower bound on F*, so this bound does not depend on how well the small
problem was solved (by :mod:`marginrank.solvers.hinge.lowest_point`).

BMRM, as in Airola, Pahikkala and Salakoski (2011), adds the plane that touches the loss at the new
w. OCAS (Franc and Sonnenburg, 2009) searches the line from the best w to the new w exactly, on
scores alone, and adds a plane near the best w. Both stop when the bound proves that `tol` is
reached. Their options are the parameters of :func:`~marginrank.solvers.hinge.smoothing.smoothing`.
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

IDLE = 30  # iterations after which an unused plane is dropped
STUCK = 100  # iterations in which neither bound on F* changes: then the rest of the gap is rounding
MOVED = 1e-11  # smallest relative change of a bound that counts; the gap may fall this slowly
SPARE_PLANES = 60  # planes kept in addition to one per feature
TOUCH = 0.1  # OCAS: share of the way from the best point to w at which a plane is added
OUTSIDE = 4.0 * PRECISION  # share of a gradient outside of the basis that may be rounding


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
    progress = Progress(objective, callback)
    w = np.zeros(objective.n_features) if w0 is None else w0
    best = touched = start(objective, w, scores0)
    bundle = Bundle(objective.feature_magnitudes, objective.ridge)
    stop = StopReason.MAX_ITER
    bounds: list[tuple[float, float]] = []
    try:
        for _ in range(max_iter):
            bundle.add(touched)
            w = bundle.minimize()
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
    """Minimize an objective with a hinge loss by the cutting-plane method BMRM.

    The parameters are as in :func:`~marginrank.solvers.hinge.smoothing.smoothing`.
    """
    return _solve_bundle(objective, line_search=False, **options)


def ocas(objective: Objective, **options: Any) -> SolverResult:
    """Minimize an objective with a hinge loss by OCAS: cutting planes and exact line searches.

    The parameters are as in :func:`~marginrank.solvers.hinge.smoothing.smoothing`.
    """
    return _solve_bundle(objective, line_search=True, **options)


def _ocas_step(best: Point, w: Floats) -> tuple[Point, Point]:
    # Return the best point on the line from `best` to w, and the point at which to add a plane.
    direction = w - best.w
    # Compute scores by a sweep: a long step would amplify the rounding of a difference of scores.
    objective = best.objective
    direction_scores = objective.scores(direction)
    found = cutting_search(best, direction, direction_scores)
    there = objective.space.add(best.scores, 1.0, direction_scores)
    rest = objective.space.add(there, -1.0, found.scores)
    touched = found.move(TOUCH, w - found.w, rest)
    return found, touched


class Bundle:
    """Cutting planes below the loss, and the problem of minimizing the ridge plus their maximum.

    `lower` is the best proven lower bound on the minimum of the objective so far.
    """

    def __init__(self, magnitudes: Floats, ridge: float) -> None:
        self._ridge = ridge
        self._magnitudes = magnitudes  # largest absolute value of each feature
        # The first plane is zero because the loss is not negative.
        self._gradients = np.zeros((1, magnitudes.size))
        self._intercepts = np.zeros(1)
        self._slope_rounding = np.zeros(1)
        self._rounding = np.zeros(1)
        # Gradients in coordinates of an orthonormal basis, which are few if features are many.
        self._basis = np.zeros((0, magnitudes.size))
        self._coordinates = np.zeros((1, 0))
        self._idle = np.zeros(1, dtype=np.int64)
        self._beta = np.ones(1)
        self.lower = 0.0

    @property
    def size(self) -> int:
        return self._intercepts.size

    def gap(self, point: Point) -> float:
        """Return a proven upper bound on F(w) − min F; `point` is F evaluated at w."""
        return max(point.value - self.lower, 0.0) + point.rounding

    def add(self, point: Point) -> None:
        """Add the cutting plane that touches the loss at the weights of `point`."""
        gradient = point.gradient - self._ridge * point.w
        intercept = point.loss_value - float(gradient @ point.w)
        # Errors of the scores enter twice: in the value, and in the product that is subtracted.
        rounding = point.sum_rounding + 2.0 * point.score_rounding
        self.add_plane(gradient, intercept, point.slope_rounding, rounding)

    def add_plane(
        self, gradient: Floats, intercept: float, slope_rounding: float = 0.0, rounding: float = 0.0
    ) -> None:
        """Add a cutting plane, intercept + gradientᵀw, below the loss except for rounding."""
        self._slope_rounding = np.append(self._slope_rounding, slope_rounding)
        self._rounding = np.append(self._rounding, rounding)
        self._extend_basis(gradient)
        self._gradients = np.vstack([self._gradients, gradient])
        self._intercepts = np.append(self._intercepts, intercept)
        self._idle = np.append(self._idle, 0)
        self._beta = np.append(self._beta, 0.0)

    def _extend_basis(self, gradient: Floats) -> None:
        coordinates = np.zeros(len(self._basis))
        rest = gradient
        for _ in range(2):  # one Gram-Schmidt pass leaves too much rounding
            inside = self._basis @ rest
            coordinates += inside
            rest = rest - inside @ self._basis
        length = float(np.linalg.norm(rest))
        if length > OUTSIDE * float(np.linalg.norm(gradient)):
            self._basis = np.vstack([self._basis, rest / length])
            self._coordinates = np.pad(self._coordinates, ((0, 0), (0, 1)))
            coordinates = np.append(coordinates, length)
        self._coordinates = np.vstack([self._coordinates, coordinates])

    def minimize(self) -> Floats:
        """Return the w that minimizes the ridge plus the maximum of all cutting planes.

        Also updates `lower`, the lower bound on the minimum of the objective.
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
        # A solution needs at most n_features + 1 planes.
        least = np.zeros(self.size, dtype=bool)
        least[np.argsort(-beta, kind="stable")[self._magnitudes.size + SPARE_PLANES :]] = True
        return least

    def _bound(self, beta: Floats) -> float:
        # The dual value at β minus a bound on its rounding error.
        w = -(beta @ self._gradients) / self._ridge
        value = float(beta @ self._intercepts) - 0.5 * self._ridge * float(w @ w)
        flat = float(beta @ (self._rounding + PRECISION * np.abs(self._intercepts)))
        # Bound on the error of Σ β_k g_k, and on the resulting error of the minimum of the planes.
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
