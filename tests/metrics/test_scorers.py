"""Metrics as scorers of scikit-learn's model selection."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginrank import RankSVM, make_ranking, metrics
from marginrank.metrics import make_ranking_scorer


@pytest.fixture(scope="module")
def data():
    """Return shuffled rows, so that scorers need the ids of the queries."""
    X, y, qid = make_ranking(n_queries=30, docs_per_query=10, n_features=4, random_state=0)
    shuffled = np.random.default_rng(0).permutation(len(y))
    return X[shuffled], y[shuffled], qid[shuffled]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(data, metric, C=1.0, **options):
    X, y, qid = data
    values = []
    for train, test in GroupKFold(3).split(X, y, groups=qid):
        scores = RankSVM(C=C).fit(X[train], y[train], qid=qid[train]).predict(X[test])
        values.append(metric(y[test], scores, qid=qid[test], **options))
    return values


def test_called_directly(data):
    X, y, qid = data
    model = RankSVM(C=0.01).fit(X, y, qid=qid)
    scorer = make_ranking_scorer("ndcg@5", gain="linear")
    expected = metrics.ndcg(y, model.predict(X), qid=qid, k=5, gain="linear")
    assert scorer(model, X, y, qid=qid) == expected
    with pytest.warns(UserWarning, match="The scorer got no qid"):
        one_query = scorer(model, X, y)
    assert one_query == metrics.ndcg(y, model.predict(X), k=5, gain="linear")


@pytest.mark.usefixtures("routing")
def test_cross_validate_scores_by_query(data):
    X, y, qid = data
    call = {"cv": GroupKFold(3), "params": {"qid": qid, "groups": qid}}
    scoring = {"ndcg": make_ranking_scorer("ndcg@5"), "auc": make_ranking_scorer(metrics.auc)}
    result = cross_validate(RankSVM(), X, y, scoring=scoring, return_train_score=True, **call)
    assert result["test_ndcg"].tolist() == by_hand(data, metrics.ndcg, k=5)
    assert result["test_auc"].tolist() == by_hand(data, metrics.auc)
    alone = cross_val_score(RankSVM(), X, y, scoring=scoring["ndcg"], **call)
    assert alone.tolist() == by_hand(data, metrics.ndcg, k=5)


@pytest.mark.usefixtures("routing")
def test_grid_search(data):
    X, y, qid = data
    scorer = make_ranking_scorer("letor_mean_ndcg", no_relevant="skip")
    grid = {"C": [1e-4, 1e-2, 1.0]}
    search = GridSearchCV(RankSVM(), grid, scoring=scorer, cv=GroupKFold(3), error_score="raise")
    search.fit(X, y, qid=qid, groups=qid)
    means = [
        np.mean(by_hand(data, metrics.letor_mean_ndcg, C, no_relevant="skip")) for C in grid["C"]
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], means, rtol=1e-14)
    scores = search.predict(X)
    assert search.score(X, y, qid=qid) == metrics.letor_mean_ndcg(
        y, scores, qid=qid, no_relevant="skip"
    )


@pytest.mark.usefixtures("routing")
def test_grid_search_of_a_pipeline_in_other_processes(data):
    X, y, qid = data
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RankSVM(n_jobs=1)),
        {"ranksvm__C": [1e-3, 1e-1]},
        scoring={"mrr": make_ranking_scorer("reciprocal_rank", threshold=2)},
        refit="mrr",
        cv=GroupKFold(3),
        n_jobs=2,
        error_score="raise",
    )
    search.fit(X, y, qid=qid, groups=qid)
    assert 0 < search.best_score_ <= 1


def test_copies_and_name(data):
    X, y, qid = data
    model = RankSVM().fit(X, y, qid=qid)
    scorer = make_ranking_scorer("ndcg@5", gain="linear")
    assert repr(scorer) == "make_ranking_scorer(ndcg@5(gain='linear', ties='average'))"
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
        assert copy(model, X, y, qid=qid) == scorer(model, X, y, qid=qid)


def test_bad_options_are_refused_before_any_fit():
    with pytest.raises(ValueError, match="ndcg has no option 'top'"):
        make_ranking_scorer("ndcg", top=5)
    with pytest.raises(ValueError, match="is not known"):
        make_ranking_scorer("accuracy")


def test_ties_count_as_in_random_order(data):
    X, y, qid = data
    rows = np.argsort(-y, kind="stable")
    X, y, qid = X[rows], y[rows], qid[rows]
    constant = RankSVM(C=1e-3).fit(X, y, qid=qid)
    constant.coef_ = np.zeros(X.shape[1])
    scorer = make_ranking_scorer("ndcg@5")
    assert scorer(constant, X, y, qid=qid) == metrics.ndcg(
        y, np.zeros(len(y)), qid=qid, k=5, ties="average"
    )
    assert make_ranking_scorer("ndcg@5", ties="order")(constant, X, y, qid=qid) == 1
