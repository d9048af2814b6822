"""The small quadratic program of the cutting-plane methods: the lowest point of planes plus ridge.

Plane k has height b_k + g_kᵀv at v. The v that minimizes ½‖v‖² plus the height of the highest plane
is −Σ β_k g_k, where the weights β of the planes maximize

    Σ β_k b_k − ½‖Σ β_k g_k‖²,   β ≥ 0, Σ β_k = 1.

The method is a primal active-set method. As in Wolfe's algorithm for the point of smallest norm
(1976), the slopes g_k of the planes in use are affinely independent. A step goes to the best
weights on these planes alone, which makes them equally high at v. If a weight becomes zero on the
way, the step ends and that plane is dropped. After a full step the plane that is highest at v is
added; if it is in use already, v is optimal.

Slopes may be of any size: 1e9 if C is large and pairs are many. Next to a plane of slope zero such
planes have weights of 1e-9, so no tolerance can apply to weights. Without that plane v is a sum of
slopes of 1e9 that cancel, so v is computed from the heights of the planes instead.
"""

import numpy as np
from scipy.linalg import solve_triangular

from marginrank._utils.types import Floats
from marginrank.objective.objective import PRECISION

ROUNDING = 4.0 * PRECISION  # rounding error of a sum, relative to its terms
ROUNDS = 10  # most steps per plane: rounding could add and drop planes forever


def lowest_point(slopes: Floats, intercepts: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Return the v that minimizes ½‖v‖² + max_k (b_k + g_kᵀv), and the weights β of the planes.

    At the minimum, v = −Σ β_k g_k. Row k of `slopes` is g_k, and `intercepts` are the b_k. `beta`
    are initial weights; slopes with a positive weight must be affinely independent.
    """
    program = _Program(slopes, intercepts, beta)
    for _ in range(ROUNDS * beta.size):
        if not (program.settle() and program.add_highest()):
            break
    return program.v, program.beta


class _Program:
    """State of the quadratic program over cutting planes: planes, their weights and the minimum."""

    def __init__(self, slopes: Floats, intercepts: Floats, beta: Floats) -> None:
        self.beta = beta.copy()
        self.v: Floats = np.zeros(slopes.shape[1])
        self._slopes = slopes
        self._intercepts = intercepts
        self._used = np.flatnonzero(beta)  # in the order in which they were added

    def add_highest(self) -> bool:
        """Add the plane that is highest at the current solution to the planes in use.

        Return False if it is already in use.
        """
        heights = self._intercepts + self._slopes @ self.v
        terms = np.abs(self._intercepts) + np.abs(self._slopes) @ np.abs(self.v)
        top = self._used[np.argmax(heights[self._used])]
        above = heights - heights[top] - ROUNDING * (terms + terms[top])
        highest = np.argmax(above)
        if above[highest] <= 0.0:
            return False
        self._used = np.append(self._used, highest)
        return True

    def settle(self) -> bool:
        """Set the attributes beta and v to the best weights of the planes in use and their minimum.

        Planes whose weight becomes zero are dropped. Return False if the plane that was added last
        would get no weight.
        """
        while True:
            before = self.beta[self._used]
            hull = _Hull(self._slopes[self._used], self._intercepts[self._used])
            change = hull.best_weights() - before if hull.is_regular else hull.free_change()
            falls = np.flatnonzero(before + change <= 0.0)
            if not falls.size:
                self.beta[self._used] = before + change
                self.v = hull.lowest_point()
                return True
            if not before[falls].all():
                return False
            shares = before[falls] / -change[falls]
            after = np.maximum(before + shares.min() * change, 0.0)
            after[falls[np.argmin(shares)]] = 0.0
            self.beta[self._used] = after
            self._used = self._used[after > 0.0]


class _Hull:
    """The quadratic program on the planes in use, with weights of any sign that sum to one.

    One plane is the reference. The slopes of the others minus the slope of the reference, scaled to
    length one, are factorized.
    """

    def __init__(self, slopes: Floats, intercepts: Floats) -> None:
        norms = np.linalg.norm(slopes, axis=1)
        # The weight of the reference is 1 − Σ others, so it has the rounding error of all others.
        # The error does least harm at the smallest slope.
        self._reference = int(np.argmin(norms))
        self._slope = slopes[self._reference]
        differences = np.delete(slopes, self._reference, axis=0) - self._slope
        lengths = np.linalg.norm(differences, axis=1)
        self._lengths = np.where(lengths > 0.0, lengths, 1.0)
        rises = np.delete(intercepts, self._reference) - intercepts[self._reference]
        self._rises = rises / self._lengths
        self._basis, self._factor = np.linalg.qr((differences / self._lengths[:, None]).T)
        left = np.zeros(lengths.size)  # part of a difference outside the span of earlier ones
        left[: len(self._factor)] = np.abs(np.diag(self._factor))
        terms = np.delete(norms, self._reference) + norms[self._reference]
        self._dependent = np.flatnonzero(left * self._lengths <= ROUNDING * terms)

    @property
    def is_regular(self) -> bool:
        return not self._dependent.size  # the slopes are affinely independent

    def lowest_point(self) -> Floats:
        """Return the v with the smallest ½‖v‖² + h at which all planes have the same height h."""
        outside = self._slope
        for _ in range(2):  # after one pass, rounding of the slope may exceed v
            outside = outside - self._basis @ (outside @ self._basis)
        v: Floats = self._basis @ self._heights_equal() - outside
        return v

    def best_weights(self) -> Floats:
        missing = -(self._heights_equal() + self._slope @ self._basis)
        weights = _solve(self._factor, missing) / self._lengths
        return np.insert(weights, self._reference, 1.0 - weights.sum())

    def _heights_equal(self) -> Floats:
        # The part of v in the span of the differences, as coordinates.
        return _solve(self._factor, -self._rises, transposed=True)

    def free_change(self) -> Floats:
        """Return a change of the weights β of the planes that does not change Σ β_k g_k or Σ β_k.

        Its smallest entry is −1, so all or part of the change makes the weight of a plane zero. The
        last plane gains weight, because it is higher at the current solution than the other planes,
        which are equally high.
        """
        column = self._dependent[0]
        change = np.zeros(self._lengths.size)
        change[column] = 1.0
        change[:column] = -_solve(self._factor[:column, :column], self._factor[:column, column])
        change /= self._lengths
        change = np.insert(change, self._reference, -change.sum())
        change *= np.copysign(1.0, change[-1])
        change /= -change.min()
        return change


def _solve(factor: Floats, right: Floats, transposed: bool = False) -> Floats:
    if not right.size:  # LAPACK rejects empty matrices
        return right
    solution: Floats = solve_triangular(factor, right, trans=int(transposed), check_finite=False)
    return solution
