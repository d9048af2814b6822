"""Sparse regularisers: proximal operators, conjugates, and staying inside."""

import numpy as np
import pytest
from scipy.optimize import minimize

from marginrank.objective.regularizers import ElasticNet, L1Ball

RNG = np.random.default_rng(0)
REGULARIZERS = [
    L1Ball(1.5),
    L1Ball(1.5, positive=True),
    ElasticNet(0.7),
    ElasticNet(0.7, 0.4),
    ElasticNet(0.7, 0.4, positive=True),
    ElasticNet(0.0, 0.4),
]


def smallest(function, regularizer, n):
    """Minimise function(w) + Ω(w) with a general solver, over w = w⁺ − w⁻."""
    ball = isinstance(regularizer, L1Ball)

    def total(x):
        up, down = x[:n], x[n:]
        penalty = 0.0
        if not ball:
            penalty = regularizer.l1 * np.sum(x) + 0.5 * regularizer.l2 * np.sum((up - down) ** 2)
        return function(up - down) + penalty

    limit = 0.0 if regularizer.positive else None
    constraint = {"type": "ineq", "fun": lambda x: regularizer.radius - np.sum(x)}
    found = minimize(
        total,
        np.full(2 * n, 0.1) * np.repeat([1.0, 0.0 if regularizer.positive else 1.0], n),
        bounds=[(0, None)] * n + [(0, limit)] * n,
        constraints=[constraint] if ball else [],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.x[:n] - found.x[n:], found.fun


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("step", [0.5, 2.0])
def test_prox_minimises(regularizer, step):
    v = RNG.normal(size=5)
    scaled = regularizer
    if isinstance(regularizer, ElasticNet):
        scaled = ElasticNet(step * regularizer.l1, step * regularizer.l2, regularizer.positive)
    expected, _ = smallest(lambda w: 0.5 * np.sum((w - v) ** 2), scaled, 5)
    np.testing.assert_allclose(regularizer.prox(v, step), expected, atol=1e-5)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_the_conjugate_along_a_ray(regularizer):
    gradient = RNG.normal(size=4)
    ray = regularizer.ray(gradient)
    for tau in (0.1, 0.5, 0.9):
        if tau > ray.limit:
            continue
        value, slope, curvature = ray.conjugate(tau)
        # sup ⟨v, w⟩ − Ω(w) over a box large enough to hold its maximum
        _, lowest = smallest(lambda w, v=-tau * gradient: -v @ w, regularizer, 4)
        assert value == pytest.approx(-lowest, abs=1e-6)
        h = 1e-6
        above, below = ray.conjugate(tau + h), ray.conjugate(tau - h)
        assert slope == pytest.approx((above[0] - below[0]) / (2 * h), abs=1e-6)
        assert curvature == pytest.approx((above[1] - below[1]) / (2 * h), abs=1e-5)


def test_the_conjugate_of_an_l1_penalty_ends_where_the_gradient_exceeds_it():
    gradient = np.array([0.5, -2.0])
    assert ElasticNet(1.0).ray(gradient).limit == 0.5
    assert ElasticNet(1.0, positive=True).ray(-gradient).limit > 1
    assert ElasticNet(3.0).ray(gradient).limit > 1


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
def test_slopes_are_those_of_the_value(regularizer):
    w = np.array([0.2, -0.1, 0.0, 0.3]) * (1 if not regularizer.positive else np.sign([1, 0, 0, 1]))
    direction = np.array([0.3, 0.2, 0.1, -0.4])
    h = 1e-7
    numeric = (regularizer.value(w + h * direction) - regularizer.value(w)) / h
    assert regularizer.slope(w, direction) == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize("radius", [1e-3, 1 / 3, 0.1, 7.0, 1e6])
def test_inside_the_ball_means_inside_in_whatever_order_weights_are_added(radius):
    for _ in range(200):
        w = RNG.normal(size=RNG.integers(1, 200))
        w *= radius * (1 + RNG.normal() * 1e-15) / np.abs(w).sum()
        inside = L1Ball(radius).inside(w)
        size = np.abs(inside)
        for order in (size, size[::-1], np.sort(size), np.sort(size)[::-1]):
            assert order.sum() <= radius
            assert sum(order.tolist()) <= radius
        np.testing.assert_allclose(inside, w, rtol=1e-13)


def test_prox_of_entries_beside_which_the_radius_vanishes():
    w = L1Ball(1e-6).prox(np.array([1e12, -3e11]), 1.0)
    assert np.abs(w).sum() <= 1e-6


def test_prox_is_inside_the_ball():
    for _ in range(200):
        v = RNG.normal(size=50) * 10 ** RNG.uniform(-3, 3)
        assert np.abs(L1Ball(0.1).prox(v, 1.0)).sum() <= 0.1
        assert L1Ball(0.1, positive=True).prox(v, 1.0).min() >= 0


def test_the_violation_is_zero_at_the_optimum_only():
    gradient = np.array([-1.0, 1.0, 0.3])
    w = np.array([2.0, -0.5, 0.0])
    assert ElasticNet(1.0).violation(w, gradient) == 0
    assert ElasticNet(0.9).violation(w, gradient) == pytest.approx(0.1)
    assert L1Ball(2.5).violation(w, gradient) == 0
    assert L1Ball(3.0).violation(w, gradient) == pytest.approx(1.0)
    assert L1Ball(2.5, positive=True).violation(np.maximum(w, 0), np.array([0.0, 5.0, 1.0])) == 0
