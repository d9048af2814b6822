"""Every solver on every loss it claims, on every layout and kind of pairs: one optimum."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import BruteForce, ExplicitPairs, explicit_pairs
from helpers.objectives import make_objective
from helpers.pair_kinds import within
from helpers.tables import each

from marginrank import RankingData, RankSVM, SparseRankSVM, make_ranking
from marginrank.data.pair_lists import check_pairs
from marginrank.objective.losses import LOSSES
from marginrank.objective.regularizers import ElasticNet, L1Ball
from marginrank.solvers import SOLVERS, find_solver, solver_names, solvers_for

LAYOUTS = {"dense": np.asarray, "csr": sp.csr_array}
KINDS = ("all", "adjacent", "explicit")
SMOOTH_LOSSES = ("squared_hinge", "huber", "logistic")
# The default of each kind of problem comes first.
SUPPORTED = {loss: ["newton", "tron"] for loss in SMOOTH_LOSSES}
SUPPORTED["hinge"] = ["smoothing", "ocas", "bmrm"]
IN_BALL = {loss: ["proximal_newton", "fenchel"] for loss in SMOOTH_LOSSES}
PENALIZED = {loss: ["proximal_newton", "truncated_gradient"] for loss in SMOOTH_LOSSES}
IN_BALL["hinge"] = PENALIZED["hinge"] = ["proximal_newton"]
CLAIMS = [(name, LOSSES[loss]) for loss, names in SUPPORTED.items() for name in names]
TOL = {"newton": 1e-10, "tron": 1e-10, "smoothing": 1e-8, "ocas": 1e-6, "bmrm": 1e-5}
C = 0.05


def problem(layout, kind, loss):
    """Return the objective and its brute force twin."""
    X, y, qid = make_ranking(8, (1, 12), 6, random_state=4)
    data = RankingData(LAYOUTS[layout](X), y, qid)
    if kind != "explicit":
        pairs = explicit_pairs(y, qid, close=within(y, qid, 1) if kind == "adjacent" else None)
        return make_objective(data, loss, C=C, pair_selection=kind), BruteForce(X, pairs, loss, C)
    everything = explicit_pairs(y, qid)
    some = np.random.default_rng(0).choice(len(everything.weight), 100)  # some of them twice
    listed = np.column_stack([everything.preferred[some], everything.other[some]])
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=100)
    reference = ExplicitPairs(listed[:, 0], listed[:, 1], weight, np.zeros(100))
    pairs = check_pairs(listed, weight, len(y))
    return make_objective(data, loss, C=C, pairs=pairs), BruteForce(X, reference, loss, C)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "loss"), CLAIMS, ids=lambda v: getattr(v, "name", v))
def test_every_solver_finds_the_optimum(name, loss, layout, kind):
    objective, reference = problem(layout, kind, loss)
    result = SOLVERS[name].minimize(objective, tol=TOL[name])
    assert result.stop.converged
    assert result.objective == pytest.approx(reference.value(result.w), rel=1e-11)
    best = find_solver("auto", loss)(objective, tol=1e-9)
    assert best.stop.converged
    assert result.objective <= best.objective * (1 + TOL[name]) + best.gap
    # The certificate is below what the other solver found.
    assert result.objective - result.gap <= best.objective * (1 + 1e-12)


def test_the_table_of_solvers_is_complete():
    ball, penalty = L1Ball(1.0), ElasticNet(1.0)
    assert {name: solvers_for(loss) for name, loss in LOSSES.items()} == SUPPORTED
    assert {name: solvers_for(loss, ball) for name, loss in LOSSES.items()} == IN_BALL
    assert {name: solvers_for(loss, penalty) for name, loss in LOSSES.items()} == PENALIZED


@each("loss", LOSSES)
@each("solver", solver_names(regularized=False))
def test_other_combinations_are_refused_by_name(solver, loss):
    X, y, qid = make_ranking(5, 6, 3, random_state=0)
    model = RankSVM(solver=solver, loss=loss, tol=1e-2)
    able = SUPPORTED[loss]
    if solver in able:
        assert model.fit(X, y, qid=qid).stop_reason_.converged
        return
    others = ", ".join(map(repr, able))
    with pytest.raises(ValueError, match=f"solver='{solver}' .*loss='{loss}'; .*{others}"):
        model.fit(X, y, qid=qid)


@each("loss", LOSSES)
@each("problem", [{"radius": 1.0}, {"C": 1.0}])
@each("solver", solver_names(regularized=True))
def test_other_combinations_with_a_regulariser_are_refused_before_any_data(solver, problem, loss):
    model = SparseRankSVM(solver=solver, loss=loss, tol=1e-2, **problem)
    table = IN_BALL if "radius" in problem else PENALIZED
    able = table[loss]
    if solver in able:
        X, y, qid = make_ranking(5, 6, 3, random_state=0)
        assert model.fit(X, y, qid=qid).stop_reason_.converged
        return
    listed = ", ".join(map(repr, able))
    with pytest.raises(ValueError, match=f"{solver!r} .*loss={loss!r} .*(radius).*; .*{listed}"):
        model.fit("no data", None)


def test_explicit_pairs_of_all_pairs_are_all_pairs():
    X, y, qid = make_ranking(8, (1, 12), 6, random_state=4)
    pairs = explicit_pairs(y, qid)
    listed = np.column_stack([pairs.preferred, pairs.other])
    for loss in LOSSES:
        by_labels = RankSVM(loss=loss, C=C, tol=1e-9).fit(X, y, qid=qid)
        by_list = RankSVM(loss=loss, C=C, tol=1e-9).fit(X, pairs=listed)
        if LOSSES[loss].error > 0:  # on listed pairs, the function that it approximates
            apart = C * LOSSES[loss].error * len(listed)
            assert 0 < abs(by_list.objective_ - by_labels.objective_) <= apart
            continue
        assert by_list.objective_ == pytest.approx(by_labels.objective_, rel=2e-9)
        np.testing.assert_allclose(by_list.coef_, by_labels.coef_, atol=1e-4)
