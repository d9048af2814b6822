"""Stochastic gradient descent: its steps against sums over explicit pairs."""

import numpy as np
import pytest
import scipy.sparse as sp
from brute_force import BruteForce, explicit_pairs
from objectives import make_objective

from marginrank import RankingData, RankSVM, _core, make_ranking
from marginrank.objective.losses import LOSSES, Loss, Piece
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.stochastic import sgd
from marginrank.solvers.stochastic.sgd import (
    PairSampler,
    Rate,
    Schedule,
    Sgd,
    StepProblem,
    curved_pieces,
)
from marginrank.training import online
from marginrank.training.online import Learner, OnlineParameters, contents, fit_online, step_problem

HINGE = Loss("hinge", (Piece(1.0, 1.0, 1),))
ALL_LOSSES = [*(LOSSES[name] for name in LOSSES), HINGE]
X, Y, QID = make_ranking(12, (2, 9), 4, random_state=0)
WEIGHT = np.random.default_rng(0).uniform(0.2, 2.0, size=len(Y))
LAYOUTS = {"dense": X, "float32": X.astype(np.float32), "csr": sp.csr_array(X)}


def problem(features=X, loss=LOSSES["squared_hinge"], sample_weight=None, qid=QID):
    data = RankingData(features, Y, qid, sample_weight=sample_weight)
    return StepProblem(data.matrix, data.queries, loss, np.ones(data.n_queries), data.sample_weight)


def inverse_of(state):
    n = state.w.size
    return state._inverse.reshape(n, n) if state._inverse.size > n else np.diag(state._inverse)


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("features", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("sample_weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_a_step_over_a_query_against_brute_force(features, loss, sample_weight, monkeypatch):
    monkeypatch.setattr(sgd, "FIRST_BATCH", 0)
    steps = problem(features, loss, sample_weight)
    schedule = Schedule(ridge=0.5, total=30.0, rate=Rate(1e-3, 0.0, 0.0))
    state, total = Sgd(4), 0.0
    state.w[:] = w = np.array([0.3, -0.2, 0.1, 0.4])
    curvature = np.zeros((4, 4))
    for query in steps.active:
        rows = np.flatnonzero(query == QID)
        weight = None if sample_weight is None else sample_weight[rows]
        pairs = explicit_pairs(Y[rows], QID[rows], sample_weight=weight)
        brute = BruteForce(X[rows], pairs, loss, 1.0)
        u = pairs.weight.sum()
        assert steps.weight[query] == pytest.approx(u)
        total += u
        value = brute.value(w) - 0.5 * w @ w + u * 0.5 / 30 * 0.5 * w @ w
        gradient = brute.gradient(w) - w + u * 0.5 / 30 * w
        smooth = Loss("smooth", tuple(Piece(a, t, int(e)) for a, t, e in curved_pieces(loss)))
        curvature += BruteForce(X[rows], pairs, smooth, 1.0).hessian(w) - np.eye(4)
        before, taken = state.value, state.steps
        state.run(steps, np.array([query]), schedule, threads=1)
        assert state.steps == taken + 1
        assert state.value - before == pytest.approx(value, rel=1e-5)
        step = inverse_of(state) @ gradient
        length = min(1e-3 * state.steps / total, value / (gradient @ step))
        np.testing.assert_allclose(state.w, w - length * step, rtol=1e-5, atol=1e-9)
        w = state.w.copy()
    state._invert(schedule)
    mean, documents = curvature / total, state._counters[sgd.Counter.DOCUMENTS]
    diagonal = np.diag(mean) + 0.5 / 30
    metric = mean * documents / (documents + 4)
    np.fill_diagonal(metric, diagonal)
    np.testing.assert_allclose(inverse_of(state), np.linalg.inv(metric), rtol=1e-3)


def test_a_diagonal_metric_is_used_for_many_features(monkeypatch):
    full = Sgd(4)
    full.run(problem(), problem().active, Schedule(1.0, 1.0, Rate(1.0, 0.0, 1.0)), threads=1)
    full._invert(Schedule(1.0, 1.0, Rate(1.0, 0.0, 1.0)))
    monkeypatch.setattr(sgd, "FULL_FEATURES", 3)
    flat = Sgd(4)
    flat.run(problem(), problem().active, Schedule(1.0, 1.0, Rate(1.0, 0.0, 1.0)), threads=1)
    flat._invert(Schedule(1.0, 1.0, Rate(1.0, 0.0, 1.0)))
    diagonal = np.diag(full._curvature.reshape(4, 4)) / full._counters[sgd.Counter.CURVATURE_WEIGHT]
    np.testing.assert_allclose(flat._inverse, 1.0 / (diagonal + 1.0))


def test_no_step_is_longer_than_polyaks(monkeypatch):
    monkeypatch.setattr(sgd, "FIRST_BATCH", 0)
    steps, state = problem(), Sgd(4)
    state.run(steps, steps.active[:1], Schedule(1e-6, 1.0, Rate(1e9, 0.0, 0.0)), threads=1)
    rows = np.flatnonzero(steps.active[0] == QID)
    brute = BruteForce(X[rows], explicit_pairs(Y[rows], QID[rows]), LOSSES["squared_hinge"], 1.0)
    # Along the step, the loss would be zero if it were linear; being convex, it is not below that.
    zero = np.zeros(4)
    assert brute.gradient(zero) @ state.w == pytest.approx(-brute.value(zero))


def test_the_open_batch_counts_in_what_is_reported():
    steps, state = problem(), Sgd(4)
    schedule = Schedule(1.0, 100.0, Rate(2.0, 1.0, 1.0))
    state.run(steps, steps.active[:2], schedule, threads=1)
    assert state.steps == 0
    assert not state.w.any()
    flushed = state.flushed(schedule)
    assert flushed.steps == 1
    assert flushed.w.any()
    assert state.steps == 0
    assert not state.w.any()


# Pairs


@pytest.mark.parametrize("qid", [QID, np.random.default_rng(1).permutation(QID)])
@pytest.mark.parametrize("sample_weight", [None, WEIGHT * (WEIGHT > 0.5)])
def test_pairs_are_drawn_by_their_weight(qid, sample_weight):
    data = RankingData(X, Y, qid, sample_weight=sample_weight)
    parameters = OnlineParameters(normalization="query")
    steps = step_problem(data, parameters)
    sampler = PairSampler(steps, steps.active)
    preferred, other = sampler.draw(200_000, np.random.default_rng(0))
    if data.queries.rows is not None:
        preferred, other = data.queries.rows[preferred], data.queries.rows[other]
    pairs = explicit_pairs(Y, qid, sample_weight=sample_weight)
    in_query = np.bincount(qid[pairs.preferred], pairs.weight)[qid[pairs.preferred]]
    wanted = np.zeros((len(Y), len(Y)))
    share = np.divide(pairs.weight, in_query, out=np.zeros_like(in_query), where=in_query > 0)
    wanted[pairs.preferred, pairs.other] = share
    drawn = np.zeros_like(wanted)
    np.add.at(drawn, (preferred, other), 1 / 200_000)
    assert sampler.total == pytest.approx(wanted.sum())
    wanted /= wanted.sum()
    assert not np.any(drawn[wanted == 0])
    np.testing.assert_allclose(drawn, wanted, atol=6 * np.sqrt(wanted.max() / 200_000))


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=lambda loss: loss.name)
def test_the_mean_step_over_pairs_is_the_gradient(loss):
    """All pairs of a sampler, each drawn as often as it weighs."""
    steps = problem(X, loss, WEIGHT)
    sampler = PairSampler(steps, steps.active)
    w = np.array([0.3, -0.2, 0.1, 0.4])
    drawn = sampler.problem(20_000, sampler.total / 20_000, np.random.default_rng(0))
    assert drawn.weight.sum() == pytest.approx(steps.weight.sum())
    state = Sgd(4)
    state.w[:] = w
    state._first_batch = np.inf  # add up and take no step
    state._counters[sgd.Counter.NEXT_EVENT] = np.inf
    state.run(drawn, drawn.active, Schedule(1.0, 1.0, Rate(1.0, 0.0, 1.0)), threads=1)
    pairs = explicit_pairs(Y, QID, sample_weight=WEIGHT)
    brute = BruteForce(X, pairs, loss, 1.0)
    size = np.abs(pairs.weight[:, None] * brute.differences).sum(axis=0)
    np.testing.assert_allclose(state._gradient, brute.gradient(w) - w, atol=0.05 * size.max())


# Convergence


KINDS = {
    "scaled": {"correlation": 0.5},
    "raw": {"correlation": 0.6, "heavy_tail": 1.0},
    "very raw": {"correlation": 0.5, "heavy_tail": 2.0},
    "few documents a query": {"docs_per_query": (2, 8), "heavy_tail": 0.5},
}


def passes_to(data, parameters, goal, limit=20):
    """Return how many passes bring F below `goal`, and F after each."""
    total = contents(lambda: [data], parameters).weight
    learner, values = Learner(data.n_features, 0), []
    objective = make_objective(
        data,
        LOSSES[parameters.loss],
        C=parameters.C,
        normalization=parameters.normalization,
        threads=2,
    )
    for n_pass in range(1, limit + 1):
        learner.learn(data, parameters, total=total)
        values.append(objective.at(learner.coef(parameters, total=total)).value)
        if values[-1] <= goal:
            return n_pass, values
    return None, values


@pytest.fixture(scope="module", params=KINDS)
def mslr_like(request):
    kind = {"docs_per_query": 120} | KINDS[request.param]
    n_queries = 60 if kind["docs_per_query"] == 120 else 1500
    return RankingData(
        *make_ranking(n_queries, n_features=60, dtype=np.float32, random_state=0, **kind)
    )


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("loss", [name for name in LOSSES if LOSSES[name].smooth])
def test_within_two_per_cent_in_twenty_passes(mslr_like, C, loss):
    optimum = batch_optimum(mslr_like, C, loss)
    found, values = passes_to(mslr_like, OnlineParameters(C=C, loss=loss), 1.02 * optimum)
    assert found is not None, np.array(values) / optimum - 1


@pytest.mark.parametrize("normalization", ["pairs", "query"])
def test_means_over_pairs_and_queries(mslr_like, normalization):
    optimum = batch_optimum(mslr_like, 100.0, "squared_hinge", normalization)
    parameters = OnlineParameters(C=100.0, normalization=normalization)
    found, values = passes_to(mslr_like, parameters, 1.02 * optimum)
    assert found is not None, np.array(values) / optimum - 1


def test_pairs_converge_too():
    data = RankingData(*make_ranking(60, 40, 20, correlation=0.5, random_state=0))
    optimum = batch_optimum(data, 1e-2, "squared_hinge")
    found, values = passes_to(data, OnlineParameters(C=1e-2, method="pair"), 1.02 * optimum)
    assert found is not None, np.array(values) / optimum - 1


def test_one_long_query_is_cut():
    X, y, qid = make_ranking(1, 20_000, 20, n_levels=None, heavy_tail=0.5, random_state=0)
    data = RankingData(X, y, qid)
    optimum = batch_optimum(data, 1e-6, "squared_hinge")
    found, values = passes_to(data, OnlineParameters(C=1e-6), 1.02 * optimum)
    assert found is not None, np.array(values) / optimum - 1


def test_sparse_features_with_a_diagonal_metric():
    data = RankingData(*make_ranking(800, 15, 3000, density=0.005, random_state=0))
    optimum = batch_optimum(data, 1e-3, "squared_hinge")
    found, values = passes_to(data, OnlineParameters(C=1e-3), 1.02 * optimum)
    assert found is not None, np.array(values) / optimum - 1


def test_the_hinge_converges(monkeypatch):
    data = RankingData(*make_ranking(60, 40, 10, correlation=0.5, random_state=0))
    objective = make_objective(data, HINGE, C=1e-2)
    half = 0.005  # the kink made a parabola this wide on each side, which costs a pair half / 4
    pieces = (Piece(0.25 / half, 1 + half, 2), Piece(-0.25 / half, 1 - half, 2))
    best = objective.at(newton(objective.with_loss(Loss("", pieces)), tol=1e-6).w).value
    assert 1e-2 * data.n_pairs * half / 4 < 0.01 * best
    monkeypatch.setitem(LOSSES, "test hinge", HINGE)
    parameters = OnlineParameters(C=1e-2, loss="test hinge")
    found, values = passes_to(data, parameters, 1.02 * best)
    assert found is not None, np.array(values) / best - 1


def batch_optimum(data, C, loss, normalization="none"):
    model = RankSVM(C=C, loss=loss, normalization=normalization, tol=1e-6)
    return model.fit(data.X, data.y, qid=data.qid).objective_


@pytest.mark.parametrize("C", [1e-4, 1.0])
@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED", "MSLR"])
def test_real_data(real_data, name, C):
    files = [f"{name}/S{k}.txt.gz" for k in (1, 2, 3)]
    if name == "MSLR":
        files = ["MSLR-sample/train.txt.gz"]
    data = RankingData(*real_data(*files))
    optimum = batch_optimum(data, C, "squared_hinge")
    assert fit_online(lambda: [data], OnlineParameters(C=C)).objective <= 1.02 * optimum


def test_parts_of_a_long_query_are_its_gradient_on_average(monkeypatch):
    monkeypatch.setattr(sgd, "LONG_QUERY", 5)
    whole = problem(sample_weight=WEIGHT)
    w = np.array([0.3, -0.2, 0.1, 0.4])
    gradients = []
    for first in range(4000):
        cut = whole.cut_long_queries(whole.active, 0, 100 * first)
        assert np.diff(cut.queries.offsets).max() <= 5
        _, _, gradient, _, _ = _core.evaluate(cut.matrix, cut.pairs, w, None, 1)
        gradients.append(gradient)
    _, _, expected, _, _ = _core.evaluate(whole.matrix, whole.pairs, w, None, 1)
    error = np.std(gradients, axis=0) / np.sqrt(4000)
    assert np.all(np.abs(np.mean(gradients, axis=0) - expected) < 6 * error + 0.01 * abs(expected))


# The state


def test_pieces_of_a_pass_equal_the_pass(monkeypatch):
    monkeypatch.setattr(sgd, "LONG_QUERY", 20)
    monkeypatch.setattr(online, "LONG_QUERY", 20)
    features, labels, qid = make_ranking(120, (2, 30), 8, random_state=0)
    parameters = OnlineParameters(shuffle=False, C=1e-2)
    whole = Learner(8, 0)
    whole.learn(RankingData(features, labels, qid), parameters)
    for sizes in ([7, 1, 12, 100], [60, 60], [1] * 120):
        pieces, first = Learner(8, 0), 0
        for size in sizes:
            rows = (qid >= first) & (qid < first + size)
            pieces.learn(RankingData(features[rows], labels[rows], qid[rows]), parameters)
            first += size
        assert pieces.coef(parameters).tobytes() == whole.coef(parameters).tobytes()
        assert pieces.sgd.steps == whole.sgd.steps > 20


def test_overflow_is_named():
    huge = X * np.array([1.0, 1e200, 1.0, 1.0])
    state, steps = Sgd(4), problem(huge)
    schedule = Schedule(1.0, 1.0, Rate(1.0, 0.0, 1.0))
    state._counters[sgd.Counter.NEXT_EVENT] = 1.0
    with pytest.raises(ValueError, match=r"X\[:, 1\] has values so large"):
        state.run(steps, steps.active, schedule, threads=1)
