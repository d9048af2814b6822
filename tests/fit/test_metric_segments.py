"""The metric along segments of weights, against brute force over all crossings."""

import itertools

import numpy as np
import pytest
from helpers.tables import each

from marginrank.fit.metric_segments import Crossings, LinearRankMetric
from marginrank.metrics import ndcg

DISCOUNT = np.concatenate([[0.0], 1.0 / np.log2(np.arange(2.0, 5.0)), [0.0]])  # NDCG@3


def documents(seed, *, ties):
    """Return features, query offsets and labels of a few queries."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 7, 6))])
    X = rng.random((offsets[-1], 3)) * (rng.random((offsets[-1], 3)) < 0.7)
    if ties:
        X = np.round(2 * X) / 2
    return X, offsets, rng.integers(0, 3, offsets[-1]).astype(float)


def metric_of(X, offsets, y, *, positive=True):
    sizes = np.diff(offsets)
    ideal = [np.sort(own)[::-1][:3] for own in np.split(y, offsets[1:-1])]
    ideal = np.array([own @ DISCOUNT[1 : 1 + own.size] for own in ideal])
    gain = y / np.repeat(np.where(ideal > 0, ideal, 1.0), sizes)
    return LinearRankMetric.of(X, offsets, gain, DISCOUNT, positive=positive)


def true_values(X, offsets, y, w):
    """Return NDCG@3 of each query; ties in row order, with rounding errors removed."""
    qid = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return ndcg(y, np.round(X @ w, 12), qid=qid, k=3, gain="linear", per_query=True)


@each("seed", range(12))
@each("ties", [False, True])
def test_values_are_those_of_the_metric(seed, ties):
    X, offsets, y = documents(seed, ties=ties)
    W = np.vstack([np.random.default_rng(seed).dirichlet(np.ones(3), 5), np.eye(3)])
    values = metric_of(X, offsets, y).values(W)
    for w, own in zip(W, values.T, strict=True):
        np.testing.assert_allclose(own, true_values(X, offsets, y, w), atol=1e-12)


@each("seed", range(12))
@each("ties", [False, True])
@each("positive", [False, True])
def test_steps_equal_the_metric_between_all_crossings(seed, ties, positive):
    X, offsets, y = documents(seed, ties=ties)
    rng = np.random.default_rng(seed)
    u, v = rng.dirichlet(np.ones(3), 2) if positive else rng.uniform(-1, 1, (2, 3))
    if seed % 3 == 0:  # from one vertex to a face
        u, v = np.array([0.0, 0.4, 0.6]), np.array([1.0, 0.0, 0.0])
    weight = rng.exponential(size=offsets.size - 1)
    along = metric_of(X, offsets, y, positive=positive).along(u, v)
    steps = along.steps(weight)
    crossings = [0.0, 1.0]
    for first, last in itertools.pairwise(offsets):
        a, b = X[first:last] @ u, X[first:last] @ v
        for i in range(last - first):
            for j in range(i):
                near, far = a[i] - a[j], b[i] - b[j]
                if near * far < 0:
                    crossings.append(near / (near - far))
    crossings = np.sort(crossings)
    wide = np.flatnonzero(np.diff(crossings) > 1e-9)
    best = -np.inf
    for k in wide:
        t = (crossings[k] + crossings[k + 1]) / 2
        expected = weight @ true_values(X, offsets, y, (1 - t) * u + t * v)
        at = np.searchsorted(steps.breakpoints, t)
        assert steps.values[at] == pytest.approx(expected, abs=1e-11)
        best = max(best, expected)
    (t,), (value,) = along.best(weight[None])
    assert value == pytest.approx(best, abs=1e-11)
    assert weight @ true_values(X, offsets, y, (1 - t) * u + t * v) == pytest.approx(best)


def test_best_is_the_middle_of_the_widest_best_interval():
    t = np.array([0.1, 0.4, 0.5, 0.5 + 1e-12, 0.9])
    change, query = np.array([-1.0, 2.0, 6.0, -6.0, 0.0]), np.array([0, 0, 1, 1, 0])
    along = Crossings(t, change, query, np.array([2.0, 0.0]))
    middles, values = along.best(np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]]))
    # 0.4 … 1, because the maximum of 9 has an interval narrower than rounding errors; then all.
    np.testing.assert_allclose(middles, [0.7, 0.7, 0.5])
    assert values.tolist() == [3.0, 6.0, 0.0]


def test_no_relevant_document():
    metric = LinearRankMetric.of(
        np.ones((2, 2)), np.array([0, 2]), np.zeros(2), DISCOUNT, positive=True
    )
    assert metric.values(np.eye(2)).tolist() == [[0.0, 0.0]]
    assert metric.along(*np.eye(2)).best(np.ones((1, 1))) == ([0.5], [0.0])
