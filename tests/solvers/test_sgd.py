"""Stochastic gradient descent: its steps against sums over explicit pairs."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import BruteForce
from helpers.pair_kinds import NAMES, pair_kind
from helpers.tables import each

from marginrank import RankingData, _core, make_ranking
from marginrank.data.queries import Queries
from marginrank.fit.online_learner import OnlineParameters, step_problem
from marginrank.objective.losses import LOSSES
from marginrank.solvers.stochastic import sgd
from marginrank.solvers.stochastic.sgd import Rate, Schedule, Sgd, curved

X, Y, QID = make_ranking(12, (2, 9), 4, random_state=0)
W = np.array([0.3, -0.2, 0.1, 0.4])
LAYOUTS = {"dense": X, "float32": X.astype(np.float32), "csr": sp.csr_array(X)}
SCHEDULE = Schedule(1.0, 1.0, Rate(1.0, 0.0, 1.0))


def steps(kind=None, features=X, loss="squared_hinge", qid=QID):
    kind = pair_kind("plain", Y, qid) if kind is None else kind
    data = RankingData(features, Y, qid, **kind.weights)
    return step_problem(data, OnlineParameters(loss=loss, **kind.parameters), **kind.given)


def inverse_of(state):
    inverse = state._state.inverse
    return inverse if state._state.full else np.diag(inverse)


def query_ids(problem):
    """Return the id of each query of a problem, whose documents need not be all."""
    documents = problem.pair_set.documents
    rows = np.arange(len(Y)) if documents.rows is None else documents.rows
    return QID[rows[documents.offsets[:-1]]]


@each("loss", LOSSES)
@each("features", LAYOUTS.values())
@pytest.mark.parametrize("name", NAMES)
def test_a_step_over_a_query_against_brute_force(features, name, loss, monkeypatch):
    monkeypatch.setattr(sgd, "FIRST_BATCH", 0)
    kind = pair_kind(name, Y, QID)
    problem = steps(kind, features, loss)
    schedule = Schedule(ridge=0.5, total=30.0, rate=Rate(1e-3, 0.0, 0.0))
    state, total, w = Sgd(4, W), 0.0, W
    curvature = np.zeros((4, 4))
    assert problem.active.size > 5
    for query in problem.active:
        pairs = kind.of_query(QID, query_ids(problem)[query])
        brute = BruteForce(X, pairs, problem.loss, 1.0)
        u = pairs.weight.sum()
        assert problem.weight[query] == pytest.approx(u)
        total += u
        value = brute.value(w) - 0.5 * w @ w + u * 0.5 / 30 * 0.5 * w @ w
        gradient = brute.gradient(w) - w + u * 0.5 / 30 * w
        curvature += BruteForce(X, pairs, curved(problem.loss), 1.0).hessian(w) - np.eye(4)
        before, taken = state.value, state.steps
        state.run(problem, np.array([query]), schedule, threads=1)
        assert state.steps == taken + 1
        assert state.value - before == pytest.approx(value, rel=1e-5)
        step = inverse_of(state) @ gradient
        length = min(1e-3 * state.steps / total, value / (gradient @ step))
        np.testing.assert_allclose(state.w, w - length * step, rtol=1e-5, atol=1e-9)
        w = state.w
    state._invert(schedule)
    mean, documents = curvature / total, state._state.documents
    diagonal = np.diag(mean) + 0.5 / 30
    metric = mean * documents / (documents + 4)
    np.fill_diagonal(metric, diagonal)
    np.testing.assert_allclose(inverse_of(state), np.linalg.inv(metric), rtol=1e-3)


@each("loss", LOSSES)
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_queries_against_brute_force(name, loss, monkeypatch):
    monkeypatch.setattr(sgd, "FIRST_BATCH", 10**6)  # add up and take no step
    monkeypatch.setattr(sgd, "LARGEST_FIRST_BATCH", 10**9)
    kind = pair_kind(name, Y, QID)
    problem, state = steps(kind, loss=loss), Sgd(4, W)
    state.run(problem, np.random.default_rng(0).permutation(problem.active), SCHEDULE, threads=1)
    assert state.steps == 0
    brute = BruteForce(X, kind.explicit, problem.loss, 1.0)
    np.testing.assert_allclose(state._state.gradient, brute.gradient(W) - W, rtol=1e-9)
    assert state._state.batch_weight == pytest.approx(kind.explicit.weight.sum())
    smooth = BruteForce(X, kind.explicit, curved(problem.loss), 1.0)
    np.testing.assert_allclose(
        state._state.curvature, smooth.hessian(W) - np.eye(4), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("features", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_diagonal_metric_is_used_for_many_features(features, name, monkeypatch):
    problem = steps(pair_kind(name, Y, QID), features)
    full = Sgd(4)
    full.run(problem, problem.active, SCHEDULE, threads=1)
    monkeypatch.setattr(sgd, "FULL_FEATURES", 3)
    flat = Sgd(4)
    flat.run(problem, problem.active, SCHEDULE, threads=1)
    flat._invert(SCHEDULE)
    assert full._state.full
    assert not flat._state.full
    diagonal = np.diag(full._state.curvature) / full._state.curvature_weight
    np.testing.assert_allclose(flat._state.inverse, 1.0 / (diagonal + 1.0))


def test_no_step_is_longer_than_polyaks(monkeypatch):
    monkeypatch.setattr(sgd, "FIRST_BATCH", 0)
    kind = pair_kind("plain", Y, QID)
    problem, state = steps(kind), Sgd(4)
    state.run(problem, problem.active[:1], Schedule(1e-6, 1.0, Rate(1e9, 0.0, 0.0)), threads=1)
    pairs = kind.of_query(QID, problem.active[0])
    brute = BruteForce(X, pairs, LOSSES["squared_hinge"], 1.0)
    # Along the step, the loss would be zero if it were linear; being convex, it is not below that.
    zero = np.zeros(4)
    assert brute.gradient(zero) @ state.w == pytest.approx(-brute.value(zero))


def test_the_open_batch_counts_in_what_is_reported():
    problem, state = steps(), Sgd(4)
    schedule = Schedule(1.0, 100.0, Rate(2.0, 1.0, 1.0))
    state.run(problem, problem.active[:2], schedule, threads=1)
    assert state.steps == 0
    assert not state.w.any()
    flushed = state.flushed(schedule)
    assert flushed.steps == 1
    assert flushed.w.any()
    assert state.steps == 0
    assert not state.w.any()


@each("loss", LOSSES)
@pytest.mark.parametrize("name", NAMES)
def test_a_pass_over_drawn_pairs_weighs_as_much_as_all(name, loss, monkeypatch):
    monkeypatch.setattr(sgd, "DRAWN_PAIRS", 7)
    problem = steps(pair_kind(name, Y, QID), loss=loss)
    drawn = list(problem.draw(np.random.default_rng(0)))
    assert max(part.sizes.size for part in drawn) == 7
    assert sum(part.sizes.sum() for part in drawn) == problem.sizes[problem.active].sum() // 2 * 2
    assert sum(part.weight.sum() for part in drawn) == pytest.approx(problem.weight.sum())


# The state


def learned(n_features=4):
    """Return a state in the middle of everything: steps, a metric, an open batch."""
    problem, state = steps(), Sgd(n_features, W)
    order = np.tile(problem.active, 20)
    state.run(problem, order[:-1], Schedule(1.0, 0.0, Rate(1.0, 0.0, 1.0)), threads=1)
    state._state.seen *= 1.0 / 3.0
    return problem, state


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda state: pickle.loads(pickle.dumps(state)),
    "old pickle": lambda state: pickle.loads(pickle.dumps(state, protocol=2)),
}


@pytest.mark.parametrize("full_features", [512, 3], ids=["full", "diagonal"])
@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_copies_are_exact_and_go_on_alike(make, full_features, monkeypatch):
    monkeypatch.setattr(sgd, "FULL_FEATURES", full_features)
    problem, state = learned()
    assert state.steps > 1
    twin = make(state)
    fields, again = state._state.__getstate__(), twin._state.__getstate__()
    assert fields.keys() == again.keys()
    for name, value in fields.items():
        assert np.asarray(value).tobytes() == np.asarray(again[name]).tobytes(), name
    before = state.w
    twin.run(problem, problem.active, SCHEDULE, threads=1)
    assert state.w.tobytes() == before.tobytes()
    state.run(problem, problem.active, SCHEDULE, threads=1)
    assert twin.average.tobytes() == state.average.tobytes()
    assert twin.steps == state.steps


def test_what_is_read_from_the_state_is_a_copy():
    _, state = learned()
    before = state.w
    state.w[:] = 7.0
    state._state.inverse[:] = 7.0
    assert state.w.tobytes() == before.tobytes()
    assert not np.any(state._state.inverse == 7.0)


def first_query(problem):
    """Return the pairs of the first query alone, whose offsets are in the memory of all."""
    found = problem.pair_set.queries
    size = found.offsets[1]
    labels = found.level[:size].astype(np.float64)
    alone = Queries.from_labels(labels, found.offsets[:2], np.arange(size), 1)
    return replace(problem.pair_set, queries=alone, query_weight=np.ones(1)).native(problem.loss)


def arguments(problem, **other):
    given = {
        "X": problem.matrix,
        "pairs": problem.pairs,
        "curved": problem.curved,
        "weight": problem.weight,
        "order": problem.active,
        "options": SCHEDULE.native(),
        "threads": 1,
    }
    return given | other


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: {"X": RankingData(X[:, :3], Y).matrix}, "number of features"),
        (lambda p: {"X": RankingData(X[1:], Y[1:]).matrix}, "number of rows"),
        (lambda p: {"weight": p.weight[1:]}, "weight must have one entry per query"),
        (lambda p: {"order": np.array([len(p.weight)])}, "order must hold numbers of queries"),
        (lambda p: {"order": np.array([-1])}, "order must hold numbers of queries"),
        (lambda p: {"curved": steps(qid=QID // 2).pairs}, "curved"),
        (lambda p: {"curved": first_query(p)}, "curved"),
        (
            lambda p: {"curved": steps(pair_kind("listed", Y, QID)).pairs},
            "curved",
        ),
    ],
)
def test_a_run_checks_what_it_is_given(change, message):
    problem = steps()
    with pytest.raises(ValueError, match=message):
        _core.SgdState(4, full=True, first_batch=0).run(**arguments(problem, **change(problem)))


def test_an_order_of_other_documents_is_no_guess():
    problem = steps()
    scores = X @ W
    size = problem.sizes[0]
    *_, part = _core.evaluate_scores(first_query(problem), scores[:size], None, 1)
    with_guess = _core.evaluate_scores(problem.pairs, scores, part, 1)
    without = _core.evaluate_scores(problem.pairs, scores, None, 1)
    for found, expected in zip(with_guess[:2], without[:2], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_the_state_checks_what_is_put_into_it():
    state = _core.SgdState(4, full=True, first_batch=0)
    for name, size in (("w", 3), ("average", 5), ("inverse", 4)):
        with pytest.raises(ValueError, match="size"):
            setattr(state, name, np.zeros(size))
    fields = state.__getstate__()
    with pytest.raises(ValueError, match="size"):
        _core.SgdState.__new__(_core.SgdState).__setstate__(fields | {"curvature": np.zeros(4)})
    for name, value in (("n_features", "4"), ("steps", None), ("full", []), ("w", "abcd")):
        with pytest.raises(ValueError, match=name):
            _core.SgdState.__new__(_core.SgdState).__setstate__(fields | {name: value})
    for name, value in (("ridge", 0.0), ("total", -1.0), ("rate", np.nan)):
        fine = {"ridge": 1.0, "total": 1.0, "rate": 1.0, "offset": 0.0, "power": 1.0}
        with pytest.raises(ValueError, match=name):
            _core.SgdOptions(**fine | {name: value})


def test_overflow_is_named():
    huge = X * np.array([1.0, 1e200, 1.0, 1.0])
    state, problem = Sgd(4), steps(features=huge)
    state._state.next_event = 1.0
    with pytest.raises(ValueError, match=r"X\[:, 1\] has values so large"):
        state.run(problem, problem.active, SCHEDULE, threads=1)
