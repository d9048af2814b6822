"""Metrics by name."""

from functools import partial

import pytest

from marginrank import metrics
from marginrank.metrics import get_metric
from marginrank.metrics.names import metric_name

Y, SCORES = [2, 1, 0], [1.0, 3.0, 2.0]


def test_names_and_functions():
    assert get_metric("ndcg") is metrics.ndcg
    assert get_metric(metrics.ndcg) is metrics.ndcg
    assert get_metric("ndcg@2")(Y, SCORES) == metrics.ndcg(Y, SCORES, k=2)
    assert get_metric("ndcg@2", gain="linear")(Y, SCORES) == metrics.ndcg(
        Y, SCORES, k=2, gain="linear"
    )
    assert get_metric(max, key=abs)(-3, 2) == -3


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("NDCG@10", "ndcg@10"),
        ("map", "average_precision"),
        ("MAP@5", "average_precision@5"),
        ("MRR", "reciprocal_rank"),
        ("P@3", "precision@3"),
    ],
)
def test_usual_names_in_any_case(alias, name):
    assert metric_name(get_metric(alias)) == name


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (get_metric("auc"), "auc"),
        (get_metric("ndcg@10"), "ndcg@10"),
        (get_metric("ndcg", gain="linear", k=3), "ndcg@3(gain='linear')"),
        (get_metric(partial(metrics.err, max_label=4), k=3), "err@3(max_label=4)"),
        (max, "max"),
    ],
)
def test_names_in_reports(metric, name):
    assert metric_name(metric) == name


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        ("ncdg@5", {}, "metric 'ncdg' .* 'ndcg'\\? Use one of ndcg, "),
        ("hits", {}, "metric 'hits'.* ndcg, letor_mean_ndcg, dcg, average_"),
        ("ndcg@", {}, "metric 'ndcg@' "),
        ("ndcg@x", {}, "metric 'ndcg@x' "),
        ("ndcg@0", {}, "k=0 "),
        ("ndcg@5", {"k": 5}, "'ndcg@5' and k=5 "),
        ("kendall_tau@5", {}, "kendall_tau has no option 'k'"),
        (metrics.ndcg, {"gains": "linear"}, "ndcg has no option 'gains'.* k, gain, "),
        ("ndcg", {"gain": "log"}, "gain='log' must be one of"),
        ("pairwise_accuracy", {"sample_weight": [1]}, "has no option 'sample_weight'"),
        (None, {}, "metric=None "),
    ],
)
def test_bad_names_and_options_are_refused_at_once(metric, options, message):
    with pytest.raises(ValueError, match=message):
        get_metric(metric, **options)
