"""Newton's method with a group lasso penalty γ Σ_k ‖u_k‖, which sets groups of weights to zero.

u_k are the weights of group k. Away from zero the norm of a group is smooth: curved across its
direction, not along it. So non-zero groups take a Newton step together. Its conjugate gradients use
the preconditioner for a ridge, which is curved in all directions, corrected for the excess
curvature along each group. A group whose step passes through zero becomes zero if that lowers the
objective. A zero group leaves zero along −∇_k L, the negative gradient of the loss L in its
weights, if ‖∇_k L‖ is larger than γ.
"""

from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.models.fit_report import StopReason
from marginrank.objective.groups import GroupPoint, Groups
from marginrank.objective.objective import Objective, Point
from marginrank.objective.protocols import Scores, is_certified
from marginrank.solvers.progress import Progress, start
from marginrank.solvers.result import Callback, SolverResult
from marginrank.solvers.smooth.line_search import line_search
from marginrank.solvers.smooth.newton import (
    MAX_CG_EASED,
    SAFETY,
    SAMPLE_TOL,
    Direction,
    conjugate_gradient,
    growing_samples,
)
from marginrank.solvers.smooth.preconditioner import Preconditioner, precondition

FACES = 5  # most directions per step, each with more groups fixed at zero
TINY = 1e-2  # a group may become zero if a step shrinks its length by this factor
ROUND_UP = 1.0 + 1e-12  # keeps a small matrix positive definite
ENOUGH = 0.1  # share of the predicted decrease that a step must gain if groups become zero
FINER = 0.01  # factor on tol for Newton systems: a certificate needs more accuracy than an estimate
CONFIRMATIONS = 3  # small estimates in a row that end a run without a small gap


class _Outcome(NamedTuple):
    point: GroupPoint
    estimate: float
    stop: StopReason


def group_newton(
    objective: Objective,
    *,
    regularizer: Groups,
    w0: Floats | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    seed: int = 0,
    callback: Callback | None = None,
) -> SolverResult:
    """Minimize an objective with a smooth loss and a group lasso penalty (`regularizer`).

    Stops when a proven bound or an estimate reaches `tol`. The other parameters are as in
    :func:`~marginrank.solvers.smooth.newton.newton`.
    """
    progress = Progress(objective, callback)
    run = _GroupNewton(regularizer, max_iter, seed + 1, progress)
    w = np.zeros(objective.n_features) if w0 is None else w0
    try:
        if w0 is None:
            for sample in growing_samples(objective, seed):
                w = run.minimize(start(sample, w), max(tol, SAMPLE_TOL)).point.w
        outcome = run.minimize(start(objective, w), tol)
    except KeyboardInterrupt:
        reached = run.point.w if run.point is not None else w
        point = GroupPoint(regularizer, objective.at(reached))
        outcome = _Outcome(point, np.inf, StopReason.INTERRUPTED)
    return progress.result(*outcome)


class _GroupNewton:
    """Newton's method with a group lasso penalty; `point` is the best result so far."""

    def __init__(self, groups: Groups, max_iter: int, seed: int, progress: Progress) -> None:
        self.point: GroupPoint | None = None
        self._groups = groups
        self._max_iter = max_iter
        self._seed = seed
        self._progress = progress

    def minimize(self, first: Point, tol: float) -> _Outcome:
        """Minimize an objective plus the group penalty, from `first`; set the attribute `point`."""
        self.point = point = GroupPoint(self._groups, first)
        estimate, confirmations = point.gap, 0
        for _ in range(self._max_iter):
            if is_certified(point, tol):
                return _Outcome(point, min(estimate, point.gap), StopReason.CERTIFIED)
            is_close = estimate <= tol * point.value
            confirmations = confirmations + 1 if is_close else 0
            if confirmations >= CONFIRMATIONS:
                return _ended(point, estimate, tol)
            value = point.value
            self.point = point = _enter(point)
            before = point.value
            self.point, direction = _step(point, self._seed, FINER * tol)
            point = self.point
            # A step that gained more than predicted shows that the model misses as much again.
            missed = max(direction.bound, before - point.value - direction.decrement)
            estimate = SAFETY * missed + _outside(point)
            self._progress.record(point, estimate, direction.n_products)
            if not point.value < value:
                return _ended(point, estimate, tol)
        stop = StopReason.CERTIFIED if is_certified(point, tol) else StopReason.MAX_ITER
        return _Outcome(point, estimate, stop)


def _ended(point: GroupPoint, estimate: float, tol: float) -> _Outcome:
    # Rounding of the gradient may hide a decrease of ½‖e‖² / ρ.
    estimate += 0.5 * point.gradient_rounding**2 / point.objective.ridge
    is_close = estimate <= tol * point.value
    return _Outcome(point, estimate, StopReason.ESTIMATED if is_close else StopReason.PRECISION)


def _outside(point: GroupPoint) -> float:
    # The largest decrease from groups that are zero and should not be.
    excess = point.groups.lengths(point.gradient)[point.is_zero]
    return 0.5 * float(excess @ excess) / point.objective.ridge


def _enter(point: GroupPoint) -> GroupPoint:
    # Zero groups with ‖∇_k L‖ > γ move along the part of −∇_k L that exceeds γ.
    groups = point.groups
    direction = -point.gradient * groups.spread(point.is_zero.astype(np.float64))
    if not direction.any():
        return point
    scores = point.objective.scores(direction)
    return line_search(point, direction, scores) or point


def _step(point: GroupPoint, seed: int, tol: float) -> tuple[GroupPoint, Direction]:
    # Return the point after a Newton step, and the step with the decrease that it predicts.
    groups, nothing = point.groups, np.zeros_like(point.is_zero)
    first = direction = _newton_direction(point, nothing, seed, tol)
    leaving: Booleans = nothing
    for _ in range(FACES):
        ahead = groups.sums(point.w * (point.w + direction.vector))
        crossing = (ahead <= 0.0) & ~point.is_zero & ~leaving
        if not crossing.any():
            break
        leaving = leaving | crossing
        direction = _newton_direction(point, leaving, seed, tol)
    candidates = [point]
    if leaving.any():
        candidates.append(_without(point, point.w + direction.vector, leaving))
        if point.value - candidates[-1].value >= ENOUGH * direction.decrement:
            return candidates[-1], first
    moved = line_search(point, first.vector, first.scores)
    if moved is not None:
        candidates.append(moved)
        # The minimum on a line is often where a group is next to zero.
        tiny = groups.lengths(moved.w) < TINY * groups.lengths(point.w)
        if tiny.any():
            candidates.append(_without(point, moved.w, tiny))
            if candidates[-1].value < 0.5 * (point.value + moved.value):
                return candidates[-1], first
    return min(candidates, key=lambda one: one.value), first


def _without(point: GroupPoint, w: Floats, leaving: Booleans) -> GroupPoint:
    # Set the weights of some groups to zero; reads X once.
    return point.at(w * point.groups.spread((~leaving).astype(np.float64)))


def _newton_direction(point: GroupPoint, leaving: Booleans, seed: int, tol: float) -> Direction:
    # Solve the Newton system of the non-zero groups; the `leaving` groups move to zero.
    groups = point.groups
    stays = groups.spread((~leaving).astype(np.float64))
    to_zero = -point.w * (1.0 - stays)
    slopes, scores = point.slopes, point.objective.space.zero()
    if leaving.any():
        image, scores = point.base.hess_vec(to_zero)
        slopes = slopes + image
    if np.all(leaving | point.is_zero):
        return Direction(to_zero, scores, 0.0, 0.0, 0)
    face = groups.face(point.objective, stays * point.w)
    scale = np.asarray(face.basis.sum(axis=0)).ravel()
    w = (face.basis.T @ point.w) / scale**2
    ridge = face.objective.at(w, point.scores, like=point.base)
    ridge.gradient = face.basis.T @ slopes
    bent = _Bent.at(point, ridge, face.basis, scale, ~(leaving | point.is_zero))
    of_ridge = precondition(ridge, seed)
    nowhere = Direction(np.zeros_like(w), scores, 0.0, np.inf, 0)
    for preconditioner in (_Less(of_ridge, bent), of_ridge):
        system = bent, preconditioner, tol, nowhere, -ridge.gradient, MAX_CG_EASED
        with np.errstate(over="ignore", invalid="ignore"):  # the system may be indefinite
            found = conjugate_gradient(*system)
        if found.bound >= found.decrement:  # otherwise rounding has made it indefinite
            break
    return found._replace(vector=face.basis @ found.vector + to_zero)


class _Bent(NamedTuple):
    """The matrix of the Newton system, H − Σ_k c_k e_k e_kᵀ, for products with vectors.

    It is the Hessian of the objective with group norms. H is the Hessian with a ridge instead of
    the norms, e_k the direction u_k / ‖u_k‖, and c_k > 0 the excess curvature along e_k.
    """

    objective: Objective
    value: float
    ridge: Point
    units: Floats  # e_k, as columns
    excess: Floats  # c_k

    @classmethod
    def at(
        cls, point: GroupPoint, ridge: Point, basis: Any, scale: Floats, moving: Booleans
    ) -> "_Bent":
        # `basis` scales the weights of groups that are moving.
        groups = point.groups
        lengths = groups.lengths(point.w)[moving]
        unit = (basis.T @ groups.directions(point.w)) / scale
        member = np.repeat(np.arange(lengths.size), groups.sizes[moving])
        units = np.zeros((unit.size, lengths.size))
        units[np.arange(unit.size), member] = unit
        rho = point.objective.ridge
        excess = rho * groups.weight / (rho * lengths + groups.weight)
        return cls(ridge.objective, point.value, ridge, units, excess)

    def hess_vec(self, v: Floats) -> tuple[Floats, Scores]:
        product, scores = self.ridge.hess_vec(v)
        return product - self.units @ (self.excess * (self.units.T @ v)), scores


class _Less(Preconditioner):
    """Preconditioner for :class:`_Bent`: a preconditioner for H, corrected for Σ_k c_k e_k e_kᵀ."""

    faithful = True

    def __init__(self, of_ridge: Preconditioner, bent: _Bent) -> None:
        self._of_ridge = of_ridge
        self._units = bent.units
        self._images = np.column_stack([of_ridge.solve(unit) for unit in bent.units.T])
        self._small = np.diag(ROUND_UP / bent.excess) - bent.units.T @ self._images
        self.exact = of_ridge.exact
        self.cost = of_ridge.cost

    def solve(self, v: Floats) -> Floats:
        # The Sherman-Morrison-Woodbury formula.
        solved = self._of_ridge.solve(v)
        along = np.linalg.solve(self._small, self._units.T @ solved)
        return solved + self._images @ along
