"""Online learning: passes that come close to the optimum, whatever the pieces."""

import numpy as np
import pytest
from helpers.pair_kinds import NAMES, pair_kind
from helpers.tables import each

from marginrank import RankingData, RankSVM, make_ranking
from marginrank.data.pair_lists import PairList
from marginrank.fit.online import fit_online
from marginrank.fit.online_learner import (
    Learner,
    OnlineParameters,
    contents,
    step_problem,
    value_and_gradient,
)
from marginrank.objective.losses import LOSSES
from marginrank.solvers.stochastic import sgd

# Convergence


KINDS = {
    "scaled": {"correlation": 0.5},
    "raw": {"correlation": 0.6, "heavy_tail": 1.0},
    "very raw": {"correlation": 0.5, "heavy_tail": 2.0},
    "few documents a query": {"docs_per_query": (2, 8), "heavy_tail": 0.5},
}


def assert_close_soon(data, parameters, optimum, limit=20, **given):
    """See that F is within two per cent of its optimum after some passes, and never below it."""
    found = contents(lambda: [data], parameters, **given)
    problem = step_problem(data, parameters, **given)
    learner, excess = Learner(data.n_features, 0), []
    for _ in range(limit):
        learner.learn(problem, parameters, total=found.weight)
        w = learner.coef(parameters, total=found.weight)
        value, _ = value_and_gradient([problem], parameters, found, w)
        excess.append(value / optimum - 1)
        assert excess[-1] >= -1e-5
        if excess[-1] <= 0.02:
            return
    raise AssertionError(excess)


def batch_optimum(data, *, C, pairs=None, propensity=None, weights=None, **parameters):
    labels = None if pairs is not None else data.y
    model = RankSVM(C=C, **{"tol": 1e-6} | parameters)
    model.fit(data.X, labels, qid=data.qid, pairs=pairs, propensity=propensity, **weights or {})
    return model.objective_


@pytest.fixture(scope="module", params=KINDS)
def mslr_like(request):
    kind = {"docs_per_query": 120} | KINDS[request.param]
    n_queries = 60 if kind["docs_per_query"] == 120 else 1500
    return RankingData(
        *make_ranking(n_queries, n_features=60, dtype=np.float32, random_state=0, **kind)
    )


@each("C", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("loss", [name for name in LOSSES if LOSSES[name].smooth])
def test_within_two_per_cent_in_twenty_passes(mslr_like, C, loss):
    optimum = batch_optimum(mslr_like, C=C, loss=loss)
    assert_close_soon(mslr_like, OnlineParameters(C=C, loss=loss), optimum)


@pytest.mark.parametrize("normalization", ["pairs", "query"])
def test_means_over_pairs_and_queries(mslr_like, normalization):
    optimum = batch_optimum(mslr_like, C=100.0, normalization=normalization)
    parameters = OnlineParameters(C=100.0, normalization=normalization)
    assert_close_soon(mslr_like, parameters, optimum)


def test_pairs_converge_too():
    data = RankingData(*make_ranking(60, 40, 20, correlation=0.5, random_state=0))
    optimum = batch_optimum(data, C=1e-2)
    assert_close_soon(data, OnlineParameters(C=1e-2, method="pair"), optimum)


def test_the_hinge_converges():
    data = RankingData(*make_ranking(60, 40, 10, correlation=0.5, random_state=0))
    optimum = batch_optimum(data, C=1e-2, loss="hinge", tol=1e-4)
    assert_close_soon(data, OnlineParameters(C=1e-2, loss="hinge"), optimum * (1 - 1e-4))


# Every kind of pairs with two losses, and every loss with all kinds that are next to each other.
KINDS_AND_LOSSES = [
    (name, list(LOSSES)[(k + shift) % len(LOSSES)])
    for k, name in enumerate(NAMES)
    for shift in (0, 1)
    # Fits of RankSVM to listed pairs minimize the logistic loss itself.
    if not ("listed" in name and LOSSES[list(LOSSES)[(k + shift) % len(LOSSES)]].error)
]


@each("method", ["query", "pair"])
@pytest.mark.parametrize(("name", "loss"), KINDS_AND_LOSSES)
def test_every_kind_of_pairs_converges(name, loss, method):
    features, y, qid = make_ranking(100, (5, 25), 8, correlation=0.5, random_state=0)
    kind = pair_kind(name, y, qid)
    data = RankingData(features, y, qid, **kind.weights)
    same = {"C": 3e-2, "loss": loss, **kind.parameters}
    tol = {"tol": 1e-3 if loss == "hinge" else 1e-6}
    optimum = batch_optimum(data, weights=kind.weights, **same, **kind.given, **tol)
    if loss == "hinge":
        optimum *= 1 - 1e-3
    parameters = OnlineParameters(method=method, **same)
    assert_close_soon(data, parameters, optimum, limit=40, **kind.given)


def test_one_long_query_is_cut():
    data = RankingData(*make_ranking(1, 20_000, 20, n_levels=None, heavy_tail=0.5, random_state=0))
    optimum = batch_optimum(data, C=1e-6)
    assert_close_soon(data, OnlineParameters(C=1e-6), optimum)


def test_one_long_query_of_adjacent_levels_is_cut():
    data = RankingData(*make_ranking(1, 4000, 10, heavy_tail=0.5, random_state=0))
    same = {"C": 1e-5, "pair_selection": "adjacent"}
    assert_close_soon(data, OnlineParameters(**same), batch_optimum(data, **same))


def test_a_long_list_is_cut():
    """Pairs of many queries whose ids are not given."""
    features, y, qid = make_ranking(200, 20, 20, heavy_tail=0.5, random_state=0)
    listed = PairList(np.argwhere((qid[:, None] == qid) & (y[:, None] > y))[::3])
    data = RankingData(features, np.zeros(len(y)))
    optimum = batch_optimum(data, C=1e-3, pairs=listed)
    assert_close_soon(data, OnlineParameters(C=1e-3), optimum, pairs=listed)


def test_sparse_features_with_a_diagonal_metric():
    data = RankingData(*make_ranking(800, 15, 3000, density=0.005, random_state=0))
    optimum = batch_optimum(data, C=1e-3)
    assert_close_soon(data, OnlineParameters(C=1e-3), optimum)


@pytest.mark.parametrize("C", [1e-4, 1.0])
@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED", "MSLR"])
def test_real_data(real_data, name, C):
    files = [f"{name}/S{k}.txt.gz" for k in (1, 2, 3)]
    if name == "MSLR":
        files = ["MSLR-sample/train.txt.gz"]
    data = RankingData(*real_data(*files))
    optimum = batch_optimum(data, C=C)
    assert fit_online(lambda: [data], OnlineParameters(C=C)).report.objective <= 1.02 * optimum


# Pieces


def rows_of(kind, rows):
    """Return what a kind of pairs says of some rows, whose queries are whole."""
    weights = {name: values[rows] for name, values in kind.weights.items()}
    given = dict(kind.given)
    if "propensity" in given:
        given["propensity"] = given["propensity"][rows]
    if "pairs" in given:
        listed = given["pairs"]
        inside = np.isin(listed.pairs[:, 0], rows)
        numbers = np.searchsorted(rows, listed.pairs[inside])
        margin = None if listed.margin is None else listed.margin[inside]
        given["pairs"] = PairList(numbers, listed.weight[inside], margin=margin)
    return weights, given


@pytest.mark.parametrize("normalization", ["none", "query"])
@pytest.mark.parametrize("name", NAMES)
def test_pieces_of_a_pass_equal_the_pass(name, normalization, monkeypatch):
    monkeypatch.setattr(sgd, "LONG_QUERY", 20)
    features, y, qid = make_ranking(50, (2, 30), 8, random_state=0)
    kind = pair_kind(name, y, qid)
    parameters = OnlineParameters(
        shuffle=False, C=1e-2, normalization=normalization, **kind.parameters
    )

    def learn(learner, rows):
        weights, given = rows_of(kind, rows)
        data = RankingData(features[rows], y[rows], qid[rows], **weights)
        learner.learn(step_problem(data, parameters, **given), parameters)

    whole = Learner(8, 0)
    learn(whole, np.arange(len(y)))
    for sizes in ([7, 1, 12, 30], [25, 25], [1] * 50):
        pieces, first = Learner(8, 0), 0
        for size in sizes:
            learn(pieces, np.flatnonzero((qid >= first) & (qid < first + size)))
            first += size
        assert pieces.coef(parameters).tobytes() == whole.coef(parameters).tobytes()
        assert pieces.sgd.steps == whole.sgd.steps > 20
