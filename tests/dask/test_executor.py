"""What the executor keeps where: bundles, states that travel, large arguments."""

import pickle
from functools import partial

import numpy as np
import pytest
from dask.sizeof import sizeof
from distributed import wait
from workers import nothing_left_on

from marginrank import RankingData, make_ranking
from marginrank.dask import executor as executors
from marginrank.dask.clusters import _assign, spread_bundles, threads_by_worker
from marginrank.dask.executor import DaskExecutor
from marginrank.dask.problems import MovableState, Problem
from marginrank.data.pair_lists import PairList
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import LOSSES
from marginrank.operators.parts import tasks
from marginrank.operators.parts.tasks import ByPart


def evaluate(some, loss, w, like=None):
    kernels = some.kernels(loss)
    return kernels.design.evaluate(kernels.loss, w, like)


def hess_vec(some, state, v):
    kernels = some.kernels(HUBER)
    return kernels.design.hess_vec(kernels.loss, state, v)


X, Y, QID = make_ranking(40, 20, 5, random_state=0)
HUBER = LOSSES["huber"]
RNG = np.random.default_rng(0)


def problem():
    data = RankingData(X, Y, QID)
    pairs = LevelPairs.from_data(data, threads=1)
    return Problem(data, pairs, HUBER)


@pytest.mark.parametrize("sent", ["state", "part", "both"])
def test_states_and_parts_travel(sent):
    """What is computed with those that were sent is the same, bit by bit."""
    w, v, u = RNG.normal(size=(3, 5))
    here = there = problem()
    first = evaluate(here, HUBER, u, None).state
    state = moved = evaluate(here, HUBER, w, first).state
    assert isinstance(state, MovableState)
    if sent != "part":
        moved = pickle.loads(pickle.dumps(state))
    if sent != "state":
        there = pickle.loads(pickle.dumps(here))
    for one, other in zip(hess_vec(here, state, v), hess_vec(there, moved, v), strict=True):
        np.testing.assert_array_equal(one, other)
    for loss in (HUBER, LOSSES["squared_hinge"]):
        expected = evaluate(here, loss, v, state)
        found = evaluate(there, loss, v, moved)
        np.testing.assert_array_equal(found.gradient, expected.gradient)


def test_listed_pairs_travel():
    """A value that cannot be sent would leave Dask waiting for good."""
    data = RankingData(X, Y, QID)
    listed = PairList(np.array([[0, 1], [21, 25]]))
    some = Problem(data, ListedPairs.from_data(data, listed, margins=None, threads=1), HUBER)
    expected = evaluate(some, HUBER, np.ones(5), None)
    found = evaluate(pickle.loads(pickle.dumps(some)), HUBER, np.ones(5), None)
    np.testing.assert_array_equal(found.gradient, expected.gradient)


def test_dask_knows_the_size_of_what_is_kept():
    state = evaluate(problem(), HUBER, np.ones(5), None).state
    assert sizeof(state) >= 4 * 8 * len(Y)
    assert sizeof(problem()) >= X.nbytes


def test_kernels_of_few_losses_are_kept():
    some = problem()
    for loss in LOSSES.values():
        assert some.kernels(loss).loss is some.kernels(loss).loss
    assert len(some._losses) == 2


def executor_on(client, **where):
    bundles = [client.submit(list, [problem()], pure=False, **where) for _ in range(2)]
    wait(bundles)
    return DaskExecutor(client, bundles, [[0], [1]], np.array([0, 800, 1600]))


def test_large_arguments_travel_once(client, monkeypatch):
    monkeypatch.setattr(executors, "SMALL", 8)
    w, found = np.ones(5), []
    executor_on(client).run(tasks.evaluate, HUBER, [None], [w], report=found.append)
    expected = evaluate(problem(), HUBER, w, None).gradient
    for _, gradient in found:
        np.testing.assert_array_equal(gradient, expected)


def test_columns_are_copied_by_workers(client):
    columns, found = np.array([1, 3]), []
    restricted = executor_on(client).restrict(columns)
    handles = restricted.run(partial(tasks.keep, "design.dot"), None, [], [np.ones(2)])
    entries = partial(tasks.report, "design.space.entries")
    restricted.run(entries, None, [ByPart(handles)], [], report=found.append)
    np.testing.assert_allclose(found[1], X[:, [1, 3]].sum(axis=1))


def test_workers_that_come_later_get_bundles(client):
    first, _ = threads_by_worker(client)
    crowded = executor_on(client, workers=[first])
    spread = spread_bundles(client, crowded._bundles)
    wait(spread)
    holders = {worker for future in spread for worker in client.who_has([future])[future.key]}
    assert holders >= set(threads_by_worker(client))
    again = spread_bundles(client, spread)
    assert [future.key for future in again] == [future.key for future in spread]


def test_parts_stay_where_they_are_unless_bundles_are_uneven():
    assert _assign(["a", "b"], {0: "b", 1: "a", 2: "b", 3: "a"}, [1, 1, 1, 1]) == [[1, 3], [0, 2]]
    even = _assign(["a", "b"], dict.fromkeys(range(4), "a"), [1, 1, 1, 1])
    assert sorted(map(len, even)) == [2, 2]
    assert _assign(["a", "b"], {0: "gone"}, [5]) == [[0]]


def test_an_error_of_a_task_leaves_nothing_on_workers(client):
    with nothing_left_on(client), pytest.raises(TypeError):
        executor_on(client).run(tasks.hessian, HUBER, [None], [], report=print)
