"""Pairwise accuracy against looking at every pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginrank.metrics import pairwise_accuracy


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
    accuracy = pairwise_accuracy(y, scores, qid, sample_weight=weight if weighted else None)
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
    assert pairwise_accuracy(y, scores, ["a", "a", "b", "b"]) == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 0], [0.0, np.nan]), r"scores\[1\] is NaN"),
        (([1, np.inf], [0.0, 1.0]), r"y\[1\] is infinity"),
        (([1, 0, 1], [0.0, 1.0]), r"y has 3 entries and needs 2"),
        (([1, 0], [0.0, 1.0], [1, 2, 3]), r"qid has 3 entries"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        pairwise_accuracy(*arguments)
