"""Truncated Newton with a sampled preconditioner and progressive sampling: the default solver.

Each iteration solves ∇²F(w) d = −∇F(w) and searches exactly along d in score space. Three things
keep the number of sweeps over X small:

* The system is solved by conjugate gradients preconditioned with the Hessian of a small sample of
  the documents, which has nearly the same shape. Where the sample would be most of the data, the
  Hessian itself is factorised; where there are too many features for either, its diagonal is used.
* X d comes out of the conjugate gradients, so that the line search does not touch X.
* The problem is first solved on growing nested samples, each starting from the last one's solution,
  so that the full data sees the last few steps only.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank.objective import Objective, Point
from marginrank.solvers._progress import Progress, is_certified, start
from marginrank.solvers.line_search import line_search
from marginrank.solvers.preconditioner import Preconditioner, precondition
from marginrank.solvers.result import Callback, SolverResult, StopReason

Floats = NDArray[np.float64]

GROWTH = 8  # from one sample to the next
SMALLEST_SAMPLE = 2048  # documents
SAMPLE_TOL = 1e-3  # a sample's optimum is off by more than this anyway
MAX_CG = 250
STALE_CG = 10  # more conjugate gradient steps than this ask for a new preconditioner
CG_TOL = 0.1  # see _conjugate_gradient
RESIDUAL_TOL = 0.03


class Outcome(NamedTuple):
    """Where the iteration on one objective ended."""

    point: Point
    estimate: float
    stop: StopReason


class Direction(NamedTuple):
    """An approximate Newton direction."""

    vector: Floats
    scores: Floats
    decrement: float
    n_products: int


def newton(
    objective: Objective,
    *,
    w0: Floats | None = None,
    scores0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimise an objective with a smooth loss.

    Stops on the certificate ½‖∇F‖² ≤ tol · F*, or on an estimate of F − F*: the Newton decrement,
    half of gᵀH⁻¹g, of a step that was then taken and gained about what the decrement promised. As H
    changes along the way, this must happen twice in a row, unless there are so many more documents
    than features that H hardly changes.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    w0, scores0 : ndarray, optional
        Where to start, and X w0 if known; zero by default.
    tol : float
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int
        Limit on the iterations on the full data, and on each sample.
    seed : int
        For the samples.
    callback : callable, optional
        Called with each :class:`~marginrank.solvers.result.Iteration`.
    """
    progress = Progress(objective, callback)
    iteration = NewtonIteration(max_iter, seed + 1, progress)
    w = np.zeros(objective.n_features) if w0 is None else w0
    try:
        if w0 is None:
            for sample in growing_samples(objective, seed):
                w = iteration.run(start(sample, w), max(tol, SAMPLE_TOL), careful=False).point.w
        outcome = iteration.run(start(objective, w, scores0), tol)
    except KeyboardInterrupt:
        point = iteration.point
        if point is None or point.objective is not objective:
            point = objective.at(w if point is None else point.w)
        outcome = Outcome(point, np.inf, StopReason.INTERRUPTED)
    return progress.result(*outcome)


def growing_samples(objective: Objective, seed: int) -> Iterator[Objective]:
    """Yield nested samples, growing, the full data excluded."""
    smallest = max(SMALLEST_SAMPLE, 8 * objective.n_features)
    fractions = []
    fraction = 1.0 / GROWTH
    while fraction * objective.n_active_documents >= smallest:
        fractions.append(fraction)
        fraction /= GROWTH
    for fraction in reversed(fractions):
        yield objective.sample(fraction, seed)


class NewtonIteration:
    """Newton's method on one objective after another, handing the preconditioner on.

    Attributes
    ----------
    point : Point or None
        The best point so far.
    """

    def __init__(self, max_iter: int, seed: int, progress: Progress) -> None:
        self.point: Point | None = None
        self._max_iter = max_iter
        self._seed = seed
        self._progress = progress
        self._preconditioner: Preconditioner | None = None

    def run(self, point: Point, tol: float, *, careful: bool = True) -> Outcome:
        """Minimise the objective of `point` from there; `careful` confirms estimates."""
        self.point = point
        estimate = np.inf
        confirmations = 0
        if is_certified(point, tol):
            return Outcome(point, point.gap, StopReason.CERTIFIED)
        for _ in range(self._max_iter):
            preconditioner = self._refresh(point)
            direction = _solve(point, preconditioner, tol)
            step = line_search(point, direction.vector, direction.scores)
            if step is None:
                estimate = preconditioner.safety * direction.decrement
                tried = preconditioner.exact or direction.n_products > 0
                met = tried and estimate <= tol * point.value
                stop = StopReason.ESTIMATED if met else StopReason.PRECISION
                return Outcome(point, estimate, stop)
            gained = point.value - step.value
            self.point = point = step
            estimate = preconditioner.safety * max(
                direction.decrement, gained - direction.decrement
            )
            self._progress.record(point, estimate, direction.n_products)
            if is_certified(point, tol):
                return Outcome(point, estimate, StopReason.CERTIFIED)
            confirmations = confirmations + 1 if estimate <= tol * point.value else 0
            # A sample's Hessian with which conjugate gradients end at once stands for H itself.
            sampled = preconditioner.faithful and not preconditioner.exact
            trusted = sampled and direction.n_products <= STALE_CG
            if confirmations >= (2 if careful and not trusted else 1):
                return Outcome(point, estimate, StopReason.ESTIMATED)
            if direction.n_products > STALE_CG:
                self._preconditioner = None
        return Outcome(point, estimate, StopReason.MAX_ITER)

    def _refresh(self, point: Point) -> Preconditioner:
        if self._preconditioner is None or self._preconditioner.exact:
            self._preconditioner = precondition(point, self._seed)
        return self._preconditioner


def _solve(point: Point, preconditioner: Preconditioner, tol: float) -> Direction:
    """Solve the Newton system, exactly if the preconditioner is the Hessian."""
    if not preconditioner.exact:
        return _conjugate_gradient(point, preconditioner, tol)
    vector = -preconditioner.solve(point.gradient)
    decrement = -0.5 * float(point.gradient @ vector)
    return Direction(vector, point.objective.scores(vector), decrement, 0)


def _conjugate_gradient(point: Point, preconditioner: Preconditioner, tol: float) -> Direction:
    """Solve ∇²F d = −∇F by preconditioned conjugate gradients, and X d along with it.

    The k-th step raises the decrement by some gain. As gains to come are about k times the last one
    (Nash and Sofer, 1990), it ends when that is a tenth of the decrement, or small against tol · F.
    Where P may be far from H, that alone says little: the residual must have become small as well.
    """
    residual = -point.gradient
    z = preconditioner.solve(residual)
    rho = float(residual @ z)
    small = np.inf if preconditioner.faithful else RESIDUAL_TOL**2 * rho
    d, d_scores = np.zeros_like(residual), np.zeros_like(point.scores)
    p = z
    decrement = 0.0
    n_products = 0
    while n_products < MAX_CG and rho > 0:
        hp, p_scores = point.hess_vec(p)
        n_products += 1
        alpha = rho / float(p @ hp)
        d += alpha * p
        d_scores += alpha * p_scores
        residual -= alpha * hp
        gain = 0.5 * alpha * rho
        decrement += gain
        z = preconditioner.solve(residual)
        rho, rho_before = float(residual @ z), rho
        enough = max(CG_TOL * decrement, 0.1 * tol * point.value)
        if n_products * gain <= enough and rho <= small:
            break
        p = z + (rho / rho_before) * p
    return Direction(d, d_scores, decrement, n_products)
