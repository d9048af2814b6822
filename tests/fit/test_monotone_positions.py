"""Monotone effects of positions: the constrained optimum, by an independent solver, and its gap."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.problem_counts import n_problems
from helpers.tables import each

from marginrank import AdditiveRankSVM, RankSVM
from marginrank.fit.positions import POSITION_RIDGE


def clicks_of(seed):
    """Draw sessions whose effects of positions rise and fall, with contexts in one of two."""
    rng = np.random.default_rng(seed)
    sessions, shown = int(rng.integers(3, 30)), int(rng.integers(2, 9))
    n = sessions * shown
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    places = rng.choice(np.arange(1, 25), size=shown, replace=False)
    position = np.concatenate([rng.permutation(places) for _ in range(sessions)])
    effect = rng.normal(size=25) - 0.1 * rng.random() * np.arange(25)
    qid = np.repeat(np.arange(sessions), shown)
    click = (X.sum(axis=1) + effect[position] + rng.normal(size=n) > 0).astype(float)
    context = None if seed % 2 else rng.integers(0, 2, sessions)[qid]
    return X, click, qid, position, context


def pairs_of(click, qid):
    """Return the pairs of clicked and unclicked documents of a session."""
    return np.nonzero((qid[:, None] == qid) & (click[:, None] > click))


def independent_optimum(X, click, qid, position, context, *, C, squared):
    """Return the optimum of the constrained problem over one-hot columns, by Clarabel."""
    clarabel = pytest.importorskip("clarabel")
    last = np.minimum(position, 20) - 1
    cell = last if context is None else 20 * context + last
    cells, column = np.unique(cell, return_inverse=True)
    both = np.hstack([X, np.eye(cells.size)[column]])
    i, j = pairs_of(click, qid)
    D, n, m = both[i] - both[j], both.shape[1], i.size
    ridge = np.r_[np.ones(X.shape[1]), np.full(cells.size, POSITION_RIDGE)]
    # Variables are the weights and effects, and one slack per pair.
    P = sp.diags_array(np.r_[ridge, np.full(m, 2.0 * C if squared else 0.0)]).tocsc()
    q = np.r_[np.zeros(n), np.full(m, 0.0 if squared else C)]
    same = np.flatnonzero(cells[1:] // 20 == cells[:-1] // 20)
    falls = np.zeros((same.size, n))
    falls[np.arange(same.size), X.shape[1] + same] = 1.0
    falls[np.arange(same.size), X.shape[1] + same + 1] = -1.0
    A = sp.block_array(
        [[-D, -np.eye(m)], [None, -np.eye(m)], [-falls, np.zeros((same.size, m))]], format="csc"
    )
    b = np.r_[-np.ones(m), np.zeros(m), np.zeros(same.size)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(b.size)]
    found = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    return found.obj_val, np.asarray(found.x[: X.shape[1]])


@each("loss", ["squared_hinge", "hinge"])
def test_the_optimum_is_that_of_an_independent_solver(loss):
    solved = n_pooled = 0
    for seed in range(n_problems(100)):
        X, click, qid, position, context = clicks_of(seed)
        if not pairs_of(click, qid)[0].size:
            continue
        C = float(10.0 ** np.random.default_rng([seed, 1]).uniform(-3, 0))
        given = {"qid": qid, "position": position, "context": context}
        tol = 1e-9 if loss == "squared_hinge" else 1e-5
        model = RankSVM(C=C, loss=loss, tol=tol).fit(X, click, **given, monotonic_position=True)
        value, weights = independent_optimum(
            X, click, qid, position, context, C=C, squared=loss == "squared_hinge"
        )
        assert model.objective_ == pytest.approx(value, rel=5 * tol)
        assert model.objective_ - value <= model.gap_ + 1e-8 * value  # of Clarabel's own tolerance
        if loss == "squared_hinge":
            np.testing.assert_allclose(model.coef_, weights, atol=2e-4)
        for effects in np.atleast_2d(model.position_effect_):
            steps = np.diff(effects[~np.isnan(effects)])
            assert (steps <= 0).all()
            n_pooled += int(np.count_nonzero(steps == 0))
        solved += 1
    assert solved > 80
    assert n_pooled > 100


def test_decreasing_effects_are_those_of_the_plain_fit():
    rng = np.random.default_rng(0)
    X, qid, position = rng.normal(size=(4000, 3)), np.arange(4000) // 5, np.tile(range(1, 6), 800)
    click = (X[:, 0] - position + rng.normal(size=4000) > -2.5).astype(float)
    plain = RankSVM(C=0.01, tol=1e-10).fit(X, click, qid=qid, position=position)
    assert (np.diff(plain.position_effect_) < 0).all()
    monotone = RankSVM(C=0.01, tol=1e-10)
    monotone.fit(X, click, qid=qid, position=position, monotonic_position=True)
    np.testing.assert_allclose(monotone.coef_, plain.coef_, atol=1e-6)
    np.testing.assert_allclose(monotone.position_effect_, plain.position_effect_, atol=1e-5)
    up = RankSVM(C=0.01, tol=1e-10)
    up.fit(X, click, qid=qid, position=6 - position, monotonic_position=True)
    assert np.ptp(up.position_effect_) == 0.0  # all pooled: as without positions
    np.testing.assert_allclose(
        up.coef_, RankSVM(C=0.01, tol=1e-10).fit(X, click, qid=qid).coef_, atol=1e-5
    )
    again = RankSVM(C=0.01, tol=1e-10, n_jobs=2)
    again.fit(X, click, qid=qid, position=position, monotonic_position=True)
    np.testing.assert_array_equal(again.coef_, monotone.coef_)


def test_one_position_has_no_constraint():
    X, click = np.array([[0.0], [1.0], [0.5]]), [0, 1, 0]
    given = {"qid": [0, 0, 0], "position": [30, 25, 20]}
    plain = RankSVM().fit(X, click, **given)
    monotone = RankSVM().fit(X, click, **given, monotonic_position=True)
    np.testing.assert_array_equal(plain.coef_, monotone.coef_)


def test_the_constraint_needs_positions():
    with pytest.raises(ValueError, match="monotonic_position requires position"):
        RankSVM().fit([[0.0], [1.0]], [0, 1], monotonic_position=True)


def test_additive_models_constrain_the_effects_as_a_monotone_category():
    rng = np.random.default_rng(1)
    X, qid, position = rng.normal(size=(800, 2)), np.arange(800) // 8, np.tile(range(1, 9), 100)
    bias = np.array([0.0, -1.0, -0.5, -2.0, -1.5, -1.0, -3.0, -3.0])[position - 1]
    click = (X[:, 0] + bias + rng.normal(size=800) > 0).astype(float)
    model = AdditiveRankSVM(C=5.0, tol=1e-8)
    model.fit(X, click, qid=qid, position=position, monotonic_position=True)
    effects = model.position_effect_
    assert (np.diff(effects) <= 0).all()
    assert effects[1] == effects[2]
    assert effects[3] == effects[4] == effects[5]
    # The optimum of the constrained problem is that of the problem with pooled positions.
    pooled = np.array([1, 2, 2, 3, 3, 3, 4, 5])[position - 1]
    assert len(np.unique(effects)) in (4, 5)
    looser = AdditiveRankSVM(C=5.0, tol=1e-8).fit(X, click, qid=qid, position=position)
    tighter = AdditiveRankSVM(C=5.0, tol=1e-8).fit(X, click, qid=qid, position=pooled)
    assert looser.objective_ < model.objective_
    assert model.objective_ == pytest.approx(tighter.objective_, rel=1e-3)  # the ridge differs
    for curve, other in zip(model.curves_, tighter.curves_, strict=True):
        np.testing.assert_allclose(curve.values, other.values, atol=1e-2)
    with pytest.raises(ValueError, match="does not support context with monotonic_position"):
        model.fit(X, click, qid=qid, position=position, context=qid % 2, monotonic_position=True)
