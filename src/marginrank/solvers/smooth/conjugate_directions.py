"""Newton directions for several problems, by conjugate gradients that share passes over X.

A *point* is the objective of one problem, evaluated at its current weights.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats
from marginrank.objective.objective import Point
from marginrank.objective.protocols import Scores
from marginrank.objective.together import hess_vecs
from marginrank.solvers.smooth.preconditioner import Preconditioner


class Accuracy(NamedTuple):
    """The stopping rule of conjugate gradients for a Newton direction.

    Along the direction, the quadratic model of the objective decreases by an amount D. Along the
    exact Newton direction, it may decrease further, by at most max(share · D, least).
    """

    share: float
    least: float
    is_proven: bool  # whether the further decrease must be bounded, not just estimated


class PathDirection(NamedTuple):
    """An approximate Newton direction d, its scores Xd, and bounds on its error.

    `decrement` is the decrease of the quadratic model along d. The exact Newton direction would
    decrease it further: `missing` is an estimate of this difference by the preconditioner, and
    `bound` a proven bound on it. `first` is the decrement that the preconditioner predicted before
    the first step.
    """

    vector: Floats
    scores: Scores
    decrement: float
    missing: float
    bound: float
    first: float
    n_products: int


def solve_together(
    points: Sequence[Point],
    preconditioners: Sequence[Preconditioner],
    accuracies: Sequence[Accuracy],
    most_products: int,
) -> list[PathDirection]:
    """Return approximate Newton directions d, with ∇²F d = −∇F, for several objectives F.

    Each step of conjugate gradients reads X once for all unfinished problems. A problem is finished
    when its accuracy or `most_products` is reached.
    """
    solves = [
        _ConjugateGradients(*one) for one in zip(points, preconditioners, accuracies, strict=True)
    ]
    for _ in range(most_products):
        active = [solve for solve in solves if not solve.is_done]
        if not active:
            break
        products = hess_vecs([solve.point for solve in active], [solve.search for solve in active])
        for solve, (product, scores) in zip(active, products, strict=True):
            solve.advance(product, scores)
    return [solve.direction for solve in solves]


class _ConjugateGradients:
    """State of conjugate gradients for one problem; the Hessian is multiplied by `search` next."""

    def __init__(self, point: Point, preconditioner: Preconditioner, accuracy: Accuracy) -> None:
        self.point = point
        self._preconditioner = preconditioner
        self._accuracy = accuracy
        self._residual = -point.gradient
        self.search = preconditioner.solve(self._residual)
        self._rho = float(self._residual @ self.search)
        first = 0.5 * self._rho
        still = point.objective.space.zero()
        self.direction = PathDirection(
            np.zeros_like(point.w), still, 0.0, first, self._bound(), first, 0
        )

    def _bound(self) -> float:
        # The residual r hides a decrease of ½ rᵀH⁻¹r, and H ≥ ρI.
        return 0.5 * float(self._residual @ self._residual) / self.point.objective.ridge

    @property
    def is_done(self) -> bool:
        d, accuracy = self.direction, self._accuracy
        if not self._rho > 0.0:
            return True
        missing = d.bound if accuracy.is_proven else d.missing
        return d.n_products > 0 and missing <= max(accuracy.share * d.decrement, accuracy.least)

    def advance(self, product: Floats, scores: Scores) -> None:
        """Make one step of conjugate gradients along the attribute `search`.

        `product` is the Hessian times `search`, and `scores` is X times `search`.
        """
        d, p = self.direction, self.search
        alpha = self._rho / float(p @ product)
        gain = 0.5 * alpha * self._rho
        self._residual = self._residual - alpha * product
        z = self._preconditioner.solve(self._residual)
        rho, self._rho = self._rho, float(self._residual @ z)
        self.search = z + self._rho / rho * p
        n_products = d.n_products + 1
        self.direction = PathDirection(
            d.vector + alpha * p,
            self.point.objective.space.add(d.scores, alpha, scores),
            d.decrement + gain,
            0.5 * self._rho,
            self._bound(),
            d.first,
            n_products,
        )
