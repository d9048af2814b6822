"""Sparse solvers: certified optima, exact zeros, and the properties each method promises."""

import sys
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import explicit_pairs
from helpers.objectives import make_objective
from helpers.tables import each

from marginrank import RankingData, make_ranking
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Point
from marginrank.objective.pair_weights import gain_difference
from marginrank.objective.protocols import is_certified
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.solvers import SOLVERS, find_solver, solver_names
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.sparse.frank_wolfe import fenchel
from marginrank.solvers.sparse.proximal_newton import ProximalNewton, proximal_newton
from marginrank.solvers.sparse.truncated_gradient import truncated_gradient

SPARSE_SOLVERS = {name: SOLVERS[name].minimize for name in solver_names(regularized=True)}
SQUARED_HINGE = LOSSES["squared_hinge"]
SMOOTH = [loss for loss in LOSSES.values() if loss.smooth]


def random_objective(*shape, loss=SQUARED_HINGE, layout=np.asarray, seed=0, C=1.0, **options):
    X, y, qid = make_ranking(*shape, random_state=seed, **options)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)  # as paper 3 scales
    return make_objective(
        RankingData(layout(X), y, qid), loss, C=C, normalization="pairs", ridge=0.0
    )


REGULARIZERS = [
    L1Ball(0.5),
    L1Ball(5.0),
    L1Ball(5.0, positive=True),
    L1Ball(1e4),
    ElasticNet(0.05),
    ElasticNet(1e-4),
    ElasticNet(1e-3, positive=True),
    ElasticNet(1e-3, 1e-2),
    ElasticNet(0.0, 1e-2),
]


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=repr)
@each("loss", SMOOTH)
def test_proximal_newton_is_certified_and_meets_the_conditions_of_optimality(loss, regularizer):
    objective = random_objective(40, (5, 30), 12, loss=loss, correlation=0.5)
    result = proximal_newton(objective, regularizer, tol=1e-11)
    assert result.stop is StopReason.CERTIFIED
    assert result.gap <= 1e-11 * result.objective
    gradient = objective.at(result.w).gradient
    assert regularizer.violation(result.w, gradient) <= 1e-4 * np.abs(gradient).max() + 1e-8
    if isinstance(regularizer, L1Ball):
        assert np.abs(result.w).sum() <= regularizer.radius
    assert not regularizer.positive or result.w.min() >= 0


@pytest.mark.parametrize("shape", [(8, 5, 40), (3000, 12, 10)], ids=["few documents", "sampled"])
@pytest.mark.parametrize("regularizer", [L1Ball(3.0), ElasticNet(1e-3)], ids=repr)
def test_tol_is_the_relative_distance_to_the_optimum(shape, regularizer):
    objective = random_objective(*shape)
    optimum = proximal_newton(objective, regularizer, tol=1e-11).objective
    for tol in (1e-2, 1e-4, 1e-6):
        result = proximal_newton(objective, regularizer, tol=tol)
        assert result.stop is StopReason.CERTIFIED
        assert result.objective - optimum <= tol * optimum
    if shape[0] == 3000:
        assert any(line.fraction < 1 for line in result.history)


@pytest.mark.parametrize("l1", [0.03, 1e-3])
def test_penalty_and_ball_correspond(l1):
    """The ball of the penalised solution's size has the same solution, with multiplier l1."""
    objective = random_objective(40, 20, 12)
    penalised = proximal_newton(objective, ElasticNet(l1), tol=1e-12)
    radius = np.abs(penalised.w).sum()
    in_ball = proximal_newton(objective, L1Ball(radius), tol=1e-11)
    np.testing.assert_allclose(in_ball.w, penalised.w, atol=1e-5 * radius)
    assert in_ball.objective + l1 * radius == pytest.approx(penalised.objective, rel=1e-9)
    gradient = objective.at(in_ball.w).gradient
    multiplier = L1Ball(radius * (1 - 1e-9)).multiplier(in_ball.w, gradient)
    assert multiplier == pytest.approx(l1, rel=1e-4)


def test_irrelevant_features_get_weights_of_exactly_zero():
    rng = np.random.default_rng(0)
    X, y, qid = make_ranking(200, 20, 5, random_state=0)
    X = np.hstack([X, rng.normal(size=(len(y), 45))])
    objective = make_objective(
        RankingData(X, y, qid), SQUARED_HINGE, normalization="pairs", ridge=0.0
    )
    for regularizer in (ElasticNet(0.1), L1Ball(0.3)):
        result = proximal_newton(objective, regularizer, tol=1e-8)
        assert np.count_nonzero(result.w[5:]) == 0
        assert np.count_nonzero(result.w[:5]) > 0


def test_without_an_l1_term_it_is_a_ridge():
    objective = random_objective(40, 20, 12)
    expected = newton(objective.with_ridge(0.01), tol=1e-13)
    result = proximal_newton(objective, ElasticNet(0.0, 0.01), tol=1e-12)
    assert result.objective == pytest.approx(expected.objective, rel=1e-11)
    np.testing.assert_allclose(result.w, expected.w, atol=1e-5)


@pytest.mark.parametrize("regularizer", [L1Ball(2.0), ElasticNet(1e-3)], ids=repr)
def test_sparse_and_dense_features_agree(regularizer):
    dense, csr = (
        proximal_newton(random_objective(40, 20, 12, layout=layout), regularizer, tol=1e-11)
        for layout in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(csr.w, dense.w, atol=1e-6)
    np.testing.assert_array_equal(csr.w == 0, dense.w == 0)


@pytest.mark.parametrize("solve", SPARSE_SOLVERS.values(), ids=SPARSE_SOLVERS)
@pytest.mark.parametrize("shape", [(3000, 12, 10), (30, 20, 1200)], ids=["sampled", "wide"])
def test_the_number_of_threads_does_not_change_the_bits(solve, shape):
    X, y, qid = make_ranking(*shape, random_state=0)
    data = RankingData(X, y, qid)
    regularizer = ElasticNet(0.05) if solve is truncated_gradient else L1Ball(0.5)
    results = [
        solve(
            make_objective(data, SQUARED_HINGE, normalization="pairs", ridge=0.0, threads=threads),
            regularizer,
            tol=1e-5,
            max_iter=10,
        )
        for threads in (1, 2, 3)
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result.w, results[0].w)
        assert result.gap == results[0].gap


# Many features


@pytest.mark.parametrize("regularizer", [L1Ball(2.0), ElasticNet(0.01), ElasticNet(0.01, 0.01)])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_working_sets_find_the_optimum_of_all_features(layout, regularizer, monkeypatch):
    X, y, qid = make_ranking(30, 20, 1200, density=0.05, random_state=0)
    data = RankingData(layout(X.toarray()), y, qid)
    objective = make_objective(data, SQUARED_HINGE, normalization="pairs", ridge=0.0)
    result = proximal_newton(objective, regularizer, tol=1e-9)
    assert result.stop is StopReason.CERTIFIED
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules[ProximalNewton.__module__], "HESSIAN_FEATURES", 1200)
        expected = proximal_newton(objective, regularizer, tol=1e-9)
    assert result.objective == pytest.approx(expected.objective, rel=1e-8)
    if regularizer.ridge == 0:
        assert result.history[-1].sweeps < 1.1 * expected.history[-1].sweeps


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
@pytest.mark.parametrize(
    "regularizer",
    [
        ElasticNet(0.02),
        ElasticNet(0.01),
        ElasticNet(0.002, 0.01),
        ElasticNet(0.002, 0.01, positive=True),
        ElasticNet(0.0, 0.01),
        L1Ball(3.0),
        L1Ball(1.0, positive=True),
    ],
    ids=repr,
)
def test_faces_find_the_optimum_without_a_hessian(loss, regularizer, monkeypatch):
    X, y, qid = make_ranking(40, 20, 1100, density=0.05, random_state=0)
    objective = make_objective(RankingData(X, y, qid), loss, normalization="pairs", ridge=0.0)
    expected = proximal_newton(objective, regularizer, tol=1e-9)
    monkeypatch.setattr(sys.modules[ProximalNewton.__module__], "LARGEST_WORKING_SET", 1)
    monkeypatch.setattr(Point, "hessian", None)
    result = proximal_newton(objective, regularizer, tol=1e-6, max_iter=100)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= expected.objective * (1 + 1e-6)
    if isinstance(regularizer, L1Ball):
        assert np.abs(result.w).sum() <= regularizer.radius
    assert not regularizer.positive or result.w.min() >= 0


def million_features():
    rng = np.random.default_rng(0)
    shape = (600, 1_000_000)
    noise = sp.random(*shape, density=2e-5, format="csr", random_state=rng)
    rows, columns = np.repeat(np.arange(600), 5), rng.integers(0, 50, 3000) * 17
    X = sp.csr_array(noise + sp.coo_array((rng.random(3000), (rows, columns)), shape=shape))
    weights = np.zeros(shape[1])
    weights[np.arange(10) * 17] = rng.normal(size=10) * 3
    y = np.round(X @ weights + 0.3 * rng.normal(size=600))
    return RankingData(X, y, np.repeat(np.arange(30), 20))


@pytest.mark.parametrize("regularizer", [L1Ball(10.0), ElasticNet(0.01)], ids=repr)
def test_a_million_features(regularizer):
    objective = make_objective(million_features(), SQUARED_HINGE, normalization="pairs", ridge=0.0)
    result = proximal_newton(objective, regularizer, tol=1e-6)
    assert result.stop is StopReason.CERTIFIED
    assert 0 < np.count_nonzero(result.w) < 400
    assert result.gap <= 1e-6 * result.objective


# FenchelRank


@pytest.mark.parametrize("variant", ["plain", "short"])
def test_fenchel_obeys_the_bound_of_the_paper(variant):
    """ε-accurate after at most 16 r²/ε − 1 iterations, for features in [0, 1]."""
    radius, max_iter = 4.0, 700
    objective = random_objective(60, 15, 10)
    optimum = proximal_newton(objective, L1Ball(radius), tol=1e-11).objective
    # With fewer iterations the weights 0 would obey the bound, too.
    assert 16 * radius**2 / (max_iter + 1) < objective.at_zero().value - optimum
    result = fenchel(objective, L1Ball(radius), variant=variant, tol=1e-9, max_iter=max_iter)
    assert len(result.history) == max_iter
    for line in result.history:
        assert line.objective - optimum <= 16 * radius**2 / (line.iteration + 1)
        assert line.objective - optimum <= line.gap + 1e-12


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_a_short_step_is_that_of_the_paper_over_explicit_pairs(loss):
    X, y, qid = make_ranking(5, 8, 4, random_state=0)
    objective = make_objective(RankingData(X, y, qid), loss, normalization="pairs", ridge=0.0)
    pairs = explicit_pairs(y, qid)
    K = X[pairs.preferred] - X[pairs.other]
    p, radius = len(K), 5.0
    w = fenchel(objective, L1Ball(radius), variant="short", max_iter=3, tol=1e-12).w
    d = -loss.derivative(K @ w) / p
    g = d @ K
    j = np.argmax(np.abs(g))
    b = radius * np.sign(g[j]) * np.eye(4)[j] - w
    step = d @ K @ b / (loss.largest_curvature / p * np.sum((K @ b) ** 2))
    assert 0.0 < step < 1.0
    found = fenchel(objective, L1Ball(radius), variant="short", w0=w, max_iter=1, tol=1e-12).w
    np.testing.assert_allclose(found, w + step * b, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("variant", ["plain", "away", "pairwise"])
@pytest.mark.parametrize("positive", [False, True])
def test_fenchel_descends_inside_the_ball_to_the_optimum(variant, positive):
    objective = random_objective(60, 15, 10)
    ball = L1Ball(2.0, positive)
    optimum = proximal_newton(objective, ball, tol=1e-11)
    result = fenchel(objective, ball, variant=variant, tol=1e-3, max_iter=500)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective - optimum.objective <= 1e-3 * optimum.objective
    assert np.abs(result.w).sum() <= 2.0
    assert not positive or result.w.min() >= 0
    assert len(result.history) > 2
    for earlier, later in pairwise(result.history):
        assert later.objective <= earlier.objective
    np.testing.assert_allclose(result.scores, objective.scores(result.w), rtol=1e-12)


@pytest.mark.parametrize("variant", ["away", "pairwise"])
@pytest.mark.parametrize(("radius", "tol"), [(2.0, 1e-7), (30.0, 1e-5)], ids=["edge", "inside"])
def test_away_steps_converge_linearly(variant, radius, tol):
    objective = random_objective(60, 15, 6)
    result = fenchel(objective, L1Ball(radius), variant=variant, tol=tol, max_iter=1000)
    assert result.stop is StopReason.CERTIFIED
    optimum = proximal_newton(objective, L1Ball(radius), tol=1e-10)
    assert result.objective == pytest.approx(optimum.objective, rel=tol)


def test_fenchel_reads_a_column_not_the_features():
    objective = random_objective(60, 15, 10)
    result = fenchel(objective, L1Ball(2.0), tol=1e-9, max_iter=20)
    # A sweep an iteration for the gradient, one to start and one to end.
    assert result.history[-1].sweeps == 21
    assert objective.sweeps == 22


# Truncated gradient


def test_truncated_gradient_descends_to_the_optimum():
    objective = random_objective(60, 15, 6)
    penalty = ElasticNet(0.02, 0.01)
    optimum = proximal_newton(objective, penalty, tol=1e-11)
    result = truncated_gradient(objective, penalty, tol=1e-4, max_iter=3000)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective - optimum.objective <= 1e-4 * optimum.objective
    np.testing.assert_array_equal(result.w == 0, optimum.w == 0)
    assert len(result.history) > 2
    for earlier, later in pairwise(result.history):
        assert later.objective <= earlier.objective * (1 + 1e-14)


def test_truncated_gradient_says_when_it_ran_out_of_steps():
    result = truncated_gradient(random_objective(60, 15, 6), ElasticNet(1e-3), tol=1e-6, max_iter=5)
    assert result.stop is StopReason.MAX_ITER
    assert result.gap > 1e-6 * result.objective


def test_truncated_gradient_in_batches():
    objective = random_objective(400, 10, 6)
    penalty = ElasticNet(0.02)
    optimum = proximal_newton(objective, penalty, tol=1e-10).objective
    result = truncated_gradient(objective, penalty, batch=0.2, max_iter=200)
    assert optimum < result.objective < 1.1 * optimum
    assert result.objective < 0.5 * (1 + optimum) < objective.at(np.zeros(6)).value


def test_pair_weights_and_huber_make_it_rsrank():
    X, y, qid = make_ranking(40, 15, 6, random_state=0)
    objective = make_objective(
        RankingData(X, y, qid),
        LOSSES["huber"],
        normalization="pairs",
        pair_weights=gain_difference(y, lambda y: 2**y - 1),
        ridge=0.0,
    )
    result = truncated_gradient(objective, ElasticNet(0.05), tol=1e-4, max_iter=2000)
    assert result.stop is StopReason.CERTIFIED


# All of them


def fitting_regularizer(solve):
    return ElasticNet(0.02) if solve is truncated_gradient else L1Ball(2.0)


@pytest.fixture(params=SPARSE_SOLVERS.values(), ids=SPARSE_SOLVERS)
def solver(request):
    return request.param


def test_max_iter(solver):
    result = solver(
        random_objective(100, 20, 30), fitting_regularizer(solver), tol=1e-14, max_iter=1
    )
    assert result.stop is StopReason.MAX_ITER
    assert result.n_iter == 1


def test_an_interrupt_keeps_the_best_point(solver):
    def interrupt(line):
        if line.iteration == 2:
            raise KeyboardInterrupt

    objective = random_objective(100, 20, 30)
    regularizer = fitting_regularizer(solver)
    result = solver(objective, regularizer, tol=1e-12, callback=interrupt)
    assert result.stop is StopReason.INTERRUPTED
    assert len(result.history) == 2
    assert result.objective < 1.0
    value = objective.at(result.w).value + regularizer.value(result.w)
    assert result.objective == pytest.approx(value, rel=1e-12)


def test_a_warm_start_from_the_solution_ends_at_once(solver):
    objective = random_objective(20, 20, 10)
    regularizer = fitting_regularizer(solver)
    first = solver(objective, regularizer, tol=1e-3, max_iter=3000)
    assert first.stop is StopReason.CERTIFIED
    again = solver(objective, regularizer, w0=first.w, scores0=first.scores, tol=2e-3)
    assert again.n_iter == 0
    np.testing.assert_array_equal(again.w, first.w)


def test_history(solver):
    lines = []
    result = solver(
        random_objective(20, 20, 10),
        fitting_regularizer(solver),
        tol=1e-2,
        max_iter=3000,
        callback=lines.append,
    )
    assert lines == result.history
    assert len(lines) == result.n_iter
    assert lines[-1].objective == pytest.approx(result.objective, rel=1e-12)
    assert lines[-1].gap == pytest.approx(result.gap, rel=1e-6)


def test_a_loss_with_a_kink_is_refused(solver):
    with pytest.raises(ValueError, match="loss='hinge'"):
        solver(random_objective(5, 5, 3, loss=LOSSES["hinge"]), fitting_regularizer(solver))


def test_a_regularizer_that_a_solver_cannot_use_is_refused():
    with pytest.raises(ValueError, match=r"solver='fenchel' .* with a penalty"):
        find_solver("fenchel", SQUARED_HINGE, ElasticNet(1.0))
    with pytest.raises(ValueError, match=r"solver='truncated_gradient' .* in an l1 ball"):
        find_solver("truncated_gradient", SQUARED_HINGE, L1Ball(1.0))


def test_a_problem_without_loss_is_solved_by_zero(solver):
    data = RankingData(np.ones((4, 3)), [0, 1, 2, 3], query_weight=[0.0])
    result = solver(make_objective(data, SQUARED_HINGE, ridge=0.0), fitting_regularizer(solver))
    np.testing.assert_array_equal(result.w, 0.0)
    assert result.stop.converged


@pytest.mark.parametrize("regularizer", [L1Ball(1e3), L1Ball(4.0)], ids=repr)
def test_data_that_can_be_separated_end_at_next_to_no_loss(regularizer):
    """F* = 0, to which no distance is relative; the Hessian vanishes on the way there."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 4)).astype(float)
    y = X[:, 0] + 1.0
    objective = make_objective(RankingData(X, y), SQUARED_HINGE, normalization="pairs", ridge=0.0)
    result = proximal_newton(objective, regularizer, tol=1e-6)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= 1e-11


def test_a_loss_of_exactly_zero_at_a_tight_tol_does_not_overflow():
    data = RankingData(np.array([[-2.0], [5.0], [2.0]]), [2, 1, 1], group=[3])
    objective = make_objective(data, SQUARED_HINGE, normalization="pairs", ridge=0.0)
    result = proximal_newton(objective, L1Ball(1.0), tol=1e-10)  # overflow warnings are errors
    assert result.stop is StopReason.CERTIFIED
    assert result.objective == 0.0


def test_a_penalty_is_never_taken_for_an_optimum_of_zero():
    rng = np.random.default_rng(31)
    X = rng.normal(size=(80, 4)) * 10.0 ** rng.choice([5, 6, 7, 8])
    y = (X[:, 0] > 0).astype(float)
    data = RankingData(X, y, np.repeat(np.arange(20), 4))
    objective = make_objective(data, SQUARED_HINGE, C=1e8, normalization="pairs", ridge=0.0)
    result = proximal_newton(objective, ElasticNet(0.0, 1.0), tol=1e-6)
    assert 0.0 < result.objective < 1e-12  # with a constraint, this would count as zero
    assert result.stop is StopReason.PRECISION
    assert result.gap > 1e-6 * result.objective


@pytest.mark.parametrize("n_features", [200, 1100, 3000])
@pytest.mark.parametrize("radius", [5.0, 100.0])
def test_wide_data_that_can_be_separated_end_at_next_to_no_loss(n_features, radius):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, n_features)), rng.integers(0, 3, size=60)
    data = RankingData(X, y, np.repeat(np.arange(6), 10))
    objective = make_objective(data, SQUARED_HINGE, normalization="pairs", ridge=0.0)
    result = proximal_newton(objective, L1Ball(radius), tol=1e-6)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= 1e-12
    assert np.abs(result.w).sum() <= radius
    assert objective.sweeps <= 1500


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_the_hinge_of_few_documents_in_a_ball_is_certified(radius):
    """With a narrow band, few pairs are curved and the model of the loss is nearly singular."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(18, 20)), rng.integers(0, 3, size=18)
        data = RankingData(X, y, group=[6, 6, 6])
        objective = make_objective(data, LOSSES["hinge"], normalization="pairs", ridge=0.0)
        solve = find_solver("auto", LOSSES["hinge"], L1Ball(radius))
        result = solve(objective, regularizer=L1Ball(radius), tol=1e-8)
        assert result.stop is StopReason.CERTIFIED, seed
        assert result.gap <= 1e-8 * result.objective, seed


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("copies", [1, 3])
def test_more_features_than_documents_and_copies_of_them(C, copies):
    """Models of many flat directions: falling penalties keep their number of passes small."""
    X, y, qid = make_ranking(10, 8, 100, random_state=0)
    data = RankingData(np.tile(X, copies), y, qid)
    objective = make_objective(data, SQUARED_HINGE, C=C, normalization="pairs", ridge=0.0)
    result = proximal_newton(objective, ElasticNet(1.0), tol=1e-6)
    assert result.stop is StopReason.CERTIFIED
    assert objective.sweeps <= 50 * objective.n_features / 8
    assert result.n_iter <= 30


@pytest.mark.parametrize("regularizer", [L1Ball(5.0), ElasticNet(1e-5)], ids=repr)
def test_an_interrupt_on_the_way_through_easier_problems(regularizer, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 200)), rng.integers(0, 3, size=60)
    data = RankingData(X, y, np.repeat(np.arange(6), 10))
    objective = make_objective(data, SQUARED_HINGE, normalization="pairs", ridge=0.0)
    hessian, calls = Point.hessian, []

    def interrupt(point):
        calls.append(point)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return hessian(point)

    monkeypatch.setattr(Point, "hessian", interrupt)
    result = proximal_newton(objective, regularizer, tol=1e-6)
    assert result.stop is StopReason.INTERRUPTED
    assert result.objective < objective.at_zero().value
    value = objective.at(result.w).value + regularizer.value(result.w)
    assert result.objective == pytest.approx(value, rel=1e-9)


def test_features_of_very_different_scales_in_a_ball():
    rng = np.random.default_rng(5)
    X, y, qid = make_ranking(60, 2, 10, random_state=0)
    X *= 10.0 ** rng.uniform(-7, 7, size=10)
    objective = make_objective(
        RankingData(X, y, qid), SQUARED_HINGE, normalization="pairs", ridge=0.0
    )
    result = proximal_newton(objective, L1Ball(375.0))
    assert result.gap <= 1e-3 * result.objective


def test_the_history_ends_with_the_gap_of_the_result():
    objective = random_objective(60, (3, 9), 5, C=50.0)
    result = proximal_newton(objective, ElasticNet(1.0))
    assert result.history[-1].gap == result.gap
    assert result.history[-1].objective == result.objective


def test_a_start_outside_of_the_domain_does_not_keep_its_scores(solver):
    """Scores of other weights would make a certificate of a problem that is not there."""
    objective = random_objective(40, 20, 12)
    far = proximal_newton(objective, L1Ball(1.0), tol=1e-9)
    regularizer = L1Ball(0.05) if solver is not truncated_gradient else ElasticNet(0.05, 0.0, True)
    w0 = -np.abs(far.w) if solver is truncated_gradient else far.w
    scores0 = objective.scores(w0)
    result = solver(objective, regularizer, w0=w0, scores0=scores0, tol=1e-4, max_iter=3000)
    exact = Composite(objective, regularizer).at(result.w)
    assert result.objective == pytest.approx(exact.value, rel=1e-9)
    assert result.stop is StopReason.CERTIFIED
    assert is_certified(exact, 1e-4)


def test_hardly_any_penalty_takes_few_easier_problems():
    gradient = np.array([3.0, -5.0])
    for l1 in (1e-2, 1e-14, 1e-30):
        penalties = [each.l1 for each in ElasticNet(l1, l1).easier(gradient)]
        assert len(penalties) <= 12
        assert penalties == sorted(penalties, reverse=True)
        assert penalties[0] <= 5.0 * 1.01
        assert penalties[-1] > l1
