"""Lower bounds from a parabola a group of queries, against optima and explicit pairs."""

import numpy as np
import pytest
from helpers.brute_force import explicit_pairs
from helpers.objectives import make_objective
from scipy.optimize import minimize

from marginrank import RankingData, make_ranking
from marginrank.objective.composite import Composite
from marginrank.objective.losses import LOSSES
from marginrank.objective.protocols import GroupedLoss
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.solvers.sparse.parabolas import parabola_bound, tighten
from marginrank.solvers.sparse.proximal_newton import proximal_newton

X, Y, QID = make_ranking(40, (3, 12), 5, random_state=3)
RNG = np.random.default_rng(0)
MARGINS = RNG.normal(size=len(Y)) * 0.2
WEIGHTS = RNG.uniform(0.5, 2.0, size=len(Y))
REGULARIZERS = [
    L1Ball(0.7),
    L1Ball(0.7, positive=True),
    L1Ball(50.0),
    ElasticNet(0.2),
    ElasticNet(0.02, 0.3),
    ElasticNet(0.02, positive=True),
    ElasticNet(0.0, 0.5),
]


def random_objective(loss="squared_hinge", margins=None):
    data = RankingData(X, Y, QID, sample_weight=WEIGHTS)
    return make_objective(data, LOSSES[loss], normalization="pairs", ridge=0.0, margins=margins)


def near(optimum, regularizer, noise, seed=2):
    w = optimum + noise * np.random.default_rng(seed).normal(size=optimum.size)
    return regularizer.prox(np.abs(w) if regularizer.positive else w, 0.0)


def tightened(objective, regularizer, w):
    point = Composite(objective, regularizer).at(w)
    tighten(point)
    return point


@pytest.mark.parametrize("margins", [None, MARGINS], ids=["", "margins"])
@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_the_closer_gap_is_a_bound_and_no_larger(regularizer, margins):
    objective = random_objective(margins=margins)
    optimum = proximal_newton(objective, regularizer, tol=1e-12)
    for noise in (0.0, 1e-3, 1e-2, 0.1, 1.0, 10.0):
        point = tightened(objective, regularizer, near(optimum.w, regularizer, noise))
        assert point.value - optimum.objective <= point.gap + 1e-13
        assert point.gap <= point.scaled_gap


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_near_the_optimum_it_falls_as_the_square_of_the_distance(regularizer):
    objective = random_objective()
    optimum = proximal_newton(objective, regularizer, tol=1e-13).w
    # Within the support, so that the weights stay in the domain and zeros stay zero.
    direction = np.where(optimum == 0, 0.0, np.random.default_rng(1).normal(size=5))
    if isinstance(regularizer, L1Ball) and np.abs(optimum).sum() > 0.99 * regularizer.radius:
        direction -= np.sign(optimum) * (np.sign(optimum) @ direction) / np.count_nonzero(optimum)
    far = tightened(objective, regularizer, regularizer.inside(optimum + 1e-2 * direction))
    close = tightened(objective, regularizer, regularizer.inside(optimum + 1e-3 * direction))
    assert far.gap / close.gap == pytest.approx(100, rel=0.3)


@pytest.mark.parametrize("regularizer", [ElasticNet(0.02), ElasticNet(0.02, 0.3)], ids=repr)
def test_it_is_the_minimum_of_the_parabolas(regularizer):
    objective = random_objective()
    w = near(proximal_newton(objective, regularizer, tol=1e-9).w, regularizer, 0.03)
    grouped = objective.at(w).by_group(20)
    assert grouped.losses.min() > 0
    offsets = 2 * grouped.losses - grouped.gradients @ w

    def below(parts):
        u = parts[:5] - parts[5:]  # u = u⁺ − u⁻, so that ‖u‖₁ is smooth
        arches = np.maximum(offsets + grouped.gradients @ u, 0.0) ** 2 / (4 * grouped.losses)
        return regularizer.l1 * parts.sum() + 0.5 * regularizer.l2 * (u @ u) + arches.sum()

    start = np.maximum(np.concatenate([w, -w]), 0.0)
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 10**6}
    least = minimize(below, start, method="L-BFGS-B", bounds=[(0, None)] * 10, options=options)
    assert parabola_bound(w, grouped, regularizer) == pytest.approx(least.fun, rel=1e-6)


def test_each_parabola_lies_below_the_loss_of_its_queries():
    objective = random_objective(margins=MARGINS)
    pairs = explicit_pairs(Y, QID, sample_weight=WEIGHTS, margin=MARGINS)
    weight = pairs.weight / pairs.weight.sum()
    differences = X[pairs.preferred] - X[pairs.other]
    query = QID[pairs.preferred]
    w = RNG.normal(size=5)
    grouped = objective.at(w).by_group(1000)
    assert grouped.losses.size == 40
    for trial in range(20):
        u = w + 0.3 * trial * RNG.normal(size=5)
        loss = weight * np.maximum(0.0, 1.0 + pairs.shift - differences @ u) ** 2
        for g, q in enumerate(np.unique(QID)):
            if grouped.losses[g] > 0:
                level = 2 * grouped.losses[g] + grouped.gradients[g] @ (u - w)
                arch = max(0.0, level) ** 2 / (4 * grouped.losses[g])
                assert arch <= loss[query == q].sum() + 1e-13


def test_without_a_loss_the_bound_is_zero():
    grouped = GroupedLoss(np.zeros(3), np.zeros((3, 2)))
    assert parabola_bound(np.ones(2), grouped, ElasticNet(1.0)) == 0.0
    assert parabola_bound(np.ones(2), grouped, L1Ball(1.0)) == 0.0


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_other_losses_have_the_scaled_gap_only(loss):
    point = tightened(random_objective(loss), ElasticNet(0.02), np.full(5, 0.1))
    assert point.gap == point.scaled_gap


def test_fewer_queries_than_features_have_the_scaled_gap_only():
    data = RankingData(X, Y)
    objective = make_objective(data, LOSSES["squared_hinge"], normalization="pairs", ridge=0.0)
    point = tightened(objective, ElasticNet(0.02), np.full(5, 0.1))
    assert point.gap == point.scaled_gap
