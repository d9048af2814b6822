"""Truncated Newton with a sampled preconditioner and progressive sampling: the default solver.

Each iteration solves ∇²F(w) d = −∇F(w) and searches exactly along d in score space. Four things
keep the number of sweeps over X small:

* The system is solved by conjugate gradients preconditioned with the Hessian of a small sample of
  the documents, which has nearly the same shape. Where the sample would be most of the data, the
  Hessian itself is factorised; with fewer documents than features, a system in their space; where
  there are too many of both, the diagonal is used, levelled where few pairs have a curvature.
* X d comes out of the conjugate gradients, so that the line search does not touch X.
* The problem is first solved on growing nested samples, each starting from the last one's solution,
  so that the full data sees the last few steps only.
* Where the Hessian changes so much that steps gain little, easier problems of larger ridges lead to
  the optimum.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from marginrank._utils.types import Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.curvature import Curvature
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores, is_certified
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, SolverResult
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

GROWTH = 8  # from one sample to the next
SMALLEST_SAMPLE = 2048  # documents
SAMPLE_TOL = 1e-3  # a sample's optimum is off by more than this anyway
MAX_CG = 200  # where an easier problem may help more than further steps
MAX_CG_EASED = 2000  # where no easier problem is left to try
MAX_REFINEMENTS = 10  # conjugate gradient steps that may be left to do for a direct solution
STALE_CG = 10  # more conjugate gradient steps than this ask for a new preconditioner
CG_TOL = 0.1  # of the decrement, that may be missing
BOUND_TOL = 0.01  # the same, where it is a bound and no estimate
SAFETY = 2.0  # on the Newton decrement as an estimate of F − F*
POOR = 0.25  # of what a step promised: less says that the Hessian changes a lot on the way
PATIENCE = 2  # poor steps in a row
EASE = 10.0  # by which the ridge falls from one easier problem to the next
EASE_TOL = 1e-3  # for these


class NewtonOutcome(NamedTuple):
    """Where the iteration on one objective ended."""

    point: Point
    estimate: float
    stop: StopReason


class Curved(Protocol):
    """A point with a Hessian."""

    @property
    def objective(self) -> Objective:
        """Whose scores are added."""

    @property
    def value(self) -> float:
        """F(w)."""

    def hess_vec(self, v: Floats) -> tuple[Floats, Scores]:
        """Return ∇²F(w) v and Xv."""


class Direction(NamedTuple):
    """An approximate Newton direction.

    `decrement` is by how much the quadratic model falls along it, `bound` by how much it can fall.
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
    """Minimise an objective with a smooth loss.

    Stops on the certificate ½‖∇F‖² ≤ tol · F*, or on an estimate of F − F*: the Newton decrement,
    half of gᵀH⁻¹g, of a step that was then taken and gained about what the decrement promised. As H
    changes along the way, this must happen twice in a row, unless there are so many more documents
    than features that H hardly changes.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    w0 : ndarray, optional
        Where to start; zero by default.
    scores0 : Scores, optional
        X w0, if known.
    tol : float
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int
        Limit on the iterations on the full data, and on each sample.
    seed : int
        For the samples.
    callback : callable, optional
        Called with each :class:`~marginrank.models.fit_report.Iteration`.
    curvature : Curvature, optional
        That of the result of a problem that has nearly the same.
    """
    progress = Progress(objective, callback)
    iteration = NewtonIteration(max_iter, seed + 1, progress, may_ease=True)
    w = np.zeros(objective.n_features) if w0 is None else w0
    try:
        if w0 is None:
            for sample in growing_samples(objective, seed):
                w = iteration.run(start(sample, w), max(tol, SAMPLE_TOL), careful=False).point.w
                iteration.curvature = None  # which is that of the sample
        iteration.curvature = curvature
        outcome = iteration.run(start(objective, w, scores0), tol)
    except KeyboardInterrupt:
        point = iteration.point
        if point is None or point.objective is not objective:
            point = objective.at(w if point is None else point.w)
        outcome = NewtonOutcome(point, np.inf, StopReason.INTERRUPTED)
    return replace(progress.result(*outcome), curvature=iteration.curvature)


def growing_samples(objective: Objective, seed: int) -> Iterator[Objective]:
    """Yield nested samples, growing, the full data excluded."""
    smallest = max(SMALLEST_SAMPLE, 8 * objective.n_features)
    fractions = []
    fraction = min(1.0 / GROWTH, objective.largest_sample)
    while fraction * objective.n_active_documents >= smallest:
        fractions.append(fraction)
        fraction /= GROWTH
    for fraction in reversed(fractions):
        yield objective.sample(fraction, seed)


class NewtonIteration:
    """Newton's method on one objective after another, handing the preconditioner on.

    With `may_ease`, problems on which steps gain little are approached through easier ones. One who
    comes from an easier problem already, as a smoothed loss of a larger width, has no need of it.

    Attributes
    ----------
    point : Point or None
        The best point so far.
    curvature : Curvature or None
        The Hessian of the features that vary most, if a preconditioner has used it.
    """

    def __init__(
        self, max_iter: int, seed: int, progress: Progress, *, may_ease: bool = False
    ) -> None:
        self.point: Point | None = None
        self.curvature: Curvature | None = None
        self._max_iter = max_iter
        self._seed = seed
        self._progress = progress
        self._may_ease = may_ease
        self._is_hard = False  # for conjugate gradients
        self._by_parts = False  # the Hessian of the whole sample has failed a check
        self._preconditioner: Preconditioner | None = None
        # The preconditioner was made at the present point, and no single document can spoil it.
        self._is_sound = False

    def run(self, point: Point, tol: float, *, careful: bool = True) -> NewtonOutcome:
        """Minimise the objective of `point` from there; `careful` confirms estimates."""
        self.point = point
        self._is_sound = False
        estimate = np.inf
        confirmations = poor = 0
        if is_certified(point, tol):
            return NewtonOutcome(point, point.gap, StopReason.CERTIFIED)
        for _ in range(self._max_iter):
            preconditioner = self._refresh(point, tol)
            most = MAX_CG if self._may_ease else MAX_CG_EASED
            direction = _solve(point, preconditioner, tol, most)
            if direction.n_products > hard_steps(point.objective) and not self._is_hard:
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
            estimate = SAFETY * max(direction.bound, gained - direction.decrement)
            self._progress.record(point, estimate, direction.n_products)
            if is_certified(point, tol):
                return NewtonOutcome(point, estimate, StopReason.CERTIFIED)
            confirmations = confirmations + 1 if estimate <= tol * point.value else 0
            # A sample's Hessian with which conjugate gradients end at once stands for H itself.
            sampled = preconditioner.faithful and not (preconditioner.exact or self._by_parts)
            trusted = sampled and direction.n_products <= STALE_CG and _hardly_bends(point, tol)
            if not careful and confirmations:
                return _ended(point, preconditioner, estimate, tol)
            if confirmations >= (1 if trusted else 2):
                outcome = self._confirmed(point, preconditioner, estimate, tol)
                if outcome is not None:
                    return outcome
                confirmations = 0
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
        """Return the end at a point; None if Hessians of parts of a sample there see more to gain.

        A sampled Hessian may be far too large in some direction: it stands for many documents, so
        one with huge values counts for too much, and its pairs may have lost their loss since the
        Hessian was made. Steps and gains are then too small by as much, and nothing else shows it.
        At most one of the parts has such a document.

        Sets: the preconditioner
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
        """Return a preconditioner for a point: the last one, if it will do.

        Sets: the preconditioner, and whether it is sound
        """
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
        """Come from the easier problems of larger ridges, if that leads to a better point.

        With hardly more documents than features there may be a w for which next to no pair has a
        loss. Then a Newton step that looks good to the pairs with a loss runs into others, again
        and again. With a large ridge all pairs have one; as it falls, few pairs change at a time.
        """
        objective = point.objective
        eased = objective.at_zero()
        # The ridge with which a gradient step from w = 0 moves scores by about a margin.
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
    """Tell whether the Hessian near a point is about that at it, so that it can be kept.

    Pairs with a loss come and go. They are few where most documents are in such pairs, and, for
    more than a rough look, where these are many more than the features.
    """
    return is_mostly_curved(point) and (tol >= SAMPLE_TOL or tells_shape(point))


def _ended(
    point: Point, preconditioner: Preconditioner, estimate: float, tol: float
) -> NewtonOutcome:
    """Return the end at a point where steps have nothing to gain any more, or seem to."""
    allowed = tol * point.value
    estimate += hidden_by_rounding(point, preconditioner, allowed)
    stop = StopReason.ESTIMATED if estimate <= allowed else StopReason.PRECISION
    return NewtonOutcome(point, estimate, stop)


def _solve(point: Point, preconditioner: Preconditioner, tol: float, max_steps: int) -> Direction:
    """Solve the Newton system, directly if the preconditioner is the Hessian."""
    if preconditioner.exact:
        direct = _solve_directly(point, preconditioner, tol)
        if direct is not None:
            return direct
        preconditioner = diagonal_at(point)
    still = point.objective.space.zero()
    nowhere = Direction(np.zeros_like(point.w), still, 0.0, np.inf, 0)
    return conjugate_gradient(point, preconditioner, tol, nowhere, -point.gradient, max_steps)


def _solve_directly(point: Point, hessian: Preconditioner, tol: float) -> Direction | None:
    """Return the Newton direction; None if too many digits are lost for a solution."""
    vector = hessian.direction(point)
    image, scores = point.hess_vec(vector)
    residual = -point.gradient - image
    decrement = 0.5 * (float(vector @ residual) - point.slope(vector, scores))
    # What the residual r hides is ½ rᵀH⁻¹r, and H ≥ ρ.
    hidden = 0.5 * float(residual @ residual) / point.objective.ridge
    direct = Direction(vector, scores, decrement, decrement + hidden, 0)
    if hidden > _enough(point, tol, decrement, BOUND_TOL):
        direct = conjugate_gradient(point, hessian, tol, direct, residual, MAX_REFINEMENTS)
        hidden = direct.bound - direct.decrement
    # A decrement that is nothing but rounding may be negative.
    missing = max(hidden, -direct.decrement)
    solved = hidden >= 0.0 and missing <= _enough(point, tol, direct.decrement, CG_TOL)
    return direct._replace(bound=abs(direct.decrement) + hidden) if solved else None


def conjugate_gradient(
    point: Curved,
    preconditioner: Preconditioner,
    tol: float,
    start: Direction,
    residual: Floats,
    max_steps: int,
) -> Direction:
    """Solve ∇²F d = −∇F by preconditioned conjugate gradients, and X d along with it.

    Each step raises the decrement by some gain. It ends when the gains to come are small. With a
    faithful preconditioner they are about k times the last one after k steps (Nash and Sofer,
    1990), and about half of rᵀP⁻¹r. Otherwise they are bounded by the quadrature of Gauss and
    Radau, which knows where the spectrum begins (Meurant and Tichý, 2013).
    """
    d, d_scores, decrement, _, n_products = start
    faithful, lowest = preconditioner.faithful, preconditioner.lowest
    z = preconditioner.solve(residual)
    rho = float(residual @ z)
    to_come = 0.5 * rho if preconditioner.exact else np.inf
    share = CG_TOL if faithful else BOUND_TOL
    radau = np.inf if faithful else 1.0 / lowest
    p = z
    while rho > 0 and n_products < max_steps:
        if to_come <= _enough(point, tol, decrement, share):
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
            # Where a sample lacks a document of huge values, the first steps gain next to nothing.
            to_come = max(n_products * gain, 0.5 * rho)
        else:
            # By rounding alone is alpha larger; then there is the plain bound on rᵀH⁻¹r.
            over = radau - alpha
            radau = over / (lowest * over + beta) if over > 0 else 1.0 / lowest
            to_come = 0.5 * radau * rho
    return Direction(d, d_scores, decrement, decrement + to_come, n_products)


def _enough(point: Curved, tol: float, decrement: float, share: float) -> float:
    """Return which part of the decrement may be missing."""
    return max(share * decrement, 0.1 * tol * point.value)
