"""An independent judge of small problems with a penalty on groups: a cone solver of others."""

from dataclasses import dataclass, field
from functools import cached_property

import clarabel
import numpy as np
import scipy.sparse as sp
from oracle import LONG, Judge
from scipy.optimize import minimize


@dataclass
class GroupJudge(Judge):
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
        if len(self.loss.pieces) <= 2:
            w = _socp(self)
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


def _descent(judge):
    """Minimise a smooth loss with norms that are rounded off at zero."""
    units = 1.0 / np.maximum(np.abs(judge.differences.astype(float)).max(axis=0), 1e-300)
    units = np.where(units < 1e200, units, 1.0)

    def rounded(v):
        w = v * units
        norms = [np.sqrt(part @ part + 1e-20) for part in np.split(w, judge.starts[1:-1])]
        slopes = w / np.repeat(norms, np.diff(judge.starts))
        value = Judge.value(judge, w) + judge.weight * sum(norms)
        return float(value), units * (judge.gradient(w).astype(float) + judge.weight * slopes)

    found = minimize(rounded, np.full(units.size, 1e-3), jac=True, method="L-BFGS-B")
    return found.x * units


def _socp(judge):
    """Minimise with slacks for the pairs and for the norms."""
    theta, width = judge._kink
    D, cost = judge.differences.astype(float), judge.cost.astype(float)
    p, n = D.shape
    largest = float(np.abs(D).max())
    unit = 1.0 / largest if largest > 0 else 1.0  # of w
    size = 1.0 / float(cost.max())  # of the objective
    sizes = np.diff(judge.starts)
    K = sizes.size
    square = 2 * cost * size
    linear = 2 * width * cost * size if np.isfinite(width) else np.full(p, 1e6)
    P = sp.diags_array(np.concatenate([np.full(n, unit**2 * size), square, np.zeros(p + K)]))
    q = np.concatenate([np.zeros(n + p), linear, np.full(K, judge.weight * unit * size)])
    eye = sp.eye_array(p)
    A = [
        sp.hstack([-D * unit, -eye, -eye, sp.csc_array((p, K))]),
        sp.hstack([sp.csc_array((2 * p, n)), -sp.eye_array(2 * p), sp.csc_array((2 * p, K))]),
    ]
    b = [-(theta + judge.shift.astype(float)), np.zeros(2 * p)]
    cones = [clarabel.NonnegativeConeT(3 * p)]
    for k in range(K):
        rows = np.zeros((1 + sizes[k], n + 2 * p + K))
        rows[0, n + 2 * p + k] = -1.0
        rows[1:, judge.starts[k] : judge.starts[k + 1]] = -np.eye(sizes[k])
        A.append(sp.csc_array(rows))
        b.append(np.zeros(1 + sizes[k]))
        cones.append(clarabel.SecondOrderConeT(1 + int(sizes[k])))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    matrix = sp.csc_matrix(sp.vstack(A))
    solver = clarabel.DefaultSolver(sp.csc_matrix(P), q, matrix, np.concatenate(b), cones, settings)
    return np.asarray(solver.solve().x[:n]) * unit
