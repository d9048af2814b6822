"""An independent judge of small problems over a cone: explicit pairs and a QP solver of others."""

from dataclasses import dataclass, field
from functools import cached_property

import clarabel
import numpy as np
import scipy.sparse as sp
from oracle import LONG, Judge

SQP_STEPS = 30


@dataclass
class ConeJudge(Judge):
    """F(w) over Gw ≥ 0, where G has the rows of `cone`."""

    cone: object = field(kw_only=True)  # a marginrank Cone: only its rows and projection are used

    @cached_property
    def rows(self):
        """G, dense."""
        total = np.zeros((self.cone.n_conditions, self.differences.shape[1]))
        first = 0
        for block in self.cone.blocks:
            total[first : first + len(block.rows), block.weights] = block.rows
            first += len(block.rows)
        return total

    @cached_property
    def solution(self):
        """Bounds on F* by others: nothing is known from below."""
        found = [np.zeros(self.differences.shape[1])]
        if len(self.loss.pieces) <= 2:
            found.append(self._inside(_pairs_qp(self)))
        if self.loss.smooth:
            found.append(_sqp(self, min(found, key=self.value)))
        return LONG(0), min(self.value(w) for w in found)

    def _inside(self, w):
        return self.cone.nearest(w)[0] if np.isfinite(w).all() else np.zeros(w.size)


def _solve(P, q, A, b):
    """Minimise ½xᵀPx + qᵀx over Ax ≤ b."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.NonnegativeConeT(len(b))]
    P, A = sp.csc_matrix(sp.triu(P)), sp.csc_matrix(A)
    return np.asarray(clarabel.DefaultSolver(P, q, A, b, cones, settings).solve().x)


def _pairs_qp(judge):
    """Minimise with two slacks a pair: squares, and multiples; a hinge has no squares."""
    theta, width = judge._kink
    D, cost = judge.differences.astype(float), judge.cost.astype(float)
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
        sp.hstack([-judge.rows, sp.csc_array((len(judge.rows), 2 * p))]),
    ])  # fmt: skip
    b = np.concatenate([-(theta + judge.shift.astype(float)), np.zeros(2 * p + len(judge.rows))])
    return _solve(P, q, A, b)[:n] * unit


def _sqp(judge, w):
    """Minimise a smooth loss by damped Newton steps over the cone."""
    D = judge.differences.astype(float)
    for _ in range(SQP_STEPS):
        t = D @ w - judge.shift.astype(float)
        curvature = np.maximum(judge.cost.astype(float) * judge.loss.curvature(t), 0.0)
        hessian = np.eye(w.size) + (D.T * curvature) @ D
        scale = 1.0 / np.sqrt(np.diag(hessian))
        gradient = judge.gradient(w).astype(float)
        total = max(float(np.abs(gradient * scale).max()), 1e-300)
        step = scale * total * _solve(
            sp.csc_array(hessian * scale[:, None] * scale),
            gradient * scale / total,
            -judge.rows * scale,
            judge.rows @ w / total,
        )  # fmt: skip
        size = 1.0
        while size > 1e-6:
            trial = judge._inside(w + size * step)
            if judge.value(trial) < judge.value(w):
                break
            size /= 2
        else:
            return w
        w = trial
    return w
