"""What a fit with features that leave claims is true: held against an independent judge."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.brute_force import explicit_pairs
from helpers.oracle import GroupOracle
from helpers.plain_defaults import plain_curve_parameters
from helpers.problem_counts import n_problems
from helpers.small_problems import small_problem
from helpers.tables import each
from test_certificates import wrong_claims

from marginrank.additive.fit import AdditiveParameters, prepare
from marginrank.data import RankingData
from marginrank.data.pair_lists import check_pairs
from marginrank.models.fit_report import is_close
from marginrank.objective.groups import Groups
from marginrank.objective.losses import get_loss

CHUNK = 50
N_PROBLEMS = n_problems(100)


def fitted(seed):
    """Draw a problem and fit it; return the solution, what it saw, the parameters and the problem.

    None where there is no pair.
    """
    problem = small_problem(seed)
    rng = np.random.default_rng([seed, 2])
    if not problem.has_pairs:
        return None
    parameters = AdditiveParameters(
        **problem.parameters
        | {
            "max_bins": int(rng.integers(1, 9)),
            "smoothness": float(10.0 ** rng.uniform(-3, 3)),
            "scale": str(rng.choice(["standard", "range"])) if rng.random() < 0.7 else None,
            "solver": "auto",
        }
    )
    weight, pairs = problem.fit_parameters["sample_weight"], problem.fit_parameters.get("pairs")
    data = RankingData(problem.X, problem.y, problem.qid, sample_weight=weight)
    listed = None if pairs is None else check_pairs(pairs, None, len(problem.y))
    seen = prepare(data, parameters)
    objective = seen.objective(data, parameters, pairs=listed)
    largest = Groups(1.0, seen.matrix.basis.starts).lengths(objective.at_zero().gradient).max()
    l1 = float(10.0 ** rng.uniform(-4, 0.1)) * (float(largest) or 1.0)
    parameters = replace(parameters, group_l1=l1)
    objective = seen.objective(data, parameters, pairs=listed)
    return seen.minimize(objective, parameters, seed=0), seen, parameters, problem


@each("seed", range(24))
def test_hinge_with_a_small_penalty_and_a_large_C(seed):
    """An unsolved smoothed problem made the band's part of the estimate vanish."""
    rng = np.random.default_rng(seed)
    data = RankingData(rng.normal(size=(20, 2)), rng.integers(0, 3, 20))
    parameters = plain_curve_parameters(loss="hinge", group_l1=0.1, C=1e4, tol=1e-3)
    seen = prepare(data, parameters)
    matrix = seen.matrix
    w, report = seen.minimize(seen.objective(data, parameters), parameters, seed=0)
    judge = GroupOracle(
        matrix.values(np.arange(matrix.n_features)),
        explicit_pairs(data.y, np.zeros(20)),
        get_loss("hinge"),
        1e4,
        weight=0.1,
        starts=matrix.basis.starts,
    )
    assert report.stop_reason.converged
    assert judge.value(w) <= (1 + 1e-3) * judge.solution[1]


@pytest.mark.parametrize("first", range(0, N_PROBLEMS, CHUNK))
def test_no_false_claim(first):
    n_left = n_stayed = 0
    for seed in range(first, first + CHUNK):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = fitted(seed)
        if found is None:
            continue
        (w, report), seen, parameters, problem = found
        matrix = seen.matrix
        judge = GroupOracle(
            matrix.values(np.arange(matrix.n_features)),
            problem.judge.pairs,
            problem.judge.loss,
            problem.judge.C,
            weight=parameters.group_l1,
            starts=matrix.basis.starts,
        )
        model = SimpleNamespace(
            coef_=w,
            gap_=report.gap,
            objective_=report.objective,
            stop_reason_=report.stop_reason,
            history_=report.history,
        )
        warned = not is_close(report, parameters.tol)
        assert not wrong_claims(model, judge, parameters.tol, warned), seed
        lengths = Groups(1.0, matrix.basis.starts).lengths(w)
        n_left += np.any(lengths == 0)
        n_stayed += np.any(lengths > 0)
    assert min(n_left, n_stayed) > 0.1 * CHUNK
