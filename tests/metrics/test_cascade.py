"""Expected reciprocal rank by hand and by its definition."""

import time
from itertools import permutations

import numpy as np
import pytest
from helpers.tables import each

from marginrank.metrics import cascade, err


def by_definition(y, scores, k, max_label):
    satisfied = (2.0 ** y[np.argsort(-scores, kind="stable")] - 1) / 2.0**max_label
    value, reached = 0.0, 1.0
    for rank, chance in enumerate(satisfied[:k], start=1):
        value += reached * chance / rank
        reached *= 1 - chance
    return value


def test_by_hand():
    """Grades 1, 2, 0 of at most 2: chances 1/4, 3/4, 0."""
    assert err([2, 1, 0], [2.0, 3.0, 1.0]) == 1 / 4 + 1 / 2 * 3 / 4 * 3 / 4
    assert err([2, 1, 0], [2.0, 3.0, 1.0], k=1) == 1 / 4
    assert err([2, 1, 0], [2.0, 3.0, 1.0], k=1, max_label=4) == 1 / 16


@pytest.mark.parametrize("k", [None, 1, 10])
@pytest.mark.parametrize("max_label", [None, 6])
def test_equals_its_definition(k, max_label):
    rng = np.random.default_rng(0)
    y, scores = rng.integers(5, size=300), rng.normal(size=300)
    qid = np.sort(rng.integers(20, size=300))
    expected = [
        by_definition(y[qid == q], scores[qid == q], k, max_label or 4) for q in np.unique(qid)
    ]
    values = err(y, scores, qid=qid, k=k, max_label=max_label, per_query=True)
    np.testing.assert_allclose(values, expected, rtol=1e-13)


def test_the_highest_grade_is_that_of_all_queries():
    values = err([1, 2], [1.0, 1.0], qid=["a", "b"], per_query=True)
    assert values.tolist() == [1 / 4, 3 / 4]


def test_queries_without_relevant_documents():
    y, scores, qid = [1, 0, 0], [1.0, 2.0, 1.0], list("abb")
    assert err(y, scores, qid=qid, per_query=True).tolist() == [0.5, 0]
    assert err(y, scores, qid=qid, no_relevant="skip") == 0.5
    assert err(y, scores, qid=qid, no_relevant=1) == 0.75
    assert err([0, 0], [1.0, 2.0]) == 0


def test_ties_stay_in_input_order():
    assert err([1, 0], [1.0, 1.0]) == 0.5
    assert err([0, 1], [1.0, 1.0]) == 0.25


def test_labels_too_large_or_negative_are_refused():
    with pytest.raises(ValueError, match=r'y\[0\] is 1268, .* use ndcg with gain="linear"'):
        err([1268, 0], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"y\[1\] is -1"):
        err([0, -1], [1.0, 2.0])


@pytest.mark.parametrize("max_label", [1, 2000, np.inf, "4"])
def test_a_wrong_highest_grade_is_refused(max_label):
    with pytest.raises(ValueError, match=r"max_label="):
        err([2, 0], [1.0, 2.0], max_label=max_label)


@each("k", [None, 1, 3])
@each("y", [[1, 0, 2, 0, 0, 1], [0.3, 1.7, 0, 2.5, 1, 1], [2, 2, 2, 2, 2, 2]])
@each("scores", [[1] * 6, [2, 1, 2, 1, 1, 2], [3, 2, 2, 2, 2, 1], range(6)])
def test_averaged_ties_are_the_mean_over_all_orders(scores, y, k):
    y, scores = np.array(y), np.array(scores)
    orders = np.array(list(permutations(range(6))))
    documents, qid = orders.ravel(), np.repeat(np.arange(len(orders)), 6)
    mean = err(y[documents], scores[documents], qid=qid, k=k)
    assert err(y, scores, k=k, ties="average") == pytest.approx(mean, rel=1e-12)


def test_averaged_ties_of_many_documents():
    """Far more than need a look: the tail of a group is cut where no reader comes."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, p=[0.5, 0.2, 0.1, 0.1, 0.1], size=5000)
    qid = np.repeat([0, 1], [3000, 2000])
    averaged = err(y, np.zeros(5000), qid=qid, ties="average")
    orders = [err(y, rng.random(5000), qid=qid) for _ in range(2000)]
    assert averaged == pytest.approx(np.mean(orders), abs=4 * np.std(orders) / 2000**0.5)
    alone = [err(y[qid == q], np.zeros(sum(qid == q)), ties="average") for q in (0, 1)]
    assert averaged == pytest.approx(np.mean(alone), rel=1e-14)


@pytest.mark.parametrize("labels", ["grades", "real", "few"])
@pytest.mark.parametrize("k", [None, 3, 40])
def test_large_groups_of_ties_are_computed_place_by_place(monkeypatch, labels, k):
    """Or document by document, with the same value; scores have groups of many sizes."""
    rng = np.random.default_rng(0)
    y = {
        "grades": rng.integers(5, size=3000),
        "real": rng.uniform(0, 4, size=3000),
        "few": rng.random(3000) < 0.1,
    }[labels]
    scores, qid = rng.geometric(0.3, size=3000), np.repeat([0, 1, 2], [100, 900, 2000])
    options = {"k": k, "max_label": 4, "ties": "average", "per_query": True}
    monkeypatch.setattr(cascade, "LARGE", 10**9)
    expected = err(y, scores, qid=qid, **options)
    for large in (0, 100):
        monkeypatch.setattr(cascade, "LARGE", large)
        np.testing.assert_allclose(err(y, scores, qid=qid, **options), expected, rtol=1e-12)


def test_a_million_tied_documents():
    """Of one grade, so that every order has the same value; a loop over documents takes 16 s."""
    y = np.full(10**6, 3.0)
    start = time.process_time()
    value = err(y, np.zeros(10**6), max_label=4, ties="average")
    assert time.process_time() - start < 10
    rank = np.arange(1, 200)
    assert value == pytest.approx(np.sum(7 / 16 * (9 / 16) ** (rank - 1) / rank), rel=1e-12)
