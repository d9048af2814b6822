"""The quadratic model with a regulariser: conditions of optimality, and what steps teach it."""

import numpy as np
import pytest
from helpers.tables import each

from marginrank import _core
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.solvers.sparse.quadratic_model import QuadraticModel


def make_problem(kind, n=30, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(60, n))
    if kind == "collinear":
        A = A[:, :1] + 1e-4 * A
    elif kind == "duplicates":
        A[:, 1::2] = A[:, ::2]
    elif kind == "scales":
        A *= np.logspace(-4, 4, n)
    elif kind == "constant":
        A[:, 3] = 0.0
    elif kind == "few curved directions":
        A[8:] *= 1e-4  # as of a smoothed hinge, where few pairs are in the band
    return A.T @ A / 60, A.T @ rng.normal(size=60) / 60


KINDS = ["plain", "collinear", "duplicates", "scales", "constant", "few curved directions"]


@pytest.mark.parametrize("kind", KINDS)
@each("positive", [False, True])
@each("l2", [0.0, 0.1])
@each("share", [0.5, 0.01])
def test_a_penalty_is_minimised(kind, positive, l2, share):
    hessian, gradient = make_problem(kind)
    regularizer = ElasticNet(share * np.abs(gradient).max(), l2, positive)
    tol = 1e-9 * np.abs(gradient).max()
    u = QuadraticModel(hessian.copy(), complete=True).minimize(
        np.zeros(30), gradient, regularizer, tol
    )
    scale = np.abs(hessian).max() * np.abs(u).max()
    assert regularizer.violation(u, gradient + hessian @ u) <= 2 * tol + 1e-9 * scale
    assert not positive or u.min() >= 0


@pytest.mark.parametrize("kind", KINDS)
@each("positive", [False, True])
@each("radius", [1e-2, 1.0, 100.0])
def test_a_ball_is_minimised_in(kind, positive, radius):
    hessian, gradient = make_problem(kind)
    ball = L1Ball(radius, positive)
    model = QuadraticModel(hessian.copy(), complete=True)
    u = model.minimize(np.zeros(30), gradient, ball, 1e-9 * np.abs(gradient).max())
    assert np.abs(u).sum() <= radius
    slope = gradient + hessian @ u
    # Frank-Wolfe's gap of the model, against its value
    gap = slope @ u + radius * ball.pull(slope).max()
    assert gap <= 1e-5 * np.abs(gradient).max() * radius


def test_a_warm_start_takes_few_passes():
    hessian, gradient = make_problem("collinear")
    regularizer = ElasticNet(0.1 * np.abs(gradient).max())
    tol = 1e-9 * np.abs(gradient).max()
    model = QuadraticModel(hessian.copy(), complete=True)
    u = model.minimize(np.zeros(30), gradient, regularizer, tol)
    before = model.passes
    again = model.minimize(u, gradient + hessian @ u, regularizer, 10 * tol)
    assert model.passes - before <= 2
    np.testing.assert_allclose(again, u, atol=1e-6 * np.abs(u).max())


def test_a_correction_makes_the_model_agree_with_the_step():
    hessian, _ = make_problem("plain")
    rng = np.random.default_rng(1)
    step = rng.normal(size=30)
    truth = hessian @ step + 0.1 * step
    model = QuadraticModel(hessian.copy(), complete=False)
    model.correct(step, truth)
    # The minimiser without a penalty is −H⁻¹g; with g = −H·step it must be the step.
    u = model.minimize(np.zeros(30), -truth, ElasticNet(0.0), 1e-12)
    np.testing.assert_allclose(u, step, rtol=1e-5, atol=1e-6)
    model.correct(step, -truth)  # would make it indefinite, and is left out
    u = model.minimize(np.zeros(30), -truth, ElasticNet(0.0), 1e-12)
    np.testing.assert_allclose(u, step, rtol=1e-5, atol=1e-6)


def test_coordinate_descent_keeps_the_residual():
    hessian, b = make_problem("plain")
    u0 = np.random.default_rng(2).normal(size=30)
    u, residual, passes, violation = _core.coordinate_descent(
        hessian, u0, b - hessian @ u0, 0.1, 0.0, False, 7, 0.0
    )
    assert passes == 7
    assert violation > 0
    np.testing.assert_allclose(residual, b - hessian @ u, atol=1e-12)
    assert np.any(u == 0)


def test_coordinate_descent_checks_shapes():
    ones = np.ones(2)
    for arguments in ((np.ones((2, 3)), ones, ones), (np.eye(3), ones, np.ones(3))):
        with pytest.raises(ValueError, match="must"):
            _core.coordinate_descent(*arguments, 0.1, 0.0, False, 1, 0.0)
