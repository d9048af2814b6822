"""Minimization of a quadratic model of the loss plus an l1 regularizer, with an explicit Hessian.

q(u) = ⟨g, u − w⟩ + ½ (u − w)ᵀ H (u − w), with gradient g and Hessian H at w.

For a penalty, q + Ω is minimized by coordinate descent, which finds the support, alternating with
direct solutions on the support, which find the weights of nearly collinear features. If that is too
slow, single weights are changed between direct solutions. For the l1 ball the same is done with an
l1 penalty whose weight is changed until ‖u‖₁ is the radius.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from marginrank import _core
from marginrank._utils.types import Floats, Integers
from marginrank.objective.regularizers import L1Ball, L1Regularizer

RIDGE = 1e-10  # share of each diagonal entry that is added, to make the minimizer unique
PASSES = 10  # passes of coordinate descent before a direct solution
ROUNDS = 10  # most alternations of coordinate descent and direct solutions
PIVOTS = 5  # most changes of single weights, per feature, if coordinate descent does not converge
MULTIPLIERS = 60  # most multipliers that are tried: Newton's method inside a bracket takes a few
FAILURES = 5  # failed minimizations before the search gives up; its result may still help


class Penalty(NamedTuple):
    """The elastic net penalty l1 · ‖u‖₁ + l2 · ½‖u‖²; also u ≥ 0 if `positive`."""

    l1: float
    l2: float
    positive: bool


class QuadraticModel:
    """A quadratic model of a loss at w, whose Hessian is corrected after each step (BFGS).

    `hessian` is modified in place. `complete` is True if it is of all documents, not of a sample.
    """

    def __init__(self, hessian: Floats, *, complete: bool) -> None:
        hessian[np.diag_indices_from(hessian)] *= 1.0 + RIDGE
        self._hessian = hessian
        self.complete = complete
        self._multiplier: float | None = None
        self.passes = 0

    def minimize(
        self, w: Floats, gradient: Floats, regularizer: L1Regularizer, tol: float
    ) -> Floats:
        """Return the u that minimizes the quadratic model plus a regularizer.

        The iteration stops when a subgradient has no entry larger than `tol`.
        """
        problem = _Problem(self._hessian, w, gradient, tol)
        if isinstance(regularizer, L1Ball):
            guess = self._multiplier
            if guess is None:
                guess = _first_multiplier(w, gradient)
            self._multiplier = _minimize_in_ball(problem, regularizer, guess)
        else:
            l1 = regularizer.multiplier(w, gradient)
            problem.minimize(Penalty(l1, regularizer.ridge, regularizer.positive))
        self.passes += problem.passes
        return regularizer.inside(problem.u)

    def decrease(self, w: Floats, gradient: Floats, u: Floats, regularizer: L1Regularizer) -> float:
        step = u - w
        change = float(gradient @ step) + 0.5 * float(step @ (self._hessian @ step))
        return regularizer.value(w) - regularizer.value(u) - change

    def correct(self, step: Floats, gradient_change: Floats) -> None:
        """Correct the Hessian H by a BFGS update, such that H · step = gradient_change."""
        image = self._hessian @ step
        expected, seen = float(step @ image), float(step @ gradient_change)
        # A smaller ratio would make H nearly singular.
        if seen > 1e-8 * expected > 0:
            self._hessian += np.outer(gradient_change / seen, gradient_change)
            self._hessian -= np.outer(image / expected, image)


class _Problem:
    """Minimization of ½uᵀHu − bᵀu + penalty over u, with b = Hw − g, starting at u = w."""

    def __init__(self, hessian: Floats, w: Floats, gradient: Floats, tol: float) -> None:
        self._hessian = hessian
        self.tol = tol
        self._b = hessian @ w - gradient
        self._residual = -gradient  # b − Hu
        self.u = w
        self.passes = 0

    @property
    def largest_multiplier(self) -> float:
        """The smallest l1 penalty for which all weights are zero at the minimum."""
        return float(np.max(np.abs(self._b)))

    def restart(self, u: Floats) -> None:
        self.u, self._residual = u, self._b - self._hessian @ u

    def minimize(self, penalty: Penalty, *, exactly: bool = False) -> bool:
        """Minimize the quadratic model plus penalty from the current u; return True if converged.

        With `exactly`, end with a direct solution for the non-zero weights.
        """
        for _ in range(ROUNDS):
            self.u, self._residual, passes, violation = _core.coordinate_descent(
                self._hessian, self.u, self._residual, *penalty, PASSES, self.tol
            )
            self.passes += passes
            converged = violation <= self.tol
            if exactly or not converged:
                self._solve_on_support(penalty)
            if converged:
                return True
        return self._pivot(penalty)

    def _pivot(self, penalty: Penalty) -> bool:
        # Solve directly on the support until no weight leaves it, then change the weight that
        # violates optimality most. Coordinate descent hardly moves along directions without
        # curvature, of which a smoothed hinge has many.
        diagonal = np.diag(self._hessian)
        curvature = diagonal + penalty.l2
        for _ in range(PIVOTS * self.u.size):
            size = np.count_nonzero(self.u)
            self._solve_on_support(penalty)
            if np.count_nonzero(self.u) < size:
                continue
            pull = self._residual + diagonal * self.u
            wanted = np.sign(pull) * np.maximum(np.abs(pull) - penalty.l1, 0.0)
            if penalty.positive:
                wanted = np.maximum(wanted, 0.0)
            violation = np.where(curvature > 0, np.abs(wanted - curvature * self.u), 0.0)
            j = int(np.argmax(violation))
            if violation[j] <= self.tol:
                return True
            u = self.u.copy()
            u[j] = wanted[j] / curvature[j]
            self._residual = self._residual - (u[j] - self.u[j]) * self._hessian[j]
            self.u = u
        return False

    def shrinkage(self) -> float:
        """Return how fast the l1 norm of the solution falls as the l1 penalty grows, for l2 = 0.

        The derivative is valid while the set of non-zero weights stays the same.
        """
        support = np.flatnonzero(self.u)
        factor = _factorize(self._hessian, support, 0.0)
        if factor is None:
            return 0.0
        sign = np.sign(self.u[support])
        return float(sign @ factor.solve(sign))

    def _solve_on_support(self, penalty: Penalty) -> None:
        # Newton step on the non-zero weights that keeps their signs, if it lowers the value.
        support = np.flatnonzero(self.u)
        factor = _factorize(self._hessian, support, penalty.l2)
        if factor is None:
            return
        u = self.u[support]
        sign = np.sign(u)
        slope = self._residual[support] - penalty.l1 * sign - penalty.l2 * u
        step = factor.solve(slope)
        crossing = (u + step) * sign < 0
        first = np.min(-u[crossing] / step[crossing], initial=1.0)
        before = _value(self.u, self._b, self._residual, penalty)
        for size in dict.fromkeys((1.0, first)):
            trial = u + size * step
            # A weight that would change its sign, or reaches zero first, becomes zero.
            keeps_sign = trial * sign > 1e-14 * np.abs(u)
            full = np.zeros_like(self.u)
            full[support] = np.where(keeps_sign, trial, 0.0)
            residual = self._b - self._hessian @ full
            if _value(full, self._b, residual, penalty) <= before:
                self.u, self._residual = full, residual
                return


def _value(u: Floats, b: Floats, residual: Floats, penalty: Penalty) -> float:
    # ½uᵀHu − bᵀu + penalty, with Hu = b − residual.
    quadratic = -0.5 * float(u @ (b + residual))
    return quadratic + penalty.l1 * float(np.sum(np.abs(u))) + 0.5 * penalty.l2 * float(u @ u)


class _Factor(NamedTuple):
    """The Cholesky factor of a matrix that was scaled to a unit diagonal."""

    scale: Floats
    factor: tuple[Floats, bool]

    def solve(self, v: Floats) -> Floats:
        solution: Floats = self.scale * cho_solve(self.factor, self.scale * v)
        return solution


def _factorize(hessian: Floats, support: Integers, l2: float) -> _Factor | None:
    # None if the rows and columns of the support are not positive definite.
    if not support.size:
        return None
    block = hessian[np.ix_(support, support)]
    block[np.diag_indices_from(block)] += l2
    diagonal = np.diag(block)
    if not np.all(diagonal > 0):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    try:
        factor = cho_factor(block * scale * scale[:, None], lower=True, overwrite_a=True)
    except LinAlgError:
        return None
    return _Factor(scale, factor)


def _first_multiplier(w: Floats, gradient: Floats) -> float | None:
    # The multiplier of ‖u‖₁ ≤ radius for which w is closest to optimal.
    size = float(np.sum(np.abs(w)))
    return max(-float(gradient @ w) / size, 0.0) if size > 0 else None


def _minimize_in_ball(problem: _Problem, ball: L1Ball, multiplier: float | None) -> float:
    """Minimize over the l1 ball; return the Lagrange multiplier of ‖u‖₁ ≤ radius.

    ‖u‖₁ falls continuously as the multiplier grows, linearly as long as the support stays. So
    Newton's method, kept inside the bracket found so far, ends in a few steps. Without a guess it
    starts from above, where the support is small. If the ball seems to be inactive, 0 is tried at
    once; if that is too ill-conditioned, the multiplier goes there in steps.
    """
    largest = problem.largest_multiplier
    if largest == 0.0:
        return 0.0
    enough = ball.radius * min(problem.tol / largest, 1e-3)
    multiplier = 0.5 * largest if multiplier is None else min(multiplier, 0.99 * largest)
    low, high = 0.0, largest
    larger, smaller = None, np.zeros_like(problem.u)
    in_steps, failures = False, 0
    for _ in range(MULTIPLIERS):
        penalty = Penalty(multiplier, 0.0, ball.positive)
        found = problem.minimize(penalty, exactly=True)
        if not found:  # it started far outside of the ball: start inside, where weights are few
            problem.restart(smaller)
            found = problem.minimize(penalty, exactly=True)
        failures += not found
        if failures > FAILURES:
            break
        if not found and multiplier == 0.0 and not in_steps:
            in_steps, multiplier = True, 0.1 * high
            problem.restart(smaller)
            continue
        excess = float(np.sum(np.abs(problem.u))) - ball.radius
        if multiplier == 0.0 and excess <= 0.0:
            return multiplier
        if abs(excess) <= enough:
            problem.restart(problem.u * (ball.radius / (ball.radius + excess)))
            return multiplier
        if excess > 0:
            low, larger = multiplier, problem.u
        else:
            high, smaller = multiplier, problem.u
        if high - low <= 1e-3 * problem.tol and larger is not None:
            break
        slope = problem.shrinkage() if multiplier > 0 else 0.0  # at 0 it may be ill-conditioned
        newton = multiplier + excess / slope if slope > 0 else 0.0
        if larger is None:
            inactive = newton <= 0.0 and multiplier < 0.1 * largest and not (in_steps or failures)
            multiplier = 0.0 if inactive else max(newton, 0.1 * multiplier)
            multiplier = 0.0 if multiplier < 1e-3 * problem.tol else multiplier
        else:
            middle = np.sqrt(low * high) if low > 0 else 0.1 * high
            multiplier = newton if low < newton < high else middle
    if larger is not None:
        # Both minimize for nearly the same multiplier, and so does the point between them.
        outside, inside = float(np.sum(np.abs(larger))), float(np.sum(np.abs(smaller)))
        share = (ball.radius - inside) / (outside - inside)
        problem.restart(share * larger + (1.0 - share) * smaller)
    return multiplier
