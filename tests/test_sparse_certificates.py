"""What a sparse fit claims is true: held against Clarabel on explicit pairs.

MARGINRANK_PROBLEMS is the number of random problems; the default keeps the test short.
"""

import warnings

import numpy as np
import pytest
from helpers.oracle import LONG, SparseOracle
from helpers.problem_counts import n_problems
from helpers.small_problems import small_problem
from sklearn.exceptions import ConvergenceWarning

from marginrank import SparseRankSVM
from marginrank.objective.composite import NEGLIGIBLE
from marginrank.objective.losses import get_loss

N_PROBLEMS = n_problems(40)
CHUNK = 20
KINDS = ("hinge", "other losses")


def sparse_problem(kind, seed):
    """Draw a problem; return its parameters, its judge and the problem, or None without a pair."""
    problem = small_problem(seed)
    rng = np.random.default_rng([seed, 28])
    if not problem.has_pairs or "pairs" in problem.fit_parameters:
        return None
    if problem.parameters["margin"] != "unit":  # sparse fits do not have margins
        return None
    loss = "hinge" if kind == "hinge" else str(rng.choice(["squared_hinge", "huber"]))
    names = ("tol", "normalization", "pair_cost", "pair_selection")
    parameters = {name: problem.parameters[name] for name in names}
    parameters |= {"loss": loss, "scale": None, "positive": bool(rng.random() < 0.2)}
    judge = SparseOracle(problem.X, problem.pairs, get_loss(loss), 1.0)
    judge.positive = parameters["positive"]
    slope = np.abs(judge.differences.T @ (judge.cost * judge.slopes(np.zeros(problem.X.shape[1]))))
    if rng.random() < 0.5:
        magnitude = float(np.abs(problem.X).max()) or 1.0
        judge.radius = parameters["radius"] = float(10.0 ** rng.uniform(-3, 3)) / magnitude
        return parameters, judge, problem
    first = 1.0 / (float(slope.max()) or 1.0)
    parameters["C"] = C = first * float(10.0 ** rng.uniform(-0.5, 5))
    parameters["l1_ratio"] = judge.l1 = float(rng.choice([1.0, 1.0, 0.5]))
    judge.l2 = 1.0 - judge.l1
    judge.cost = LONG(C) * judge.cost
    return parameters, judge, problem


def false_claims(model, judge, tol):
    """Return the false claims of a fitted model."""
    value = judge.value(model.coef_)
    best = min(value, judge.solution[1])
    at_zero = judge.value(np.zeros_like(model.coef_))
    above, gap = value - best, LONG(model.gap_)
    wrong = []
    if above > gap * (1 + LONG(1e-6)) + LONG(1e-30) * at_zero:  # squares of rounding
        wrong.append(f"{float(above):.3g} above the optimum, and the gap is {model.gap_:.3g}")
    if abs(model.objective_ - value) > max(gap, LONG(1e-12) * value, LONG(1e-30) * at_zero):
        wrong.append(f"objective {model.objective_} is {float(value)}")
    if model.stop_reason_.converged and above > LONG(tol) * max(best, LONG(NEGLIGIBLE) * at_zero):
        wrong.append(f"{model.stop_reason_.name} at {float(above):.3g} above {float(best):.3g}")
    if np.abs(model.coef_).sum() > judge.radius or (judge.positive and model.coef_.min() < 0):
        wrong.append("weights outside of the domain")
    return wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", range(0, N_PROBLEMS, CHUNK))
def test_no_false_claim(kind, first):
    n_fits = n_converged = 0
    for seed in range(first, min(first + CHUNK, N_PROBLEMS)):
        drawn = sparse_problem(kind, seed)
        if drawn is None:
            continue
        parameters, judge, problem = drawn
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SparseRankSVM(**parameters).fit(problem.X, problem.y, **problem.fit_parameters)
        assert all(issubclass(one.category, (ConvergenceWarning, UserWarning)) for one in caught)
        assert not false_claims(model, judge, parameters["tol"]), (seed, parameters)
        n_fits += 1
        n_converged += model.stop_reason_.converged
    assert n_converged >= 0.6 * n_fits > 0
