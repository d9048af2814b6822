"""What a fit claims is true: held against an independent judge on thousands of small problems."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.brute_force import explicit_pairs
from helpers.objectives import make_objective
from helpers.oracle import LONG, Oracle
from helpers.problem_counts import n_problems
from helpers.small_problems import rescaled_problem, small_problem
from helpers.tables import each
from sklearn.exceptions import ConvergenceWarning

from marginrank import RankingData, RankSVM, make_ranking
from marginrank.models.fit_report import StopReason
from marginrank.objective.losses import LOSSES, get_loss
from marginrank.objective.objective import Objective
from marginrank.solvers import solvers_for
from marginrank.solvers.hinge.smoothing import smoothing

CHUNK = 100
N_PROBLEMS, N_RESCALED = n_problems(1000), n_problems(100)
MOST_SWEEPS = 20_000  # of some hundred numbers: well under two seconds


def wrong_claims(model, judge, tol, warned):
    """Return what a fitted model says that is not true."""
    _, upper = judge.solution
    value = judge.value(model.coef_)
    best = min(value, upper)
    above, gap = value - best, LONG(model.gap_)
    wrong = []
    if not model.gap_ >= 0 or not model.objective_ >= 0:
        wrong.append(f"gap {model.gap_}, objective {model.objective_}")
    if above > gap * (1 + LONG(1e-6)):
        wrong.append(f"{float(above):.3g} above the optimum, and the gap is {model.gap_:.3g}")
    if abs(model.objective_ - value) > max(gap, LONG(1e-12) * value):
        wrong.append(f"objective {model.objective_} is {float(value)}")
    if (model.stop_reason_.converged or not warned) and above > LONG(tol) * best:
        wrong.append(f"{model.stop_reason_.name} at {float(above / best):.3g} above the optimum")
    if model.history_ and model.history_[-1].sweeps > MOST_SWEEPS:
        wrong.append(f"{model.history_[-1].sweeps} sweeps")
    return wrong


@pytest.mark.parametrize(
    ("draw", "first"),
    [
        *((small_problem, first) for first in range(0, N_PROBLEMS, CHUNK)),
        *((rescaled_problem, first) for first in range(0, N_RESCALED, CHUNK)),
    ],
)
def test_no_exception_and_no_false_claim(draw, first):
    n_judged = n_tight = 0
    for seed in range(first, first + CHUNK):
        problem = draw(seed)
        if not problem.has_pairs:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = problem.fit()
        assert all(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        judge = problem.judge
        assert not wrong_claims(model, judge, problem.parameters["tol"], caught), seed
        lower, upper = judge.solution
        n_judged += 1
        n_tight += upper - lower <= 1e-6 * upper
    # The judge itself knows the optimum of nearly all of them.
    assert n_tight >= 0.85 * n_judged > 0.6 * CHUNK


@pytest.mark.parametrize("first", range(0, 300, CHUNK))
def test_no_false_claim_of_scaled_features(first):
    """The division rounds, too: what is claimed is held against X / σ in long arithmetic."""
    for seed in range(first, first + CHUNK):
        problem = small_problem(seed)
        if not problem.has_pairs:
            continue
        scale = 10.0 ** np.random.default_rng(seed).uniform(-6, 6, problem.X.shape[1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = RankSVM(scale=scale, **problem.parameters)
            model.fit(problem.X * scale, problem.y, **problem.fit_parameters)
        warned = [one for one in caught if issubclass(one.category, ConvergenceWarning)]
        judge = replace(problem.judge, X=(problem.X * scale).astype(LONG) / scale.astype(LONG))
        model.coef_ = model.coef_.astype(LONG) * scale.astype(LONG)
        assert not wrong_claims(model, judge, problem.parameters["tol"], warned), seed


@pytest.mark.parametrize("seed", range(6))
def test_hinge_of_separable_data_is_certified(seed):
    """The loss can reach zero, and rounding must not be measured against it."""
    X, y, qid = make_ranking(20, 10, 500, random_state=seed)
    model = RankSVM(loss="hinge").fit(X, y, qid=qid)
    assert model.stop_reason_ is StopReason.CERTIFIED
    assert 0 <= model.gap_ <= 1e-6 * model.objective_
    assert model.history_[-1].sweeps < MOST_SWEEPS


def judged(X, y, qid=None, *, loss="hinge", cost=None, **parameters):
    """Fit, and return the model with what it says that is not true."""
    qid = np.zeros(len(y)) if qid is None else qid
    pairs = explicit_pairs(y, qid, pair_weight=cost)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RankSVM(loss=loss, **parameters).fit(X, y, qid=qid)
    judge = Oracle(np.asarray(X), pairs, get_loss(loss), parameters.get("C", 1.0))
    return model, wrong_claims(model, judge, parameters.get("tol", 1e-6), caught)


@pytest.mark.parametrize("solver", ["smoothing", "ocas", "bmrm"])
def test_features_that_differ_by_ten_orders_of_magnitude(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 1, 1e10]
    y = rng.integers(0, 3, 40)
    model, wrong = judged(X, y, np.repeat([0, 1], 20), solver=solver)
    assert not wrong
    if solver == "smoothing":
        assert model.objective_ == pytest.approx(227.105, rel=1e-3)


def test_four_features_of_very_different_scales():
    rng = np.random.default_rng(90)
    X = rng.normal(size=(12, 4)) * 10.0 ** np.array([0, 4, 8, 9.5])
    # How close a fit comes here depends on the last digits; what it says of it must be true.
    _, wrong = judged(X, rng.integers(0, 3, 12))
    assert not wrong


@pytest.mark.parametrize("solver", ["smoothing", "ocas", "bmrm"])
def test_large_features_with_labels_that_follow_one_of_them(solver):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model, wrong = judged(1e4 * X, np.round(2 * X[:, 0]), solver=solver)
    assert not wrong
    assert model.n_iter_ <= 150


@pytest.mark.parametrize("solver", ["smoothing", "ocas", "bmrm"])
def test_one_pair_whose_loss_weighs_far_more_than_its_optimum(solver):
    X, y = [[-1711.4], [-163.7]], np.array([0, 3])
    discount = 1 - 1 / np.log2(3)
    model, wrong = judged(X, y, cost=lambda a, b: discount, solver=solver, C=100, pair_cost="ndcg")
    assert not wrong
    assert model.gap_ > 0


def test_huber_with_gains_of_large_labels():
    """Pair weights of 2^49 leave rounding where the Hessian has small entries."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 5)), rng.integers(0, 50, 100).astype(float)
    model, wrong = judged(X, y, cost=lambda a, b: 2.0**a - 2.0**b, loss="huber", pair_cost="gain")
    assert not wrong
    assert model.stop_reason_.converged


LOSSES_THAT_END = ("hinge", "squared_hinge", "huber")
CLAIMS = [(solver, loss) for loss in LOSSES_THAT_END for solver in solvers_for(get_loss(loss))]


@pytest.mark.parametrize(("solver", "loss"), CLAIMS)
def test_an_objective_of_zero(solver, loss):
    """Margins that are met at w = 0 leave nothing to do and nothing to divide by."""
    model = RankSVM(loss=loss, solver=solver, margin=lambda y: -5.0 * y, warm_start=True)
    for _ in range(2):
        model.fit([[1.0], [2.0], [3.0]], [0, 1, 2])
        assert model.objective_ == model.gap_ == 0.0
        assert model.stop_reason_ is StopReason.CERTIFIED


def test_an_interrupt_in_a_warm_start_keeps_the_start(monkeypatch):
    X, y, qid = make_ranking(10, 10, 4, random_state=0)
    objective = make_objective(RankingData(X, y, qid), LOSSES["hinge"])
    w = smoothing(objective, tol=1e-3).w

    at_point, calls = Objective.at_point, []

    def interrupt(self, point):
        calls.append(point)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return at_point(self, point)

    monkeypatch.setattr(Objective, "at_point", interrupt)
    result = smoothing(objective, w0=w)
    assert result.stop is StopReason.INTERRUPTED
    np.testing.assert_array_equal(result.w, w)


def exact_loss(loss, scores, y):
    """Sum a loss over all pairs of one query in long double precision."""
    i, j = np.nonzero(y[:, None] > y[None, :])
    t = scores[i] - scores[j]
    total = LONG(0)
    for piece in loss.pieces:
        slack = np.maximum(LONG(0), LONG(piece.theta) - t)
        total += LONG(piece.coefficient) * (slack**piece.power).sum()
    return total


@pytest.mark.parametrize(
    "loss",
    [*map(get_loss, LOSSES), get_loss("hinge").smoothed(1e-5)],
    ids=[*LOSSES, "smoothed hinge"],
)
@each("size", [2, 10, 100, 400])
def test_the_rounding_of_the_loss_is_what_the_kernels_say(loss, size):
    rng = np.random.default_rng(size)
    for _ in range(30):
        X = rng.normal(size=(size, 3)) * 10.0 ** rng.uniform(-2, 2, size=3)
        X += rng.normal(size=3) * 10.0 ** rng.uniform(0, 3)
        y = rng.integers(0, int(rng.choice([2, 5, size])), size).astype(float)
        y[:2] = 0, 1
        w = rng.normal(size=3) / np.abs(X).max(axis=0) * 10.0 ** rng.uniform(-2, 1)
        point = make_objective(RankingData(X, y), loss).at(w)
        of_scores = exact_loss(loss, point.scores.astype(LONG), y)
        of_w = exact_loss(loss, X.astype(LONG) @ w.astype(LONG), y)
        assert abs(point.loss_value - of_scores) <= point.sum_rounding
        assert of_w - point.loss_value <= point.rounding
        assert point.rounding <= 1e-7 * point.value  # and not much more than that
