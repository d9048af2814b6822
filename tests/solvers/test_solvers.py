"""Solvers of smooth losses: optimal, honest about it, and stopped when asked."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import BruteForce, explicit_pairs
from helpers.objectives import make_objective
from helpers.tables import each
from sklearn.svm import LinearSVC

from marginrank import RankingData, make_ranking
from marginrank._utils.threads import serial_blas
from marginrank.models.fit_report import StopReason
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Point
from marginrank.solvers import SOLVERS, solvers_for
from marginrank.solvers.smooth import preconditioner
from marginrank.solvers.smooth.line_search import line_search
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.tron import tron

SQUARED_HINGE = LOSSES["squared_hinge"]
LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}


SMOOTH = {name: loss for name, loss in LOSSES.items() if loss.smooth}


@pytest.fixture(params=solvers_for(SQUARED_HINGE))
def solver(request):
    return SOLVERS[request.param].minimize


def random_objective(*shape, seed=0, C=0.1, loss=SQUARED_HINGE, layout="dense", **kwargs):
    X, y, qid = make_ranking(*shape, random_state=seed)
    return make_objective(RankingData(LAYOUTS[layout](X), y, qid), loss, C=C, **kwargs)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_optimum_is_that_of_a_classifier_of_differences(solver, C):
    X, y, qid = make_ranking(5, 12, 4, random_state=1)
    pairs = explicit_pairs(y, qid)
    differences = X[pairs.preferred] - X[pairs.other]
    sign = np.where(np.arange(len(differences)) % 2, 1, -1)
    classifier = LinearSVC(
        C=C, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=100_000, dual=False
    ).fit(sign[:, None] * differences, sign)
    result = solver(make_objective(RankingData(X, y, qid), SQUARED_HINGE, C=C), tol=1e-12)
    expected = BruteForce(X, pairs, SQUARED_HINGE, C).value(classifier.coef_[0])
    assert result.objective == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(result.w, classifier.coef_[0], rtol=1e-4, atol=1e-5)


PROBLEMS = {
    "queries": ((40, (2, 30), 10), {}),
    "one query": ((1, 400, 5), {}),
    "fewer documents than features": ((6, 4, 30), {}),
    "raw features": ((40, 20, 15), {"heavy_tail": 1.5, "correlation": 0.5}),
}


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
@pytest.mark.parametrize(("shape", "kind"), PROBLEMS.values(), ids=PROBLEMS)
@each("C", [1e-3, 1.0, 1e3])
def test_tol_is_the_relative_distance_to_the_optimum(solver, C, shape, kind, loss):
    X, y, qid = make_ranking(*shape, **kind, random_state=2)
    objective = make_objective(RankingData(X, y, qid), loss, C=C)
    optimum = newton(objective, tol=1e-13).objective
    # Nearly separable data: the trust region allows tiny steps only, as few pairs have a loss.
    hopeless = solver is tron and shape == (6, 4, 30) and C == 1e3 and loss.name != "logistic"
    for tol in (1e-3, 1e-6, 1e-9):
        result = solver(objective, tol=tol, max_iter=500)
        distance = result.objective - optimum
        assert distance <= result.gap + 1e-13 * optimum
        if hopeless:
            assert result.stop is StopReason.MAX_ITER
            assert result.gap > tol * optimum
        elif solver is tron and result.stop is StopReason.PRECISION:
            # On raw features ½‖∇F‖² is far above the distance, so rounding may end it at the
            # optimum before the certificate is below tol, depending on the instruction set.
            assert kind.get("heavy_tail")
            assert result.gap > tol * optimum
            assert distance <= 1e-12 * optimum
        else:
            assert result.stop.converged
            assert distance <= tol * optimum


@pytest.mark.parametrize("n_levels", [5, None], ids=["five levels", "real labels"])
def test_tol_holds_with_samples_of_the_data(n_levels):
    """Enough documents for progressive sampling and a sampled preconditioner."""
    X, y, qid = make_ranking(1000, 30, 20, n_levels=n_levels, random_state=3)
    objective = make_objective(RankingData(X, y, qid), SQUARED_HINGE, threads=2)
    optimum = newton(objective, tol=1e-13).objective
    for tol in (1e-3, 1e-6, 1e-9):
        result = newton(objective, tol=tol)
        assert result.stop.converged
        assert result.objective - optimum <= tol * optimum
    assert any(line.fraction < 1 for line in result.history)
    assert tron(objective, tol=1e-10).objective == pytest.approx(optimum, rel=1e-8)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("shape", [(40, 20, 8), (1000, 30, 8)], ids=["exact", "sampled"])
def test_scaling_a_feature_costs_newton_no_iterations(shape, factor):
    X, y, qid = make_ranking(*shape, random_state=5)
    scaled = X.copy()
    scaled[:, 3] *= factor
    plain, other = (
        newton(make_objective(RankingData(features, y, qid), SQUARED_HINGE), tol=1e-8)
        for features in (X, scaled)
    )
    assert other.stop.converged
    assert abs(other.n_iter - plain.n_iter) <= 3


# More features than a Hessian is formed for


@pytest.fixture(params=["documents", "diagonal"])
def wide(request, monkeypatch):
    """Systems with an unknown for each document, or conjugate gradients with the diagonal."""
    if request.param == "diagonal":
        monkeypatch.setattr(preconditioner, "MOST_DOCUMENTS", 0)
    return request.param


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
def test_many_features_need_no_hessian(loss, wide, monkeypatch):
    X, y, qid = make_ranking(30, 20, 2000, density=0.01, random_state=6)
    objective = make_objective(RankingData(X, y, qid), loss)
    monkeypatch.setattr(Point, "hessian", None)
    by_newton, by_tron = (solve(objective, tol=1e-10) for solve in (newton, tron))
    assert by_newton.stop.converged
    assert by_newton.objective == pytest.approx(by_tron.objective, rel=1e-8)
    steps = max(line.inner_iterations for line in by_newton.history)
    assert (steps > 0) == (wide == "diagonal")


@pytest.mark.parametrize("heavy_tail", [0.0, 1.0])
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_tol_holds_with_many_features(C, heavy_tail, wide, monkeypatch):
    # The diagonal does not help with features that are both correlated by chance and so unequal.
    hopeless = wide == "diagonal" and heavy_tail > 0 and C >= 100
    X, y, qid = make_ranking(20, 20, 1100, density=0.01, heavy_tail=heavy_tail, random_state=6)
    objective = make_objective(RankingData(X, y, qid), SQUARED_HINGE, C=C)
    with monkeypatch.context() as patch:
        patch.setattr(preconditioner, "HESSIAN_FEATURES", 1100)
        patch.setattr(preconditioner, "MOST_DOCUMENTS", 0)
        optimum = newton(objective, tol=1e-12)
    assert optimum.stop.converged
    for tol in (1e-3, 1e-6):
        result = newton(objective, tol=tol, max_iter=15 if hopeless else 100)
        distance = result.objective - optimum.objective
        assert distance <= tol * optimum.objective or not result.stop.converged
        assert result.stop.converged or hopeless


def scaled_features(n_features, *, documents=44, decades=3.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(documents, n_features))
    y = rng.integers(0, 4, size=documents)
    return RankingData(
        X * 10 ** rng.uniform(-decades, decades, n_features), y, np.arange(documents) // 11
    )


def in_document_space(data, C):
    """Minimise over a with w = JXᵀa, by its own Newton steps on explicit pairs."""
    pairs = explicit_pairs(data.y, data.qid)
    differences = data.X[pairs.preferred] - data.X[pairs.other]
    gram = differences @ differences.T
    dual = np.zeros(len(gram))  # the multipliers of the pairs: min ½aᵀ(K + I/2C)a − 1ᵀa, a ≥ 0
    active = np.ones(len(gram), dtype=bool)
    for _ in range(200):
        # A pair is active if its slack is positive; it is the multiplier's at the optimum.
        dual[:] = 0.0
        inner = gram[np.ix_(active, active)] + np.eye(active.sum()) / (2 * C)
        dual[active] = np.linalg.solve(inner, np.ones(active.sum()))
        now = np.where(active, dual > 0, gram @ dual < 1)
        if np.array_equal(now, active):
            break
        active = now
    return 0.5 * float(dual @ gram @ dual) + C * float(np.sum(np.maximum(0, 1 - gram @ dual) ** 2))


@pytest.mark.parametrize("n_features", [1023, 1024, 1025, 1026, 5000])
def test_the_scale_of_features_costs_nothing_with_few_documents(n_features):
    data = scaled_features(n_features)
    objective = make_objective(data, SQUARED_HINGE, C=24.8)
    result = newton(objective, tol=1e-6)
    assert result.stop.converged
    assert result.n_iter <= 15
    assert objective.sweeps <= 100 or n_features <= 1024  # where a Hessian is 128 sweeps
    assert result.objective == pytest.approx(in_document_space(data, 24.8), rel=1e-5)


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
@pytest.mark.parametrize("n_features", [400, 1200])
def test_pairs_that_can_hardly_be_separated_take_few_iterations(n_features, loss, wide):
    """About as many features as documents and a large C: few pairs are active at the optimum."""
    X, y, qid = make_ranking(60, 10, n_features, density=0.05, noise=0.5, random_state=1)
    objective = make_objective(RankingData(X, y, qid), loss, C=1e4)
    result = newton(objective, tol=1e-6)
    assert result.stop.converged
    assert result.n_iter <= 30
    finer = newton(objective, w0=result.w, tol=1e-10)
    assert result.objective <= (1 + 1e-6) * finer.objective


@pytest.mark.parametrize(("n_features", "share"), [(1100, 1.0), (2000, 0.5), (3000, 0.5)])
def test_more_features_than_pairs_with_a_loss_take_few_steps_with_the_diagonal(
    n_features, share, monkeypatch
):
    """Separable documents, too many for a system of their own, and features of many scales."""
    for limit in ("MOST_DOCUMENTS", "MOST_DOCUMENTS_IF_HARD"):
        monkeypatch.setattr(preconditioner, limit, 0)
    X, y, qid = make_ranking(90, 11, n_features, density=40 / n_features, random_state=0)
    data = RankingData(X, y, qid)
    objective = make_objective(data, SQUARED_HINGE, C=1e4)
    result = newton(objective)
    assert result.stop.converged
    sweeps = objective.sweeps
    optimum = newton(objective, w0=result.w, tol=1e-9)
    assert optimum.stop.converged
    assert result.objective <= (1 + 1e-6) * optimum.objective

    # How many sweeps depends on the data, but what levelling saves on the same data does not: the
    # more features there are beyond the rank, which is 900 at most, the more.
    monkeypatch.setattr(preconditioner, "_leveled", lambda diagonal, rank: diagonal)
    plain = make_objective(data, SQUARED_HINGE, C=1e4)
    newton(plain)
    assert sweeps < share * plain.sweeps


def test_the_diagonal_is_levelled_below_its_rank_largest_entries():
    diagonal = np.array([5.0, 1.0, 9.0, 2.0])
    for rank, expected in {
        0: [9.0, 9.0, 9.0, 9.0],
        2: [5.0, 5.0, 9.0, 5.0],
        3: [5.0, 2.0, 9.0, 2.0],
        4: diagonal,
        7: diagonal,
    }.items():
        np.testing.assert_array_equal(preconditioner._leveled(diagonal, rank), expected)


def test_the_number_of_threads_does_not_change_the_bits_of_wide_fits(wide):
    X, y, qid = make_ranking(30, 12, 1500, density=0.05, random_state=2)
    data = RankingData(X, y, qid)
    with serial_blas():
        one, *others = (
            newton(make_objective(data, SQUARED_HINGE, C=10.0, threads=threads))
            for threads in (1, 2, 3)
        )
    for other in others:
        np.testing.assert_array_equal(other.w, one.w)


def test_wide_fits_do_not_depend_on_the_layout():
    X, y, qid = make_ranking(30, 12, 1500, density=0.2, random_state=2)
    X = X.toarray()
    X[:, 7] = 1e6 + np.arange(len(y)) % 13  # an offset that says nothing
    dense, csr = (
        newton(make_objective(RankingData(layout(X), y, qid), SQUARED_HINGE, C=10.0), tol=1e-9)
        for layout in LAYOUTS.values()
    )
    assert dense.stop.converged
    assert csr.objective == pytest.approx(dense.objective, rel=1e-8)
    assert csr.n_iter <= dense.n_iter + 2


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
def test_documents_without_curvature_are_left_out_of_wide_systems_but_not_their_slopes(loss):
    X, y, qid = make_ranking(30, 8, 1500, density=0.05, random_state=4)
    objective = make_objective(RankingData(X, y, qid), loss, C=0.01)
    w = np.random.default_rng(4).normal(size=1500)
    point = objective.at(w)
    system = preconditioner.DocumentSpace(point)
    exact = np.linalg.solve(point.hessian(), -point.gradient)
    np.testing.assert_allclose(system.direction(point), exact, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(system.solve(-point.gradient), exact, rtol=1e-6, atol=1e-9)
    assert not system._curved.all()


def test_queries_without_pairs_are_left_out_of_wide_systems():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 1100)), rng.integers(0, 3, size=60)
    qid = np.repeat(np.arange(6), 10)
    y[qid == 2] = 1
    shuffled = rng.permutation(60)
    whole = newton(
        make_objective(RankingData(X[shuffled], y[shuffled], qid[shuffled]), SQUARED_HINGE)
    )
    kept = qid != 2
    part = newton(make_objective(RankingData(X[kept], y[kept], qid[kept]), SQUARED_HINGE))
    np.testing.assert_allclose(whole.w, part.w, atol=1e-8)


def test_max_iter(solver):
    result = solver(random_objective(20, 20, 10), tol=1e-12, max_iter=1)
    assert result.stop is StopReason.MAX_ITER
    assert not result.stop.converged
    assert result.n_iter == 1
    assert result.objective < random_objective(20, 20, 10).at(np.zeros(10)).value


@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("shape", [(20, 20, 10), (1000, 30, 10)], ids=["small", "sampled"])
def test_an_interrupt_keeps_the_best_point(solver, shape, at):
    def interrupt(line):
        if line.iteration == at:
            raise KeyboardInterrupt

    objective = random_objective(*shape, C=10.0)
    result = solver(objective, tol=1e-12, callback=interrupt)
    assert result.stop is StopReason.INTERRUPTED
    assert len(result.history) == at
    assert np.isfinite(result.w).all()
    assert result.w.any()
    assert result.objective == pytest.approx(objective.at(result.w).value, rel=1e-12)
    assert result.objective < objective.at(np.zeros_like(result.w)).value


@pytest.mark.parametrize("known_scores", [False, True])
def test_a_warm_start_from_the_solution_ends_at_once(solver, known_scores):
    objective = random_objective(40, 30, 10)
    first = solver(objective, tol=1e-9)
    again = solver(objective, w0=first.w, scores0=first.scores if known_scores else None, tol=1e-9)
    assert again.stop.converged
    assert again.n_iter <= 2
    assert again.objective <= first.objective * (1 + 1e-14)


def test_the_start_is_not_modified(solver):
    objective = random_objective(20, 10, 5)
    w0 = np.full(5, 0.1)
    scores0 = objective.scores(w0)
    before = scores0.copy()
    solver(objective, w0=w0, scores0=scores0)
    np.testing.assert_array_equal(w0, 0.1)
    np.testing.assert_array_equal(scores0, before)


@pytest.mark.parametrize("shape", [(40, 20, 10), (1000, 30, 10)], ids=["small", "sampled"])
def test_history(solver, shape):
    objective = random_objective(*shape, C=10.0)
    lines = []
    result = solver(objective, tol=1e-10, callback=lines.append)
    assert lines == result.history
    full = [line for line in lines if line.fraction == 1]
    assert len(full) == result.n_iter
    assert full[-1].objective == result.objective
    for earlier, later in pairwise(full):
        assert later.objective <= earlier.objective
    for earlier, later in pairwise(lines):
        assert later.iteration == earlier.iteration + 1
        assert later.seconds >= earlier.seconds
        assert later.sweeps >= earlier.sweeps
    for line in lines:  # what is above ½‖g‖² is rounding
        half_square = line.gradient_norm**2 / 2
        assert half_square <= line.gap <= 1.001 * half_square + 1e-9 * line.objective


def test_scores_of_the_result_are_those_of_its_weights(solver):
    objective = random_objective(20, 20, 10)
    result = solver(objective, tol=1e-9)
    np.testing.assert_allclose(result.scores, objective.scores(result.w), rtol=1e-10, atol=1e-12)


def test_the_seed_changes_samples_but_not_the_optimum():
    objective = random_objective(1000, 30, 10)
    a, b = (newton(objective, tol=1e-12, seed=seed) for seed in (0, 1))
    assert a.history[0].objective != b.history[0].objective
    np.testing.assert_allclose(a.w, b.w, atol=1e-6)


def test_a_problem_without_loss_is_solved_by_zero(solver):
    data = RankingData(np.ones((4, 3)), [0, 1, 2, 3], query_weight=[0.0])
    result = solver(make_objective(data, SQUARED_HINGE))
    np.testing.assert_array_equal(result.w, 0.0)
    assert result.objective == 0.0
    assert result.stop.converged


@pytest.mark.parametrize("loss", SMOOTH.values(), ids=SMOOTH)
@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_line_search_minimises_along_the_direction(loss, length):
    objective = random_objective(20, 20, 10, loss=loss)
    start = objective.at(np.random.default_rng(0).normal(size=10))
    direction = -length * start.gradient
    scores = objective.scores(direction)
    step = line_search(start, direction, scores, slope_tol=1e-6)
    slope0, slope = start.slope(direction, scores), step.slope(direction, scores)
    assert abs(slope) <= 1e-6 * abs(slope0)
    assert step.value < start.value
    size = float((step.w - start.w) @ direction / (direction @ direction))
    np.testing.assert_allclose(step.w, start.w + size * direction, rtol=1e-12)
    for factor in (0.9, 1.1):
        assert start.move(factor * size, direction, scores).value > step.value


def test_line_search_does_not_touch_the_features():
    objective = random_objective(20, 20, 10)
    start = objective.at(np.ones(10))
    direction = -start.gradient
    scores = objective.scores(direction)
    before = objective.sweeps
    line_search(start, direction, scores)
    assert objective.sweeps == before


def test_line_search_from_where_the_loss_is_linear():
    """Far out, slopes are small on both sides; the minimum lies between."""
    objective = random_objective(20, 20, 10, loss=LOSSES["hinge"].smoothed(0.5), C=100.0)
    start = objective.at(np.zeros(10))
    np.testing.assert_allclose(start.hessian(), np.eye(10), atol=1e-8)
    direction = -start.gradient
    scores = objective.scores(direction)
    step = line_search(start, direction, scores)
    assert step.value < start.value
    assert abs(step.slope(direction, scores)) <= 0.05 * abs(start.slope(direction, scores))


def test_line_search_refuses_to_ascend():
    objective = random_objective(20, 20, 10)
    start = objective.at(np.ones(10))
    assert line_search(start, start.gradient, objective.scores(start.gradient)) is None


@pytest.mark.parametrize("share", [0.003, 0.01])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_tol_holds_where_few_queries_have_pairs(share, seed):
    """As with clicks: a blind sample of the queries would have no pairs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4000 * 30, 20)) * np.logspace(-3, 4, 20)
    qid = np.repeat(np.arange(4000), 30)
    clicked = (rng.random(4000) < share)[qid]
    y = np.where(clicked, X @ (rng.normal(size=20) / np.logspace(-3, 4, 20)) > 1, 0.0)
    objective = make_objective(RankingData(X, y, qid), SQUARED_HINGE, threads=2)
    optimum = newton(objective, tol=1e-12).objective
    result = newton(objective, tol=1e-6, seed=seed)
    assert result.stop.converged
    assert result.objective <= (1 + 1e-6) * optimum


def test_a_sparse_column_with_a_large_offset():
    X, y, qid = make_ranking(30, 20, 1100, density=0.01, random_state=0)
    stamp = np.random.default_rng(0).random((X.shape[0], 1)) * 10
    near, far = (sp.csr_array(sp.hstack([X, sp.csr_array(stamp + at)])) for at in (1.0, 1.7e9))
    values = []
    for features in (near, far):
        objective = make_objective(RankingData(features, y, qid), SQUARED_HINGE, C=0.1)
        diagonal = objective.at(np.zeros(1101)).hess_diag()
        assert np.all(diagonal >= 1)
        values.append(newton(objective, tol=1e-6).objective)
    assert values[1] == pytest.approx(values[0], rel=1e-5)


def test_the_last_iteration_of_tron_may_be_the_one_that_certifies():
    objective = random_objective(20, 20, 8)
    enough = tron(objective)
    assert enough.stop is StopReason.CERTIFIED
    again = tron(objective, max_iter=enough.n_iter)
    assert again.stop is StopReason.CERTIFIED
    np.testing.assert_array_equal(again.w, enough.w)


def test_scores_to_start_from_bring_their_rounding():
    objective = random_objective(20, 20, 8)
    result = newton(objective)
    known = objective.at(result.w, result.scores, accumulated_update=result.accumulated_update)
    assert np.all(result.accumulated_update >= np.abs(result.w))
    assert known.score_rounding >= objective.at(result.w).score_rounding


def test_features_whose_products_overflow_are_named_as_in_the_data():
    objective = random_objective(5, 5, 6).restrict(np.array([1, 4]))
    hessian = np.diag([1.0, np.inf])
    with pytest.raises(ValueError, match=r"X\[:, 4\] has values so large"):
        preconditioner.check_overflow(hessian, objective)


@pytest.mark.parametrize("C", [1e-2, 1e2, 1e4])
@pytest.mark.parametrize("seed", [5, 6])
def test_estimate_is_true_where_few_of_many_documents_have_a_loss(C, seed):
    """A sample that stands for all documents has next to none of those that matter."""
    objective = random_noiseless(2000, 10, 30, seed=seed, C=C)
    result, optimum = newton(objective, tol=1e-4), newton(objective, tol=1e-10)
    assert result.stop.converged
    assert result.objective <= optimum.objective * (1.0 + 1e-4)


def random_noiseless(*shape, seed, C):
    X, y, qid = make_ranking(*shape, noise=0.0, random_state=seed)
    return make_objective(RankingData(X, y, qid), SQUARED_HINGE, C=C, threads=2)
