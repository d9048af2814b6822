"""Curves as a backend: against their basis functions multiplied out, and against lines."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from marginrank import RankingData, make_ranking
from marginrank.additive import curve_basis
from marginrank.additive import curve_matrix as curves_backend
from marginrank.additive.curve_basis import CurveShapes, roughness
from marginrank.additive.curve_matrix import CurveMatrix
from marginrank.additive.knots import choose_knots, encode
from marginrank.data.knots import Knots
from marginrank.fit.inputs import choose_pairs, objective_on
from marginrank.objective.losses import LOSSES
from marginrank.operators.native import as_native
from marginrank.solvers import SOLVERS
from marginrank.solvers.smooth import preconditioner

X, Y, QID = make_ranking(12, (3, 20), 4, random_state=0)
X[:, 1] = np.exp(2 * X[:, 1])  # a long tail
X[:, 2] = np.round(2 * X[:, 2])  # few values
X[:, 3] = np.arange(len(Y)) % 3  # categories
X[::7, 0] = np.nan
X[::9, 3] = np.nan
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], QID[ORDER]
SOLVABLE = [
    (loss, solver)
    for loss in LOSSES
    for solver in SOLVERS
    if SOLVERS[solver].takes(LOSSES[loss], None)
]
DATA = RankingData(np.zeros((len(Y), 1)), Y, QID)


def curve_matrix(X=X, *, max_bins=6, smoothness=0.3, scale=None, categorical=(3,)):
    knots = choose_knots(X, max_bins, categorical)
    places = encode(knots, X, 1)
    return CurveMatrix.of(places, knots, CurveShapes.of(knots, places).basis(smoothness, scale))


def all_functions(matrix):
    return matrix.values(np.arange(matrix.n_features))


def both(loss="squared_hinge", C=0.1, **options):
    """Return the objective on curves, and the one on their basis functions multiplied out."""
    matrix = curve_matrix(**options)
    preferences = choose_pairs(DATA, LOSSES[loss])
    explicit = as_native(all_functions(matrix))
    return (
        objective_on(DATA, preferences, C=C, matrix=matrix, threads=2),
        objective_on(DATA, preferences, C=C, matrix=explicit, threads=2),
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_value_and_derivatives_are_those_of_the_basis_functions(loss):
    curves, explicit = both(loss)
    u, v = np.random.default_rng(1).normal(size=(2, curves.n_features))
    one, other = curves.at(u), explicit.at(u)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert_allclose(one.gradient, other.gradient, rtol=1e-10, atol=1e-10)
    assert_allclose(curves.scores(v), explicit.scores(v), rtol=1e-12, atol=1e-12)
    assert_allclose(curves.design.column(3), explicit.design.column(3), atol=1e-12)
    assert_allclose(one.by_group(3).gradients, other.by_group(3).gradients, atol=1e-10)
    if LOSSES[loss].smooth:
        assert_allclose(one.hess_vec(v)[0], other.hess_vec(v)[0], rtol=1e-9, atol=1e-9)
        assert_allclose(one.hessian(), other.hessian(), rtol=1e-9, atol=1e-9)
        assert_allclose(one.hess_diag(), other.hess_diag(), rtol=1e-9, atol=1e-9)
    assert_allclose(curves.design.gram.products, explicit.design.gram.products, atol=1e-9)
    assert (curves.feature_magnitudes >= explicit.feature_magnitudes - 1e-12).all()
    assert one.gradient_rounding >= 0.0


def test_many_basis_functions_are_taken_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(curves_backend, "FULL_HESSIAN", 3)
    monkeypatch.setattr(curves_backend, "BLOCK_ENTRIES", 1)
    curves, explicit = both()
    u = np.random.default_rng(1).normal(size=curves.n_features)
    assert curves.n_features > 2 * 8
    assert_allclose(curves.at(u).hess_diag(), explicit.at(u).hess_diag(), rtol=1e-9)
    assert_allclose(curves.design.gram.products, explicit.design.gram.products, atol=1e-9)


@pytest.mark.parametrize(("loss", "solver"), SOLVABLE)
def test_every_solver_finds_the_optimum_of_the_basis_functions(loss, solver):
    curves, explicit = both(loss)
    tol = 1e-4 if solver == "bmrm" else 1e-9
    found = SOLVERS[solver].minimize(curves, tol=tol)
    best = SOLVERS["newton" if LOSSES[loss].smooth else "ocas"].minimize(explicit, tol=1e-9)
    assert found.gap >= 0.0
    assert found.objective >= best.objective - best.gap - 1e-12
    assert abs(found.objective - best.objective) <= max(tol, 1e-8) * best.objective
    assert explicit.at(found.w).value == pytest.approx(found.objective, rel=1e-10)


def test_with_two_knots_a_feature_it_is_a_line():
    full = np.nan_to_num(X, nan=1.0)
    matrix = curve_matrix(full, max_bins=1, categorical=())
    assert matrix.n_features == 4
    functions = all_functions(matrix)
    steps = np.ptp(full, axis=0) * 2**-16
    for k in range(4):
        off = functions[:, k] - full[:, k]
        assert np.ptp(off) <= 2 * steps[k]


def test_infinite_smoothness_leaves_lines_alone():
    assert curve_matrix(smoothness=np.inf).n_features == 3 + 3 + 2  # lines, categories, missing


def test_a_line_costs_what_it_costs_in_rank_svm_whatever_the_smoothness():
    t = np.array([0.0, 1.0, 1.5, 4.0, 9.0])
    x = np.repeat(t, [3, 5, 2, 2, 1])[:, None]
    knots = Knots.of_features([t])
    for smoothness in (1e-6, 1.0, 1e6):
        basis = CurveShapes.of(knots, encode(knots, x, 1)).basis(smoothness, np.array([2.0]))
        line = np.eye(basis.n_weights)[0]  # costs ½, as the line of slope 1 / σ does
        assert_allclose(np.diff(basis.inner(line)[1:]), np.diff(t) / 2.0)


def test_the_penalty_of_a_curve_is_that_of_its_line_and_its_roughness(monkeypatch):
    monkeypatch.setattr(curve_basis, "FEW", 0.0)
    rng = np.random.default_rng(0)
    x = rng.exponential(size=400)
    knots = choose_knots(x[:, None], 5)
    places = encode(knots, x[:, None], 1)
    t, smoothness, scale = knots.of(0), 0.7, 3.0
    basis = CurveShapes.of(knots, places).basis(smoothness, np.array([scale]))
    u = rng.normal(size=basis.n_weights)
    c = basis.inner(u)[1:]
    left, p = places.codes[:, 0].astype(int) - 1, places.steps[:, 0] / 2**15
    at = (1 - p) * t[left] + p * t[left + 1]  # the values as they are kept
    f = (1 - p) * c[left] + p * c[left + 1]
    slope = np.cov(at, f, ddof=0)[0, 1] / np.var(at)
    r = c - c.mean() - slope * (t - t.mean())
    rough = 5 * np.sum(np.diff(r) ** 2) + 125 / np.pi**2 * np.sum(np.diff(r, 2) ** 2)
    assert_allclose(r @ roughness(6) @ r, rough)
    expected = 0.5 * (scale * slope) ** 2 + 0.5 * smoothness * scale**2 / np.var(at) * rough
    assert_allclose(0.5 * u @ u, expected, rtol=1e-9)
    functions = CurveMatrix.of(places, knots, basis).values(np.arange(basis.n_weights))
    covariance = np.cov(functions.T, ddof=0)
    assert_allclose(np.diag(covariance), basis.variances, rtol=1e-8)
    assert_allclose(covariance, np.diag(basis.variances), atol=1e-8 * basis.variances[0])
    assert (np.diff(basis.variances[1:]) <= 0).all()


@pytest.mark.parametrize("row", [0, 4, 9])
def test_a_missing_value_anywhere_gives_its_feature_a_weight(monkeypatch, row):
    monkeypatch.setattr(curve_basis, "BLOCK_ENTRIES", 8)  # four documents
    x = np.random.default_rng(0).normal(size=(10, 2))
    lines = curve_matrix(x, max_bins=1, categorical=())
    x[row, 1] = np.nan
    assert curve_matrix(x, max_bins=1, categorical=()).n_features == lines.n_features + 1


def test_a_constant_feature_has_a_weight_without_effect():
    constant = np.c_[np.full(len(Y), 5.0), np.nan_to_num(X[:, 0])]
    matrix = curve_matrix(constant, categorical=())
    assert not all_functions(matrix)[:, 0].any()


def test_samples_have_rows_of_their_own_and_estimate_the_whole():
    n, per_query = 300, 8
    x = np.random.default_rng(0).normal(size=(n * per_query, 2))
    data = RankingData(np.zeros((len(x), 1)), (x[:, 0] > 0).astype(int), np.arange(len(x)) // 8)
    matrix = curve_matrix(x, max_bins=2, categorical=())
    objective = objective_on(data, choose_pairs(data, LOSSES["squared_hinge"]), matrix=matrix)
    u = np.array([0.3, -0.2, 0.1, 0.5])
    points = [objective.sample(0.3, seed).at(u) for seed in range(10)]
    assert all(p.objective.matrix.n_rows == p.objective.pairs.n_documents for p in points)
    full = objective.at(u)
    assert np.mean([p.loss_value for p in points]) == pytest.approx(full.loss_value, rel=0.05)
    gradient = np.mean([p.gradient for p in points], axis=0)
    assert_allclose(gradient, full.gradient, atol=0.1 * np.linalg.norm(full.gradient))


def test_newton_with_the_hessian_of_the_leading_functions_finds_the_optimum(monkeypatch):
    monkeypatch.setattr(preconditioner, "FEW_FEATURES", 4)
    monkeypatch.setattr(preconditioner, "MOST_LEADING", 5)
    curves, explicit = both()
    found = SOLVERS["newton"].minimize(curves, tol=1e-9)
    best = SOLVERS["newton"].minimize(explicit, tol=1e-9)
    assert found.stop.converged
    assert found.objective == pytest.approx(best.objective, rel=1e-8)


def test_the_leading_preconditioner_is_the_hessian_of_some_and_a_diagonal_of_others(monkeypatch):
    monkeypatch.setattr(preconditioner, "MOST_LEADING", 5)
    curves, _ = both()
    point = curves.at(np.random.default_rng(1).normal(size=curves.n_features))
    variances = curves.feature_variances
    features = np.sort(np.argsort(-variances)[:5])
    leading = preconditioner.leading_curvature(point, variances, 0)
    P = preconditioner.leading_at(point, variances, leading)
    hessian = point.hessian()
    curvature = (np.diag(hessian)[features] - 1).sum() / variances[features].sum()
    expected = np.diag(1 + curvature * variances)
    expected[np.ix_(features, features)] = hessian[np.ix_(features, features)]
    v = np.random.default_rng(2).normal(size=curves.n_features)
    assert_allclose(P.solve(v), np.linalg.solve(expected, v), rtol=1e-8)
