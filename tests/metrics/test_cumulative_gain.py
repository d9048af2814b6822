"""DCG, NDCG and LETOR's mean NDCG: cases worked out by hand, and all orders of ties."""

from itertools import permutations, product
from math import log2

import numpy as np
import pytest
from helpers.tables import each

from marginrank.metrics import dcg, letor_mean_ndcg, ndcg

# Ranked 2 (gain 3), 0, 1 (gain 1), 0; ideal 2, 1, 0, 0.
Y, SCORES = [0, 1, 2, 0], [0.3, 0.2, 0.4, 0.1]


@pytest.mark.parametrize(
    ("options", "actual", "ideal"),
    [
        ({}, 3 + 1 / log2(4), 3 + 1 / log2(3)),
        ({"k": 2}, 3, 3 + 1 / log2(3)),
        ({"k": 1}, 3, 3),
        ({"k": 99}, 3 + 1 / log2(4), 3 + 1 / log2(3)),
        ({"gain": "linear"}, 2 + 1 / log2(4), 2 + 1 / log2(3)),
        ({"discount": "letor"}, 3 + 1 / log2(3), 3 + 1),
        ({"discount": "letor", "k": 2}, 3, 3 + 1),
        ({"discount": "letor", "gain": "linear"}, 2 + 1 / log2(3), 2 + 1),
    ],
)
def test_by_hand(options, actual, ideal):
    assert dcg(Y, SCORES, **options) == pytest.approx(actual, rel=1e-15)
    assert ndcg(Y, SCORES, **options) == pytest.approx(actual / ideal, rel=1e-15)


def test_letor_mean_by_hand():
    """The mean of NDCG@1 … NDCG@4."""
    at = [ndcg(Y, SCORES, k=k, discount="letor") for k in (1, 2, 3, 4)]
    assert letor_mean_ndcg(Y, SCORES) == pytest.approx(np.mean(at), rel=1e-15)
    assert at == pytest.approx([1, 3 / 4, (3 + 1 / log2(3)) / 4, (3 + 1 / log2(3)) / 4])


def test_letor_mean_of_queries_of_many_sizes():
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 3, 4, 5, 8, 9, 16, 17, 1, 100])
    y, scores = rng.integers(5, size=sizes.sum()), rng.normal(size=sizes.sum())
    expected = []
    for part in np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1]):
        at = [ndcg(y[part], scores[part], k=k, discount="letor") for k in range(1, part.size + 1)]
        expected.append(np.mean(at))
    values = letor_mean_ndcg(y, scores, group=sizes, per_query=True)
    np.testing.assert_allclose(values, expected, rtol=1e-14)


def test_a_query_with_huge_gains_does_not_disturb_the_next_one():
    y = [60, 0, 1, 0, 1]
    scores = [0.0, 1.0, 1.0, 2.0, 3.0]
    small = letor_mean_ndcg(y[2:], scores[2:])
    values = letor_mean_ndcg(y, scores, qid=[1, 1, 2, 2, 2], per_query=True)
    assert values.tolist() == [0.5, small]
    assert ndcg(y, scores, qid=[1, 1, 2, 2, 2], per_query=True)[1] == ndcg(y[2:], scores[2:])


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        *product([dcg, ndcg], [{}, {"k": 1}, {"k": 3}, {"gain": "linear", "k": 2}]),
        (letor_mean_ndcg, {}),
    ],
)
@each("scores", [[1, 1, 1, 1, 1], [2, 1, 2, 1, 1], [3, 2, 2, 2, 1]])
def test_averaged_ties_are_the_mean_over_all_orders(metric, options, scores):
    y, scores = np.array([3, 0, 1, 2, 0]), np.array(scores)
    orders = [list(order) for order in permutations(range(5))]
    mean = np.mean([metric(y[order], scores[order], **options) for order in orders])
    assert metric(y, scores, ties="average", **options) == pytest.approx(mean, rel=1e-13)


def test_ties_in_input_order():
    assert ndcg([1, 0], [5.0, 5.0]) == 1.0
    assert ndcg([0, 1], [5.0, 5.0]) == pytest.approx(1 / log2(3))
    assert ndcg([0, 1], [0.0, -0.0]) == pytest.approx(1 / log2(3))


@pytest.mark.parametrize("metric", [dcg, ndcg, letor_mean_ndcg])
def test_queries_without_relevant_documents(metric):
    y, scores, qid = [1, 0, 0, 0, 0], [2.0, 1.0, 2.0, 1.0, 0.0], list("aabbc")
    assert metric(y, scores, qid=qid, per_query=True).tolist() == [1, 0, 0]
    assert metric(y, scores, qid=qid) == pytest.approx(1 / 3)
    assert metric(y, scores, qid=qid, no_relevant=1.0) == 1
    assert metric(y, scores, qid=qid, no_relevant="skip") == 1
    by_query = metric(y, scores, qid=qid, no_relevant="skip", per_query=True)
    np.testing.assert_array_equal(by_query, [1, np.nan, np.nan])
    assert np.isnan(metric([0, 0], [1.0, 2.0], no_relevant="skip"))


@pytest.mark.parametrize("metric", [dcg, ndcg, letor_mean_ndcg])
def test_single_documents(metric):
    values = metric([1, 0, 1], [5.0, 6.0, 7.0], qid=[1, 2, 3], per_query=True)
    assert values.tolist() == [1, 0, 1]


@pytest.mark.parametrize("metric", [dcg, ndcg, letor_mean_ndcg])
@pytest.mark.parametrize("label", [961, 1268, 2**60, 1e300])
def test_labels_too_large_for_the_exponential_gain_are_refused(metric, label):
    message = (
        r'^y\[2\] is .*, and its exponential gain .* use ndcg with gain="linear", or map [^.]*\.$'
    )
    with pytest.raises(ValueError, match=message):
        metric([0, 1, label, 2], [1.0, 2.0, 3.0, 4.0], qid=[7, 8, 7, 8])


def test_large_labels_that_need_not_be_refused():
    assert ndcg([1268, 0, 31], [3.0, 1.0, 2.0], gain="linear") == 1.0
    assert ndcg([960, 0, 31] * 99, [3.0, 1.0, 2.0] * 99) == 1.0
    assert letor_mean_ndcg([960, 0, 31] * 99, [3.0, 1.0, 2.0] * 99) == 1.0


def test_labels_too_large_to_add_up_are_refused():
    with pytest.raises(ValueError, match=r"^y\[1\] is 1e\+308, .* divide the labels"):
        ndcg([0, 1e308], [1.0, 2.0], gain="linear")


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_negative_labels_are_refused(gain):
    with pytest.raises(ValueError, match=r"^y\[1\] is -1, .* y - min\(y\)\.$"):
        ndcg([0, -1], [1.0, 2.0], gain=gain)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"k": 0}, "k=0 "),
        ({"k": 2.5}, "k=2.5 "),
        ({"k": True}, "k=True "),
        ({"gain": "exp"}, "gain='exp' must be one of 'exponential', 'linear'"),
        ({"discount": None}, "discount=None must be one of"),
        ({"ties": "half"}, "ties='half' must be one of"),
        ({"no_relevant": "zero"}, "no_relevant='zero' "),
        ({"no_relevant": 0.5}, "no_relevant=0.5 "),
    ],
)
def test_bad_options_are_named(option, message):
    for metric in (dcg, ndcg):
        with pytest.raises(ValueError, match=message):
            metric([1, 0], [1.0, 0.0], **option)
