"""The default solver: truncated Newton with a sampled preconditioner and progressive sampling.

Each iteration solves ∇²F(w) d = −∇F(w) and searches exactly along d, on scores alone. Four things
keep the number of passes over the feature matrix X small:

* Conjugate gradients are preconditioned with the Hessian of a small sample of the documents. If the
  sample would be most of the data, the Hessian itself is factorized; with fewer documents than
  features, a linear system with one unknown per document; with too many of both, the diagonal.
* The scores X d come out of the conjugate gradients, so the line search does not read X.
* The problem is first solved on growing nested samples, each warm-started from the last solution,
  so the full data sees only the last few steps.
* If the Hessian changes so much that steps gain little, a sequence of problems with a decreasing
  ridge leads to the optimum (ridge continuation).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores, is_certified
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, Curvature, SolverResult
from marginrank.solvers.smooth.estimates import (
    bound_by_parts,
    decrement,
    hidden_by_rounding,
    rounding_hides,
)
from marginrank.solvers.smooth.line_search import line_search
from marginrank.solvers.smooth.preconditioner import (
    PartsOfSample,
    Preconditioner,
    diagonal_at,
    hard_steps,
    is_mostly_curved,
    precondition,
    tells_shape,
)

GROWTH = 8  # ratio of the sizes of successive samples
SMALLEST_SAMPLE = 2048  # documents; below, a solve costs less than the overhead of another sample
SAMPLE_TOL = 1e-3  # the optimum of a sample differs more than this from the optimum of the data
# After 200 steps ridge continuation helps more than further steps. It is tried once; after that
# only further steps remain.
MAX_CG = 200
MAX_CG_EASED = 2000
MAX_REFINEMENTS = 10  # conjugate gradient steps that repair the rounding of a direct solution
STALE_CG = 10  # with more conjugate gradient steps than this, a new preconditioner pays off
CG_TOL = 0.1  # share of the decrement that a direction may miss
BOUND_TOL = 0.01  # the same if that share is only bounded: the bound is part of the estimate
SAFETY = 2.0  # factor on the Newton decrement when it estimates F − F*
POOR = 0.25  # a step that gains less than this share of its prediction is poor: the Hessian changes
LAST_STEP = 2.0  # factor on the products before a preconditioner is made for the last step
PATIENCE = 2  # poor steps in a row before ridge continuation
EASE = 10.0  # ratio of successive ridges in ridge continuation
EASE_TOL = 1e-3  # tol for larger ridges, whose solutions are only starting points


class NewtonOutcome(NamedTuple):
    """The final weights of Newton's method, an estimate of F − min F, and why it stopped."""

    point: Point
    estimate: float
    stop: StopReason


class _Curved(Protocol):
    """Interface of an objective evaluated at one w, with Hessian-vector products."""

    @property
    def objective(self) -> Objective: ...

    @property
    def value(self) -> float: ...

    def hess_vec(self, v: Floats) -> tuple[Floats, Scores]: ...


class Direction(NamedTuple):
    """An approximate Newton direction d, its scores Xd, and the decrease that it predicts.

    `decrement` is the decrease of the quadratic model along d, `bound` limits the decrease along
    any direction.
    """

    vector: Floats
    scores: Scores
    decrement: float
    bound: float
    n_products: int


def newton(
    objective: Objective,
    *,
    w0: Floats | None = None,
    scores0: Scores | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
    curvature: Curvature | None = None,
) -> SolverResult:
    """Minimize an objective with a smooth loss by a truncated Newton method; the default solver.

    Stops when ½‖∇F‖² / ρ, a proven bound on F − min F with the weight ρ of the ridge, shows that
    `tol` is reached. Or stops on an estimate of F − min F: the Newton decrement ½ gᵀH⁻¹g, with
    gradient g and Hessian H, of a step that then gained about as much as it predicted.

    Parameters
    ----------
    objective : Objective
        The objective to minimize.
    w0 : ndarray, optional
        Initial weights; zero by default.
    scores0 : Scores, optional
        X w0, if known.
    tol : float
        Relative distance to the optimal objective, (F − min F) / min F.
    max_iter : int
        Largest number of iterations on the full data, and on each sample.
    seed : int
        Seed of the samples.
    callback : callable, optional
        Called with each :class:`~marginrank.models.fit_report.Iteration`.
    curvature : Curvature, optional
        A Hessian from the result of a similar problem, used as the first preconditioner.
    """
    progress = Progress(objective, callback)
    iteration = NewtonIteration(max_iter, seed + 1, progress, may_ease=True)
    w = np.zeros(objective.n_features) if w0 is None else w0
    try:
        if w0 is None:
            for sample in growing_samples(objective, seed):
                w = iteration.run(start(sample, w), max(tol, SAMPLE_TOL), careful=False).point.w
                iteration.curvature = None  # do not use the curvature of the sample
        iteration.curvature = curvature
        outcome = iteration.run(start(objective, w, scores0), tol)
    except KeyboardInterrupt:
        point = iteration.point
        if point is None or point.objective is not objective:
            point = objective.at(w if point is None else point.w)
        outcome = NewtonOutcome(point, np.inf, StopReason.INTERRUPTED)
    return replace(progress.result(*outcome), curvature=iteration.curvature)


def growing_samples(objective: Objective, seed: int) -> Iterator[Objective]:
    """Yield objectives on growing nested random samples, up to 1/8 of the data."""
    # A sample with fewer than 8 documents per feature has another optimum than the data.
    smallest = max(SMALLEST_SAMPLE, 8 * objective.n_features)
    fractions = []
    fraction = min(1.0 / GROWTH, objective.matrix.largest_sample)
    while fraction * objective.n_active_documents >= smallest:
        fractions.append(fraction)
        fraction /= GROWTH
    for fraction in reversed(fractions):
        yield objective.sample(fraction, seed)


class NewtonIteration:
    """Newton's method for a sequence of similar objectives, which reuses the preconditioner.

    `may_ease` allows ridge continuation: problems with a decreasing ridge. Callers whose initial
    weights solve an easier problem, such as a smoothed loss of larger width, do not need it.
    """

    def __init__(
        self, max_iter: int, seed: int, progress: Progress, *, may_ease: bool = False
    ) -> None:
        self.point: Point | None = None  # the best one so far
        self.curvature: Curvature | None = None  # curvature of the preconditioner
        self._max_iter = max_iter
        self._seed = seed
        self._progress = progress
        self._may_ease = may_ease
        self._is_hard = False  # conjugate gradients took many steps: a costlier preconditioner pays
        self._by_parts = False  # the Hessian of the whole sample has failed a check
        self._preconditioner: Preconditioner | None = None
        # The preconditioner was made at the current point, and no single document can spoil it.
        self._is_sound = False

    def run(self, point: Point, tol: float, *, careful: bool = True) -> NewtonOutcome:
        """Minimize an objective by Newton's method until (F − min F) / min F ≤ tol.

        `point` is the objective evaluated at the initial weights. With `careful`, an estimate of F
        − min F must be confirmed before the iteration stops on it.
        """
        self.point = point
        self._is_sound = False
        estimate = np.inf
        confirmations = poor = 0
        previous, patience = point.value, 1.0
        if is_certified(point, tol):
            return NewtonOutcome(point, point.gap, StopReason.CERTIFIED)
        for _ in range(self._max_iter):
            preconditioner = self._refresh(point, tol)
            most = MAX_CG if self._may_ease else MAX_CG_EASED
            enough = hard_steps(point.objective)
            if preconditioner.inexact and not self._is_hard:
                # With a better preconditioner, the other steps cost less.
                most = int(patience * enough) + 1
            direction = _solve(point, preconditioner, tol, most)
            patience = _patience(direction, previous, tol * point.value)
            previous = direction.decrement
            if direction.n_products > patience * enough and not self._is_hard:
                self._is_hard, self._preconditioner = True, None
            step = line_search(point, direction.vector, direction.scores)
            if step is None:
                outcome = self._confirmed(point, preconditioner, SAFETY * direction.bound, tol)
                if outcome is not None:
                    return outcome
                continue
            gained = point.value - step.value
            self.point = point = step
            self._is_sound = False
            # A step that gained more than predicted shows that the model misses as much again.
            estimate = SAFETY * max(direction.bound, gained - direction.decrement)
            self._progress.record(point, estimate, direction.n_products)
            if is_certified(point, tol):
                return NewtonOutcome(point, estimate, StopReason.CERTIFIED)
            # H changes along the way, so an estimate must hold twice in a row. Once is enough if H
            # hardly changes and the sampled Hessian agrees with it: few conjugate gradient steps.
            confirmations = confirmations + 1 if estimate <= tol * point.value else 0
            sampled = preconditioner.faithful and not (preconditioner.exact or self._by_parts)
            trusted = sampled and direction.n_products <= STALE_CG and _hardly_bends(point, tol)
            if not careful and confirmations:
                return _ended(point, preconditioner, estimate, tol)
            if confirmations >= (1 if trusted else 2):
                outcome = self._confirmed(point, preconditioner, estimate, tol)
                if outcome is not None:
                    return outcome
                confirmations = 0
            # A preconditioner is replaced only if the steps it saves cost more than building it.
            if direction.n_products > max(STALE_CG, preconditioner.cost):
                self._preconditioner = self.curvature = None
            cut_off = direction.n_products >= most
            poor = poor + 1 if cut_off or gained < POOR * direction.decrement else 0
            if poor == PATIENCE and self._may_ease:
                self._may_ease = False
                self.point = point = self._ease(point)
                self._is_sound = False
        return NewtonOutcome(point, estimate, StopReason.MAX_ITER)

    def _confirmed(
        self, point: Point, used: Preconditioner, estimate: float, tol: float
    ) -> NewtonOutcome | None:
        """Return the outcome at `point` if its estimate of F − F* survives a check, or None.

        The check predicts the decrease of F on parts of a sample that share no document, and fails
        if the prediction is too large. The reason for it:

        A sampled Hessian may be far too large in some direction: a document with huge values
        represents many documents, and the loss of its pairs may have become zero since the Hessian
        was made. Steps and gains are then too small by the same factor, which no other check
        detects. At most one of the parts holds such a document.

        Updates the preconditioner.
        """
        if used.faithful and not used.exact and not self._is_sound:
            allowed = tol * point.value
            left = SAFETY * bound_by_parts(point, used, self._seed, CG_TOL * allowed)
            if not left <= allowed or rounding_hides(point, allowed):
                self._by_parts = True
                self._preconditioner = self.curvature = None
                used = self._refresh(point, tol)
                left = SAFETY * decrement(point, used.direction(point))
            if not used.faithful or left > allowed:
                return None
            estimate = max(estimate, left)
        return _ended(point, used, estimate, tol)

    def _refresh(self, point: Point, tol: float) -> Preconditioner:
        # Updates the preconditioner, and whether it is sound.
        before = self._preconditioner
        if not _hardly_bends(point, tol):
            self.curvature = None
            if before is not None and before.faithful:
                before = None
        if before is None or before.exact:
            before = precondition(
                point,
                self._seed,
                is_hard=self._is_hard,
                by_parts=self._by_parts,
                curvature=self.curvature,
            )
            self.curvature = before.curvature or self.curvature
            self._is_sound = self._by_parts or not isinstance(before, PartsOfSample)
        self._preconditioner = before
        return before

    def _ease(self, point: Point) -> Point:
        """Solve problems with a decreasing ridge, each from the last solution (ridge continuation).

        Return `point`, or the last solution if its objective is lower. With few more documents than
        features, there may be a w at which almost no pair has a positive loss. A Newton step that
        is good for these pairs then makes the loss of other pairs positive, again and again. With a
        large ridge all pairs have a positive loss; as the ridge decreases, it becomes zero for few
        pairs at a time.
        """
        objective = point.objective
        eased = objective.at_zero()
        # With this ridge, a gradient step from w = 0 moves scores by about one margin.
        largest = objective.space.std(objective.scores(eased.gradient))
        n_steps = np.log(max(largest / objective.ridge, 1.0)) / np.log(EASE)
        for k in range(int(np.ceil(n_steps)), 0, -1):
            easier = objective.with_ridge(objective.ridge * EASE**k)
            progress = Progress(easier, None)
            iteration = NewtonIteration(self._max_iter, self._seed, progress)
            iteration._is_hard, iteration.curvature = self._is_hard, self.curvature
            eased = iteration.run(easier.at_point(eased), EASE_TOL, careful=False).point
            self._is_hard, self.curvature = iteration._is_hard, iteration.curvature
        eased = objective.at_point(eased)
        return eased if eased.value < point.value else point


def _hardly_bends(point: Point, tol: float) -> bool:
    # As w moves, the loss of some pairs becomes zero or positive. These are a small share if most
    # documents are in pairs with a loss and, for a tight tol, far outnumber the features.
    return is_mostly_curved(point) and (tol >= SAMPLE_TOL or tells_shape(point))


def _patience(direction: Direction, previous: float, allowed: float) -> float:
    # Factor on the products that a step may take before a better preconditioner is made: it would
    # serve one step only if the next step should be the last and proves that without it. Successive
    # decrements shrink by larger and larger factors.
    if not 0.0 < direction.decrement < previous:
        return 1.0
    is_last = direction.decrement * (direction.decrement / previous) ** 3 <= allowed
    is_proof = direction.bound <= SAFETY * direction.decrement
    return LAST_STEP if is_last and is_proof else 1.0


def _ended(
    point: Point, preconditioner: Preconditioner, estimate: float, tol: float
) -> NewtonOutcome:
    allowed = tol * point.value
    estimate += hidden_by_rounding(point, preconditioner, allowed)
    stop = StopReason.ESTIMATED if estimate <= allowed else StopReason.PRECISION
    return NewtonOutcome(point, estimate, stop)


def _solve(point: Point, preconditioner: Preconditioner, tol: float, max_steps: int) -> Direction:
    if preconditioner.exact:
        direct = _solve_directly(point, preconditioner, tol)
        if direct is not None:
            return direct
        preconditioner = diagonal_at(point)
    still = point.objective.space.zero()
    nowhere = Direction(np.zeros_like(point.w), still, 0.0, np.inf, 0)
    return conjugate_gradient(point, preconditioner, tol, nowhere, -point.gradient, max_steps)


def _solve_directly(point: Point, hessian: Preconditioner, tol: float) -> Direction | None:
    # Return None if the solution has lost too many digits.
    vector = hessian.direction(point)
    image, scores = point.hess_vec(vector)
    residual = -point.gradient - image
    decrement = 0.5 * (float(vector @ residual) - point.slope(vector, scores))
    # The residual r hides a decrease of ½ rᵀH⁻¹r, and H ≥ ρI.
    hidden = 0.5 * float(residual @ residual) / point.objective.ridge
    direct = Direction(vector, scores, decrement, decrement + hidden, 0)
    if hidden > _enough(point, tol, decrement, BOUND_TOL):
        direct = conjugate_gradient(point, hessian, tol, direct, residual, MAX_REFINEMENTS)
        hidden = direct.bound - direct.decrement
    # A decrement of the size of its rounding error may be negative.
    missing = max(hidden, -direct.decrement)
    solved = hidden >= 0.0 and missing <= _enough(point, tol, direct.decrement, CG_TOL)
    return direct._replace(bound=abs(direct.decrement) + hidden) if solved else None


def conjugate_gradient(
    point: _Curved,
    preconditioner: Preconditioner,
    tol: float,
    start: Direction,
    residual: Floats,
    max_steps: int,
) -> Direction:
    """Solve ∇²F d = −∇F by preconditioned conjugate gradients; return d and its scores Xd.

    Each step reduces the quadratic model of F by a gain. The iteration stops when the sum of all
    further gains is small. With a good preconditioner P the sum after k steps is about k times the
    last gain (Nash and Sofer, 1990), and about ½ rᵀP⁻¹r for the residual r. Otherwise Gauss-Radau
    quadrature bounds it, given a lower bound on the spectrum (Meurant and Tichý, 2013).
    """
    d, d_scores, decrement, _, n_products = start
    faithful, lowest = preconditioner.faithful, preconditioner.lowest
    z = preconditioner.solve(residual)
    rho = float(residual @ z)
    to_come = 0.5 * rho if preconditioner.exact else np.inf
    share = CG_TOL if faithful else BOUND_TOL
    radau = np.inf if faithful else 1.0 / lowest
    p = z
    gain = np.inf
    while rho > 0 and n_products < max_steps:
        if to_come <= _enough(point, tol, decrement, share):
            break
        # A step that gains more than tol is not the last one, so it needs no bound.
        is_last = decrement <= tol * point.value
        if preconditioner.inexact and not is_last and n_products * gain <= CG_TOL * decrement:
            break
        hp, p_scores = point.hess_vec(p)
        n_products += 1
        alpha = rho / float(p @ hp)
        d = d + alpha * p
        d_scores = point.objective.space.add(d_scores, alpha, p_scores)
        residual = residual - alpha * hp
        gain = 0.5 * alpha * rho
        decrement += gain
        z = preconditioner.solve(residual)
        rho, rho_before = float(residual @ z), rho
        beta = rho / rho_before
        p = z + beta * p
        if faithful:
            # If the sample lacks a document of huge values, the first steps gain almost nothing,
            # so the last gain alone would stop too early.
            to_come = max(n_products * gain, 0.5 * rho)
        else:
            # Only rounding makes alpha larger than radau; then use the plain bound on rᵀH⁻¹r.
            over = radau - alpha
            radau = over / (lowest * over + beta) if over > 0 else 1.0 / lowest
            to_come = 0.5 * radau * rho
    return Direction(d, d_scores, decrement, decrement + to_come, n_products)


def _enough(point: _Curved, tol: float, decrement: float, share: float) -> float:
    # The part of the decrement that a direction may miss.
    return max(share * decrement, 0.1 * tol * point.value)
