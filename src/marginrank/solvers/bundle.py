"""Bundle methods for the hinge loss: BMRM (paper 4) and its optimised variant OCAS.

The loss is bounded from below by planes L(w) ≥ b_k + g_kᵀw, each touching it at some w. The next w
minimises ½ρ‖w‖² + max_k (b_k + g_kᵀw), through the dual of this small problem:

    max_β  Σ β_k b_k − ‖Σ β_k g_k‖² / 2ρ,   β ≥ 0, Σ β_k = 1,   w = −Σ β_k g_k / ρ.

Its value is a lower bound on F*, and any β in the simplex gives one, so that the certificate does
not depend on how well the small problem was solved. DAQP solves it: a dual active-set method for
small dense problems, which returns exact zeros for planes that are not used (an interior-point
method would not), is accurate to rounding on nearly singular Gram matrices and needs microseconds.

BMRM touches the loss at each new w. OCAS (Franc and Sonnenburg, 2009; named as future work by paper
4) searches the line from the best point so far to the new w exactly, in score space, and touches
the loss near the best point.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from marginrank._optional import require
from marginrank.objective import Objective, Point
from marginrank.solvers._progress import Progress, meets, start
from marginrank.solvers.cutting_search import cutting_search
from marginrank.solvers.result import Callback, SolverResult, StopReason

Floats = NDArray[np.float64]

IDLE = 30  # rounds after which a plane that was not used is dropped
USED = 1e-12  # weight of a plane above rounding
TOUCH = 0.1  # OCAS: where between the best point and the new w the loss is touched
EQUALITY = 5  # how DAQP marks a constraint that holds with equality


def _solve_bundle(
    objective: Objective,
    *,
    line_search: bool,
    w0: Floats | None = None,
    scores0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a hinge loss by cutting planes; stops on the certificate."""
    progress = Progress(objective, callback)
    w = np.zeros(objective.n_features) if w0 is None else w0
    best = touched = start(objective, w, scores0)
    bundle = Bundle(objective.n_features, objective.ridge)
    stop = StopReason.MAX_ITER
    try:
        for _ in range(max_iter):
            bundle.add(touched)
            w = bundle.minimise()
            if meets(tol, best.value, best.value - bundle.lower):
                stop = StopReason.CERTIFIED
                break
            if line_search:
                best, touched = _ocas_step(best, w)
            else:
                touched = objective.at(w)
                best = min(best, touched, key=lambda point: point.value)
            gap = best.value - bundle.lower
            progress.record(best, gap, bundle.size, gap=gap, gradient=touched.gradient)
    except KeyboardInterrupt:
        stop = StopReason.INTERRUPTED
    gap = best.value - bundle.lower
    return progress.result(best, gap, stop, gap=gap)


bmrm = partial(_solve_bundle, line_search=False)
ocas = partial(_solve_bundle, line_search=True)


def _ocas_step(best: Point, w: Floats) -> tuple[Point, Point]:
    """Return the best point on the line to w, and the point at which to touch the loss."""
    direction = w - best.w
    direction_scores = best.objective.scores(w) - best.scores
    found = cutting_search(best, direction, direction_scores)
    touched = found.move(TOUCH, w - found.w, best.scores + direction_scores - found.scores)
    return found, touched


class Bundle:
    """The planes below the loss, and the small problem over them.

    Attributes
    ----------
    lower : float
        The best certified lower bound on F* so far.
    """

    def __init__(self, n_features: int, ridge: float) -> None:
        self._quadratic_programme = require("daqp", "bundle").solve
        self._ridge = ridge
        # The loss is not negative: the first plane is zero.
        self._gradients = np.zeros((1, n_features))
        self._intercepts = np.zeros(1)
        self._gram = np.zeros((1, 1))
        self._idle = np.zeros(1, dtype=np.int64)
        self.lower = 0.0

    @property
    def size(self) -> int:
        """Number of planes."""
        return self._intercepts.size

    def add(self, point: Point) -> None:
        """Add the plane that touches the loss at a point."""
        gradient = point.gradient - self._ridge * point.w
        self.add_plane(gradient, point.loss_value - float(gradient @ point.w))

    def add_plane(self, gradient: Floats, intercept: float) -> None:
        """Add the plane intercept + gradientᵀ w, which must be below the loss."""
        products = self._gradients @ gradient
        self._gram = np.block(
            [[self._gram, products[:, None]], [products, float(gradient @ gradient)]]
        )
        self._gradients = np.vstack([self._gradients, gradient])
        self._intercepts = np.append(self._intercepts, intercept)
        self._idle = np.append(self._idle, 0)

    def minimise(self) -> Floats:
        """Return the w at which the regulariser plus the highest plane is smallest.

        Sets: lower
        """
        beta = self._weights()
        value = beta @ self._intercepts - 0.5 * (beta @ self._gram @ beta) / self._ridge
        self.lower = max(self.lower, float(value))
        w: Floats = -(beta @ self._gradients) / self._ridge
        self._idle = np.where(beta > USED, 0, self._idle + 1)
        self._drop(self._idle >= IDLE)
        return w

    def _weights(self) -> Floats:
        """Solve the dual problem over the simplex."""
        k = self.size
        scale = max(float(np.trace(self._gram)) / self._ridge / k, 1e-300)
        # More planes than features have a singular Gram matrix, which the solver does not take.
        quadratic = self._gram / (self._ridge * scale) + 1e-12 * np.eye(k)
        beta, _, flag, _ = self._quadratic_programme(
            quadratic,
            -self._intercepts / scale,
            np.ones((1, k)),
            np.ones(k + 1),
            np.append(np.zeros(k), 1.0),
            np.append(np.zeros(k), EQUALITY).astype(np.int32),
        )
        beta = np.maximum(beta, 0.0)
        if flag < 1 or not beta.sum() > 0:
            return np.append(np.zeros(k - 1), 1.0)
        weights: Floats = beta / beta.sum()
        return weights

    def _drop(self, idle: NDArray[np.bool_]) -> None:
        if idle.any():
            keep = ~idle
            self._gradients = self._gradients[keep]
            self._intercepts = self._intercepts[keep]
            self._gram = self._gram[np.ix_(keep, keep)]
            self._idle = self._idle[keep]
