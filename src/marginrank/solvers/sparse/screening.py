"""Gap-safe screening: find features whose weight is proven to be zero at the minimum.

Let t = Kw be the score differences of the pairs, c their weights, ℓ the loss of a pair with ℓ'' ≤
M, and F(w) = f(t) + Ω(w) with a regularizer Ω. Let f* and Ω* be convex conjugates. The lower bound
D(α) = −f*(α) − Ω*(−Kᵀα) on the minimum F* is strongly concave, so its maximizer α* is not far from
α = τ f'(t), where D(α) ≥ F(w) − gap and D(α*) = F* ≤ F(w):

    Σ (α − α*)² / (2 M c) ≤ D(α*) − D(α) ≤ gap.

By the Cauchy-Schwarz inequality, |K_jᵀα*| for feature j is within √(2 gap · M Σ c K_j²) of τ
|∂L/∂w_j|, where Σ c K_j² sums the squared differences of feature j over the pairs, and L(w) = f(t).
A weight for which |K_jᵀα*| is certainly too small is zero at every minimum (Ndiaye, Fercoq,
Gramfort and Salmon, 2017, for the lasso). The problem without such features has the same minimum,
so bounds for it hold for the whole problem.
"""

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.objective.composite import Composite, L1Point, L1Problem
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective

FEW_ENTRIES = 32  # with at most this many entries per row, Σ c K_j² takes at most four sweeps
WORTHWHILE = 0.25  # columns are copied if at most this share of the features is left


def squared_differences(objective: Objective) -> Floats:
    """Return the squared differences of each feature, summed over all pairs, times a constant.

    For feature j it is M Σ c (x_ij − x_kj)² over pairs (i, k) with weights c, where M bounds the
    second derivative of the loss. If rows of X have many entries, the result is an upper bound.
    """
    # At w = 0 every pair has the curvature 2 of the squared hinge, and the loss 1.
    zero = objective.with_loss(LOSSES["squared_hinge"]).at_zero()
    most = objective.loss.largest_curvature
    if objective.entries_per_document <= FEW_ENTRIES:
        return 0.5 * most * zero.hess_diag()
    return most * zero.loss_value * (2.0 * objective.feature_magnitudes) ** 2


def survivors(point: L1Point, squares: Floats) -> Integers:
    """Return the features that are not proven to have weight zero at the minimum.

    Features with a non-zero weight at `point` are included. `squares` are the
    :func:`squared_differences` of the features.
    """
    gradient, tau = point.base.gradient, point.dual_multiple.tau
    error = np.sqrt(2.0 * point.scaled_gap * squares)
    error += point.base.slope_rounding * point.objective.feature_magnitudes
    zero = point.composite.regularizer.excludes(tau * gradient, error)
    return np.flatnonzero((point.w != 0) | ~zero)


class Screen:
    """Restricts a problem to a subset of its features, and converts results back.

    All other features are proven to have weight zero at the minimum.
    """

    def __init__(self, whole: L1Problem) -> None:
        self.whole = whole
        self._features = np.arange(whole.objective.n_features)

    def narrow(self, point: L1Point, squares: Floats) -> L1Point:
        """Return `point` restricted to features that are not proven to have weight zero.

        Return it unchanged if most features are left, because their columns are copied. `squares`
        are the :func:`squared_differences` of all features of the whole problem.
        """
        kept = survivors(point, squares[self._features])
        if kept.size > WORTHWHILE * point.w.size:
            return point
        self._features = self._features[kept]
        loss = point.base.through(kept)
        return Composite(loss.objective, point.composite.regularizer).wrap(loss)

    def widen(self, point: L1Point) -> L1Point:
        """Return `point` as a point of the whole problem; its error bound stays valid."""
        if point.composite is self.whole:
            return point
        whole = self.whole.at(
            self._spread(point.w), point.scores, self._spread(point.accumulated_update)
        )
        whole.certify(point.gap)
        return whole

    def _spread(self, values: Floats) -> Floats:
        spread = np.zeros(self.whole.objective.n_features)
        spread[self._features] = values
        return spread
