"""Solvers of the hinge loss: certified against brute force, honest, and stopped when asked."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.brute_force import BruteForce, explicit_pairs
from helpers.objectives import make_objective
from helpers.plain_defaults import plain_curves
from scipy.optimize import linprog
from sklearn.base import clone

from marginrank import RankingData, RankSVM, make_ranking
from marginrank.models.fit_report import StopReason
from marginrank.objective.losses import LOSSES, Loss, Piece
from marginrank.solvers import SOLVERS, solvers_for
from marginrank.solvers.hinge.bundle import IDLE, Bundle, bmrm, ocas
from marginrank.solvers.hinge.cutting_search import cutting_search
from marginrank.solvers.hinge.lowest_point import lowest_point
from marginrank.solvers.hinge.smoothing import smoothing

HINGE = LOSSES["hinge"]


@pytest.fixture(params=solvers_for(HINGE))
def solver(request):
    return SOLVERS[request.param].minimize


def random_objective(*shape, seed=0, C=0.1, loss=HINGE, **kwargs):
    X, y, qid = make_ranking(*shape, random_state=seed)
    return make_objective(RankingData(X, y, qid), loss, C=C, **kwargs)


def dual_bound(reference, w):
    """Best lower bound on F* among dual points with 0 ≤ α ≤ 1 that agree with w, pair by pair."""
    t = reference.differences @ w
    cost = reference.C * reference.pairs.weight
    # v = Σ c α (x_i − x_j) should be w; α is 1 left of the kink, 0 right of it, free near it.
    free = np.abs(t - 1.0) < 1e-5
    fixed = (t < 1.0) & ~free
    target = w - (cost * fixed) @ reference.differences
    columns = (cost[free, None] * reference.differences[free]).T
    n, k = columns.shape
    # min Σ |target − columns α| as a linear programme
    solution = linprog(
        np.concatenate([np.zeros(k), np.ones(2 * n)]),
        A_eq=np.hstack([columns, np.eye(n), -np.eye(n)]),
        b_eq=target,
        bounds=[(0, 1)] * k + [(0, None)] * (2 * n),
    )
    alpha = fixed.astype(float)
    alpha[free] = np.clip(solution.x[:k], 0, 1)
    v = (cost * alpha) @ reference.differences
    return cost @ alpha - 0.5 * v @ v


@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_the_certificate_is_confirmed_over_explicit_pairs(C):
    X, y, qid = make_ranking(10, 10, 4, random_state=1)
    reference = BruteForce(X, explicit_pairs(y, qid), HINGE, C)
    result = smoothing(make_objective(RankingData(X, y, qid), HINGE, C=C), tol=1e-9)
    assert result.stop is StopReason.CERTIFIED
    value = reference.value(result.w)
    assert result.objective == pytest.approx(value, rel=1e-12)
    bound = dual_bound(reference, result.w)
    assert bound <= value
    assert value - bound <= 1e-6 * value
    assert result.objective - result.gap <= value
    assert value - result.gap == pytest.approx(bound, rel=1e-6)


PROBLEMS = {
    "queries": ((40, (2, 30), 10), {}),
    "one query of real labels": ((1, 300, 5), {"n_levels": None}),
    "fewer documents than features": ((6, 4, 30), {}),
    "raw features": ((40, 20, 15), {"heavy_tail": 1.5, "correlation": 0.5}),
}


@pytest.mark.parametrize(("shape", "kind"), PROBLEMS.values(), ids=PROBLEMS)
@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e2])
def test_tol_is_the_relative_distance_to_the_optimum(C, shape, kind):
    X, y, qid = make_ranking(*shape, **kind, random_state=2)
    objective = make_objective(RankingData(X, y, qid), HINGE, C=C)
    best = smoothing(objective, tol=1e-9)
    lower = best.objective - best.gap
    for tol in (1e-2, 1e-4, 1e-6):
        result = smoothing(objective, tol=tol)
        assert result.stop.converged
        assert result.objective - best.objective <= result.gap
        assert result.objective <= (1 + tol) * best.objective
        assert result.objective - result.gap <= best.objective
    assert best.objective - lower <= 1e-6 * lower


@pytest.mark.parametrize("method", [ocas, bmrm])
def test_bundle_methods_certify_the_optimum(method):
    objective = random_objective(20, 20, 8, C=1e-3)
    best = smoothing(objective, tol=1e-9)
    result = method(objective, tol=1e-6)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= (1 + 1e-6) * best.objective
    assert result.objective - result.gap <= best.objective


SCALES = {
    "small C": (1e-6, 1.0),
    "large C": (1e12, 1.0),
    "large features": (1.0, 1e6),
    "raw features": (1e3, 10.0 ** np.arange(-3, 5)),
}


@pytest.mark.parametrize(("C", "scale"), SCALES.values(), ids=SCALES)
@pytest.mark.parametrize("method", [ocas, bmrm])
def test_bundle_methods_take_slopes_of_any_size(method, C, scale):
    """Next to the zero plane, planes with slopes of 1e17 have weights of 1e-17."""
    X, y, qid = make_ranking(1, 500, 8, n_levels=None, random_state=0)
    result = method(make_objective(RankingData(X * scale, y, qid), HINGE, C=C), tol=1e-6)
    assert result.stop is StopReason.CERTIFIED


@pytest.mark.parametrize("normalization", ["none", "pairs"])
@pytest.mark.parametrize("method", [ocas, bmrm])
def test_bundle_methods_certify_the_optimum_of_cadata(real_data, method, normalization):
    X, y, qid = real_data("cadata/cadata.txt.gz")
    data = RankingData((X - X.min(axis=0)) / np.ptp(X, axis=0), y, qid)
    C = 100.0 if normalization == "none" else 1e10
    objective = make_objective(data, HINGE, C=C, normalization=normalization)
    result = method(objective, tol=1e-6)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= (1 + 1e-6) * smoothing(objective, tol=1e-8).objective


@pytest.mark.parametrize("method", [ocas, bmrm])
def test_slow_progress_is_not_taken_for_rounding(method):
    """The lower bound rises from far below: for many rounds the gap hardly falls."""
    X, y, qid = make_ranking(1, 1000, 60, n_levels=None, random_state=0)
    objective = make_objective(RankingData(X, y, qid), HINGE, C=1e6)
    result = method(objective, tol=1e-12, max_iter=250)
    assert result.stop is StopReason.MAX_ITER


@pytest.mark.parametrize("method", [ocas, bmrm])
def test_rounding_ends_a_bundle_method(method):
    result = method(random_objective(20, 20, 4, C=1e-3), tol=1e-16)
    assert result.stop is StopReason.PRECISION
    assert result.gap <= 1e-11 * result.objective


def test_the_line_search_saves_iterations():
    objective = random_objective(20, 20, 8, C=0.01)
    plain, searched = (method(objective, tol=1e-4, max_iter=500) for method in (bmrm, ocas))
    assert searched.stop is StopReason.CERTIFIED
    assert searched.n_iter < plain.n_iter


def test_samples_lead_to_the_same_optimum():
    """Enough documents for progressive sampling and a sampled preconditioner."""
    objective = random_objective(1000, 30, 20, seed=3, threads=2)
    best = smoothing(objective, tol=1e-8)
    result = smoothing(objective, tol=1e-4, seed=1)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= (1 + 1e-4) * best.objective


ANY_MODEL = [
    RankSVM(),
    plain_curves(),
    plain_curves(group_l1=0.1),
    plain_curves(monotonic_cst={0: 1}),
]
NOTHING_TO_GAIN = [(0.0, 1.0), (1.0, 1e-300), (1.0, 1e-323)]


@pytest.mark.parametrize(
    ("model", "size", "C"),
    [(model, *some) for model in ANY_MODEL for some in NOTHING_TO_GAIN] + [(RankSVM(), 1e-200, 1)],
    ids=str,
)
def test_where_no_weight_gains_anything_zero_is_the_certified_optimum(model, size, C):
    """The square of the gradient is zero: there is nothing to divide by."""
    X = size * np.random.default_rng(0).normal(size=(8, 2))
    y = np.arange(8) % 2
    model = clone(model).set_params(loss="hinge", C=C).fit(X, y)
    assert model.stop_reason_ is StopReason.CERTIFIED
    assert model.gap_ <= 1e-6 * model.objective_
    assert model.objective_ == pytest.approx(16 * C)
    assert np.abs(model.predict(X)).max() <= 1e-100


def test_any_sum_of_hinges(solver):
    """A kink at 1 and a second one at −½, as a loss that punishes gross errors twice."""
    loss = Loss("double", (Piece(1.0, 1.0, 1), Piece(0.5, -0.5, 1)))
    objective = random_objective(20, 10, 4, C=0.01, loss=loss)
    result = solver(objective, tol=1e-5)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= (1 + 1e-5) * smoothing(objective, tol=1e-9).objective


def test_margins_and_ridge(solver):
    X, y, qid = make_ranking(20, 10, 4, random_state=0)
    data = RankingData(X, y, qid)
    loss = HINGE.shifted(-1.0)
    objective = make_objective(data, loss, C=0.01, margins=y, ridge=0.5)
    result = solver(objective, tol=1e-5)
    assert result.stop is StopReason.CERTIFIED
    pairs = explicit_pairs(y, qid, margin=y)
    reference = BruteForce(X, pairs, loss, 0.01)
    expected = reference.value(result.w) - 0.25 * result.w @ result.w
    assert result.objective == pytest.approx(expected, rel=1e-11)
    rng = np.random.default_rng(0)
    for direction in rng.normal(size=(20, 4)):
        for size in (1e-2, -1e-2):
            near = objective.at(result.w + size * direction).value
            assert near >= result.objective - result.gap


def test_max_iter(solver):
    objective = random_objective(20, 20, 10)
    result = solver(objective, tol=1e-12, max_iter=1)
    assert result.stop is StopReason.MAX_ITER
    assert result.n_iter == 1
    assert result.objective <= objective.at(np.zeros(10)).value


@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupt_keeps_the_best_point(solver, at):
    def interrupt(line):
        if line.iteration == at:
            raise KeyboardInterrupt

    objective = random_objective(20, 20, 10, C=10.0)
    result = solver(objective, tol=1e-12, callback=interrupt)
    assert result.stop is StopReason.INTERRUPTED
    assert len(result.history) == at
    assert result.objective == pytest.approx(objective.at(result.w).value, rel=1e-12)
    assert result.objective <= objective.at(np.zeros_like(result.w)).value


@pytest.mark.parametrize("known_scores", [False, True])
def test_a_warm_start_from_the_solution_ends_at_once(known_scores):
    objective = random_objective(40, 30, 10)
    first = smoothing(objective, tol=1e-6)
    again = smoothing(
        objective, w0=first.w, scores0=first.scores if known_scores else None, tol=1e-6
    )
    assert again.stop.converged
    assert again.n_iter <= 2
    assert again.objective <= first.objective * (1 + 1e-14)


def test_a_warm_start_from_anywhere(solver):
    objective = random_objective(20, 20, 8, C=1e-3)
    w0 = np.random.default_rng(0).normal(size=8) * 100
    result = solver(objective, w0=w0, tol=1e-5)
    assert result.stop is StopReason.CERTIFIED
    assert result.objective <= (1 + 1e-5) * smoothing(objective, tol=1e-8).objective


def test_history(solver):
    objective = random_objective(40, 20, 10, C=1e-3)
    lines = []
    result = solver(objective, tol=1e-4, callback=lines.append)
    assert lines == result.history
    assert len(lines) == result.n_iter
    for earlier, later in pairwise(lines):
        assert later.gap <= earlier.gap * (1 + 1e-12)
        assert later.sweeps >= earlier.sweeps


def test_a_problem_without_loss_is_solved_by_zero(solver):
    data = RankingData(np.ones((4, 3)), [0, 1, 2, 3], query_weight=[0.0])
    result = solver(make_objective(data, HINGE))
    np.testing.assert_array_equal(result.w, 0.0)
    assert result.objective == 0.0
    assert result.stop.converged


def test_threads_give_the_same_bits(solver):
    X, y, qid = make_ranking(50, 40, 6, random_state=0)
    data = RankingData(X, y, qid)
    results = [solver(make_objective(data, HINGE, C=1e-4, threads=t), tol=1e-4) for t in (1, 2, 8)]
    for result in results[1:]:
        np.testing.assert_array_equal(result.w, results[0].w)


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_cutting_search_minimises_along_the_direction(length):
    objective = random_objective(20, 20, 10)
    start = objective.at(np.random.default_rng(0).normal(size=10))
    direction = -length * start.gradient
    found = cutting_search(start, direction, objective.scores(direction), accuracy=1e-9)
    scores = objective.scores(direction)
    size = float((found.w - start.w) @ direction / (direction @ direction))
    assert found.value < start.value
    for other in size * np.linspace(0.5, 1.5, 21):
        assert start.move(other, direction, scores).value >= found.value * (1 - 1e-9)


def test_idle_planes_are_dropped():
    bundle = Bundle(np.ones(2), ridge=1.0)
    # One plane is far below the others.
    planes = [([0.0, 0.1], -100.0)] + [([1.0 + 0.01 * k, 0.0], 1.0) for k in range(2 * IDLE)]
    for gradient, intercept in planes:
        bundle.add_plane(np.array(gradient), intercept)
        bundle.minimize()
    assert bundle.size <= IDLE + 2
    # max over β of 1 − ½ · (smallest g)², as the planes of larger gradient only cost
    assert bundle.lower == pytest.approx(0.5)


def test_directions_of_dropped_planes_are_forgotten():
    """Planes of many features that rise: older ones are dropped, and their directions with them."""
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(5 * IDLE, 400))
    intercepts = 20.0 * np.arange(5 * IDLE)
    bundle = Bundle(np.ones(400), ridge=0.5)
    for gradient, intercept in zip(gradients, intercepts, strict=True):
        bundle.add_plane(gradient, intercept)
        w = bundle.minimize()
    assert bundle.size <= 2 * IDLE
    first = np.eye(1, 5 * IDLE)[0]
    v, beta = lowest_point(gradients / np.sqrt(0.5), intercepts, first)
    assert np.count_nonzero(beta) > 1
    np.testing.assert_allclose(w, v / np.sqrt(0.5), rtol=1e-9, atol=1e-9)
    assert bundle.lower == pytest.approx(beta @ intercepts - 0.5 * v @ v, rel=1e-12)


def test_a_steep_plane_is_in_use_with_a_tiny_weight():
    """Next to the zero plane, 1 + 1e9 w has a weight of 1e-18; the other planes are below."""
    bundle = Bundle(np.ones(2), ridge=1.0)
    bundle.add_plane(np.array([1e9, 0.0]), 1.0)
    for k in range(2 * IDLE):
        bundle.add_plane(np.array([0.0, 1.0 + k]), -1.0)
        w = bundle.minimize()
    np.testing.assert_allclose(w, [-1e-9, 0.0], rtol=1e-12)
    assert bundle.lower == pytest.approx(0.5e-18)
