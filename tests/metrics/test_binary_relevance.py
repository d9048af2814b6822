"""Average precision, reciprocal rank, precision, recall and AUC by hand, and all orders of ties."""

from itertools import permutations

import numpy as np
import pytest
from helpers.tables import each

from marginrank.metrics import auc, average_precision, precision, recall, reciprocal_rank

# Ranked: 0, 1, 0, 2, 0, 0.
Y, SCORES = [1, 0, 0, 2, 0, 0], [5.0, 6.0, 4.0, 3.0, 2.0, 1.0]
WITH_CUTOFF = [average_precision, reciprocal_rank, precision, recall]


@pytest.mark.parametrize(
    ("metric", "options", "expected"),
    [
        (average_precision, {}, (1 / 2 + 2 / 4) / 2),
        (average_precision, {"k": 3}, (1 / 2) / 2),
        (average_precision, {"threshold": 1}, 1 / 4),
        (reciprocal_rank, {}, 1 / 2),
        (reciprocal_rank, {"k": 1}, 0),
        (reciprocal_rank, {"threshold": 1}, 1 / 4),
        (precision, {}, 2 / 6),
        (precision, {"k": 4}, 2 / 4),
        (precision, {"k": 8}, 2 / 8),
        (precision, {"k": 4, "threshold": 1}, 1 / 4),
        (recall, {}, 1),
        (recall, {"k": 3}, 1 / 2),
        (recall, {"k": 3, "threshold": 1}, 0),
        (recall, {"k": 99}, 1),
        (auc, {}, (3 + 2) / 8),
        (auc, {"threshold": 1}, 2 / 5),
    ],
)
def test_by_hand(metric, options, expected):
    assert metric(Y, SCORES, **options) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("metric", WITH_CUTOFF)
@each("k", [None, 1, 3])
@each("scores", [[1, 1, 1, 1, 1, 1], [2, 1, 2, 1, 1, 2], [3, 2, 2, 2, 2, 1], [1, 2, 3, 4, 5, 6]])
@each("y", [[1, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]])
def test_averaged_ties_are_the_mean_over_all_orders(metric, k, scores, y):
    y, scores = np.array(y), np.array(scores)
    orders = np.array(list(permutations(range(6))))
    documents, qid = orders.ravel(), np.repeat(np.arange(len(orders)), 6)
    mean = metric(y[documents], scores[documents], qid=qid, k=k)
    assert metric(y, scores, k=k, ties="average") == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("metric", WITH_CUTOFF)
def test_averaged_ties_in_several_queries(metric):
    rng = np.random.default_rng(1)
    y, scores = rng.integers(2, size=40), rng.integers(3, size=40)
    qid = np.repeat(np.arange(8), 5)
    alone = [metric(y[qid == q], scores[qid == q], k=3, ties="average") for q in range(8)]
    together = metric(y, scores, qid=qid, k=3, ties="average", per_query=True)
    np.testing.assert_allclose(together, alone, rtol=1e-14)


def test_ties_in_input_order():
    assert average_precision([0, 1], [1.0, 1.0]) == 0.5
    assert average_precision([1, 0], [1.0, 1.0]) == 1.0
    assert reciprocal_rank([0, 1], [1.0, 1.0]) == 0.5
    assert precision([0, 1], [1.0, 1.0], k=1) == 0.0
    assert recall([1, 0], [1.0, 1.0], k=1) == 1.0


def test_ties_count_half_in_auc():
    assert auc([1, 0, 0], [1.0, 1.0, 0.0]) == 0.75
    assert auc([0, 1, 1, 0], [2.0, 2.0, 2.0, 2.0]) == 0.5


@pytest.mark.parametrize("metric", WITH_CUTOFF)
@pytest.mark.parametrize("ties", ["order", "average"])
def test_queries_without_relevant_documents(metric, ties):
    y, scores, qid = [1, 0, 0, 0], [2.0, 1.0, 1.0, 3.0], list("abbc")
    call = {"qid": qid, "k": 1, "ties": ties}
    assert metric(y, scores, per_query=True, **call).tolist() == [1, 0, 0]
    assert metric(y, scores, **call) == pytest.approx(1 / 3)
    assert metric(y, scores, no_relevant=1, **call) == 1
    assert metric(y, scores, no_relevant="skip", **call) == 1
    by_query = metric(y, scores, no_relevant="skip", per_query=True, **call)
    np.testing.assert_array_equal(by_query, [1, np.nan, np.nan])


def test_auc_needs_both_kinds_of_documents():
    y, scores = [1, 0, 1, 1, 0, 1], [2.0, 1.0, 2.0, 3.0, 1.0, 2.0]
    by_query = auc(y, scores, qid=list("aabbcd"), per_query=True)
    np.testing.assert_array_equal(by_query, [1, np.nan, np.nan, np.nan])
    assert auc(y, scores, qid=list("aabbcd")) == 1
    assert np.isnan(auc([1, 1], [1.0, 2.0]))


@pytest.mark.parametrize("metric", [*WITH_CUTOFF, auc])
def test_labels_of_any_size_and_sign(metric):
    y, scores = [1268, -3, 1e300, -1e-300], [3.0, 2.0, 4.0, 1.0]
    assert metric(y, scores) == metric([1, 0, 1, 0], scores)
    assert metric(y, scores, threshold=-1) == metric([1, 0, 1, 1], scores)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"k": -1}, "k=-1 "),
        ({"ties": "worst"}, "ties='worst' must be one of"),
        ({"threshold": np.nan}, "threshold=nan must be a finite number"),
        ({"threshold": "1"}, "threshold='1' must be a finite number"),
        ({"no_relevant": None}, "no_relevant=None "),
    ],
)
def test_bad_options_are_named(option, message):
    for metric in WITH_CUTOFF:
        with pytest.raises(ValueError, match=message):
            metric([1, 0], [1.0, 0.0], **option)
