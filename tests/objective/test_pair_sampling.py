"""Random pairs and random parts of a set of pairs, against the pairs written down."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.brute_force import BruteForce
from helpers.pair_kinds import NAMES, pair_kind
from helpers.tables import each

from marginrank import RankingData, make_ranking
from marginrank.fit.online_learner import OnlineParameters, step_problem
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.losses import LOSSES

X, Y, QID = make_ranking(12, (2, 9), 4, random_state=0)
MIXED = np.random.default_rng(1).permutation(QID)
W = np.array([0.3, -0.2, 0.1, 0.4])
DRAWS, CUTS = 100_000, 1000


def steps(kind, qid, y=Y, **parameters):
    data = RankingData(X, y, qid, **kind.weights)
    chosen = OnlineParameters(**kind.parameters, **parameters)
    return step_problem(data, chosen, **kind.given)


def in_rows(problem, documents):
    rows = problem.pair_set.documents.rows
    return documents if rows is None else rows[documents]


def table(preferred, other, weight):
    result = np.zeros((len(Y), len(Y)))
    np.add.at(result, (preferred, other), weight)
    return result


@each("normalization", ["none", "query"])
@each("qid", [QID, MIXED])
@pytest.mark.parametrize("name", NAMES)
def test_pairs_are_drawn_by_their_weight(name, qid, normalization):
    kind = pair_kind(name, Y, qid)
    problem = steps(kind, qid, normalization=normalization)
    drawer = problem.pair_set.drawer(problem.active)
    preferred, other, _ = drawer.draw(DRAWS, np.random.default_rng(0))
    drawn = table(in_rows(problem, preferred), in_rows(problem, other), 1 / DRAWS)
    pairs = kind.explicit
    weight = pairs.weight
    if normalization == "query":  # the mean over a query's pairs, times the query's weight
        row_weight = kind.weights.get("query_weight", np.ones(len(Y)))[pairs.preferred]
        inside = np.bincount(qid[pairs.preferred], weight / row_weight)[qid[pairs.preferred]]
        weight = np.divide(weight, inside, out=np.zeros_like(weight), where=inside > 0)
    wanted = table(pairs.preferred, pairs.other, weight)
    assert drawer.total == pytest.approx(wanted.sum())
    wanted /= wanted.sum()
    assert not np.any(drawn[wanted == 0])
    np.testing.assert_allclose(drawn, wanted, atol=6 * np.sqrt(wanted.max() / DRAWS))


@pytest.mark.parametrize("name", NAMES)
def test_only_pairs_of_the_given_queries_are_drawn(name):
    problem = steps(pair_kind(name, Y, QID), QID)
    chosen = problem.active[2:5]
    preferred, other, _ = problem.pair_set.drawer(chosen).draw(2000, np.random.default_rng(0))
    query = problem.pair_set.documents.query_of_document
    assert set(query[preferred]) == set(chosen)
    np.testing.assert_array_equal(query[preferred], query[other])


@each("loss", LOSSES)
@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_drawn_pairs_is_that_of_all_on_average(name, loss):
    kind = pair_kind(name, Y, MIXED)
    problem = steps(kind, MIXED, loss=loss)
    drawer = problem.pair_set.drawer(problem.active)
    pairs = drawer.draw(DRAWS, np.random.default_rng(0))
    drawn = LevelPairs.one_by_one(problem.pair_set, pairs, drawer.total / DRAWS)
    assert drawn.weights.sum() == pytest.approx(kind.explicit.weight.sum())
    value, gradient = type(problem)(problem.matrix, drawn, problem.loss).value_and_gradient(W, 1)
    brute = BruteForce(X, kind.explicit, problem.loss, 1.0)
    size = np.abs(kind.explicit.weight[:, None] * brute.differences).sum(axis=0)
    assert value == pytest.approx(brute.value(W) - 0.5 * W @ W, rel=0.02)
    np.testing.assert_allclose(gradient, brute.gradient(W) - W, atol=0.05 * size.max())


# Parts of long queries


def cut(problem, first=0, queries=None, largest=4):
    queries = problem.active if queries is None else queries
    return problem.pair_set.cut(queries, largest=largest, seed=0, first=first)


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_long_queries_are_small_and_weigh_as_much(name):
    problem = steps(pair_kind(name, Y, MIXED), MIXED)
    parts = cut(problem)
    assert np.diff(parts.documents.offsets).max() <= 4
    query = MIXED[parts.documents.rows]
    for first, last in pairwise(parts.documents.offsets):
        assert len(set(query[first:last])) <= 1
    whole, again = (np.bincount(query_of(p), p.weights) for p in (problem.pair_set, parts))
    np.testing.assert_allclose(again[again > 0], whole[again > 0], rtol=1e-9)
    if name == "listed":
        np.testing.assert_allclose(again, whole, rtol=1e-9)


def query_of(pair_set):
    """Return the number in MIXED of each query that has documents."""
    return MIXED[pair_set.documents.rows[pair_set.documents.offsets[:-1]]]


@pytest.mark.parametrize("name", NAMES)
def test_parts_have_no_pair_that_the_query_has_not(name):
    """The loss of each part, pair by pair."""
    kind = pair_kind(name, Y, MIXED)
    problem = steps(kind, MIXED)
    allowed = table(kind.explicit.preferred, kind.explicit.other, kind.explicit.weight) > 0
    parts = cut(problem, largest=5)
    drawer = parts.drawer(np.flatnonzero(parts.weights > 0))
    preferred, other, _ = drawer.draw(5000, np.random.default_rng(0))
    rows = parts.documents.rows
    assert allowed[rows[preferred], rows[other]].all()
    part = parts.documents.query_of_document
    np.testing.assert_array_equal(part[preferred], part[other])


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_a_long_query_are_its_gradient_on_average(name):
    kind = pair_kind(name, Y, QID)
    problem = steps(kind, QID)
    gradients = []
    for first in range(CUTS):
        parts = type(problem)(problem.matrix, cut(problem, 100 * first, largest=5), problem.loss)
        gradients.append(parts.value_and_gradient(W, 1)[1])
    expected = BruteForce(X, kind.explicit, problem.loss, 1.0).gradient(W) - W
    if name == "listed":  # no pair is lost
        np.testing.assert_allclose(gradients, np.tile(expected, (CUTS, 1)), rtol=1e-9)
    error = np.std(gradients, axis=0) / np.sqrt(len(gradients))
    assert np.all(np.abs(np.mean(gradients, axis=0) - expected) < 6 * error + 0.01 * abs(expected))


@pytest.mark.parametrize("name", NAMES)
def test_how_a_query_is_cut_depends_on_its_number_alone(name):
    problem = steps(pair_kind(name, Y, QID), QID)
    queries = problem.active
    together = cut(problem)
    apart = [cut(problem, queries=queries[k : k + 1]) for k in range(queries.size)]
    rows = [part.documents.rows for part in apart]
    np.testing.assert_array_equal(np.concatenate(rows), together.documents.rows)
    np.testing.assert_allclose(np.concatenate([part.weights for part in apart]), together.weights)
    assert not np.array_equal(cut(problem, first=1).documents.rows, together.documents.rows)


def test_short_queries_are_left_whole():
    problem = steps(pair_kind("plain", Y, QID), QID)
    parts = cut(problem, largest=9)
    np.testing.assert_array_equal(parts.weights, problem.weight[problem.active])
    assert parts.documents.n_queries == problem.active.size
