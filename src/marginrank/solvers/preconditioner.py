"""Approximations of the Hessian that are easy to invert."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from marginrank.objective import Point

Floats = NDArray[np.float64]

HESSIAN_FEATURES = 1024  # with more, forming a Hessian costs more than it saves
SMALL_SAMPLE = 4096  # documents
SAMPLE_PER_FEATURE = 48  # documents for each feature that make a good preconditioner


class Preconditioner(ABC):
    """An operator P close to ∇²F(w)."""

    exact = False  # P is the Hessian
    faithful = False  # P is near the Hessian, so that conjugate gradients end in a few steps
    safety = 1e4  # on the Newton decrement as an estimate of F − F*

    @abstractmethod
    def solve(self, v: Floats) -> Floats:
        """Return P⁻¹ v."""


class Factorised(Preconditioner):
    """The Hessian, or that of a sample, by its Cholesky factor."""

    safety = 2.0

    def __init__(self, hessian: Floats, exact: bool) -> None:
        overflow = np.flatnonzero(~np.isfinite(hessian).all(axis=0))
        if overflow.size:
            raise ValueError(
                f"X[:, {overflow[0]}] has values so large that sums overflow; scale the feature."
            )
        # Features may differ in scale by many orders of magnitude; a unit diagonal keeps the
        # factorisation accurate, and a tiny ridge keeps it defined.
        self._scale = 1.0 / np.sqrt(np.diag(hessian))
        hessian *= self._scale[:, None]
        hessian *= self._scale
        factor = _cholesky(hessian)
        self.exact = exact and factor is not None
        self.faithful = factor is not None
        self._factor = (np.eye(len(hessian)), True) if factor is None else factor

    def solve(self, v: Floats) -> Floats:
        """Return P⁻¹ v."""
        solution: Floats = self._scale * cho_solve(self._factor, self._scale * v)
        return solution


def _cholesky(matrix: Floats) -> tuple[Floats, bool] | None:
    for ridge in (1e-14, 1e-11, 1e-8):
        matrix[np.diag_indices_from(matrix)] += ridge
        try:
            factor: tuple[Floats, bool] = cho_factor(matrix, lower=True, check_finite=False)
            return factor
        except LinAlgError:
            continue
    return None


class Diagonal(Preconditioner):
    """The diagonal of the Hessian."""

    def __init__(self, diagonal: Floats) -> None:
        self._inverse = 1.0 / diagonal

    def solve(self, v: Floats) -> Floats:
        """Return P⁻¹ v."""
        return self._inverse * v


def precondition(point: Point, seed: int) -> Preconditioner:
    """Build the preconditioner that suits the size of the problem at `point`."""
    objective = point.objective
    n, n_documents = objective.n_features, objective.n_active_documents
    if n > HESSIAN_FEATURES:
        return Diagonal(point.hess_diag())
    size = max(SMALL_SAMPLE, SAMPLE_PER_FEATURE * n)
    if 3 * size >= n_documents:
        return Factorised(point.hessian(), exact=True)
    sample = objective.sample(size / n_documents, seed)
    return Factorised(sample.at(point.w).hessian(), exact=False)
