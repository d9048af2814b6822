"""SelectKBestRanking as scikit-learn users meet it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import (
    RankingData,
    RankSVM,
    SelectKBestRanking,
    make_ranking,
    metrics,
    rank_features,
)
from marginrank.metrics import make_ranking_scorer

X, Y, QID = make_ranking(40, (5, 25), 12, random_state=0)


@pytest.mark.filterwarnings("ignore:k=10 is more than")
@parametrize_with_checks([SelectKBestRanking(k=1)])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_the_best_features_are_kept():
    ranking = rank_features(X, Y, qid=QID, metric="ndcg@5")
    selector = SelectKBestRanking(k=4, metric="ndcg@5").fit(X, Y, qid=QID)
    np.testing.assert_array_equal(selector.scores_, ranking.best)
    np.testing.assert_array_equal(selector.directions_, ranking.direction)
    kept = np.sort(ranking.order[:4])
    np.testing.assert_array_equal(selector.get_support(indices=True), kept)
    np.testing.assert_array_equal(selector.transform(X), X[:, kept])
    assert -1 in selector.directions_[kept]


def test_queries_count():
    """A feature that tells queries apart looks good only if they are taken as one."""
    qid = np.repeat(np.arange(20), 10)
    rng = np.random.default_rng(1)
    useful, query = rng.normal(size=200), rng.normal(size=20)[qid]
    labels = np.digitize(useful + 10 * query, [-10, 0, 10])
    features = np.column_stack([query, useful])
    selector = SelectKBestRanking(k=1, metric="auc")
    assert selector.fit(features, labels, qid=qid).get_support().tolist() == [False, True]
    assert selector.fit(features, labels).get_support().tolist() == [True, False]
    by_group = selector.fit(features, labels, group=[10] * 20)
    assert by_group.get_support().tolist() == [False, True]


def test_equal_features_are_kept_in_the_order_of_the_columns():
    twice = np.column_stack([np.ones(len(Y)), X[:, 3], X[:, 3], np.ones(len(Y))])
    selector = SelectKBestRanking(k=1).fit(twice, Y, qid=QID)
    assert selector.get_support(indices=True).tolist() == [1]
    assert selector.set_params(k=3).get_support(indices=True).tolist() == [0, 1, 2]


def test_all_features():
    np.testing.assert_array_equal(SelectKBestRanking(k="all").fit_transform(X, Y, qid=QID), X)
    with pytest.warns(UserWarning, match=r"k=20.* 12 features"):
        selector = SelectKBestRanking(k=20).fit(X, Y, qid=QID)
    assert selector.get_support().all()


@pytest.mark.parametrize("features", [X, sp.csr_array(X)], ids=["dense", "csr"])
def test_a_ranking_data_is_transformed_to_its_chosen_features(features):
    names = [f"f{j}" for j in range(12)]
    data = RankingData(features, Y, QID, feature_names=names)
    selector = SelectKBestRanking(k=3).fit(data)
    kept = selector.transform(data)
    expected = features[:, selector.get_support(indices=True)]
    assert type(kept) is type(features)
    assert abs(kept - expected).max() == 0
    assert abs(selector.fit_transform(data) - expected).max() == 0
    assert data.with_features(kept).n_features == 3
    with pytest.raises(ValueError, match=r"feature 1.*'f11'.*'f0'"):
        selector.transform(RankingData(features, Y, QID, feature_names=names[::-1]))
    with pytest.raises(NotFittedError):
        SelectKBestRanking().transform(data)


def test_sparse_features():
    features = sp.csr_array(np.where(X > 0.3, X, 0))
    selector = SelectKBestRanking(k=3).fit(features, Y, qid=QID)
    dense = SelectKBestRanking(k=3).fit(features.toarray(), Y, qid=QID)
    np.testing.assert_array_equal(selector.scores_, dense.scores_)
    kept = selector.transform(features)
    assert sp.issparse(kept)
    np.testing.assert_array_equal(kept.toarray(), dense.transform(features.toarray()))


def test_names_and_the_way_back():
    names = [f"feature {j}" for j in range(12)]
    table = pd.DataFrame(X, columns=names)
    selector = SelectKBestRanking(k=3).set_output(transform="pandas").fit(table, Y, qid=QID)
    kept = selector.get_feature_names_out().tolist()
    assert kept == [names[j] for j in selector.get_support(indices=True)]
    selected = selector.transform(table)
    pd.testing.assert_frame_equal(selected, table[kept])
    restored = selector.inverse_transform(selected.to_numpy())
    np.testing.assert_array_equal(restored, np.where(selector.get_support(), X, 0))
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(table[names[::-1]])


def test_a_pickle_and_a_clone():
    selector = SelectKBestRanking(k=3, metric=metrics.get_metric("ndcg@5", gain="linear"))
    assert clone(selector).fit(X, Y, qid=QID).scores_.tolist() == (
        rank_features(X, Y, qid=QID, metric=selector.metric).best.tolist()
    )
    selector.fit(X, Y, qid=QID)
    copy = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(copy.transform(X), selector.transform(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", 0), ("k", 2.5), ("k", None), ("k", True), ("k", "some"),
        ("metric", "ngcd"), ("metric", None), ("n_jobs", 0),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        SelectKBestRanking(**{"k": 3, name: value}).fit(X, Y, qid=QID)


def test_what_is_refused():
    with pytest.raises(TypeError):
        SelectKBestRanking(3)
    with pytest.raises(NotFittedError):
        SelectKBestRanking().get_support()
    with pytest.raises(ValueError, match=r"X\[0, 0\] is NaN"):
        SelectKBestRanking().fit(np.full_like(X, np.nan), Y, qid=QID)


# Pipelines


def by_hand(k, C, train=slice(None)):
    selector = SelectKBestRanking(k=k).fit(X[train], Y[train], qid=QID[train])
    return selector, RankSVM(C=C).fit(selector.transform(X[train]), Y[train], qid=QID[train])


@pytest.mark.usefixtures("routing")
def test_a_pipeline_passes_the_queries_on():
    model = make_pipeline(SelectKBestRanking(k=4), RankSVM()).fit(X, Y, qid=QID)
    selector, expected = by_hand(4, 1.0)
    np.testing.assert_array_equal(model[0].scores_, selector.scores_)
    np.testing.assert_array_equal(model[-1].coef_, expected.coef_)
    assert model.score(X, Y, qid=QID) == expected.score(selector.transform(X), Y, qid=QID)


def test_queries_as_parameters_of_the_steps():
    model = make_pipeline(SelectKBestRanking(k=4), RankSVM())
    model.fit(X, Y, selectkbestranking__qid=QID, ranksvm__qid=QID)
    selector, expected = by_hand(4, 1.0)
    np.testing.assert_array_equal(model[0].scores_, selector.scores_)
    np.testing.assert_array_equal(model[-1].coef_, expected.coef_)


@pytest.mark.usefixtures("routing")
def test_grid_search_selects_in_each_fold():
    pipeline = make_pipeline(SelectKBestRanking(), RankSVM())
    grid = {"selectkbestranking__k": [1, 6], "ranksvm__C": [1e-3]}
    scorer = make_ranking_scorer("ndcg@5")
    search = GridSearchCV(pipeline, grid, cv=GroupKFold(3), scoring=scorer)
    search.fit(X, Y, qid=QID, groups=QID)
    for parameters, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        expected = []
        for train, test in GroupKFold(3).split(X, Y, QID):
            selector, model = by_hand(*(parameters[name] for name in grid), train)
            predicted = model.predict(selector.transform(X[test]))
            expected.append(metrics.ndcg(Y[test], predicted, qid=QID[test], k=5))
        assert score == pytest.approx(np.mean(expected), rel=1e-12)
    assert search.best_params_["selectkbestranking__k"] == 6


# Real data


@pytest.mark.parametrize(("k", "published"), [(10, 0.4528), (20, 0.4573)])
def test_fs_rank_of_the_paper_on_ohsumed(real_data, k, published):
    """NDCG@10 of Table 7 of Lai et al. (2013), which does not say how C was chosen."""
    found = []
    for fold in range(5):
        *train, _, test = (f"OHSUMED/S{(fold + i) % 5 + 1}.txt.gz" for i in range(5))
        features, labels, qid = real_data(*train)
        selector = SelectKBestRanking(k=k)
        kept = selector.fit_transform(features, labels, qid=qid)
        model = RankSVM(C=1e-4, tol=1e-4).fit(kept, labels, qid=qid)
        features, labels, qid = real_data(test)
        scores = model.predict(selector.transform(features))
        found.append(metrics.ndcg(labels, scores, qid=qid, k=10, discount="letor"))
    assert np.mean(found) == pytest.approx(published, abs=0.005)


def test_a_metric_without_a_value_is_refused():
    with pytest.raises(ValueError, match="kendall_tau"):
        SelectKBestRanking(k=2, metric="kendall_tau").fit(np.eye(4), np.ones(4))
