"""Pair weights as products of factors."""

import numpy as np
import pytest

from marginrank import RankingData
from marginrank.metrics import ndcg
from marginrank.metrics.ranking import ranks
from marginrank.models.parameters import check_pair_cost
from marginrank.objective.pair_weights import (
    document_weights,
    exponential_gain,
    gain_difference,
    ndcg_difference,
    pair_cost,
    top_difference,
    weight_matrix,
    with_propensity,
)

Y = np.array([0.0, 5.0, 1.0, 5.0, 0.0])
PAIRS = [(i, j) for i in range(5) for j in range(5) if Y[i] > Y[j]]


def delta(factors):
    return np.array([factors.preferred[i] @ factors.other[j] for i, j in PAIRS])


def test_document_weights_multiply():
    a, b = np.arange(1.0, 6.0), np.array([1.0, 0.5, 2.0, 4.0, 0.25])
    np.testing.assert_array_equal(delta(document_weights(a, b)), [a[i] * b[j] for i, j in PAIRS])
    np.testing.assert_array_equal(delta(document_weights(a)), [a[i] for i, _ in PAIRS])


def test_gain_difference_of_labels():
    np.testing.assert_array_equal(delta(gain_difference(Y)), [Y[i] - Y[j] for i, j in PAIRS])


def test_gain_difference_of_a_gain():
    expected = [2.0 ** Y[i] - 2.0 ** Y[j] for i, j in PAIRS]
    np.testing.assert_array_equal(delta(gain_difference(Y, lambda y: 2**y - 1)), expected)


def test_gain_difference_has_rank_two_for_any_number_of_labels():
    assert gain_difference(np.arange(100.0)).preferred.shape == (100, 2)


def test_weight_matrix_looks_up_the_two_labels():
    matrix = np.array([[np.pi, 7, 7], [1, 7, 7], [4, 2, 7]])  # only below the diagonal counts
    level = {0.0: 0, 1.0: 1, 5.0: 2}
    expected = [matrix[level[Y[i]], level[Y[j]]] for i, j in PAIRS]
    np.testing.assert_array_equal(delta(weight_matrix(Y, matrix)), expected)


def test_weight_matrix_of_a_single_label():
    assert weight_matrix([3.0, 3.0], [[0.0]]).preferred.shape == (2, 1)


def test_weight_matrix_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"pair_cost has shape \(2, 2\).* 3 distinct labels"):
        weight_matrix(Y, np.zeros((2, 2)))


def test_negative_weight_is_named():
    matrix = np.zeros((3, 3))
    matrix[2, 1] = -1.5
    with pytest.raises(ValueError, match=r"pair_cost is -1.5 for the labels"):
        weight_matrix(Y, matrix)


def test_weights_above_the_diagonal_may_be_anything():
    matrix = np.triu(np.full((3, 3), -1.0))
    np.testing.assert_array_equal(delta(weight_matrix(Y, matrix)), 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weight_that_is_not_finite_is_named(bad):
    matrix = np.zeros((3, 3))
    matrix[1, 0] = bad
    with pytest.raises(ValueError, match=rf"pair_cost is {bad} for the labels"):
        weight_matrix(Y, matrix)


def test_ndcg_difference_is_the_share_of_the_ideal_dcg_that_a_swap_costs():
    y = np.array([3.0, 0.0, 1.0, 2.0, 2.0, 1.0])
    qid = np.array([0, 0, 0, 0, 1, 1])
    factors = ndcg_difference(y, qid)

    def dcg(labels):
        return np.sum((2.0**labels - 1) / np.log2(np.arange(2, labels.size + 2)))

    for q in (0, 1):
        rows = np.flatnonzero(qid == q)
        rows = rows[np.argsort(-y[rows])]
        ideal = dcg(y[rows])
        for a in range(len(rows)):
            for b in range(a + 1, len(rows)):
                swapped = y[rows].copy()
                swapped[[a, b]] = swapped[[b, a]]
                delta = factors.preferred[rows[a]] @ factors.other[rows[b]]
                assert delta == pytest.approx(1 - dcg(swapped) / ideal, rel=1e-12)


@pytest.mark.parametrize("k", [1, 3, 100])
def test_top_difference_is_what_a_swap_changes_in_ndcg(k):
    rng = np.random.default_rng(3)
    qid = np.repeat([0, 1, 2], [7, 1, 5])
    y, scores = rng.integers(0, 4, qid.size).astype(float), rng.normal(size=qid.size)
    rank = ranks(scores, qid=qid)
    discount = np.where(rank <= k, 1.0 / np.log2(1.0 + rank), 0.0)
    P, Q = top_difference(y, qid, discount, k)
    before = ndcg(y, scores, qid=qid, k=k, per_query=True)
    for i, j in np.argwhere((qid[:, None] == qid) & (y[:, None] > y)):
        swapped = scores.copy()
        swapped[[i, j]] = scores[[j, i]]
        change = abs(ndcg(y, swapped, qid=qid, k=k, per_query=True) - before).sum()
        inside = (rank[[i, j]] <= k).sum()
        if inside < 2:
            assert P[i] @ Q[j] == pytest.approx(change, abs=1e-14)
            assert (change > 0) == (inside == 1)
        else:  # D_i + D_j in the place of |D_i - D_j|
            ratio = (discount[i] + discount[j]) / abs(discount[i] - discount[j])
            assert P[i] @ Q[j] == pytest.approx(ratio * change, rel=1e-9)


def test_top_difference_of_a_query_without_relevant_documents_is_zero():
    P, Q = top_difference([0.0, 0.0, 2.0, 1.0], [0, 0, 1, 1], [1.0, 0.0, 0.0, 1.0], k=1)
    assert not (P[:2] @ Q[:2].T).any()
    assert P[2] @ Q[3] == pytest.approx(2.0 / 3.0)


def test_ndcg_difference_averages_over_documents_of_one_label():
    factors = ndcg_difference([1.0, 1.0, 0.0, 0.0], [0, 0, 0, 0])
    weights = factors.preferred[:2] @ factors.other[2:].T
    discount = 1 / np.log2([2, 3, 4, 5])
    expected = (discount[:2].mean() - discount[2:].mean()) / discount[:2].sum()
    np.testing.assert_allclose(weights, expected)


def test_costs_by_name_callable_and_matrix_agree():
    qid = np.zeros(5, dtype=np.int64)
    matrix = [[0, 0, 0], [1, 0, 0], [25, 16, 0]]
    by_matrix = delta(pair_cost(matrix, Y, qid))
    np.testing.assert_array_equal(delta(pair_cost(lambda a, b: (a - b) ** 2, Y, qid)), by_matrix)
    expected = [2.0 ** Y[i] - 2.0 ** Y[j] for i, j in PAIRS]
    np.testing.assert_array_equal(delta(pair_cost("gain", Y, qid)), expected)
    assert pair_cost(None, Y, qid) is None


def test_unknown_costs_are_named():
    with pytest.raises(ValueError, match="pair_cost='dcg' must be None, 'gain', 'ndcg'"):
        check_pair_cost("dcg")


@pytest.mark.parametrize(
    ("cost", "y", "message"),
    [
        (lambda a, b: -1.0, Y, "pair_cost is -1 for the labels"),
        (lambda a, b: 1.0, np.arange(100.0), "100 distinct labels"),
        ("gain", np.array([0.0, 600.0]), r"y\[1\] is 600"),
        ("gain", np.array([0.0, -2000.0]), r"y\[1\] is -2000"),
        ("gain", np.array([0, 2**60 + 1]), r"y\[1\] is 1.15292e\+18"),
        ("ndcg", np.array([0.0, -1.0, -2.0]), r"y\[2\] is -2"),
    ],
)
def test_wrong_costs_are_named(cost, y, message):
    with pytest.raises(ValueError, match=message):
        pair_cost(cost, y, np.zeros(len(y), dtype=np.int64))


@pytest.mark.parametrize("label", [2000.0, -2000.0])
def test_labels_without_a_gain_are_named_with_the_reason(label):
    with pytest.raises(ValueError, match=rf"y\[1\] is {label:g}; .*2\*\*y"):
        exponential_gain(np.array([0.0, label]))


def test_costs_of_large_integer_labels_see_the_labels():
    y = RankingData(np.eye(3), [2**60, 2**60 + 1, 2**60 + 3]).y
    factors = pair_cost(lambda a, b: a - b, y, np.zeros(3, dtype=np.int64))
    costs = factors.preferred @ factors.other.T
    np.testing.assert_array_equal(costs[:, :2], [[0, 0], [1, 0], [3, 2]])


@pytest.mark.parametrize(
    ("propensity", "message"),
    [(1.5, r"propensity\[1\] is 1.5; .* at most 1"), (1e-310, r"propensity\[1\] .* overflows")],
)
def test_propensities_are_probabilities(propensity, message):
    with pytest.raises(ValueError, match=message):
        with_propensity(None, np.array([1.0, propensity]))
    np.testing.assert_array_equal(with_propensity(None, np.array([1.0, 0.5])).preferred, [[1], [2]])
