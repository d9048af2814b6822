"""An independent judge of small problems: explicit pairs, a QP solver of others, long arithmetic.

A dual point, clipped to where it is feasible, bounds F* from below whatever its origin; any w
bounds it from above. Both are evaluated in long double precision over explicit pairs, so that what
a fit claims can be held against them.
"""

from dataclasses import dataclass
from functools import cached_property

import clarabel
import numpy as np
import scipy.sparse as sp
from brute_force import ExplicitPairs

LONG = np.longdouble


@dataclass
class Judge:
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
            slack = np.maximum(LONG(0), LONG(piece.theta) - t)
            total += LONG(piece.coefficient) * slack**piece.power
        return total

    def slopes(self, w):
        """Return −ℓ'(t) for each pair, which is a dual point once it is multiplied by its cost."""
        t = self.differences @ np.asarray(w, dtype=LONG) - self.shift
        total = np.zeros_like(t)
        for piece in self.loss.pieces:
            slack = np.maximum(LONG(0), LONG(piece.theta) - t)
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
        if len(self.loss.pieces) > 2:
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


def _clarabel(judge, scale):
    """Solve min ½‖v‖² + Σ α²/4c − Σ (θ + shift) α, v = Dᵀα, 0 ≤ α ≤ limit, and return α."""
    theta, width = judge._kink
    D = judge.differences.astype(float)
    cost = judge.cost.astype(float)
    p, n = D.shape
    largest = float(np.abs(D).max())
    unit = 1.0 / largest if scale and largest > 0 else 1.0  # of w
    D = D * unit
    size = float(cost.max()) if scale else 1.0  # of α
    quadratic = np.zeros(p) if width == 0 else size / (2 * cost)
    P = sp.diags_array(np.concatenate([quadratic, np.full(n, size / unit**2)]), format="csc")
    q = np.concatenate([-(theta + judge.shift.astype(float)), np.zeros(n)])
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
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    solver = clarabel.DefaultSolver(
        sp.csc_matrix(P), q, sp.csc_matrix(sp.vstack(A)), np.concatenate(b), cones, settings
    )
    return np.asarray(solver.solve().x[:p]) * size


def _newton(judge, iterations=100):
    """Minimise a smooth loss by damped Newton steps, with gradients in long double precision."""
    w = np.zeros(judge.differences.shape[1])
    D = judge.differences.astype(float)
    value = judge.value(w)
    for _ in range(iterations):
        curvature = np.asarray(
            judge.cost * judge.loss.curvature(D @ w - judge.shift.astype(float)), dtype=float
        )
        root = np.sqrt(np.maximum(curvature, 0.0))[:, None] * D
        # (I + RᵀR)⁻¹ g by an orthogonal decomposition, which keeps badly scaled features apart
        g = judge.gradient(w).astype(float)
        stacked = np.vstack([np.eye(w.size), root])
        scale = np.linalg.norm(stacked, axis=0)
        r = np.linalg.qr(stacked / scale, mode="r")
        step = -np.linalg.solve(r, np.linalg.solve(r.T, g / scale)) / scale
        size = 1.0
        while size > 1e-10 and not judge.value(w + size * step) < value:
            size /= 2
        if size <= 1e-10:
            break
        w = w + size * step
        value = judge.value(w)
    return w
