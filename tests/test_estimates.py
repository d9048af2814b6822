"""What a fit estimates on data of which it reads samples is true: another algorithm judges it.

MARGINRANK_PROBLEMS is the number of random problems; the default keeps the test short.
"""

import warnings

import numpy as np
import pytest
from helpers.objectives import make_objective
from helpers.problem_counts import n_problems
from helpers.sampled_problems import outlier_problem, sampled_problem

from marginrank import RankingData, RankSVM, linear_path
from marginrank.objective.losses import get_loss
from marginrank.solvers.smooth.newton_paths import newton_paths
from marginrank.solvers.smooth.tron import tron

N_PROBLEMS = n_problems(60)
CHUNK = 10
CLOSER = 0.01  # of tol: that of the reference
PATH_TOL = 1e-4


def fitted(problem, **other):
    """Fit the problem, with other parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RankSVM(**problem.parameters | other)
        return model.fit(problem.X, problem.y, qid=problem.qid)


def excess(problem, model, tol):
    """Return how far a model is above the optimum that `tron` finds, relative."""
    optimum = fitted(problem, solver="tron", tol=CLOSER * tol, max_iter=300)
    return problem.excess(model.coef_, optimum.coef_, model.objective_, optimum.objective_, tol)


@pytest.mark.parametrize("first", range(0, N_PROBLEMS, CHUNK))
def test_no_false_claim(first):
    n_claims = 0
    for seed in range(first, min(first + CHUNK, N_PROBLEMS)):
        problem = sampled_problem(seed)
        model, tol = fitted(problem), problem.parameters["tol"]
        if model.stop_reason_.converged:
            n_claims += 1
            assert excess(problem, model, tol) <= tol, seed
    assert n_claims >= 0.7 * CHUNK


@pytest.mark.parametrize("seed", range(6))
def test_one_document_with_a_huge_value(seed):
    """Its curvature stayed in a sampled Hessian after its pairs had lost their loss."""
    problem = outlier_problem(seed, 1e5)
    model = fitted(problem)
    assert model.stop_reason_.converged
    assert excess(problem, model, 1e-6) <= 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_one_document_with_a_huge_value_on_a_path(seed):
    problem = outlier_problem(seed, 1e4)
    assert_path(problem, [3e-4, 4e-2])


@pytest.mark.parametrize("seed", range(0, N_PROBLEMS, CHUNK))
def test_no_false_claim_on_a_path(seed):
    problem = sampled_problem(seed)
    factors = 10.0 ** np.random.default_rng(seed).uniform(-2, 1, 3)
    assert_path(problem, np.sort(problem.parameters["C"] * factors))


def assert_path(problem, Cs):
    """Hold each model of a path against its optimum."""
    parameters = {name: problem.parameters[name] for name in ("loss", "normalization")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = linear_path(problem.X, problem.y, qid=problem.qid, Cs=Cs, tol=PATH_TOL, **parameters)
    for C, w, value, stop in zip(Cs, path.coefs, path.objectives, path.stop_reasons, strict=True):
        if stop.converged:
            optimum = fitted(problem, C=C, solver="tron", tol=CLOSER * PATH_TOL, max_iter=300)
            above = (w, optimum.coef_, value, optimum.objective_, PATH_TOL, C)
            assert problem.excess(*above) <= PATH_TOL


@pytest.mark.parametrize("seed", range(1, N_PROBLEMS, 2 * CHUNK))
def test_no_false_claim_of_folds_side_by_side(seed):
    problem = sampled_problem(seed)
    data = RankingData(problem.X, problem.y, problem.qid)
    parameters = {name: problem.parameters[name] for name in ("C", "normalization")}
    reference = make_objective(data, get_loss(problem.parameters["loss"]), **parameters)
    fold = np.arange(data.n_queries) % 3
    folds = [reference.on(pairs=reference.pairs.without(fold == k)) for k in range(3)]
    ridges = np.array([10.0, 1.0, 0.1])
    for found in newton_paths(reference, folds, ridges, tol=PATH_TOL):
        objective = folds[found.problem].with_ridge(float(ridges[found.step]))
        optimum = tron(objective, tol=CLOSER * PATH_TOL)
        rounding = objective.at(found.result.w).rounding + objective.at(optimum.w).rounding
        above = objective.at(found.result.w).value - objective.at(optimum.w).value - rounding
        assert found.result.stop.converged
        assert above <= PATH_TOL * optimum.objective
