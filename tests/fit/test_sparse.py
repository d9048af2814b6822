"""Fits of sparse models without scikit-learn, and where paths begin."""

import numpy as np
import pytest
from helpers.objectives import make_objective
from helpers.plain_defaults import plain_problem

from marginrank import RankingData, make_ranking
from marginrank.fit.sparse import first_C, first_radius, fit_sparse
from marginrank.objective.losses import LOSSES
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.solvers.sparse.proximal_newton import proximal_newton

X, Y, QID = make_ranking(40, (5, 25), 8, random_state=0)
DATA = RankingData(X, Y, QID)


def loss_alone(loss="squared_hinge", **options):
    return make_objective(DATA, LOSSES[loss], normalization="pairs", ridge=0.0, **options)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
def test_above_the_first_C_a_weight_is_not_zero(loss, l1_ratio, positive):
    C = first_C(loss_alone(loss), l1_ratio=l1_ratio, positive=positive)
    for factor, n_weights in ((0.999, 0), (1.001, 1)):
        parameters = plain_problem(
            C=factor * C, l1_ratio=l1_ratio, positive=positive, loss=loss, tol=1e-10
        )
        assert np.count_nonzero(fit_sparse(DATA, parameters).coef) == n_weights


@pytest.mark.parametrize("positive", [False, True])
def test_above_the_first_radius_two_weights_are_not_zero(positive):
    # While no pair leaves the margin the loss is quadratic, and the radius exact.
    scaled = make_objective(
        RankingData(0.01 * X, Y, QID), LOSSES["squared_hinge"], normalization="pairs", ridge=0.0
    )
    radius = first_radius(scaled, positive=positive)
    for factor, n_weights in ((0.9, 1), (1.1, 2)):
        ball = L1Ball(factor * radius, positive)
        w = proximal_newton(scaled, ball, tol=1e-12).w
        assert np.count_nonzero(np.abs(w) > 1e-6 * radius) == n_weights
        assert np.abs(w).sum() == pytest.approx(ball.radius)


def test_without_a_feature_that_helps_there_is_no_first_value():
    constant = make_objective(
        RankingData(np.ones((4, 2)), [0, 1, 2, 3]), LOSSES["huber"], ridge=0.0
    )
    assert first_C(constant) == np.inf
    assert first_radius(constant) == np.inf
    against = make_objective(RankingData([[1.0], [0.0]], [0, 1]), LOSSES["huber"], ridge=0.0)
    assert first_C(against, positive=True) == np.inf
    assert first_radius(against, positive=True) == np.inf


def test_parameters_become_the_objective_and_the_regulariser():
    fit = fit_sparse(DATA, plain_problem(C=20.0, l1_ratio=0.5, loss="huber", tol=1e-9))
    expected = proximal_newton(loss_alone("huber", C=20.0), ElasticNet(0.5, 0.5), tol=1e-9)
    assert fit.report.objective == pytest.approx(expected.objective, rel=1e-8)
    assert fit.report.n_pairs == DATA.n_pairs
    in_ball = fit_sparse(DATA, plain_problem(radius=0.5, C=123.0, tol=1e-9))
    expected = proximal_newton(loss_alone(), L1Ball(0.5), tol=1e-9)
    assert in_ball.report.objective == pytest.approx(expected.objective, rel=1e-8)


def test_every_solver_gives_the_same_model():
    ball = plain_problem(radius=0.5, variant="pairwise", tol=1e-4)
    penalty = plain_problem(C=5.0, tol=1e-4)
    for parameters, other in ((ball, "fenchel"), (penalty, "truncated_gradient")):
        expected = fit_sparse(DATA, parameters).report
        result = fit_sparse(DATA, plain_problem(**(vars(parameters) | {"solver": other}))).report
        assert result.stop_reason.converged
        assert result.objective == pytest.approx(expected.objective, rel=2e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"radius": 0.0}, "radius=0.0 must be a finite number, more than 0"),
        ({"radius": -1}, "radius=-1 must be"),
        ({"C": 0}, "C=0 must be"),
        ({"l1_ratio": 1.5}, "l1_ratio=1.5 must be a number from 0 to 1"),
        ({"l1_ratio": -0.1}, "l1_ratio=-0.1 must be"),
        ({"radius": 1.0, "l1_ratio": 0.5}, "l1_ratio=0.5.*radius"),
        ({"positive": "yes"}, "positive='yes' must be True or False"),
        ({"loss": "absolute"}, "loss='absolute' must be one of"),
        ({"solver": "newton"}, "solver='newton' .*'proximal_newton'"),
        ({"variant": "lazy"}, "variant='lazy' must be one of"),
        ({"tol": 0.0}, "tol=0.0 must be"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"normalization": "all"}, "normalization='all' must be one of"),
        ({"solver": "fenchel"}, "solver='fenchel' .*loss='squared_hinge' with a penalty"),
        (
            {"solver": "truncated_gradient", "radius": 1.0},
            "solver='truncated_gradient' .* in an l1 ball",
        ),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit_sparse(DATA, plain_problem(**parameters))


def test_data_without_pairs_is_refused():
    with pytest.raises(ValueError, match="no pair to learn from"):
        fit_sparse(RankingData(X, np.ones(len(Y)), QID), plain_problem())
