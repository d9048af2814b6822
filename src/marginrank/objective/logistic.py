"""The logistic loss as a piecewise quadratic.

ℓ(t) = log(1 + exp(−t)) is approximated by q(t) = Σ a_m max(0, θ_m − t)² with symmetric knots
θ_1 > … > θ_M. For given knots, the a_m with the smallest max |q − ℓ| solve a linear program. q is
constrained to be convex (its curvature 2 Σ_{i ≤ m} a_i between two knots is not negative), zero
right of the knots and −t left of them, like ℓ up to a small error.
"""

from functools import lru_cache

import numpy as np

from marginrank._utils.types import Floats

SMALLEST_ERROR, LARGEST_ERROR = 1e-5, 0.1
GRID = 600


@lru_cache
def logistic_pieces(error: float) -> tuple[tuple[float, float], ...]:
    """Return pairs (a, θ) of quadratic pieces that sum to the logistic loss to within `error`."""
    if not SMALLEST_ERROR <= error <= LARGEST_ERROR:
        raise ValueError(
            f"error={error:g} must be between {SMALLEST_ERROR:g} and {LARGEST_ERROR:g}."
        )
    # ℓ is about exp(−t) where the approximation ends; half of the error is for the cut there.
    reach = np.log(2.0 / error)
    n_knots = 3
    while True:
        knots = _knots(n_knots, reach)
        coefficients = _fit(knots, reach)
        if coefficients is not None and _largest_error(coefficients, knots) <= error:
            return tuple(zip(coefficients.tolist(), knots.tolist(), strict=True))
        n_knots += 1


def _knots(n_knots: int, reach: float) -> Floats:
    # Equal shares of ∫ |ℓ'''|^{1/3} between the knots make the error about the same everywhere.
    t = np.linspace(-reach, reach, 4001)
    sigmoid = 1.0 / (1.0 + np.exp(-t))
    third = np.abs(sigmoid * (1.0 - sigmoid) * (1.0 - 2.0 * sigmoid))
    density = np.cbrt(third + 1e-3 * third.max())
    share = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    knots = np.interp(np.linspace(share[-1], 0.0, n_knots), share, t)
    return 0.5 * (knots - knots[::-1])


def _fit(knots: Floats, reach: float) -> Floats | None:
    from scipy.optimize import linprog

    n = knots.size
    t = np.linspace(-reach - 1.0, reach + 1.0, GRID)
    basis = np.maximum(0.0, knots - t[:, None]) ** 2
    target = np.logaddexp(0.0, -t)
    curvature = np.tril(np.ones((n - 1, n)))
    bound = np.ones((t.size, 1))
    solution = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.block([[basis, -bound], [-basis, -bound], [-curvature, np.zeros((n - 1, 1))]]),
        b_ub=np.concatenate([target, -target, np.zeros(n - 1)]),
        A_eq=np.column_stack([[np.ones(n), 2.0 * knots, knots**2], np.zeros(3)]),
        b_eq=[0.0, 1.0, 0.0],
        bounds=[(None, None)] * n + [(0.0, None)],
    )
    return solution.x[:n] if solution.success else None


def _largest_error(coefficients: Floats, knots: Floats) -> float:
    t = np.linspace(-2.0 * knots[0], 2.0 * knots[0], 20 * GRID + 1)
    approximation = np.maximum(0.0, knots - t[:, None]) ** 2 @ coefficients
    return float(np.max(np.abs(approximation - np.logaddexp(0.0, -t))))
