"""What a fit of an additive model with a smooth or hinge loss claims is true: many functions."""

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.brute_force import explicit_pairs
from helpers.oracle import Oracle
from helpers.plain_defaults import plain_curve_parameters
from helpers.problem_counts import n_problems
from helpers.small_problems import small_problem
from test_certificates import wrong_claims

from marginrank.additive.fit import AdditiveParameters, fit_additive, prepare
from marginrank.data import RankingData
from marginrank.data.pair_lists import check_pairs
from marginrank.models.fit_report import is_close
from marginrank.objective.losses import get_loss

CHUNK = 50
N_PROBLEMS = n_problems(150)


def orthogonal(matrix):
    """Return as few features as documents with the same inner products, and what makes weights."""
    X = matrix.values(np.arange(matrix.n_features))
    if X.shape[1] <= X.shape[0]:
        return X, np.eye(X.shape[1])
    q, r = np.linalg.qr(X.T)
    return r.T, q.T


def solve(data, parameters, seen, pairs=None):
    """Return the weights of the basis functions, and how they were found."""
    objective = seen.objective(data, parameters, pairs=pairs)
    return seen.minimize(objective, parameters, seed=0)


def assert_true(solution, seen, parameters, pairs, loss, C, name):
    """Hold a fit against the judge of its basis functions."""
    X, through = orthogonal(seen.matrix)
    w, report = solution
    model = SimpleNamespace(
        coef_=through @ w,
        gap_=report.gap + 1e-12 * report.objective,  # of the rotation
        objective_=report.objective,
        stop_reason_=report.stop_reason,
        history_=report.history,
    )
    judge = Oracle(X, pairs, loss, C)
    warned = not is_close(report, parameters.tol)
    assert not wrong_claims(model, judge, parameters.tol, warned), name


@pytest.mark.parametrize("first", range(0, N_PROBLEMS, CHUNK))
def test_no_false_claim(first):
    for seed in range(first, first + CHUNK):
        problem = small_problem(seed)
        if not problem.has_pairs:
            continue
        rng = np.random.default_rng([seed, 3])
        parameters = AdditiveParameters(
            **problem.parameters
            | {
                "max_bins": int(rng.choice([2, 8, 32, 100])),
                "smoothness": float(10.0 ** rng.uniform(-3, 3)),
                "scale": "standard",
                "tol": float(rng.choice([1e-3, 1e-6])),
                "solver": "auto",
            }
        )
        weight, listed = (
            problem.fit_parameters["sample_weight"],
            problem.fit_parameters.get("pairs"),
        )
        data = RankingData(problem.X, problem.y, problem.qid, sample_weight=weight)
        pairs = None if listed is None else check_pairs(listed, None, len(problem.y))
        seen = prepare(data, parameters)
        solution = solve(data, parameters, seen, pairs)
        of_pairs = problem.judge
        assert_true(solution, seen, parameters, of_pairs.pairs, of_pairs.loss, of_pairs.C, seed)


@pytest.mark.parametrize(
    ("documents", "loss", "C"),
    [
        (300, "squared_hinge", 100.0),
        (300, "squared_hinge", 1e4),
        (300, "huber", 100.0),
        (1400, "squared_hinge", 1.0),
        (1400, "squared_hinge", 100.0),
        (1400, "huber", 1.0),
    ],
)
def test_more_functions_than_documents(documents, loss, C):
    """The diagonal of functions that vary little was taken for their Hessian."""
    rng = np.random.default_rng(documents)
    qid = np.arange(documents) // 5
    data = RankingData(rng.normal(size=(documents, 40)), rng.integers(0, 3, documents), qid)
    parameters = plain_curve_parameters(C=C, smoothness=0.03, loss=loss)
    seen = prepare(data, parameters)
    solution = solve(data, parameters, seen)
    report = solution[1]
    assert report.stop_reason.converged
    if documents == 300:
        pairs = explicit_pairs(data.y, qid)
        assert_true(solution, seen, parameters, pairs, get_loss(loss), C, loss)
    else:
        assert report.gap <= 1e-4 * report.objective
        closer = fit_additive(data, AdditiveParameters(**vars(parameters) | {"solver": "tron"}))
        assert report.objective <= (1 + 1e-6) * closer.report.objective


@pytest.mark.parametrize("seed", range(3))
def test_a_grid_of_two_features(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    data = RankingData(X, y)
    parameters = plain_curve_parameters(interactions=1, smoothness=0.01, C=1000.0)
    seen = prepare(data, parameters).with_interactions(data, parameters)
    solution = solve(data, parameters, seen)
    pairs = explicit_pairs(data.y, np.zeros(60))
    assert_true(solution, seen, parameters, pairs, get_loss("squared_hinge"), 1000.0, seed)
