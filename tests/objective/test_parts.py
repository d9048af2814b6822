"""X in parts: how they are cut, added up, sampled, and how often they are read."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.objectives import assert_samples_estimate, make_objective
from helpers.parts_backend import PART_ROWS, MemoryParts
from helpers.tables import each

from marginrank import RankingData, make_ranking
from marginrank.data.pair_lists import PairList
from marginrank.objective.losses import LOSSES
from marginrank.objective.objective import Objective
from marginrank.operators.parts import matrix as matrices
from marginrank.operators.parts import streaming
from marginrank.operators.parts.design import MOST_TERMS, OrderedSum
from marginrank.operators.parts.streaming import StreamingExecutor, make_plan
from marginrank.solvers.smooth.newton import newton

HUBER = LOSSES["huber"]


@each("seed", range(20))
def test_parts_hold_whole_queries_and_blocks_are_small(seed, monkeypatch):
    monkeypatch.setattr(streaming, "PART_BYTES", 100)
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 40, 30))])
    before = np.concatenate([[0], np.cumsum(rng.integers(0, 12, offsets[-1]))])  # rows of CSR
    plan = make_plan(offsets, lambda rows: before[rows])
    np.testing.assert_array_equal(plan.rows, offsets[plan.queries])
    np.testing.assert_array_equal(plan.block_rows[plan.blocks], plan.rows)
    assert plan.block_rows[0] == 0
    assert plan.block_rows[-1] == offsets[-1]
    assert np.all(np.diff(plan.block_rows) > 0)
    for k in range(plan.n_parts):
        size = before[plan.rows[k + 1]] - before[plan.rows[k]]
        if plan.is_long(k):
            assert plan.queries[k + 1] - plan.queries[k] == 1
            assert size > 100
        else:
            assert size <= 100
    assert np.diff(before[plan.block_rows]).max() <= 100 + 11  # a row more at most


def test_a_query_too_many_ends_a_part(monkeypatch):
    monkeypatch.setattr(streaming, "PART_BYTES", 10)
    plan = make_plan(np.array([0, 4, 8, 12, 37, 40]), lambda rows: rows)
    assert plan.queries.tolist() == [0, 2, 3, 4, 5]
    assert plan.blocks.tolist() == [0, 1, 2, 5, 6]
    assert plan.block_rows.tolist() == [0, 8, 12, 20, 28, 37, 40]


def test_sums_do_not_lose_small_parts():
    total = OrderedSum()
    for value in (1.0, 1e16, 1.0, -1e16):
        total.add(np.array([value, -value, np.inf if value < 0 else 1.0]))
    np.testing.assert_array_equal(total.total, [2.0, -2.0, np.inf])


def ranking(n_queries=40, docs_per_query=(1, 30), n_features=4, seed=0):
    X, y, qid = make_ranking(n_queries, docs_per_query, n_features, random_state=seed)
    return RankingData(X, y, qid)


def listed(data):
    rng = np.random.default_rng(1)
    pairs = [
        (i, j)
        for q in range(data.n_queries)
        for i, j in rng.integers(*data.queries.offsets[q : q + 2], (3, 2))
        if i != j
    ]
    return PairList(np.array(pairs), rng.uniform(0.5, 2.0, len(pairs)))


def in_memory(data, kind="labels"):
    return make_objective(data, HUBER, C=0.1, pairs=listed(data) if kind == "listed" else None)


def in_parts(data, kind="labels"):
    return Objective(design=MemoryParts(data).design(in_memory(data, kind).pairs, 1), loss=HUBER)


@pytest.mark.parametrize("kind", ["labels", "listed"])
def test_parts_of_pairs_are_put_together_again(kind):
    data = ranking()
    native = in_memory(data, kind)
    w = np.array([0.3, -0.2, 0.1, 0.5])
    plan = MemoryParts(data)._plan
    pairs = native.pairs
    rows = pairs.documents.rows
    first = pairs.documents.offsets[:-1]
    bounds = np.append(
        np.searchsorted(first if rows is None else rows[first], plan.rows[:-1]), first.size
    )
    parts = pairs.split(bounds, plan.rows)
    assert sum(part.n_pairs for part in parts) == pairs.n_pairs
    again = type(pairs).join([part.compact() for part in parts])
    X = native.matrix.X if rows is None else native.matrix.X[rows]
    joined = make_objective(RankingData(X, np.zeros(len(X))), HUBER)
    point = joined.on(pairs=again).at(w)
    assert point.value == pytest.approx(native.at(w).value, rel=1e-12)
    np.testing.assert_allclose(point.gradient, native.at(w).gradient, rtol=1e-10)


@pytest.mark.parametrize("kind", ["labels", "listed"])
def test_samples_estimate_the_objective(kind, monkeypatch):
    monkeypatch.setattr(matrices, "RESERVOIR_SHARE", 1.0)
    assert_samples_estimate(in_parts(ranking(800, 8), kind))


def test_samples_of_many_small_parts_are_scaled_up_together():
    """Few queries are drawn of each part, of many none: weights are those of all the same."""
    data = ranking(4000, 8)
    objective = in_parts(data)
    sample = objective.sample(0.02, 3)
    assert sample.pairs.covered == pytest.approx(objective.pairs.covered, rel=1e-12)
    w = np.array([0.3, -0.2, 0.1, 0.5])
    assert sample.at(w).loss_value == pytest.approx(objective.at(w).loss_value, rel=0.15)


def test_one_sweep_serves_all_samples():
    data = ranking(400, 8)
    objective = in_parts(data)
    matrix = objective.matrix
    matrix.survey(objective.pairs, 1)
    assert matrix.blocks.n_read == data.n_documents
    sizes = [objective.sample(matrix.largest_sample / k, 5).pairs.n_documents for k in (1, 2, 4)]
    assert sizes == sorted(sizes, reverse=True)
    objective.sample(matrix.largest_sample / 3, 17)
    assert objective.feature_magnitudes.shape == (4,)
    assert matrix.blocks.n_read == data.n_documents
    objective.sample(2 * matrix.largest_sample, 5)  # more than there is
    assert matrix.blocks.n_read == 2 * data.n_documents


def test_a_query_longer_than_a_block_costs_one_more_pass():
    data = ranking(30, (1, 30))
    objective = in_parts(data)
    blocks = objective.matrix.blocks
    sizes = data.queries.sizes
    long_rows = int(np.sum(sizes[sizes > PART_ROWS]))
    assert long_rows > 0
    w = np.ones(4)
    point = objective.at(w)
    assert blocks.n_read == data.n_documents + long_rows
    point.hess_vec(w)
    assert blocks.n_read == 2 * (data.n_documents + long_rows)
    objective.scores(w)
    assert blocks.n_read == 3 * data.n_documents + 2 * long_rows


def test_a_fit_asks_for_no_sweep_that_is_not_counted():
    data = ranking(3000, 8)
    objective = in_parts(data)
    objective.matrix.survey(objective.pairs, 1)
    result = newton(objective, tol=1e-6)
    assert result.stop.converged
    assert result.history[0].fraction < 1.0
    full = sum(line.fraction == 1.0 for line in result.history)
    assert full >= 1
    read = objective.matrix.blocks.n_read / data.n_documents - 1.0  # but for the survey
    assert read <= objective.sweeps + 1e-9


def test_csr_in_parts():
    data = ranking()
    X = np.where(data.X > 0.5, data.X, 0.0)
    w = np.array([0.3, -0.2, 0.1, 0.5])
    dense = RankingData(X, data.y, data.qid)
    sparse = RankingData(sp.csr_array(X), data.y, data.qid)
    points = [in_parts(one).at(w) for one in (dense, sparse)]
    assert points[0].value == pytest.approx(points[1].value, rel=1e-13)
    np.testing.assert_allclose(points[0].gradient, points[1].gradient, rtol=1e-11)
    np.testing.assert_allclose(points[0].hessian(), points[1].hessian(), rtol=1e-10)


def test_nan_is_refused_by_the_survey():
    data = ranking()
    objective = in_parts(data)
    objective.matrix._X[17, 2] = np.nan
    with pytest.raises(ValueError, match=r"X\[:, 2\] has NaN or infinity"):
        objective.matrix.survey(objective.pairs, 1)


class CountingExecutor(StreamingExecutor):
    """Counts the tasks that are called; they may be far away."""

    n_calls = 0
    is_far = False
    far = property(lambda self: self.is_far)

    def run(self, *given, **options):
        self.n_calls += 1
        return super().run(*given, **options)


def looked_at(data, kind, *, far):
    """Return the executor, and all that solvers may ask along a direction that is a long sum."""
    objective = in_parts(data, kind)
    executor = objective.matrix.executor(objective.pairs, objective.threads)
    executor.__class__ = CountingExecutor
    executor.is_far = far
    directions = np.random.default_rng(0).normal(size=(2 * MOST_TERMS + 3, data.n_features))
    point, total = objective.at(directions[0]), objective.space.zero()
    for k, direction in enumerate(directions):
        total = objective.space.add(total, 0.1 * k, objective.scores(direction))
    tail = objective.space.add(objective.space.add(point.scores, 0.5, total), 2.0, total)
    found = [objective.space.std(tail), objective.space.dot(total, tail)]
    for step in (1.0, 0.5):
        move = point.move(step, directions[1], total)
        assert move.has_gradient == (far and step == 1.0)
        found += [move.value, move.slope(directions[1], total), move.gradient]
    return executor, found


@pytest.mark.parametrize("kind", ["labels", "listed"])
def test_parts_that_are_far_tell_the_same_bits_with_fewer_tasks(kind):
    """Sums are made by the tasks that need them, and whole steps come with their gradient."""
    near, expected = looked_at(ranking(), kind, far=False)
    far, found = looked_at(ranking(), kind, far=True)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert far.n_calls < near.n_calls - 2 * MOST_TERMS
