"""How well each feature ranks on its own."""

import threading
import tracemalloc
from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from helpers.tables import each

from marginrank import make_ranking, metrics, rank_features
from marginrank.metrics import feature_ranking, get_metric
from marginrank.metrics.feature_ranking import best_first

X, Y, QID = make_ranking(30, (2, 20), 7, random_state=0)
X = np.round(X, 1)  # so that there are ties
X[:, 4] = -1.5
X[:, 5] = QID  # constant in each query

# Metrics by name, with what counts tied documents as in random order.
FAIR = [
    ("ndcg@10", {"ties": "average"}),
    ("ndcg", {"ties": "average"}),
    ("dcg@3", {"ties": "average"}),
    ("average_precision", {"ties": "average"}),
    ("reciprocal_rank", {"ties": "average"}),
    ("precision@5", {"ties": "average"}),
    ("recall@5", {"ties": "average"}),
    ("pairwise_accuracy", {"ties": "half"}),
    ("kendall_tau", {}),
    ("auc", {}),
    ("err", {"ties": "average"}),
    ("err@5", {"ties": "average"}),
    ("letor_mean_ndcg", {"ties": "average"}),
]


@pytest.mark.parametrize(("name", "options"), FAIR, ids=[name for name, _ in FAIR])
def test_values_are_the_metric_of_each_column_and_of_its_negative(name, options):
    ranking = rank_features(X, Y, qid=QID, metric=name)
    metric = partial(get_metric(name, **options), Y, qid=QID)
    assert ranking.metric == name
    assert ranking.descending.tolist() == [metric(x) for x in X.T]
    assert ranking.ascending.tolist() == [metric(-x) for x in X.T]
    assert ranking.chance == metric(np.zeros(len(Y)))


def test_the_better_direction_counts():
    ranking = rank_features(X, Y, qid=QID)
    both = np.column_stack([ranking.descending, ranking.ascending])
    np.testing.assert_array_equal(ranking.best, both.max(axis=1))
    np.testing.assert_array_equal(ranking.direction == 1, both[:, 0] >= both[:, 1])
    assert set(ranking.direction.tolist()) == {1, -1}
    assert np.all(np.diff(ranking.best[ranking.order]) <= 0)
    negated = rank_features(-X, Y, qid=QID)
    np.testing.assert_array_equal(negated.best, ranking.best)
    np.testing.assert_array_equal(negated.ascending, ranking.descending)


def test_equal_features_stay_in_order_and_nan_comes_last():
    values = np.array([0.5, np.nan, 0.7, 0.5, 0.7])
    assert best_first(values).tolist() == [2, 4, 0, 3, 1]
    by_rounding = values + np.array([0, 0, 0, 1e-15, 1e-15])
    assert best_first(by_rounding).tolist() == [2, 4, 0, 3, 1]
    assert best_first(np.zeros(3)).tolist() == [0, 1, 2]


def test_a_metric_without_a_value():
    ranking = rank_features(X, np.ones(len(Y)), qid=QID, metric="kendall_tau")
    assert np.isnan(ranking.best).all()
    assert np.isnan(ranking.chance)
    assert ranking.order.tolist() == list(range(7))


# Ties


@each("column", [4, 5])
@pytest.mark.parametrize("name", [name for name, _ in FAIR])
def test_features_without_information_are_worth_a_random_order(name, column):
    ranking = rank_features(X, Y, qid=QID, metric=name)
    assert ranking.descending[column] == ranking.ascending[column] == ranking.chance
    assert ranking.direction[column] == 1


def test_chance_is_the_mean_over_all_orders():
    y = [2, 0, 1, 0, 0]
    best_first = partial(metrics.ndcg, scores=[5, 4, 3, 2, 1], k=3, n_jobs=1)
    every = [best_first(labels) for labels in permutations(y)]
    ranking = rank_features(np.ones((5, 1)), y, metric="ndcg@3")
    assert ranking.chance == pytest.approx(np.mean(every), rel=1e-12)


@pytest.mark.parametrize("name", [name for name, _ in FAIR])
def test_the_order_of_the_rows_does_not_matter(name):
    expected = rank_features(X, Y, qid=QID, metric=name).best
    for rows in (np.argsort(-Y, kind="stable"), np.random.default_rng(1).permutation(len(Y))):
        ranking = rank_features(X[rows], Y[rows], qid=QID[rows], metric=name)
        np.testing.assert_allclose(ranking.best, expected, rtol=1e-12)


def test_rows_sorted_by_label_do_not_flatter_ties():
    features, labels, qid = make_ranking(300, 12, 3, random_state=2)
    features[:, 1] = 0
    rows = np.argsort(-labels, kind="stable")
    for name in ("ndcg@10", "err", "letor_mean_ndcg"):
        ranking = rank_features(features[rows], labels[rows], qid=qid[rows], metric=name)
        flattered = get_metric(name)(labels[rows], features[rows, 1], qid=qid[rows])
        assert flattered > ranking.best[1] + 0.2
        assert ranking.best[1] == ranking.chance


def test_ties_of_a_metric_can_be_set():
    in_order = get_metric("ndcg@10", ties="order")
    ranking = rank_features(X, Y, qid=QID, metric=in_order)
    assert ranking.descending.tolist() == [in_order(Y, x, qid=QID) for x in X.T]
    assert np.any(ranking.best != rank_features(X, Y, qid=QID).best)


def test_a_metric_as_a_function_is_the_metric_by_name():
    by_name = rank_features(X, Y, qid=QID, metric="ndcg")
    np.testing.assert_array_equal(
        rank_features(X, Y, qid=QID, metric=metrics.ndcg).best, by_name.best
    )
    linear = rank_features(X, Y, qid=QID, metric=get_metric("ndcg@5", gain="linear"))
    assert linear.metric == "ndcg@5(gain='linear')"
    assert linear.descending[0] == metrics.ndcg(
        Y, X[:, 0], qid=QID, k=5, gain="linear", ties="average"
    )


def test_a_function_of_the_user_sees_the_rows_in_order():
    rows = np.random.default_rng(4).permutation(len(Y))
    seen = []

    def own(y, scores, qid, per_query=False):
        seen.append((y.tolist(), scores.tolist(), threading.get_ident()))
        return scores[0]

    ranking = rank_features(X[rows], Y[rows], qid=QID[rows], metric=own)
    assert ranking.metric == "own"
    assert ranking.chance == 0
    assert ranking.best.tolist() == np.abs(X[rows[0]]).tolist()
    assert all(y == Y[rows].tolist() for y, _, _ in seen)
    assert [scores for _, scores, _ in seen[1::2]] == X[rows].T.tolist()
    assert {thread for _, _, thread in seen} == {threading.get_ident()}


# Data of any kind


def same(ranking, expected):
    for name in ("descending", "ascending", "best", "direction", "order"):
        np.testing.assert_array_equal(getattr(ranking, name), getattr(expected, name))


@pytest.mark.parametrize(
    "kind",
    [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, np.asfortranarray, np.ndarray.tolist],
)
def test_any_kind_of_matrix_gives_the_same(kind):
    features = np.where(np.abs(X) < 0.5, 0, X)
    same(rank_features(kind(features), Y, qid=QID), rank_features(features, Y, qid=QID))


def test_float32():
    single = X.astype(np.float32)
    same(rank_features(single, Y, qid=QID), rank_features(single.astype(np.float64), Y, qid=QID))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_threads_do_not_change_a_bit(n_jobs):
    features, labels, qid = make_ranking(20, 30, 60, density=0.1, random_state=5)
    expected = rank_features(features, labels, qid=qid)
    same(rank_features(features, labels, qid=qid, n_jobs=n_jobs), expected)
    dense = features.toarray()
    dense.flags.writeable = False
    same(rank_features(dense, labels, qid=qid, n_jobs=n_jobs), expected)


@pytest.mark.parametrize("n_blocks", [1, 2, 16, 1000])
def test_blocks_of_sparse_columns(monkeypatch, n_blocks):
    """One column has most entries, many have none, and some zeros are written down."""
    monkeypatch.setattr(feature_ranking, "N_BLOCKS", n_blocks)
    dense = np.random.default_rng(6).normal(size=(len(Y), 40))
    dense[1:, 3:30] = 0
    dense[:, 31:] = 0
    sparse = sp.csr_array(dense)
    sparse.data[::5] = 0
    same(rank_features(sparse, Y, qid=QID), rank_features(sparse.toarray(), Y, qid=QID))


def test_a_sparse_matrix_without_entries():
    ranking = rank_features(sp.csr_array((len(Y), 3)), Y, qid=QID)
    np.testing.assert_array_equal(ranking.best, ranking.chance)


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_the_matrix_is_not_copied(density):
    features, labels, qid = make_ranking(
        50, 20, 800, density=density, random_state=7, dtype=np.float32
    )
    peaks = []
    for _ in range(3):  # threads of earlier tests may allocate, too
        tracemalloc.start()
        rank_features(features, labels, qid=qid, n_jobs=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert min(peaks) < features.data.nbytes


def test_queries_by_group():
    sizes = np.bincount(QID)
    same(rank_features(X, Y, group=sizes), rank_features(X, Y, qid=QID))
    assert np.any(rank_features(X, Y).best != rank_features(X, Y, qid=QID).best)


def test_names():
    names = [f"feature {j}" for j in range(7)]
    assert rank_features(X, Y, qid=QID).feature_names[:2] == ["f1", "f2"]
    assert rank_features(X, Y, qid=QID, feature_names=names).feature_names == names
    for frame in (pd.DataFrame, pl.DataFrame):
        table = frame(dict(zip(names, X.T, strict=True)))
        assert rank_features(table, Y, qid=QID).feature_names == names
    assert rank_features(pd.DataFrame(X), Y, qid=QID).feature_names[0] == "f1"


# What is refused


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_values_that_are_not_finite(kind, value):
    features = X.copy()
    features[3, 2] = value
    with pytest.raises(ValueError, match=r"X\[3, 2\] is "):
        rank_features(kind(features), Y, qid=QID)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"metric": "ngcd"}, "metric .ngcd"),
        ({"metric": 3}, "metric=3 "),
        ({"feature_names": ["a"]}, "feature_names has 1 entries and needs 7"),
        ({"qid": [1, 2]}, "qid has 2 entries"),
        ({"y": Y - 5}, r"y\[0\] is -"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_arguments(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        rank_features(**{"X": X, "y": Y, "qid": QID, **arguments})


@pytest.mark.parametrize("metric", ["ndcg", "err"])
def test_a_refused_label_is_named_by_its_row(metric):
    labels = Y.copy()
    labels[7] = -1
    qid = np.arange(len(Y)) % 5  # no query is contiguous
    with pytest.raises(ValueError, match=r"y\[7\] is -1"):
        rank_features(X, labels, qid=qid, metric=metric)


# Real data


def test_mq2008(real_data):
    features, labels, qid = real_data(*(f"MQ2008/S{i}.txt.gz" for i in (1, 2, 3)))
    ranking = rank_features(features, labels, qid=qid)
    metric = partial(metrics.ndcg, labels, qid=qid, k=10, ties="average")
    assert ranking.best.tolist() == [max(metric(x), metric(-x)) for x in features.T]
    constant = np.ptp(features, axis=0) == 0
    assert constant.any()
    np.testing.assert_array_equal(ranking.best[constant], ranking.chance)
    # As in Fig. 1 of Lai et al. (2013): a few features stand out.
    strong = ranking.best > 1.3 * ranking.chance
    assert 4 <= strong.sum() <= 10


def test_columns_without_entries_are_worth_chance():
    """And cost nothing: there may be far more of them than entries."""
    X, y, qid = make_ranking(20, 8, 3, random_state=0)
    columns = np.tile([5, 700_000, 999_999], len(X))
    wide = sp.csr_array((X.ravel(), columns, 3 * np.arange(len(X) + 1)), shape=(len(X), 10**6))
    expected = rank_features(sp.csr_array(X), y, qid=qid)
    found = rank_features(wide, y, qid=qid)
    for name in ("descending", "ascending", "best", "direction"):
        np.testing.assert_array_equal(
            getattr(found, name)[[5, 700_000, 999_999]], getattr(expected, name)
        )
    others = np.delete(np.arange(10**6), [5, 700_000, 999_999])
    assert found.chance == expected.chance
    assert (found.best[others] == found.chance).all()
    assert set(found.order[:2]) <= {5, 700_000, 999_999}
    empty = rank_features(sp.csr_array((len(X), 4)), y, qid=qid)
    assert (empty.best == empty.chance).all()


def test_more_features_than_memory_are_refused():
    """Their names alone would take hundreds of gigabytes."""
    X = sp.csr_array(([1.0], [2**31 - 2], [0, 1, 1]), shape=(2, 2**31 - 1))
    with pytest.raises(ValueError, match="X has 2147483647 features"):
        rank_features(X, [0, 1])
