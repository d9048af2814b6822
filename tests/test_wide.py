"""Wide dense problems: claims are held against another algorithm, and passes over X are counted."""

import warnings

import numpy as np
import pytest
from helpers.problem_counts import n_problems
from helpers.wide_problems import WideProblem, embedded, preferences, wide_problem

from marginrank import RankSVM
from marginrank.models.fit_report import StopReason

N_PROBLEMS = n_problems(60)
CHUNK = 20
CLOSER = 0.01  # of tol: the tolerance of the reference


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("first", range(0, N_PROBLEMS, CHUNK))
def test_no_false_claim(first):
    n_claims = 0
    for seed in range(first, first + CHUNK):
        problem = wide_problem(seed)
        model, tol = problem.fit(), problem.parameters["tol"]
        reference = problem.fit(solver="tron", tol=CLOSER * tol, max_iter=100)
        above = model.objective_ - reference.objective_
        assert above <= model.gap_, seed
        if model.stop_reason_.converged:
            n_claims += 1
            assert above <= tol * reference.objective_, seed
    assert n_claims >= 0.9 * CHUNK


def table_problem(kind, normalized, n_features=300):
    """Return a small version of a cell of benchmarks/embeddings.py."""
    rng = np.random.default_rng(0)
    X = embedded(rng, 12 * n_features, n_features)
    if not normalized:
        X *= np.exp(0.5 * rng.normal(size=(len(X), 1))).astype(np.float32)
    utility = X @ rng.normal(size=n_features)
    utility = utility / utility.std() + 0.5 * rng.normal(size=len(X))
    return WideProblem(X, *preferences(rng, utility, kind), {})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_the_rule_takes_few_passes(kind, normalized, loss):
    problem = table_problem(kind, normalized)
    for C, tol in [(0.01, 1e-4), (0.01, 1e-6), (1.0, 1e-4), (1.0, 1e-6), (100.0, 1e-6)]:
        ours, other = (problem.fit(loss=loss, C=C, tol=tol, solver=s) for s in ("newton", "tron"))
        assert ours.stop_reason_ is StopReason.CERTIFIED
        assert ours.history_[-1].sweeps <= 1.2 * other.history_[-1].sweeps + 2
        assert ours.objective_ <= (1 + tol) * other.objective_


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", ["labels", "pairs", "graph"])
def test_the_same_bits_for_any_number_of_threads(kind):
    problem = table_problem(kind, True)
    models = [problem.fit(C=10.0, n_jobs=threads) for threads in (1, 2, 3)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_values_beyond_single_precision_are_fitted():
    """The product of two such values overflows a float, so the diagonal takes over."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2400, 300)) * 10.0 ** rng.uniform(20, 21, 300)
    y = np.argsort(np.argsort(X @ (rng.normal(size=300) / X.std(axis=0)))) // 600
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Neither qid")
        warnings.filterwarnings("ignore", category=UserWarning)
        model = RankSVM(C=1.0, max_iter=5).fit(X, y, qid=np.arange(2400) // 20)
    assert np.isfinite(model.coef_).all()
