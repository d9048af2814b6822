"""What all metrics have in common."""

import numpy as np
import pandas as pd
import pytest
from helpers.tables import each

from marginrank import metrics
from marginrank.metrics.names import METRICS
from marginrank.metrics.ranking import Judgments

ALL = [
    ("ndcg", {}),
    ("ndcg", {"k": 3, "gain": "linear", "ties": "average"}),
    ("letor_mean_ndcg", {}),
    ("letor_mean_ndcg", {"ties": "average"}),
    ("dcg", {"discount": "letor"}),
    ("average_precision", {}),
    ("average_precision", {"threshold": 1, "ties": "average"}),
    ("reciprocal_rank", {"threshold": 3}),
    ("reciprocal_rank", {"threshold": 3, "ties": "average"}),
    ("precision", {"k": 3}),
    ("recall", {"k": 3}),
    ("err", {"k": 5}),
    ("err", {"ties": "average"}),
    ("pairwise_accuracy", {}),
    ("pairwise_accuracy", {"ties": "half"}),
    ("kendall_tau", {}),
    ("auc", {}),
]
TIE_FREE = [
    (name, options)
    for name, options in ALL
    if options.get("ties") == "average" or name in ("pairwise_accuracy", "kendall_tau", "auc")
]
every_metric = pytest.mark.parametrize(("name", "options"), ALL)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(5, size=200), rng.normal(size=200)
    return y, scores, np.repeat(np.arange(10), 20)


def test_every_metric_is_here():
    assert {name for name, _ in ALL} == set(METRICS)
    assert set(METRICS) <= set(metrics.__all__)


@every_metric
def test_rows_may_come_in_any_order(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    value = metric(y, scores, qid=qid, **options)
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(y.size)
        again = metric(y[shuffled], scores[shuffled], qid=qid[shuffled], **options)
        assert again == pytest.approx(value, rel=1e-14)


@every_metric
def test_labels_may_be_prepared_for_many_scores(data, name, options):
    metric, (y, _, qid) = getattr(metrics, name), data
    for q in (qid, qid[::-1] % 3):  # also with the rows of a query apart
        judgments = Judgments.of(y, q, None, None, n=y.size)
        for seed in range(2):
            scores = np.random.default_rng(seed).normal(size=y.size).round(1)
            for per_query in (False, True):
                expected = metric(y, scores, qid=q, per_query=per_query, **options)
                found = metric(judgments, scores, per_query=per_query, **options)
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "options"), TIE_FREE)
def test_rows_may_come_in_any_order_with_ties(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    scores = scores.round()
    value = metric(y, scores, qid=qid, **options)
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(y.size)
        again = metric(y[shuffled], scores[shuffled], qid=qid[shuffled], **options)
        assert again == pytest.approx(value, rel=1e-13)


@every_metric
def test_names_of_queries_do_not_matter(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    value = metric(y, scores, qid=qid, per_query=True, **options)
    for other in (-qid, qid * 10**15, [f"q{q}" for q in qid], np.array([(q,) for q in qid])):
        again = metric(y, scores, qid=other, per_query=True, **options)
        np.testing.assert_array_equal(again, value)
    np.testing.assert_array_equal(
        metric(y, scores, group=[20] * 10, per_query=True, **options), value
    )


@every_metric
def test_queries_are_in_order_of_first_appearance(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    shuffled = np.random.default_rng(5).permutation(y.size)
    y, scores, qid = y[shuffled], scores[shuffled], qid[shuffled]
    values = metric(y, scores, qid=qid, per_query=True, **options)
    assert values.dtype == np.float64
    for query, value in zip(pd.unique(qid), values, strict=True):
        # ERR takes the highest grade from all labels: keep one.
        more = {"max_label": 4} if name == "err" else {}
        alone = metric(y[qid == query], scores[qid == query], **options, **more)
        assert alone == pytest.approx(value, rel=1e-14)


@every_metric
def test_mean_over_queries(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    value = metric(y, scores, qid=qid, **options)
    assert isinstance(value, float)
    if name != "pairwise_accuracy":  # over all pairs
        by_query = metric(y, scores, qid=qid, per_query=True, **options)
        assert value == pytest.approx(np.mean(by_query), rel=1e-14)


@every_metric
def test_better_scores_are_worth_more(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    best, worst = (metric(y, sign * (y + scores / 100), qid=qid, **options) for sign in (1, -1))
    assert best >= metric(y, scores, qid=qid, **options) > worst
    if name not in ("dcg", "precision", "recall", "err"):
        assert best == pytest.approx(1.0, abs=0.2 if name == "kendall_tau" else 1e-12)


@every_metric
def test_kinds_of_input(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    scores = scores.astype(np.float32)
    value = metric(y, scores, qid=qid, **options)
    assert metric(y.tolist(), scores.tolist(), qid=qid.tolist(), **options) == value
    assert metric(pd.Series(y), pd.Series(scores), qid=pd.Series(qid), **options) == value
    assert metric(y[:, None], scores[:, None], qid=qid[:, None], **options) == value
    assert metric(y[::-1], scores[::-1], qid=qid[::-1], **options) == pytest.approx(value)
    for n_jobs in (1, 2, -1):
        assert metric(y, scores, qid=qid, n_jobs=n_jobs, **options) == value


@every_metric
def test_input_is_left_alone(data, name, options):
    metric, (y, scores, qid) = getattr(metrics, name), data
    y, scores = y.astype(float), scores.copy()
    before = [array.copy() for array in (y, scores, qid)]
    for array in (y, scores, qid):
        array.flags.writeable = False
    metric(y, scores, qid=qid, **options)
    for array, copy in zip((y, scores, qid), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@every_metric
def test_no_documents(name, options):
    metric = getattr(metrics, name)
    assert np.isnan(metric([], [], **options))
    assert np.isnan(metric([], [], qid=[], **options))
    assert metric([], [], qid=[], per_query=True, **options).shape == (0,)


@every_metric
@each(
    ("arguments", "message"),
    [
        (([1, 0], [0.0, np.nan]), r"scores\[1\] is NaN"),
        (([1, 0], [0.0, -np.inf]), r"scores\[1\] is infinity"),
        (([1, np.nan], [0.0, 1.0]), r"y\[1\] is NaN"),
        (([1, 0, 1], [0.0, 1.0]), r"y has 3 entries and scores has 2"),
        (([1, 0], [0.0, 1.0]), r"qid has 3 entries"),
        ((["a", "b"], [0.0, 1.0]), r"y must hold real numbers"),
        (([1, 0], [[0.0, 1.0], [1.0, 2.0]]), r"scores has shape \(2, 2\)"),
        (([1, 0], None), r"scores has shape \(\)"),
    ],
)
def test_bad_input_is_named(name, options, arguments, message):
    qid = [1, 2, 3] if "qid" in message else None
    with pytest.raises(ValueError, match=message):
        getattr(metrics, name)(*arguments, qid=qid, **options)


@every_metric
def test_qid_or_group(name, options):
    metric = getattr(metrics, name)
    with pytest.raises(ValueError, match="both given"):
        metric([1, 0], [0.0, 1.0], qid=[1, 1], group=[2], **options)
    with pytest.raises(ValueError, match="group sums to 3"):
        metric([1, 0], [0.0, 1.0], group=[3], **options)
