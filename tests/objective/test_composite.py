"""The certificate of sparse problems, against duals over explicit pairs."""

import numpy as np
import pytest
from helpers.brute_force import explicit_pairs
from helpers.objectives import make_objective
from helpers.tables import each

from marginrank import RankingData, make_ranking
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite
from marginrank.objective.losses import LOSSES, Loss, Piece
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.solvers.sparse.proximal_newton import proximal_newton

X, Y, QID = make_ranking(6, (3, 12), 5, random_state=3)
MARGINS = np.random.default_rng(0).normal(size=len(Y)) * 0.2
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, size=len(Y))
EXACT = [LOSSES["squared_hinge"], LOSSES["huber"]]  # whose bound on the conjugate is an equation
REGULARIZERS = [
    L1Ball(0.7),
    L1Ball(0.7, positive=True),
    L1Ball(50.0),
    ElasticNet(0.2),
    ElasticNet(0.02, 0.3),
    ElasticNet(0.02, positive=True),
    ElasticNet(0.0, 0.5),
]


def conjugate(loss, beta, lowest):
    """ℓ*(β) = sup βt − ℓ(t) on a fine grid; for β = τℓ'(t) with τ ≤ 1 it is attained above t."""
    t = np.linspace(lowest - 1.0, 3.0, 20_001)
    values = loss.value(t)
    return np.array([np.max(b * t - values) for b in beta])


def dual_gap(loss, regularizer, w, margins):
    """Return the smallest primal minus dual over multiples of the loss's derivative."""
    pairs = explicit_pairs(Y, QID, sample_weight=WEIGHTS, margin=margins)
    c = pairs.weight / pairs.weight.sum()
    K = X[pairs.preferred] - X[pairs.other]
    t = K @ w - pairs.shift
    derivative = loss.derivative(t)
    primal = c @ loss.value(t) + regularizer.value(w)
    gradient = K.T @ (c * derivative)
    ray = regularizer.ray(gradient)
    best = np.inf
    for tau in np.linspace(0.0, 1.0, 21) * min(1.0, ray.limit):
        beta = tau * derivative
        dual_loss = c @ (conjugate(loss, beta, t.min()) + beta * pairs.shift)
        best = min(best, primal + dual_loss + ray.conjugate(tau)[0])
    return best


@each("margins", [None, MARGINS])
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("loss", EXACT, ids=lambda loss: loss.name)
def test_the_gap_is_that_of_the_dual_over_explicit_pairs(loss, regularizer, margins):
    data = RankingData(X, Y, QID, sample_weight=WEIGHTS)
    objective = make_objective(data, loss, normalization="pairs", ridge=0.0, margins=margins)
    optimum = proximal_newton(objective, regularizer, tol=1e-11)
    rng = np.random.default_rng(2)
    for noise in (0.0, 1e-2, 1.0):
        w = optimum.w + noise * rng.normal(size=5)
        w = regularizer.prox(np.abs(w) if regularizer.positive else w, 0.0)
        point = Composite(objective, regularizer).at(w)
        assert point.value - optimum.objective <= point.gap + 1e-12
        expected = dual_gap(loss, regularizer, w, margins)
        assert point.gap <= expected + 1e-6
        assert point.gap >= 0.95 * expected - 1e-6


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_the_gap_of_the_logistic_loss_is_a_bound(regularizer):
    """Its conjugate is bounded, not known."""
    objective = make_objective(
        RankingData(X, Y, QID), LOSSES["logistic"], normalization="pairs", ridge=0.0
    )
    optimum = proximal_newton(objective, regularizer, tol=1e-9)
    assert optimum.stop.converged
    for noise in (1e-3, 1e-2, 0.1):
        w = optimum.w + noise * np.random.default_rng(2).normal(size=5)
        w = regularizer.prox(np.abs(w) if regularizer.positive else w, 0.0)
        point = Composite(objective, regularizer).at(w)
        assert point.value - optimum.objective + optimum.gap >= 0
        assert point.value - optimum.objective <= point.gap


def test_in_the_ball_the_gap_is_at_most_that_of_frank_wolfe():
    objective = make_objective(
        RankingData(X, Y, QID), LOSSES["squared_hinge"], normalization="pairs", ridge=0.0
    )
    w = np.array([0.3, -0.2, 0.0, 0.1, 0.0])
    point = Composite(objective, L1Ball(1.0)).at(w)
    gradient = point.base.gradient
    frank_wolfe = w @ gradient + np.abs(gradient).max()
    assert point.gap <= frank_wolfe
    assert point.gap == pytest.approx(
        min(frank_wolfe - frank_wolfe**2 / (4 * point.value), point.value), rel=1e-9
    )


def test_without_an_l1_term_the_gap_is_that_of_a_ridge():
    objective = make_objective(RankingData(X, Y, QID), LOSSES["squared_hinge"], ridge=0.0)
    ridge = make_objective(RankingData(X, Y, QID), LOSSES["squared_hinge"], ridge=1.0)
    w = proximal_newton(objective, ElasticNet(0.0, 1.0), tol=1e-3).w
    point = Composite(objective, ElasticNet(0.0, 1.0)).at(w)
    assert point.value == pytest.approx(ridge.at(w).value, rel=1e-14)
    assert point.gap <= ridge.at(w).gap * (1 + 1e-9)
    assert point.gap >= 0.5 * ridge.at(w).gap


def test_the_gradient_mapping_is_zero_at_the_optimum():
    objective = make_objective(
        RankingData(X, Y, QID), LOSSES["huber"], normalization="pairs", ridge=0.0
    )
    for regularizer in REGULARIZERS:
        w = proximal_newton(objective, regularizer, tol=1e-12).w
        point = Composite(objective, regularizer).at(w)
        assert np.linalg.norm(point.gradient) <= 1e-6
        assert np.linalg.norm(Composite(objective, regularizer).at(0.5 * w).gradient) > 1e-3


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_the_gap_bounds_the_distance_for_a_loss_of_several_pieces(regularizer):
    pieces = (Piece(0.6, 1.0, 2), Piece(-0.2, 0.4, 2), Piece(-0.3, -0.3, 2))
    loss = Loss("three slopes of the derivative", pieces)
    objective = make_objective(RankingData(X, Y, QID), loss, normalization="pairs", ridge=0.0)
    optimum = proximal_newton(objective, regularizer, tol=1e-10)
    assert optimum.stop is StopReason.CERTIFIED
    rng = np.random.default_rng(3)
    for _ in range(5):
        w = optimum.w + 0.3 * rng.normal(size=5)
        w = regularizer.prox(np.abs(w) if regularizer.positive else w, 0.0)
        point = Composite(objective, regularizer).at(w)
        assert point.value - optimum.objective <= point.gap + 1e-12
        assert point.gap <= point.value * (1 + 1e-12)
