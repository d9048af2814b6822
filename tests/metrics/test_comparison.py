"""Significance tests against SciPy's and against counting."""

from dataclasses import FrozenInstanceError
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats

from marginrank import metrics
from marginrank.metrics import compare


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(50), 12)
    y = rng.integers(3, size=qid.size)
    return (
        y,
        y + rng.normal(scale=2.0, size=qid.size),
        y + rng.normal(scale=2.4, size=qid.size),
        qid,
    )


def test_equals_scipy(data):
    y, a, b, qid = data
    result = compare(y, a, b, qid=qid, metric="ndcg@5", gain="linear", confidence=0.9)
    values = [metrics.ndcg(y, s, qid=qid, k=5, gain="linear", per_query=True) for s in (a, b)]
    expected = stats.ttest_rel(*values)
    interval = expected.confidence_interval(0.9)
    assert result.metric == "ndcg@5(gain='linear')"
    assert (result.mean_a, result.mean_b) == pytest.approx(tuple(np.mean(values, axis=1)))
    assert result.difference == pytest.approx(result.mean_a - result.mean_b)
    assert result.t_test_p == pytest.approx(expected.pvalue, rel=1e-10)
    assert result.interval == pytest.approx((interval.low, interval.high), rel=1e-10)
    assert (result.confidence, result.n_queries) == (0.9, 50)
    randomization = stats.permutation_test(
        (values[0] - values[1],),
        np.mean,
        permutation_type="samples",
        n_resamples=5000,
        random_state=1,
    )
    assert result.randomization_p == pytest.approx(randomization.pvalue, abs=0.03)


def test_few_queries_try_every_swap():
    y, qid = [1, 0] * 5, np.repeat(np.arange(5), 2)
    a = np.array([3.0, 0, 2, 1, 5, 4, 1, 2, 1, 0])
    b = np.array([0.0, 1, 1, 2, 4, 5, 2, 1, 2, 3])
    d = metrics.ndcg(y, a, qid=qid, per_query=True) - metrics.ndcg(y, b, qid=qid, per_query=True)
    sums = np.array([np.dot(signs, d) for signs in product([-1, 1], repeat=5)])
    expected = np.mean(np.abs(sums) >= abs(d.sum()) - 1e-12)
    result = compare(y, a, b, qid=qid)
    assert result.randomization_p == expected
    assert result == compare(y, a, b, qid=qid, random_state=9)


def test_queries_without_a_difference_do_not_change_the_randomisation():
    y, qid = [1, 0] * 40, np.repeat(np.arange(40), 2)
    a = np.array([1.0, 0.0] * 40)
    b = np.concatenate([[0.0, 1.0] * 6, a[12:]])
    assert compare(y, a, b, qid=qid, metric="auc").randomization_p == 2 / 2**6


def test_same_seed_same_result(data):
    assert compare(*data[:3], qid=data[3], random_state=3) == compare(
        *data[:3], qid=data[3], random_state=3
    )
    one, other = (
        compare(*data[:3], qid=data[3], n_resamples=99, random_state=seed) for seed in (1, 2)
    )
    assert one.randomization_p != other.randomization_p
    assert one.t_test_p == other.t_test_p


def test_swapping_the_sides(data):
    y, a, b, qid = data
    one, other = compare(y, a, b, qid=qid), compare(y, b, a, qid=qid)
    assert one.difference == -other.difference
    assert one.interval == (-other.interval[1], -other.interval[0])
    assert (one.t_test_p, one.randomization_p) == (other.t_test_p, other.randomization_p)


def test_no_difference(data):
    y, a, _, qid = data
    result = compare(y, a, a, qid=qid)
    assert (result.difference, result.interval) == (0, (0, 0))
    assert (result.t_test_p, result.randomization_p) == (1, 1)


def test_the_same_difference_everywhere():
    y, qid = [1, 0] * 20, np.repeat(np.arange(20), 2)
    result = compare(y, [1.0, 0.0] * 20, [0.0, 1.0] * 20, qid=qid, metric="reciprocal_rank")
    assert (result.difference, result.interval, result.t_test_p) == (0.5, (0.5, 0.5), 0)
    assert result.randomization_p < 0.001


def test_queries_without_a_value_are_left_out(data):
    y, a, b, qid = data
    y = np.where(qid < 10, 0, y)
    assert compare(y, a, b, qid=qid).n_queries == 50
    assert compare(y, a, b, qid=qid, no_relevant="skip").n_queries == 40
    accuracy = compare(y, a, b, qid=qid, metric="pairwise_accuracy")
    by_query = metrics.pairwise_accuracy(y, a, qid=qid, per_query=True)
    assert (accuracy.n_queries, accuracy.mean_a) == (40, pytest.approx(np.nanmean(by_query)))


def test_metrics_may_be_functions(data):
    by_name = compare(*data[:3], qid=data[3], metric="err", k=3)
    assert compare(*data[:3], qid=data[3], metric=metrics.err, k=3) == by_name
    assert compare(*data[:3], qid=data[3], metric=partial(metrics.err, k=3)) == by_name

    def count(y, scores, qid, per_query):
        return metrics.dcg(y, scores, qid=qid, per_query=per_query)

    assert (
        compare(*data[:3], qid=data[3], metric=count).difference
        == compare(*data[:3], qid=data[3], metric="dcg").difference
    )


def test_group_sizes(data):
    assert compare(*data[:3], group=[12] * 50) == compare(*data[:3], qid=data[3])


def test_result_is_frozen(data):
    with pytest.raises(FrozenInstanceError):
        compare(*data[:3], qid=data[3]).mean_a = 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "mdcg"}, "metric 'mdcg' .* 'dcg'"),
        ({"metric": 3}, "metric=3 "),
        ({"n_resamples": 0}, "n_resamples=0 must be an integer"),
        ({"confidence": 95}, "confidence=95 "),
        ({"qid": None}, "ndcg has a value in 1 of 1 queries"),
        ({"group": [600]}, "both given"),
    ],
)
def test_bad_input_is_named(data, options, message):
    y, a, b, qid = data
    with pytest.raises(ValueError, match=message):
        compare(y, a, b, **{"qid": qid, **options})


def test_ties_count_as_in_random_order():
    """Constant scores would be perfect on rows sorted by label."""
    y, qid = [2, 1, 0] * 4, np.repeat(range(4), 3)
    constant, good = np.zeros(12), [3.0, 2.0, 1.0] * 4
    for metric in ("ndcg", "average_precision", "err"):
        assert compare(y, good, constant, qid=qid, metric=metric).difference > 0.1
    assert compare(y, good, constant, qid=qid, metric="ndcg").metric == "ndcg"
    assert compare(y, good, constant, qid=qid, metric="ndcg", ties="order").difference == 0
