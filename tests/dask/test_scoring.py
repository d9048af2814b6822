"""Metrics over partitions are those of all documents in memory."""

import dask.array
import numpy as np
import pytest
from collections_of import as_arrays, as_frame

from marginrank import make_ranking, metrics
from marginrank.dask import metric

_, Y, QID = make_ranking(40, (1, 20), 5, random_state=0)
Y = np.where(QID % 7 == 0, 0.0, Y)  # queries without a relevant document
SCORES = np.round(np.random.default_rng(0).normal(size=len(Y)), 1)
ENDS = np.searchsorted(QID, [10, 10, 25, 40])
WHOLE = np.diff(ENDS, prepend=0)
NAMES = [
    "ndcg@10",
    "dcg@3",
    "average_precision",
    "reciprocal_rank",
    "precision@5",
    "recall@5",
    "err",
    "pairwise_accuracy",
    "kendall_tau",
    "auc",
]


@pytest.mark.parametrize("name", NAMES)
def test_arrays(client, name):
    y = (Y > 1).astype(float) if name == "auc" else Y
    expected = metrics.get_metric(name)(y, SCORES, qid=QID)
    y_, scores, qid = as_arrays(WHOLE, y, SCORES, QID)
    assert metric(name, y_, scores, qid=qid, client=client) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("options", [{}, {"no_relevant": "skip"}, {"gain": "linear", "k": 3}])
def test_options(client, options):
    expected = metrics.ndcg(Y, SCORES, qid=QID, **options)
    y, scores, qid = as_arrays(WHOLE, Y, SCORES, QID)
    assert metric("ndcg", y, scores, qid=qid, client=client, **options) == pytest.approx(expected)


def test_weights_and_ties(client):
    weight = np.linspace(1, 3, len(Y))
    expected = metrics.pairwise_accuracy(Y, SCORES, qid=QID, sample_weight=weight, ties="half")
    y, scores, qid, w = as_arrays(WHOLE, Y, SCORES, QID, weight)
    found = metric(
        "pairwise_accuracy", y, scores, qid=qid, sample_weight=w, ties="half", client=client
    )
    assert found == pytest.approx(expected, rel=1e-13)


def test_values_by_query_stay_on_the_cluster(client):
    y, scores, qid = as_arrays(WHOLE, Y, SCORES, QID)
    values = metric("ndcg@5", y, scores, qid=qid, per_query=True, no_relevant="skip", client=client)
    assert isinstance(values, dask.array.Array)
    assert values.shape == (40,)
    expected = metrics.ndcg(Y, SCORES, qid=QID, k=5, per_query=True, no_relevant="skip")
    np.testing.assert_array_equal(values.compute(), expected)


def test_series(client):
    frame = as_frame(WHOLE, SCORES[:, None], Y, QID)
    found = metric("ndcg@10", frame["label"], frame["bm25"], qid=frame["query"], client=client)
    assert found == pytest.approx(metrics.ndcg(Y, SCORES, qid=QID, k=10))


def test_queries_that_are_cut(client):
    y, scores, qid = as_arrays([len(Y) - 50, 50], Y, SCORES, QID)
    with pytest.raises(ValueError, match="is in the partitions 0 and 1"):
        metric("ndcg", y, scores, qid=qid, client=client)
    found = metric("ndcg", y, scores, qid=qid, client=client, partitions="by_query")
    assert found == pytest.approx(metrics.ndcg(Y, SCORES, qid=QID))
