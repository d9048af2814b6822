"""Independent solutions of small problems: explicit pairs, Clarabel, long arithmetic.

A dual point, clipped to where it is feasible, bounds F* from below whatever its origin; any w
bounds it from above. Both are evaluated in long double precision over explicit pairs, so that what
a fit claims can be held against them.
"""

from dataclasses import dataclass, field
from functools import cached_property

import clarabel
import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from helpers.brute_force import ExplicitPairs
from marginrank.objective.losses import LOGISTIC

LONG = np.longdouble
SQP_STEPS = 30


@dataclass
class Oracle:
    """F(w) = ½‖w‖² + Σ c ℓ(t − shift), t = (x_i − x_j)ᵀw, in long double precision."""

    X: np.ndarray
    pairs: ExplicitPairs
    loss: object  # a marginrank Loss
    C: float

    def __post_init__(self):
        X = np.asarray(self.X, dtype=LONG)
        used = self.pairs.weight > 0
        self.differences = X[self.pairs.preferred[used]] - X[self.pairs.other[used]]
        self.cost = LONG(self.C) * self.pairs.weight[used].astype(LONG)
        self.shift = self.pairs.shift[used].astype(LONG)

    def value(self, w):
        """Return F(w)."""
        w = np.asarray(w, dtype=LONG)
        return w @ w / 2 + self.cost @ self._loss(self.differences @ w - self.shift)

    def _loss(self, t):
        total = np.zeros_like(t)
        for piece in self.loss.pieces:
            x = LONG(piece.theta) - t
            is_smooth = piece.power == LOGISTIC
            value = np.logaddexp(LONG(0), x) if is_smooth else np.maximum(LONG(0), x) ** piece.power
            total += LONG(piece.coefficient) * value
        return total

    @property
    def is_quadratic_program(self):
        """Whether the loss is a hinge, a squared hinge or Huber's."""
        return len(self.loss.pieces) <= 2 and self.loss.pieces[0].power != LOGISTIC

    def slopes(self, w):
        """Return −ℓ'(t) for each pair, which is a dual point once it is multiplied by its cost."""
        t = self.differences @ np.asarray(w, dtype=LONG) - self.shift
        total = np.zeros_like(t)
        for piece in self.loss.pieces:
            x = LONG(piece.theta) - t
            if piece.power == LOGISTIC:
                slope = np.exp(x - np.logaddexp(LONG(0), x))
            else:
                slack = np.maximum(LONG(0), x)
                slope = piece.power * slack ** (piece.power - 1) * (slack > 0)
            total += LONG(piece.coefficient) * slope
        return total

    def gradient(self, w):
        """Return ∇F(w) of a smooth loss."""
        return np.asarray(w, dtype=LONG) - self.differences.T @ (self.cost * self.slopes(w))

    def lower(self, w):
        """Return F(w) − ½‖∇F(w)‖² for a smooth loss: F is 1-strongly convex."""
        gradient = self.gradient(w)
        return self.value(w) - gradient @ gradient / 2

    @property
    def _kink(self):
        """Where the loss begins, how wide its parabola is (0 for hinge, ∞ for squared hinge)."""
        thetas = [piece.theta for piece in self.loss.pieces]
        if self.loss.piecewise_linear:
            return thetas[0], 0.0
        return thetas[0], thetas[0] - thetas[1] if len(thetas) > 1 else np.inf

    def dual_value(self, alpha):
        """Return the dual objective at α, clipped; hinge, squared hinge or Huber."""
        theta, width = self._kink
        alpha = np.maximum(np.asarray(alpha, dtype=np.float64), 0.0).astype(LONG)
        if width == 0.0:
            alpha = np.minimum(alpha, self.cost)
        elif np.isfinite(width):
            alpha = np.minimum(alpha, 2 * self.cost * LONG(width))
        v = self.differences.T @ alpha
        linear = alpha @ (LONG(theta) + self.shift)
        square = v @ v / 2
        if width > 0.0:
            square += np.sum(alpha**2 / (4 * self.cost))
        scale = linear / (2 * square) if square > 0 else LONG(0)
        scale = np.clip(scale, LONG(0), LONG(1))  # a multiple of a feasible point is feasible
        return scale * linear - scale**2 * square

    @cached_property
    def dual_points(self):
        """Dual points of Clarabel, for two ways of scaling the problem."""
        return [_clarabel(self, scale) for scale in (False, True)]

    @cached_property
    def solution(self):
        """Bounds on F* by others: (lower, upper)."""
        if not self.is_quadratic_program:
            w = _newton(self)
            return self.lower(w), self.value(w)
        found = [alpha for alpha in self.dual_points if np.isfinite(alpha).all()]
        primal = [np.asarray(self.differences.T @ alpha, dtype=float) for alpha in found]
        lower = [self.dual_value(alpha) for alpha in found]
        if self.loss.smooth:
            primal.append(_newton(self))
            lower += [self.lower(w) for w in primal]
        zero = np.zeros(self.differences.shape[1])
        return max(lower, default=LONG(0)), min(self.value(w) for w in [zero, *primal])


def _clarabel(oracle, scale):
    """Solve min ½‖v‖² + Σ α²/4c − Σ (θ + shift) α, v = Dᵀα, 0 ≤ α ≤ limit, and return α."""
    theta, width = oracle._kink
    D = oracle.differences.astype(float)
    cost = oracle.cost.astype(float)
    p, n = D.shape
    largest = float(np.abs(D).max())
    unit = 1.0 / largest if scale and largest > 0 else 1.0  # of w
    D = D * unit
    size = float(cost.max()) if scale else 1.0  # of α
    quadratic = np.zeros(p) if width == 0 else size / (2 * cost)
    P = sp.diags_array(np.concatenate([quadratic, np.full(n, size / unit**2)]), format="csc")
    q = np.concatenate([-(theta + oracle.shift.astype(float)), np.zeros(n)])
    limit = cost / size if width == 0 else 2 * cost * width / size
    rows = [sp.hstack([sp.csc_array(D.T), -sp.eye_array(n)]), sp.eye_array(p, p + n)]
    b = [np.zeros(n)]
    # constraints A x + s = b: s = 0 for v, −α + s = 0, α + s = limit
    A = [rows[0], -rows[1]]
    b.append(np.zeros(p))
    cones = [clarabel.ZeroConeT(n), clarabel.NonnegativeConeT(p)]
    if np.isfinite(width):
        A.append(rows[1])
        b.append(limit)
        cones.append(clarabel.NonnegativeConeT(p))
    return _solve(P, q, sp.vstack(A), np.concatenate(b), cones)[:p] * size


def _solve(P, q, A, b, cones):
    """Minimise ½xᵀPx + qᵀx where b − Ax is in the cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    P, A = sp.csc_matrix(sp.triu(P)), sp.csc_matrix(A)
    return np.asarray(clarabel.DefaultSolver(P, q, A, b, cones, settings).solve().x)


def _newton(oracle, iterations=100):
    """Minimise a smooth loss by damped Newton steps, with gradients in long double precision."""
    w = np.zeros(oracle.differences.shape[1])
    D = oracle.differences.astype(float)
    value = oracle.value(w)
    for _ in range(iterations):
        curvature = np.asarray(
            oracle.cost * oracle.loss.curvature(D @ w - oracle.shift.astype(float)), dtype=float
        )
        root = np.sqrt(np.maximum(curvature, 0.0))[:, None] * D
        # (I + RᵀR)⁻¹ g by an orthogonal decomposition, which keeps badly scaled features apart
        g = oracle.gradient(w).astype(float)
        stacked = np.vstack([np.eye(w.size), root])
        scale = np.linalg.norm(stacked, axis=0)
        r = np.linalg.qr(stacked / scale, mode="r")
        step = -np.linalg.solve(r, np.linalg.solve(r.T, g / scale)) / scale
        size = 1.0
        while size > 1e-10 and not oracle.value(w + size * step) < value:
            size /= 2
        if size <= 1e-10:
            break
        w = w + size * step
        value = oracle.value(w)
    return w


@dataclass
class ConeOracle(Oracle):
    """F(w) over Gw ≥ 0, where G has the rows of `cone`."""

    cone: object = field(kw_only=True)  # a marginrank Cone: only its rows and projection are used

    @cached_property
    def rows(self):
        """G, dense."""
        total = np.zeros((self.cone.n_constraints, self.differences.shape[1]))
        first = 0
        for block in self.cone.blocks:
            total[first : first + len(block.rows), block.weights] = block.rows
            first += len(block.rows)
        return total

    @cached_property
    def solution(self):
        """Bounds on F* by others: nothing is known from below."""
        found = [np.zeros(self.differences.shape[1])]
        if self.is_quadratic_program:
            found.append(self._inside(_cone_qp(self)))
        if self.loss.smooth:
            found.append(_sqp(self, min(found, key=self.value)))
        return LONG(0), min(self.value(w) for w in found)

    def _inside(self, w):
        return self.cone.nearest(w)[0] if np.isfinite(w).all() else np.zeros(w.size)


def _cone_qp(oracle):
    """Minimise with two slacks a pair: squares, and multiples; a hinge has no squares."""
    theta, width = oracle._kink
    D, cost = oracle.differences.astype(float), oracle.cost.astype(float)
    p, n = D.shape
    largest = float(np.abs(D).max())
    unit = 1.0 / largest if largest > 0 else 1.0  # of w
    size = 1.0 / float(cost.max())  # of the objective
    square = np.zeros(p) if width == 0 else 2 * cost * size
    linear = cost * size * (1.0 if width == 0 else 2 * width)
    P = sp.diags_array(np.concatenate([np.full(n, unit**2 * size), square, np.zeros(p)]))
    q = np.concatenate([np.zeros(n + p), linear if np.isfinite(width) else np.full(p, 1e6)])
    eye, none = sp.eye_array(p), sp.csc_array((p, p))
    slacks = [none if width == 0 else -eye, -eye]
    A = sp.vstack([
        sp.hstack([-D * unit, *slacks]),
        sp.hstack([sp.csc_array((2 * p, n)), -sp.eye_array(2 * p)]),
        sp.hstack([-oracle.rows, sp.csc_array((len(oracle.rows), 2 * p))]),
    ])  # fmt: skip
    b = np.concatenate([-(theta + oracle.shift.astype(float)), np.zeros(2 * p + len(oracle.rows))])
    return _solve(P, q, A, b, [clarabel.NonnegativeConeT(len(b))])[:n] * unit


def _sqp(oracle, w):
    """Minimise a smooth loss by damped Newton steps over the cone."""
    D = oracle.differences.astype(float)
    for _ in range(SQP_STEPS):
        t = D @ w - oracle.shift.astype(float)
        curvature = np.maximum(oracle.cost.astype(float) * oracle.loss.curvature(t), 0.0)
        hessian = np.eye(w.size) + (D.T * curvature) @ D
        scale = 1.0 / np.sqrt(np.diag(hessian))
        gradient = oracle.gradient(w).astype(float)
        total = max(float(np.abs(gradient * scale).max()), 1e-300)
        step = scale * total * _solve(
            sp.csc_array(hessian * scale[:, None] * scale),
            gradient * scale / total,
            -oracle.rows * scale,
            oracle.rows @ w / total,
            [clarabel.NonnegativeConeT(len(oracle.rows))],
        )  # fmt: skip
        size = 1.0
        while size > 1e-6:
            trial = oracle._inside(w + size * step)
            if oracle.value(trial) < oracle.value(w):
                break
            size /= 2
        else:
            return w
        w = trial
    return w


@dataclass
class GroupOracle(Oracle):
    """F(w) + γ Σ ‖w_k‖ in long double precision."""

    weight: float = field(kw_only=True)
    starts: np.ndarray = field(kw_only=True)

    def value(self, w):
        """Return F(w)."""
        parts = np.split(np.asarray(w, dtype=LONG), self.starts[1:-1])
        return super().value(w) + LONG(self.weight) * sum(np.sqrt(part @ part) for part in parts)

    @cached_property
    def solution(self):
        """Bounds on F* by others: nothing is known from below."""
        n = self.differences.shape[1]
        found = [np.zeros(n)]
        if self.is_quadratic_program:
            w = _group_socp(self)
            if np.isfinite(w).all():
                found += [w, _cleaned(w, self.starts)]
        else:
            w = _descent(self)
            found += [w, _cleaned(w, self.starts)]
        return LONG(0), min(self.value(w) for w in found)


def _cleaned(w, starts):
    """Return weights without groups that are next to nothing."""
    parts = np.split(w, starts[1:-1])
    largest = max(np.linalg.norm(part) for part in parts)
    kept = [part * (np.linalg.norm(part) > 1e-6 * largest) for part in parts]
    return np.concatenate(kept)


def _descent(oracle):
    """Minimise a smooth loss with norms that are rounded off at zero."""
    units = 1.0 / np.maximum(np.abs(oracle.differences.astype(float)).max(axis=0), 1e-300)
    units = np.where(units < 1e200, units, 1.0)

    def rounded(v):
        w = v * units
        norms = [np.sqrt(part @ part + 1e-20) for part in np.split(w, oracle.starts[1:-1])]
        slopes = w / np.repeat(norms, np.diff(oracle.starts))
        value = Oracle.value(oracle, w) + oracle.weight * sum(norms)
        return float(value), units * (oracle.gradient(w).astype(float) + oracle.weight * slopes)

    found = minimize(rounded, np.full(units.size, 1e-3), jac=True, method="L-BFGS-B")
    return found.x * units


def _group_socp(oracle):
    """Minimise with slacks for the pairs and for the norms."""
    theta, width = oracle._kink
    D, cost = oracle.differences.astype(float), oracle.cost.astype(float)
    p, n = D.shape
    largest = float(np.abs(D).max())
    unit = 1.0 / largest if largest > 0 else 1.0  # of w
    size = 1.0 / float(cost.max())  # of the objective
    sizes = np.diff(oracle.starts)
    K = sizes.size
    square = np.full(p, 1e6) if width == 0 else 2 * cost * size
    linear = cost * size * (1.0 if width == 0 else 2 * width)
    linear = linear if np.isfinite(width) else np.full(p, 1e6)
    P = sp.diags_array(np.concatenate([np.full(n, unit**2 * size), square, np.zeros(p + K)]))
    q = np.concatenate([np.zeros(n + p), linear, np.full(K, oracle.weight * unit * size)])
    eye = sp.eye_array(p)
    A = [
        sp.hstack([-D * unit, -eye, -eye, sp.csc_array((p, K))]),
        sp.hstack([sp.csc_array((2 * p, n)), -sp.eye_array(2 * p), sp.csc_array((2 * p, K))]),
    ]
    b = [-(theta + oracle.shift.astype(float)), np.zeros(2 * p)]
    cones = [clarabel.NonnegativeConeT(3 * p)]
    for k in range(K):
        rows = np.zeros((1 + sizes[k], n + 2 * p + K))
        rows[0, n + 2 * p + k] = -1.0
        rows[1:, oracle.starts[k] : oracle.starts[k + 1]] = -np.eye(sizes[k])
        A.append(sp.csc_array(rows))
        b.append(np.zeros(1 + sizes[k]))
        cones.append(clarabel.SecondOrderConeT(1 + int(sizes[k])))
    return _solve(P, q, sp.vstack(A), np.concatenate(b), cones)[:n] * unit


@dataclass
class SparseOracle(Oracle):
    """Σ c ℓ(t) + l1 ‖w‖₁ + l2 ½‖w‖² where ‖w‖₁ ≤ radius, and w ≥ 0 if `positive`."""

    l1: float = 0.0
    l2: float = 0.0
    radius: float = np.inf
    positive: bool = False

    def value(self, w):
        """Return F(w)."""
        w = np.asarray(w, dtype=LONG)
        loss = self.cost @ self._loss(self.differences @ w - self.shift)
        return loss + LONG(self.l1) * np.abs(w).sum() + LONG(self.l2) * (w @ w) / 2

    @cached_property
    def solution(self):
        """Bounds on F* by others: nothing is known from below."""
        found = [np.zeros(self.differences.shape[1])]
        w = _sparse_qp(self)
        if np.isfinite(w).all():
            size = float(np.abs(w).sum())
            w = np.maximum(w, 0.0) if self.positive else w
            found.append(w * min(1.0, self.radius / size) if size > 0 else w)
            found.append(np.where(np.abs(found[-1]) > 1e-9 * size, found[-1], 0.0))
        return LONG(0), min(self.value(w) for w in found)


def _sparse_qp(oracle):
    """Minimise over the parts w = u − v and two slacks a pair: squares, and multiples."""
    theta, width = oracle._kink
    D, cost = oracle.differences.astype(float), oracle.cost.astype(float)
    p, n = D.shape
    units = 1.0 / np.where(D.any(axis=0), np.abs(D).max(axis=0), 1.0)  # of the weights
    size = 1.0 / float(cost.sum())  # of the objective
    square = np.zeros(p) if width == 0 else 2 * cost * size
    linear = cost * size * (1.0 if width == 0 else 2 * width)
    linear = linear if np.isfinite(width) else np.full(p, 1e6)
    ridge = oracle.l2 * size * np.diag(units**2)
    P = sp.block_diag([np.block([[ridge, -ridge], [-ridge, ridge]]), sp.diags_array(square),
                       sp.csc_array((p, p))])  # fmt: skip
    l1 = oracle.l1 * size * units
    q = np.concatenate([l1, l1, np.zeros(p), linear])
    eye, none = sp.eye_array(p), sp.csc_array((p, p))
    scaled = D * units
    A = [
        sp.hstack([-scaled, scaled, none if width == 0 else -eye, -eye]),
        -sp.eye_array(2 * n + 2 * p),
    ]
    b = [-(theta + oracle.shift.astype(float)), np.zeros(2 * n + 2 * p)]
    if np.isfinite(oracle.radius):
        largest = units.max()
        A.append(np.concatenate([units, units, np.zeros(2 * p)])[None] / largest)
        b.append([oracle.radius / largest])
    if oracle.positive:
        A.append(sp.eye_array(n, 2 * n + 2 * p, k=n))
        b.append(np.zeros(n))
    b = np.concatenate(b)
    x = _solve(P, q, sp.vstack(list(map(sp.csc_array, A))), b, [clarabel.NonnegativeConeT(len(b))])
    return (x[:n] - x[n : 2 * n]) * units
