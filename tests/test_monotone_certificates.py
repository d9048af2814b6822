"""What a fit of monotone curves claims is true: held against an independent judge."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.oracle import ConeOracle
from helpers.problem_counts import n_problems
from helpers.small_problems import small_problem
from test_certificates import wrong_claims

from marginrank.additive.fit import AdditiveParameters, monotone_cone, prepare
from marginrank.data import RankingData
from marginrank.data.pair_lists import check_pairs
from marginrank.models.fit_report import is_close

CHUNK = 50
N_PROBLEMS = n_problems(150)


def monotone_problem(seed):
    """Draw a problem with features that must rise or fall, and the parameters of a fit."""
    problem = small_problem(seed)
    rng = np.random.default_rng([seed, 1])
    n = problem.X.shape[1]
    signs = {k: int(rng.choice([-1, 1])) for k in range(n) if rng.random() < 0.8}
    parameters = problem.parameters | {
        "max_bins": int(rng.integers(1, 9)),
        "smoothness": float(10.0 ** rng.uniform(-3, 3)),
        "scale": str(rng.choice(["standard", "range"])) if rng.random() < 0.7 else None,
        "monotonic_cst": signs or {0: 1},
    }
    if parameters["solver"] in ("ocas", "bmrm"):
        parameters["solver"] = "auto"
    return problem, AdditiveParameters(**parameters)


def fitted(problem, parameters):
    """Return the solution of a fit, the matrix that it saw and the cone."""
    weight, pairs = problem.fit_parameters["sample_weight"], problem.fit_parameters.get("pairs")
    data = RankingData(problem.X, problem.y, problem.qid, sample_weight=weight)
    listed = None if pairs is None else check_pairs(pairs, None, len(problem.y))
    seen = prepare(data, parameters)
    objective = seen.objective(data, parameters, pairs=listed)
    return (
        seen.minimize(objective, parameters, seed=0),
        seen,
        monotone_cone(seen.matrix.basis, seen.signs),
    )


@pytest.mark.parametrize("first", range(0, N_PROBLEMS, CHUNK))
def test_no_false_claim(first):
    n_held = 0
    for seed in range(first, first + CHUNK):
        problem, parameters = monotone_problem(seed)
        if not problem.has_pairs:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (w, report), seen, cone = fitted(problem, parameters)
        if not cone.blocks:  # these features are constant
            continue
        matrix = seen.matrix
        curves = seen.model(w, report, parameters).curves
        B = matrix.values(np.arange(matrix.n_features))
        judge = ConeOracle(B, problem.judge.pairs, problem.judge.loss, problem.judge.C, cone=cone)
        model = SimpleNamespace(
            coef_=w,
            gap_=report.gap,
            objective_=report.objective,
            stop_reason_=report.stop_reason,
            history_=report.history,
        )
        warned = not is_close(report, parameters.tol)
        assert not wrong_claims(model, judge, parameters.tol, warned), seed
        n_held += min(cone.constraints(w)) <= 1e-12
        values = matrix.basis.inner(w)
        kept = np.concatenate([[curve.missing, *curve.values] for curve in curves])
        assert np.abs(values - kept).max() <= 1e-12 * np.abs(values).max(), seed
        for k, sign in seen.signs.items():
            assert np.all(sign * np.diff(curves[k].values) >= 0), seed
    assert n_held > 0.2 * CHUNK
