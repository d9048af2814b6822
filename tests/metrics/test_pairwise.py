"""Pairwise accuracy against looking at every pair; Kendall tau against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from marginrank.metrics import kendall_tau, pairwise_accuracy


def by_every_pair(y, scores, qid, weight):
    pairs = (qid[:, None] == qid) & (y[:, None] > y)
    weights = np.outer(weight, weight)[pairs]
    return np.sum(weights * (scores[:, None] > scores)[pairs]) / np.sum(weights)


@given(
    n=st.integers(2, 60),
    n_queries=st.sampled_from([1, 2, 10]),
    n_labels=st.sampled_from([2, 5, 20, 1000]),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_equals_every_pair_with_ties_and_weights(n, n_queries, n_labels, weighted, seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(n_labels, size=n), rng.integers(n_queries, size=n)
    y[:2], qid[:2] = [0, 1], 0  # at least one pair
    scores = rng.integers(-4, 5, size=n) / 8
    weight = rng.uniform(0.1, 3, size=n) if weighted else np.ones(n)
    accuracy = pairwise_accuracy(y, scores, qid=qid, sample_weight=weight if weighted else None)
    assert accuracy == pytest.approx(by_every_pair(y, scores, qid, weight), rel=1e-13)


def test_scores_of_very_different_size_are_told_apart():
    assert pairwise_accuracy([0, 2, 1], [0.0, 1.0, 1e-20]) == 1.0
    assert pairwise_accuracy([1, 2, 0], [1e-20, 1e20, -1e-20]) == 1.0


def test_huge_scores_are_told_apart():
    assert pairwise_accuracy([0, 1, 2], [-1.7e308, 1.6e308, 1.7e308]) == 1.0
    assert pairwise_accuracy([1, 0, 2], [1.6e308, -1.7e308, 1.7e308]) == 1.0


def test_ties_are_not_in_order():
    assert pairwise_accuracy([1, 0], [0.5, 0.5]) == 0.0


@pytest.mark.parametrize("y", [[], [3], [1, 1, 1]])
def test_without_pairs_it_is_nan(y):
    assert np.isnan(pairwise_accuracy(y, np.arange(len(y), dtype=float)))


def test_pairs_of_weight_zero_are_no_pairs():
    assert np.isnan(pairwise_accuracy([1, 0], [1.0, 0.0], sample_weight=[1.0, 0.0]))
    assert pairwise_accuracy([2, 1, 0], [2.0, 0.0, 1.0], sample_weight=[1, 1, 0]) == 1.0


def test_group_is_another_way_to_give_queries():
    y, scores = [1, 0, 0, 1], [1.0, 0.0, 3.0, 2.0]
    assert pairwise_accuracy(y, scores, group=[2, 2]) == 0.5
    assert pairwise_accuracy(y, scores, qid=["a", "a", "b", "b"]) == 0.5


@pytest.mark.parametrize(
    ("y", "scores", "message"),
    [
        ([1, 0], [0.0, np.nan], r"scores\[1\] is NaN"),
        ([1, np.inf], [0.0, 1.0], r"y\[1\] is infinity"),
        ([1, 0, 1], [0.0, 1.0], r"y has 3 entries and scores has 2"),
        ([1, 0], [0.0, 1.0], r"qid has 3 entries"),
    ],
)
def test_bad_input_is_named(y, scores, message):
    with pytest.raises(ValueError, match=message):
        pairwise_accuracy(y, scores, qid=[1, 2, 3] if "qid" in message else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_tied_scores_may_count_half(weighted):
    rng = np.random.default_rng(2)
    y, scores, qid = (rng.integers(4, size=80) for _ in range(3))
    weight = rng.uniform(0.1, 3, size=80) if weighted else np.ones(80)
    at_least = by_every_pair(y, scores, qid, weight)
    at_most = 1 - by_every_pair(y, -scores, qid, weight)
    accuracy = pairwise_accuracy(
        y, scores, qid=qid, ties="half", sample_weight=weight if weighted else None
    )
    assert at_least < at_most
    assert accuracy == pytest.approx((at_least + at_most) / 2, rel=1e-13)


def test_constant_scores():
    y, scores = [2, 1, 0], [7.0, 7.0, 7.0]
    assert pairwise_accuracy(y, scores) == 0
    assert pairwise_accuracy(y, scores, ties="half") == 0.5


def test_by_query_and_over_all_pairs():
    """Queries of 1, 3 and no pairs."""
    y, scores, qid = [1, 0, 0, 1, 2, 5], [0.0, 1.0, 1.0, 2.0, 3.0, 0.0], [4, 4, 2, 2, 2, 9]
    by_query = pairwise_accuracy(y, scores, qid=qid, per_query=True)
    np.testing.assert_array_equal(by_query, [0, 1, np.nan])
    assert pairwise_accuracy(y, scores, qid=qid) == 3 / 4


def test_unknown_tie_rule_is_named():
    with pytest.raises(ValueError, match="ties='right' must be one of 'wrong', 'half'"):
        pairwise_accuracy([1, 0], [1.0, 0.0], ties="right")


def test_bad_weights_are_named():
    with pytest.raises(ValueError, match=r"sample_weight has 1 entries and needs 2"):
        pairwise_accuracy([1, 0], [1.0, 0.0], sample_weight=[1.0])


@given(
    n=st.integers(2, 40),
    n_labels=st.sampled_from([2, 5, 1000]),
    n_scores=st.sampled_from([2, 5, 1000]),
    seed=st.integers(0, 2**32),
)
def test_kendall_equals_scipy(n, n_labels, n_scores, seed):
    rng = np.random.default_rng(seed)
    y, scores = rng.integers(n_labels, size=n), rng.integers(n_scores, size=n) / 8
    y[:2], scores[:2] = [0, 1], [0.5, 0.0]
    expected = kendalltau(y, scores, variant="b").statistic
    assert kendall_tau(y, scores) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_kendall_by_query():
    rng = np.random.default_rng(3)
    y, scores, qid = rng.normal(size=90), rng.normal(size=90).round(1), np.repeat([3, 1, 2], 30)
    expected = [kendalltau(y[qid == q], scores[qid == q]).statistic for q in (3, 1, 2)]
    np.testing.assert_allclose(
        kendall_tau(y, scores, qid=qid, per_query=True), expected, rtol=1e-12
    )
    assert kendall_tau(y, scores, qid=qid) == pytest.approx(np.mean(expected))


def test_kendall_of_constant_labels_and_of_constant_scores():
    y, scores, qid = [1, 0, 1, 1, 1, 0, 5], [1.0, 0.0, 1.0, 0.0, 2.0, 2.0, 0.0], list("aabbccd")
    by_query = kendall_tau(y, scores, qid=qid, per_query=True)
    np.testing.assert_array_equal(by_query, [1, np.nan, 0, np.nan])
    assert kendall_tau(y, scores, qid=qid) == 0.5


@pytest.mark.parametrize("metric", [pairwise_accuracy, kendall_tau])
def test_labels_that_only_integers_tell_apart(metric):
    labels = np.array([2**60, 2**60 + 1, 2**60 + 2])
    assert metric(labels, [1.0, 2.0, 3.0]) == 1


@pytest.mark.parametrize("metric", [pairwise_accuracy, kendall_tau])
def test_large_queries(metric):
    n = 300_000
    labels = np.arange(n) % 1000
    assert metric(labels, labels + np.arange(n) * 1e-9) == pytest.approx(1, abs=1e-3)
    assert metric(np.arange(n), np.arange(n) / 3) == 1
