"""Grids beside curves, as a backend: against their basis functions multiplied out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginrank import RankingData, make_ranking
from marginrank.additive import grid_basis
from marginrank.additive.curve_basis import CurveShapes
from marginrank.additive.curve_matrix import CurveMatrix
from marginrank.additive.grid_basis import (
    CATEGORIES,
    GridAxis,
    add_grids,
    axis_knots,
    interactions_of,
    node_weights,
    penalty,
)
from marginrank.additive.knots import choose_knots, encode
from marginrank.fit.inputs import choose_pairs, objective_on
from marginrank.objective.faces import Combination, on_face
from marginrank.objective.losses import LOSSES
from marginrank.operators.native import as_native
from marginrank.solvers import SOLVERS

X, Y, QID = make_ranking(12, (3, 20), 4, random_state=0)
X[:, 1] = np.exp(2 * X[:, 1])  # a long tail
X[:, 2] = np.round(X[:, 2]).clip(-1, 0)  # two values
X[:, 3] = np.arange(len(Y)) % 3  # categories
X[::7, 0] = np.nan
X[::9, 3] = np.nan
X[0] = np.nan
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], QID[ORDER]
DATA = RankingData(np.zeros((len(Y), 1)), Y, QID)
PAIRS = [(0, 1), (0, 3), (2, 3), (1, 2)]


def grid_matrix(pairs=PAIRS, *, max_bins=6, smoothness=0.3, scale=None, X=X, categorical=(3,)):
    knots = choose_knots(X, max_bins, categorical)
    places = encode(knots, X, 1)
    curves = CurveMatrix.of(places, knots, CurveShapes.of(knots, places).basis(smoothness, scale))
    return add_grids(curves, pairs, smoothness, scale, 2)


def both(loss="squared_hinge", C=0.1):
    """Return the objective on curves and grids, and that on their functions multiplied out."""
    matrix = grid_matrix()
    preferences = choose_pairs(DATA, LOSSES[loss])
    explicit = as_native(matrix.values(np.arange(matrix.n_features)))
    return (
        objective_on(DATA, preferences, C=C, matrix=matrix, threads=2),
        objective_on(DATA, preferences, C=C, matrix=explicit, threads=2),
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_value_and_derivatives_are_those_of_the_basis_functions(loss):
    grids, explicit = both(loss)
    u, v = np.random.default_rng(1).normal(size=(2, grids.n_features))
    one, other = grids.at(u), explicit.at(u)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert_allclose(one.gradient, other.gradient, rtol=1e-10, atol=1e-10)
    assert_allclose(grids.scores(v), explicit.scores(v), rtol=1e-12, atol=1e-12)
    if LOSSES[loss].smooth:
        assert_allclose(one.hess_vec(v)[0], other.hess_vec(v)[0], rtol=1e-9, atol=1e-9)
        assert_allclose(one.hess_diag(), other.hess_diag(), rtol=1e-9, atol=1e-9)
    assert_allclose(grids.design.gram.products, explicit.design.gram.products, atol=1e-9)
    assert (grids.feature_magnitudes >= explicit.feature_magnitudes - 1e-3).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber", "logistic"])
def test_the_optimum_is_that_of_rank_svm_on_the_basis_functions(loss):
    grids, explicit = both(loss)
    solver = "newton" if LOSSES[loss].smooth else "ocas"
    found = SOLVERS[solver].minimize(grids, tol=1e-10)
    best = SOLVERS[solver].minimize(explicit, tol=1e-10)
    assert found.objective == pytest.approx(best.objective, rel=1e-8)
    assert 0.0 <= found.gap <= 1e-6 * found.objective


def test_functions_of_pairs_are_uncorrelated_with_functions_of_one_feature():
    matrix = grid_matrix([(0, 1)])
    first = matrix.basis.starts[-2]
    functions = matrix.values(np.arange(first, matrix.n_features))
    for k in range(2):
        at = matrix.basis.blocks[k].shape[0]
        curves = CurveMatrix.values(matrix, np.arange(*matrix.basis.starts[k : k + 2]))
        products = functions.T @ curves / len(Y)
        size = np.sqrt(np.outer((functions**2).mean(axis=0), (curves**2).mean(axis=0)))
        assert at > 3
        assert np.abs(products).max() <= 1e-3 * size.max()
    covariance = functions.T @ functions / len(Y)
    variances = matrix.basis.variances[first:]
    assert_allclose(covariance, np.diag(variances), atol=1e-3 * variances[0])
    assert (np.diff(variances) <= 0).all()


def test_the_penalty_is_roughness_in_two_directions():
    rng = np.random.default_rng(0)
    rows = GridAxis(2.0, np.ones(5, dtype=bool), categorical=False)
    columns = GridAxis(3.0, np.ones(7, dtype=bool), categorical=False)
    form = penalty(rows, columns, 0.7)
    g = np.zeros((5, 7))
    g[1:, 1:] = rng.normal(size=(4, 6))
    inner = g[1:, 1:]
    du, dv = np.diff(inner, axis=0) * 3, np.diff(inner, axis=1) * 5
    duu, dvv = np.diff(inner, 2, axis=0) * 9, np.diff(inner, 2, axis=1) * 25
    duv = np.diff(np.diff(inner, axis=0), axis=1) * 15
    rough = np.sum(du**2) / (3 * 6) + np.sum(dv**2) / (4 * 5)
    rough += (
        np.sum(duu**2) / (3 * 6) + np.sum(dvv**2) / (4 * 5) + 2 * np.sum(duv**2) / 15
    ) / np.pi**2
    assert g.ravel() @ form @ g.ravel() == pytest.approx(
        2 * 3 * (0.7 / 3 * rough + np.mean(inner**2))
    )
    both_missing = np.zeros((5, 7))
    both_missing[0, 0] = 1.5
    assert both_missing.ravel() @ form @ both_missing.ravel() == pytest.approx(1.5**2)
    row = np.zeros((5, 7))
    row[0, 1:] = rng.normal(size=6)
    along = 5 * np.sum(np.diff(row[0, 1:]) ** 2) + 125 / np.pi**2 * np.sum(
        np.diff(row[0, 1:], 2) ** 2
    )
    assert row.ravel() @ form @ row.ravel() == pytest.approx(
        3 * (0.7 / 3 * along + np.mean(row[0, 1:] ** 2))
    )


def test_basis_functions_cost_one_half():
    matrix = grid_matrix([(0, 3)], scale=np.array([2.0, 1.0, 1.0, 1.0]))
    grid, block = matrix.grids[0], matrix.basis.blocks[-1]
    values = block[grid.columns]
    x = np.where(np.isnan(X[:, 0]), np.nan, X[:, 0])
    rows = GridAxis(4.0 / np.nanvar(x), np.ones(grid.shape[0], dtype=bool), categorical=False)
    columns = GridAxis(1.0, np.ones(grid.shape[1], dtype=bool), categorical=True)
    assert_allclose(
        values.T @ penalty(rows, columns, 0.3) @ values, np.eye(values.shape[1]), atol=1e-3
    )


def test_rows_without_documents_stay_zero():
    full = np.nan_to_num(X, nan=1.0)
    matrix = grid_matrix([(0, 1), (0, 3)], X=full)
    u = np.random.default_rng(0).normal(size=matrix.n_features)
    for one in interactions_of(matrix, matrix.basis.inner(u)):
        values = one.values
        assert not values[0].any()
        assert not values[:, 0].any()
        assert values[1:, 1:].any()


def test_two_features_of_two_values_have_one_function():
    few = np.random.default_rng(0).integers(0, 2, size=(len(Y), 2)).astype(float)
    matrix = grid_matrix([(0, 1)], X=few, categorical=())
    assert matrix.basis.blocks[-1].shape[1] == 1
    at_columns = matrix.basis.inner(np.eye(matrix.n_features)[-1])
    values = interactions_of(matrix, at_columns)[0].values[1:, 1:]
    assert values[0, 0] * values[1, 1] > 0 > values[0, 0] * values[0, 1]


def test_rare_categories_share_the_row_of_missing_values():
    many = np.c_[np.arange(len(Y)) % 40, np.nan_to_num(X[:, 0])]
    many[:30, 0] = 35.0
    matrix = grid_matrix([(0, 1)], X=many, categorical=(0,))
    axis = matrix.grids[0].axes[0]
    assert axis.size == CATEGORIES
    assert 35.0 in axis
    assert_array_equal(axis, axis_knots(matrix.knots, matrix.codes, 0))
    values = interactions_of(matrix, matrix.basis.inner(np.ones(matrix.n_features)))[0].values
    assert values[0, 1:].any()


def test_infinite_smoothness_leaves_no_function():
    assert grid_matrix([(0, 1)], smoothness=np.inf).basis.blocks[-1].shape[1] == 0


def test_samples_have_rows_of_their_own():
    grids, _ = both()
    sample = grids.sample(0.5, 0)
    assert sample.matrix.n_rows == sample.pairs.n_documents < len(Y)
    assert sample.n_features == grids.n_features
    u = np.random.default_rng(0).normal(size=grids.n_features)
    explicit = sample.matrix.values(np.arange(grids.n_features)) @ u
    assert_allclose(sample.scores(u), explicit, atol=1e-10)


def test_weights_at_the_nodes_sum_to_one():
    matrix = grid_matrix([(0, 3)])
    grid = matrix.grids[0]
    axes = encode(grid.knots, np.ascontiguousarray(X[:, [0, 3]]), 1)
    assert_allclose(node_weights(grid, axes).sum(axis=1), 1.0)
    assert grid_basis.node_weights(grid, axes).shape == (len(Y), np.prod(grid.shape))


def test_functions_on_a_face_are_those_that_the_kernels_see():
    """Those of grids stay functions of grids where others have become fewer."""
    objective, _ = both()
    two = np.eye(objective.matrix.basis.blocks[0].shape[1])[:, :2]
    matrix = on_face(objective, {0: Combination(two, np.ones(2))}).objective.matrix
    w = np.random.default_rng(1).normal(size=matrix.n_features)
    assert matrix.n_features < objective.n_features
    by_kernels = matrix.hats.view.dot(matrix.basis.inner(w))
    assert_allclose(matrix.values(np.arange(w.size)) @ w, by_kernels, rtol=1e-9, atol=1e-9)
    of_feature = matrix.feature(np.arange(matrix.n_features))
    assert_array_equal(np.unique(of_feature[: matrix.basis.starts[4]]), np.arange(4))
    assert_array_equal(of_feature[matrix.basis.starts[4:-1]], [pair[0] for pair in PAIRS])
