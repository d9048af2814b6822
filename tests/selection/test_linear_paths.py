"""Paths over C on parts of the data: each model is that of a fit of its own."""

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank import RankingData, RankSVM, make_ranking
from marginrank.fit.linear import Parameters, fit_linear
from marginrank.selection import linear_paths
from marginrank.selection.linear_paths import LINEAR

CS = np.array([0.01, 0.3, 5.0])
SHUFFLED = np.random.default_rng(1).permutation(600)
X, Y, QID = (part[SHUFFLED] for part in make_ranking(30, 20, 8, noise=0.7, random_state=2))
WEIGHTS = np.random.default_rng(2).uniform(0.5, 2.0, len(Y))


def data_of(layout=np.asarray, **options):
    return RankingData(layout(X), Y, QID, **options)


def parts_of(data):
    """Return all rows, those of some queries, and rows that cut queries."""
    return [None, np.flatnonzero(data.qid < 20), np.flatnonzero(np.arange(len(Y)) % 3 > 0)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"normalization": "pairs", "loss": "huber"},
        {"normalization": "query", "pair_cost": "ndcg", "scale": "standard"},
        {"loss": "hinge", "scale": "query"},
        {"margin": "label", "pair_selection": "adjacent", "scale": "range", "solver": "tron"},
    ],
    ids=str,
)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_each_model_is_that_of_a_fit_alone(options, layout):
    data = data_of(layout, sample_weight=WEIGHTS)
    parameters = Parameters(tol=1e-9, **options)
    parts = parts_of(data)
    found = list(LINEAR.fit_paths(data, parameters, CS, parts))
    assert len(found) == len(parts) * len(CS)
    for solution in found:
        rows = parts[solution.part]
        rows = np.arange(len(Y)) if rows is None else rows
        own = RankingData(layout(X)[rows], Y[rows], QID[rows], sample_weight=WEIGHTS[rows])
        alone = fit_linear(own, Parameters(C=CS[solution.step], tol=1e-9, **options))
        assert solution.result.objective == pytest.approx(alone.report.objective, rel=1e-7)
        np.testing.assert_allclose(solution.result.w, alone.coef, rtol=1e-2, atol=1e-4)
        assert solution.result.gap >= 0
        if alone.scale is not None:
            np.testing.assert_allclose(solution.scale.values, alone.scale, rtol=1e-12)


def test_many_parts_are_solved_a_few_at_a_time(monkeypatch):
    data = data_of()
    parts = [np.flatnonzero(data.qid != q) for q in range(7)]

    def weights():
        found = LINEAR.fit_paths(data, Parameters(tol=1e-9), CS, parts)
        return {(one.part, one.step): one.result.w for one in found}

    together = weights()
    monkeypatch.setattr(linear_paths, "SIDE_BY_SIDE", 3)
    apart = weights()
    assert together.keys() == apart.keys() == {(k, step) for k in range(7) for step in range(3)}
    for key, w in apart.items():
        np.testing.assert_allclose(w, together[key], rtol=1e-3, atol=1e-5)


def test_history_has_the_objective_of_its_C():
    results = [s.result for s in LINEAR.fit_paths(data_of(), Parameters(tol=1e-6), CS, [None])]
    moved = [result for result in results if result.history]
    assert moved
    for result in moved:
        assert result.history[-1].objective == pytest.approx(result.objective)


def test_a_matrix_of_costs_is_by_the_labels_of_all_data():
    levels = np.unique(Y)
    costs = np.add.outer(levels, levels) + 1.0
    data = data_of()
    part = np.flatnonzero((data.y < levels[-1]) & (np.arange(len(Y)) % 2 == 0))
    (solution,) = LINEAR.fit_paths(data, Parameters(pair_cost=costs), CS[:1], [part])
    own = RankSVM(C=CS[0], pair_cost=costs[:-1, :-1]).fit(X[part], Y[part], qid=QID[part])
    assert solution.result.objective == pytest.approx(own.objective_, rel=1e-4)


@pytest.mark.parametrize("C", [1e-300, 1e300])
def test_a_C_that_cannot_be_computed_with_is_refused(C):
    data = data_of(query_weight=np.full(30, 1e-100 if C < 1 else 1.0))
    with pytest.raises(ValueError, match="C"):
        list(LINEAR.fit_paths(data, Parameters(), np.array([C]), [None]))


def test_a_grid_scales_with_the_features_and_the_pairs():
    parameters = Parameters()
    grid = LINEAR.default_grid(data_of(), parameters, 5)
    assert grid.shape == (5,)
    assert grid[-1] / grid[0] == 2.0**20
    larger = LINEAR.default_grid(RankingData(8.0 * X, Y, QID), parameters, 5)
    np.testing.assert_allclose(larger, grid / 64.0)
    by_pair = LINEAR.default_grid(data_of(), Parameters(normalization="pairs"), 5)
    assert by_pair[0] / grid[0] == pytest.approx(data_of().n_pairs, rel=0.5)
    assert LINEAR.default_grid(data_of(), parameters, 1)[0] == grid[2]


def test_a_grid_has_equal_steps():
    for k in range(6):  # of as many octaves more than one a point
        scales = np.where(np.arange(X.shape[1]) % 2, 2.0**k, 1.0)
        grid = LINEAR.default_grid(RankingData(X * scales, Y, QID), Parameters(), 21)
        np.testing.assert_allclose(np.diff(np.diff(np.log2(grid))), 0, atol=1e-12)


def test_a_grid_is_not_that_of_one_huge_feature():
    noise = 1e6 * np.random.default_rng(0).normal(size=(len(Y), 1))
    grid = LINEAR.default_grid(data_of(), Parameters(), 5)
    beside = LINEAR.default_grid(RankingData(np.hstack([X, noise]), Y, QID), Parameters(), 5)
    np.testing.assert_allclose(np.log2(beside), np.log2(grid), atol=1.5)


def test_a_grid_is_wider_where_features_differ_in_scale():
    scales = 10.0 ** np.arange(8)
    grid = LINEAR.default_grid(RankingData(X * scales, Y, QID), Parameters(), 5)
    assert grid[-1] / grid[0] > 2.0**40


@pytest.mark.parametrize(
    ("factor", "words"), [(1e200, r"X\[:, 0\].* large"), (1e-200, "X.* small")]
)
def test_values_that_cannot_be_squared_have_no_grid(factor, words):
    with pytest.raises(ValueError, match=words):
        LINEAR.default_grid(RankingData(factor * X, Y, QID), Parameters(), 5)


def test_features_that_tell_nothing_have_no_grid():
    with pytest.raises(ValueError, match="no feature of X"):
        LINEAR.default_grid(RankingData(np.ones((4, 2)), [0, 1, 0, 1]), Parameters(), 5)


def test_a_C_without_an_inverse_is_refused():
    grid = np.array([1e-320, 1.0])
    with pytest.raises(ValueError, match="C=1e-320 "):
        next(LINEAR.fit_paths(data_of(), Parameters(), grid, [None]))
