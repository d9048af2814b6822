"""Screening discards only features that have no weight at the optimum, and changes no result.

MARGINRANK_PROBLEMS is the number of random problems; the default keeps the test short.
"""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import explicit_pairs
from helpers.objectives import make_objective
from helpers.problem_counts import n_problems

from marginrank import RankingData, make_ranking
from marginrank.models.fit_report import StopReason
from marginrank.objective.composite import Composite
from marginrank.objective.losses import LOSSES
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.solvers.sparse import screening
from marginrank.solvers.sparse.proximal_newton import ProximalNewton, proximal_newton
from marginrank.solvers.sparse.screening import Screen, squared_differences, survivors

N_PROBLEMS = n_problems(15)


def random_problem(seed):
    """Draw a loss, and the regularizers to solve it with."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    X, y, qid = make_ranking(int(rng.integers(3, 15)), 8, n, random_state=seed)
    X *= 10.0 ** rng.uniform(-1, 1, n)
    loss = LOSSES[str(rng.choice(["squared_hinge", "huber"]))]
    data = RankingData(sp.csr_array(X) if rng.random() < 0.5 else X, y, qid)
    objective = make_objective(data, loss, normalization="pairs", ridge=0.0)
    positive = bool(rng.random() < 0.3)
    l1 = float(np.abs(objective.at_zero().gradient).max() * 10.0 ** rng.uniform(-2, 0))
    l2 = float(rng.choice([0.0, 0.1]))
    return objective, [ElasticNet(l1, l2, positive), L1Ball(10.0 ** rng.uniform(-2, 0), positive)]


def iterates(objective, regularizer, seed):
    """Return points near and far from the optimum."""
    composite = Composite(objective, regularizer)
    rng = np.random.default_rng(seed)
    yield composite.wrap(objective.at_zero())
    yield composite.at(regularizer.prox(rng.normal(size=objective.n_features), 1.0))
    for tol in (1e-2, 1e-4, 1e-7):
        yield composite.at(proximal_newton(objective, regularizer, tol=tol).w)


@pytest.mark.parametrize("few_entries", [0, 1000], ids=["by magnitude", "by pairs"])
def test_no_feature_with_a_weight_is_discarded(few_entries, monkeypatch):
    monkeypatch.setattr(screening, "FEW_ENTRIES", few_entries)
    n_discarded = 0
    for seed in range(N_PROBLEMS):
        objective, regularizers = random_problem(seed)
        squares = squared_differences(objective)
        for regularizer in regularizers:
            optimum = proximal_newton(objective, regularizer, tol=1e-11)
            assert optimum.stop is StopReason.CERTIFIED, seed
            # Below this, a weight may be what is left of zero.
            has_weight = np.abs(optimum.w) > 1e-6 * np.abs(optimum.w).max(initial=1e-300)
            for point in iterates(objective, regularizer, seed):
                kept = survivors(point, squares)
                assert set(np.flatnonzero(has_weight)) <= set(kept), (seed, regularizer)
                n_discarded += objective.n_features - kept.size
    assert n_discarded > 10 * N_PROBLEMS


def test_the_result_is_the_one_without_screening(monkeypatch):
    solver = sys.modules[ProximalNewton.__module__]
    monkeypatch.setattr(solver, "HESSIAN_FEATURES", 1)
    monkeypatch.setattr(solver, "SMALL_WORKING_SET", 2)
    monkeypatch.setattr(screening, "WORTHWHILE", 0.9)
    narrow, narrowed = Screen.narrow, []

    def watched(self, point, squares):
        found = narrow(self, point, squares)
        narrowed.append(found.w.size < point.w.size)
        return found

    monkeypatch.setattr(Screen, "narrow", watched)
    for seed in range(N_PROBLEMS):
        objective, regularizers = random_problem(seed)
        for regularizer in regularizers:
            screened = proximal_newton(objective, regularizer, tol=1e-9)
            with monkeypatch.context() as without:
                without.setattr(screening, "WORTHWHILE", -1.0)
                plain = proximal_newton(objective, regularizer, tol=1e-9)
            for result in (screened, plain):
                assert result.stop is StopReason.CERTIFIED, seed
                value = objective.at(result.w).value + regularizer.value(result.w)
                assert result.objective == pytest.approx(value, rel=1e-12)
            assert screened.objective - plain.objective <= screened.gap
            assert plain.objective - screened.objective <= plain.gap
    assert sum(narrowed) > 0.2 * N_PROBLEMS


def test_an_interrupt_of_a_narrowed_problem_has_all_weights(monkeypatch):
    solver = sys.modules[ProximalNewton.__module__]
    monkeypatch.setattr(solver, "HESSIAN_FEATURES", 1)
    monkeypatch.setattr(solver, "SMALL_WORKING_SET", 2)
    monkeypatch.setattr(screening, "WORTHWHILE", 1.0)
    objective, (penalty, _) = random_problem(1)

    def interrupt(line):
        if line.iteration == 3:
            raise KeyboardInterrupt

    result = proximal_newton(objective, penalty, tol=1e-13, callback=interrupt)
    assert result.stop is StopReason.INTERRUPTED
    assert result.w.size == objective.n_features
    value = objective.at(result.w).value + penalty.value(result.w)
    assert result.objective == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "logistic"])
def test_squared_differences_are_sums_over_pairs(loss, monkeypatch):
    X, y, qid = make_ranking(5, 9, 4, random_state=0)
    objective = make_objective(RankingData(X, y, qid), LOSSES[loss], normalization="pairs", ridge=0)
    pairs = explicit_pairs(y, qid)
    squares = np.mean((X[pairs.preferred] - X[pairs.other]) ** 2, axis=0)
    expected = LOSSES[loss].largest_curvature * squares
    np.testing.assert_allclose(squared_differences(objective), expected, rtol=1e-12)
    monkeypatch.setattr(screening, "FEW_ENTRIES", 0)
    assert np.all(squared_differences(objective) >= expected)


@pytest.mark.parametrize(
    ("regularizer", "zero"),
    [
        (ElasticNet(1.0), [False, True, False]),
        (ElasticNet(1.0, positive=True), [False, True, True]),
        (L1Ball(1.0), [False, True, False]),
        (L1Ball(1.0, positive=True), [False, True, True]),
        (ElasticNet(10.0), [True, True, True]),
    ],
    ids=repr,
)
def test_what_a_gradient_excludes(regularizer, zero):
    gradient, error = np.array([-2.0, 0.1, 1.9]), np.full(3, 0.1)
    np.testing.assert_array_equal(regularizer.excludes(gradient, error), zero)
    assert not regularizer.excludes(gradient, np.full(3, 20.0)).any()
