"""Preconditioners: the interface, the diagonal, and factorized Hessians."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from marginrank._utils.types import Floats
from marginrank.objective.objective import Objective, Point
from marginrank.solvers.result import Curvature

FACTOR_COST = 0.02  # time of factorizing an m × m system per m³, in entries of X of a product
PAIRS_COST = 20.0  # time of a document's pairs in a product, in entries of X
JITTERS = (1e-14, 1e-11, 1e-8)  # ridges that keep the factorization of a unit diagonal defined


class Preconditioner(ABC):
    """An operator P close to ∇²F(w)."""

    exact = False  # P is the Hessian
    faithful = False  # P is close to the Hessian, so conjugate gradients take a few steps
    lowest = 0.0  # lower bound on the eigenvalues of P⁻¹∇²F, if P is not faithful
    inexact = False  # steps that are not the last one need no bound, as they are cheap to repeat
    cost = 0.0  # sweeps that building it took
    curvature: Curvature | None = None  # its Hessian, for similar problems

    @abstractmethod
    def solve(self, v: Floats) -> Floats:
        """Return P⁻¹ v."""

    def direction(self, point: Point) -> Floats:
        """Return −P⁻¹∇F(w)."""
        return -self.solve(point.gradient)

    def hidden_by(self, errors: Floats) -> float:
        """Return ½ eᵀP⁻¹e for independent errors e of these sizes; zero if not known."""
        return 0.0


class Factorized(Preconditioner):
    """The Cholesky factor of the Hessian, or of the Hessian of a sample."""

    faithful = True

    def __init__(self, factor: tuple[Floats, bool], scale: Floats, *, exact: bool) -> None:
        self._factor = factor
        self._scale = scale
        self.exact = exact

    def solve(self, v: Floats) -> Floats:
        scaled = self._scale * v
        solution: Floats = self._scale * cho_solve(self._factor, scaled, check_finite=False)
        return solution

    def hidden_by(self, errors: Floats) -> float:
        # ½ Σ_j e_j² (P⁻¹)_jj, as Σ_j ‖L⁻¹ column j‖² is the trace.
        lower = self._factor[0]
        roots = solve_triangular(lower, np.diag(self._scale * errors), lower=True)
        return 0.5 * float(np.sum(roots * roots))


class Diagonal(Preconditioner):
    """The diagonal of the Hessian, or an approximation of it."""

    def __init__(self, diagonal: Floats, ridge: float, cost: float) -> None:
        self._inverse = 1.0 / diagonal
        self.lowest = ridge * float(np.min(self._inverse))  # as ∇²F ≥ ρI
        self.cost = cost

    def solve(self, v: Floats) -> Floats:
        return self._inverse * v


def factorized(
    hessian: Floats, *, exact: bool = False, jitters: Sequence[float] = JITTERS
) -> Factorized | None:
    """Return the Cholesky factorization of a Hessian; None if it is not positive definite."""
    # Features may differ in scale by many orders of magnitude. A unit diagonal keeps the
    # factorization accurate, and a tiny ridge keeps it defined.
    scale = 1.0 / np.sqrt(np.diag(hessian))
    factor = _cholesky(hessian * scale[:, None] * scale, jitters)
    return None if factor is None else Factorized(factor, scale, exact=exact)


def factor_cost(objective: Objective, order: int) -> float:
    """Return the cost of factorizing a matrix, in products."""
    of_row = objective.entries_per_document + PAIRS_COST
    return FACTOR_COST * order**3 / (objective.n_active_documents * of_row)


def _cholesky(matrix: Floats, jitters: Sequence[float]) -> tuple[Floats, bool] | None:
    for ridge in jitters:  # the smallest that works changes the Hessian least
        matrix[np.diag_indices_from(matrix)] += ridge
        try:
            factor: tuple[Floats, bool] = cho_factor(matrix, lower=True, check_finite=False)
            return factor
        except LinAlgError:
            continue
    return None
