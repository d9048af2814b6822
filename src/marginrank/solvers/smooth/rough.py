"""Rough Hessians: preconditioners for many features, by matrix products in single precision.

With more than a few hundred features, products with the Hessian are bound by memory and matrix
products are not, so the Hessian of a sample costs as much as a few products. It is made only after
conjugate gradients with the identity have taken about half as many: then it pays, and easy problems
do without it.
"""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import Objective, Point
from marginrank.solvers.smooth.factors import Factorized, Preconditioner, factor_cost, factorized

ROUGH_SAMPLE = 8  # rank per feature of the sample whose Hessian is a rough one
MOST_OF_DATA = 0.75  # a sample of a larger share saves too little
ROUGH_JITTERS = (1e-8, 1e-7, 1e-6, 1e-5)  # single precision needs larger ridges than double


class Rough(Preconditioner):
    """The Hessian of a sample in single precision.

    Nothing is known about its distance to the Hessian, so the eigenvalues of P⁻¹∇²F are bounded by
    ∇²F ≥ ρI and ‖P‖ alone.
    """

    inexact = True

    def __init__(self, factor: Factorized, norm: float, ridge: float, cost: float) -> None:
        self._factor = factor
        self.lowest = ridge / norm
        self.cost = cost

    def solve(self, v: Floats) -> Floats:
        return self._factor.solve(v)


class Identity(Preconditioner):
    """No preconditioner."""

    inexact = True

    def __init__(self, ridge: float) -> None:
        self.lowest = ridge

    def solve(self, v: Floats) -> Floats:
        return v


def rough_cost(objective: Objective) -> float:
    """Return the predicted cost of a rough Hessian and its factorization, in products."""
    share = _rough_share(objective)
    return share * objective.rough_sweeps + factor_cost(objective, objective.n_features)


def _rough_share(objective: Objective) -> float:
    # Of the documents; if a sample would be most of them, it is all. The rank of a query is one
    # less than its documents, because pairs see differences only.
    pairs = objective.pairs
    rank = min(pairs.n_active_documents - pairs.n_queries, pairs.n_pairs)
    share = ROUGH_SAMPLE * objective.n_features / max(rank, 1)
    return share if share < MOST_OF_DATA else 1.0


def rough_at(point: Point, seed: int) -> Rough | None:
    """Return the Hessian of a sample; None if single precision is not enough for it."""
    objective, share = point.objective, _rough_share(point.objective)
    before = objective.sweeps
    here = point if share == 1.0 else objective.sample(share, seed).at(point.w)
    hessian = here.rough_hessian()
    norm = float(np.max(np.sum(np.abs(hessian), axis=0)))
    factor = factorized(hessian, jitters=ROUGH_JITTERS) if np.isfinite(norm) else None
    if factor is None:
        return None
    largest = (1.0 + 2.0 * ROUGH_JITTERS[-1]) * norm
    return Rough(factor, largest, objective.ridge, objective.sweeps - before)
