"""Cones, the search for their right face, and groups that become zero."""

from functools import partial

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.oracle import _solve
from helpers.tables import each
from numpy.testing import assert_allclose

from marginrank import make_ranking
from marginrank.additive.fit import AdditiveParameters, exactly_monotone, monotone_cone, prepare
from marginrank.data import RankingData
from marginrank.models.fit_report import StopReason
from marginrank.objective.cones import ConeBlock, ConePoint
from marginrank.objective.groups import GroupPoint, Groups
from marginrank.objective.losses import LOSSES
from marginrank.solvers import find_solver
from marginrank.solvers.cone import pivoting
from marginrank.solvers.sparse.group_newton import group_newton

X, Y, QID = make_ranking(30, 10, 4, random_state=0)
DATA = RankingData(X, Y, QID)


def problem(loss="squared_hinge", C=0.1, **options):
    plain = {"normalization": "none", "smoothness": 1.0} | options
    parameters = AdditiveParameters(C=C, loss=loss, max_bins=8, **plain)
    seen = prepare(DATA, parameters)
    signs = {0: 1, 1: -1, 2: 1, 3: -1}
    return seen.objective(DATA, parameters), monotone_cone(seen.matrix.basis, signs)


@each("seed", range(20))
def test_the_nearest_point_of_a_cone_is_that_of_a_qp(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    block = ConeBlock.of(
        0, slice(0, n), rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-2, 2, (n, 1))
    )
    u = rng.normal(size=n)
    nearest, held = block.nearest(u)
    expected = _solve(sp.eye_array(n), -u, -block.rows, np.zeros(n), [clarabel.NonnegativeConeT(n)])
    assert_allclose(nearest, expected, atol=1e-6)
    assert np.all(block.rows @ nearest >= -1e-12)
    assert_allclose(block.rows[held] @ nearest, 0.0, atol=1e-9)
    free = block.free(held)
    assert_allclose(free.T @ free, np.eye(n - held.sum()), atol=1e-12)
    assert_allclose(block.rows[held] @ free, 0.0, atol=1e-12)


def test_values_are_raised_where_rounding_has_lowered_them():
    values = np.array([0.1, 0.1 - 1e-17, 0.3, 0.3 - 5e-17, 1e9, 1e9])
    for sign in (1, -1):
        exact = exactly_monotone(sign * values, sign)
        assert np.all(sign * np.diff(exact) >= 0)
        assert_allclose(exact, sign * values, rtol=1e-15, atol=1e-5)
        assert np.all(exact[:-1] + np.diff(exact) == exact[1:])
    assert exactly_monotone(np.zeros(3), 1).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("loss", LOSSES)
def test_one_by_one_ends_at_the_same_optimum(loss, monkeypatch):
    objective, cone = problem(loss)
    solve = partial(find_solver("auto", LOSSES[loss], cone), objective, tol=1e-8)
    fast = solve()
    monkeypatch.setattr(pivoting, "CHANCES", 0)
    monkeypatch.setattr(pivoting._Exchange, "next", one_by_one)
    slow = solve()
    assert fast.stop is slow.stop is StopReason.CERTIFIED
    assert slow.objective == pytest.approx(fast.objective, rel=2e-8)
    assert np.any(cone.constraints(fast.w) < 1e-12)


def one_by_one(exchange, held, wrong):
    last = np.flatnonzero(wrong)[-1]
    return held ^ (np.arange(wrong.size) == last), True


def test_blocks_change_sides_until_they_make_no_fewer_wrong():
    exchange = pivoting._Exchange(4)
    held, wrong = np.zeros(4, dtype=bool), np.array([True, True, False, False])
    changes = [exchange.next(held, wrong) for _ in range(pivoting.CHANCES + 2)]
    assert [better for _, better in changes] == [True] + [False] * (pivoting.CHANCES + 1)
    assert all(after.tolist() == wrong.tolist() for after, _ in changes[:-1])
    assert changes[-1][0].tolist() == [False, True, False, False]


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_warm_start_and_an_interrupt(loss):
    objective, cone = problem(loss)
    solve = partial(find_solver("auto", LOSSES[loss], cone), objective)
    found = solve()
    again = solve(w0=found.w)
    assert again.n_iter <= found.n_iter
    assert again.objective == pytest.approx(found.objective, rel=2e-6)

    def interrupt(line):
        raise KeyboardInterrupt

    cut = solve(callback=interrupt)
    assert cut.stop is StopReason.INTERRUPTED
    assert np.all(cone.constraints(cut.w) >= -1e-12)
    assert cut.gap >= cut.objective - found.objective


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.smooth])
def test_gaps_bound_the_distance_everywhere(loss):
    objective, cone = problem(loss)
    best = find_solver("auto", LOSSES[loss], cone)(objective, tol=1e-9)
    groups = Groups(20.0, objective.matrix.basis.starts)
    sparse = group_newton(objective, regularizer=groups, tol=1e-9)
    assert 0 < np.count_nonzero(groups.lengths(sparse.w)) < 4
    rng = np.random.default_rng(0)
    for size in (1e-3, 1.0, 10.0):
        u = size * rng.normal(size=objective.n_features)
        inside = ConePoint(cone, objective.at(cone.nearest(u)[0]))
        assert inside.gap >= inside.value - best.objective
        anywhere = GroupPoint(groups, objective.at(u))
        assert anywhere.gap >= anywhere.value - sparse.objective


def test_derivatives_along_a_line_are_those_of_differences():
    objective, _ = problem()
    groups = Groups(2.0, objective.matrix.basis.starts)
    rng = np.random.default_rng(0)
    u, d = rng.normal(size=(2, objective.n_features))
    u[groups.starts[1] : groups.starts[2]] = 0.0
    scores = objective.scores(d)
    points = [GroupPoint(groups, objective.at(u)).move(h, d, scores) for h in (0.0, 1e-7)]
    change = (points[1].value - points[0].value) / 1e-7
    assert points[0].slope(d, scores) == pytest.approx(change, rel=1e-4)
    bend = (points[1].slope(d, scores) - points[0].slope(d, scores)) / 1e-7
    assert points[1].curvature(d, scores) == pytest.approx(bend, rel=1e-3)


def test_an_interrupt_with_groups():
    objective, _ = problem()
    groups = Groups(1.0, objective.matrix.basis.starts)

    def interrupt(line):
        raise KeyboardInterrupt

    cut = group_newton(objective, regularizer=groups, callback=interrupt)
    best = group_newton(objective, regularizer=groups)
    assert cut.stop is StopReason.INTERRUPTED
    assert cut.gap >= cut.objective - best.objective
    again = group_newton(objective, regularizer=groups, w0=best.w)
    assert again.n_iter <= 1
