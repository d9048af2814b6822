"""The small quadratic programme of the bundle methods, by a primal active-set method.

    max_β  Σ β_k b_k − ½‖Σ β_k g_k‖²,   β ≥ 0, Σ β_k = 1.

Its gradient holds the heights h_k = b_k + g_kᵀw of the planes at w = −Σ β_k g_k. Weights are the
best if no plane is higher than those they are on; max_k h_k − Σ β_k h_k bounds what they miss.

As in Wolfe's algorithm for the point of smallest norm (1976), the slopes of the planes in use are
affinely independent. A step goes towards the best weights on these planes alone. Where a weight
becomes zero it ends, and that plane goes; where none does, the highest plane comes in.

Planes with slopes of 1e9 have weights of 1e-9 next to a plane with none. So no tolerance is one on
weights: steps come from a triangular factor of slopes that were scaled to length one, and heights
are equal if rounding may have made the difference.
"""

import numpy as np
from scipy.linalg import qr, solve_triangular

from marginrank._base.types import Floats
from marginrank.objective.objective import PRECISION

ROUNDING = 4.0 * PRECISION  # of a sum, relative to its terms
STEPS = 20  # for each plane, at most: where rounding rules, planes might come and go for ever


def plane_weights(slopes: Floats, intercepts: Floats, beta: Floats) -> Floats:
    """Return the weights on planes that give the highest bound.

    Parameters
    ----------
    slopes : ndarray of shape (n_planes, n)
        The g_k.
    intercepts : ndarray of shape (n_planes,)
        The b_k.
    beta : ndarray of shape (n_planes,)
        Weights to start from; those of a bundle with fewer planes save steps.
    """
    programme = _Programme(slopes, intercepts, beta)
    for _ in range(STEPS * beta.size):
        if programme.is_solved():
            break
        programme.step()
    return programme.beta / programme.beta.sum()


class _Programme:
    """Weights on planes, and the planes that they may be on."""

    def __init__(self, slopes: Floats, intercepts: Floats, beta: Floats) -> None:
        self.beta = beta.copy()
        self._slopes = slopes
        self._magnitudes = np.abs(slopes)
        self._norms = np.linalg.norm(slopes, axis=1)
        self._intercepts = intercepts
        self._used = np.flatnonzero(beta)  # the last one to come in is the last
        self._settled = False  # whether the last step came as far as it wanted

    def is_solved(self) -> bool:
        """Whether no plane is higher than those in use; else the highest comes in.

        Sets: _heights, _used
        """
        self._heights = self._measure()
        if not self._settled:
            return False
        others = self._heights.copy()
        others[self._used] = 0.0
        highest = int(np.argmax(others))
        self._used = np.append(self._used, highest)
        return bool(others[highest] <= 0.0)

    def _measure(self) -> Floats:
        """Return the heights of the planes above the mean of those in use."""
        heights = self._intercepts - self._slopes @ (self.beta @ self._slopes)
        terms = np.abs(self._intercepts) + self._magnitudes @ (self.beta @ self._magnitudes)
        above = heights - self.beta @ heights
        return np.where(np.abs(above) > ROUNDING * (terms + self.beta @ terms), above, 0.0)

    def step(self) -> None:
        """Move towards the best weights on the planes in use.

        Sets: beta, _used, _settled
        """
        direction, length = self._direction()
        falls = np.flatnonzero(direction < 0.0)
        limits = self.beta[self._used[falls]] / -direction[falls]
        self._settled = not limits.size or length <= limits.min()
        if self._settled:
            self.beta[self._used] += length * direction
            return
        first = falls[np.argmin(limits)]
        moved = self.beta[self._used] + limits.min() * direction
        self.beta[self._used] = np.maximum(moved, 0.0)
        self.beta[self._used[first]] = 0.0
        self._used = np.delete(self._used, first)

    def _direction(self) -> tuple[Floats, float]:
        """Return a change of the weights in use, of sum zero, and how far the bound rises on it."""
        # Against the smallest slope: its weight is what the others leave, with their rounding.
        reference = int(np.argmin(self._norms[self._used]))
        slopes = self._slopes[self._used]
        differences = np.delete(slopes - slopes[reference], reference, axis=0)
        norms = np.delete(self._norms[self._used], reference) + self._norms[self._used[reference]]
        lengths = np.linalg.norm(differences, axis=1)
        lengths[lengths == 0.0] = 1.0
        factor = _triangle(differences / lengths[:, None])
        heights = self._heights[self._used]
        rises = np.delete(heights - heights[reference], reference) / lengths
        dependent = np.flatnonzero(np.abs(np.diag(factor)) <= ROUNDING * norms / lengths)
        if dependent.size:
            changes = _null_vector(factor, dependent[0])
            changes *= np.copysign(1.0, changes @ rises)
            length = np.inf
        else:
            changes = solve_triangular(factor, solve_triangular(factor, rises, trans="T"))
            curvature = np.sum((factor @ changes) ** 2)
            length = float(changes @ rises / curvature) if curvature > 0 else 0.0
        changes /= lengths
        return np.insert(changes, reference, -changes.sum()), length


def _triangle(rows: Floats) -> Floats:
    """Return the upper triangular R of rowsᵀ = QR, square: more rows than columns add zeros."""
    factor: Floats = np.zeros((len(rows), len(rows)))
    upper = qr(rows.T, mode="r", check_finite=False)[0][: len(rows)]
    factor[: len(upper)] = upper
    return factor


def _null_vector(factor: Floats, column: int) -> Floats:
    """Return the combination of columns that vanishes but for rounding."""
    vector = np.zeros(len(factor))
    vector[column] = 1.0
    vector[:column] = -solve_triangular(factor[:column, :column], factor[:column, column])
    return vector
