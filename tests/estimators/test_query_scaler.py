"""QueryScaler as scikit-learn users meet it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from marginrank import (
    QueryScaler,
    RankingData,
    RankSVM,
    cross_validate_ranking,
    make_ranking,
    metrics,
)
from marginrank.data.query_scaling import METHODS
from marginrank.estimators.base import check_seed
from marginrank.metrics import make_ranking_scorer
from marginrank.selection.folds import query_folds

ORDER = np.random.default_rng(0).permutation(300)
X, Y, QID = (part[ORDER] for part in make_ranking(30, 10, 5, random_state=0))
FACTOR = np.random.default_rng(1).uniform(1, 100, (30, 1))[QID]  # scales differ by query

# Without queries the documents of a call are one query, so that each depends on the others.
TOGETHER = {"check_methods_subset_invariance": "documents of a call are scaled together"}


@parametrize_with_checks([QueryScaler()], expected_failed_checks=lambda _: TOGETHER)
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def scaled(A, q):
    """Return features scaled by a loop."""
    result = np.empty(A.shape)
    for query in np.unique(q):
        result[q == query] = MinMaxScaler().fit_transform(A[q == query])
    return result


def test_queries_are_scaled_one_by_one_however_they_are_given():
    expected = scaled(X, QID)
    np.testing.assert_allclose(QueryScaler().fit_transform(X, qid=QID), expected, atol=1e-15)
    names = [f"query {q}" for q in QID]
    scaler = QueryScaler().fit(X, Y, qid=names)
    np.testing.assert_allclose(scaler.transform(X, qid=names), expected, atol=1e-15)
    rows = np.argsort(QID, kind="stable")
    by_sizes = QueryScaler().fit_transform(X[rows], group=[10] * 30)
    np.testing.assert_allclose(by_sizes, expected[rows], atol=1e-15)
    data = RankingData(X, Y, QID)
    np.testing.assert_allclose(QueryScaler().fit_transform(data), expected, atol=1e-15)
    one_query = QueryScaler().fit_transform(X)
    np.testing.assert_allclose(one_query, MinMaxScaler().fit_transform(X), atol=1e-15)


def test_factors_and_shifts_of_a_query_have_no_effect():
    for method in METHODS:
        scaler = QueryScaler(method=method)
        np.testing.assert_allclose(
            scaler.fit_transform(FACTOR * X + QID[:, None], qid=QID),
            scaler.fit_transform(X, qid=QID),
            atol=1e-12,
        )


def test_containers_and_types():
    single = QueryScaler().fit_transform(X.astype(np.float32), qid=QID)
    assert single.dtype == np.float32
    sparse = QueryScaler().fit_transform(sp.csr_array(np.abs(X)), qid=QID)
    assert sp.issparse(sparse)
    np.testing.assert_allclose(sparse.toarray(), scaled(np.abs(X), QID), atol=1e-15)
    frame = pd.DataFrame(X, columns=list("abcde"))
    scaler = QueryScaler().set_output(transform="pandas")
    result = scaler.fit_transform(frame, qid=QID)
    assert result.columns.tolist() == list("abcde")
    assert scaler.get_feature_names_out().tolist() == list("abcde")
    np.testing.assert_allclose(result, scaled(X, QID), atol=1e-15)
    with pytest.raises(ValueError, match="feature names should match"):
        scaler.transform(frame[list("edcba")], qid=QID)


@pytest.mark.usefixtures("routing")
def test_queries_reach_it_in_a_pipeline_with_metadata_routing():
    model = make_pipeline(QueryScaler(), RankSVM(C=0.1)).fit(FACTOR * X, Y, qid=QID)
    alone = RankSVM(C=0.1).fit(scaled(X, QID), Y, qid=QID)
    np.testing.assert_allclose(model[-1].coef_, alone.coef_, rtol=1e-6)
    scores = model.predict(FACTOR * X, qid=QID)
    np.testing.assert_allclose(scores, alone.predict(scaled(X, QID)), rtol=1e-6, atol=1e-9)
    assert model.score(FACTOR * X, Y, qid=QID) == alone.score(scaled(X, QID), Y, qid=QID)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="before 1.8, searches of scikit-learn do not ask the steps what a score takes",
)
@pytest.mark.usefixtures("routing")
def test_methods_can_be_chosen_by_a_search():
    """Scikit-learn's searches score by the pipeline's own score, which is given the queries."""
    pipeline = make_pipeline(QueryScaler(), RankSVM())
    grid = {"queryscaler__method": ["minmax", "rank"]}
    search = GridSearchCV(pipeline, grid, cv=GroupKFold(3), error_score="raise")
    search.fit(FACTOR * X, Y, qid=QID, groups=QID)
    for k, method in enumerate(grid["queryscaler__method"]):
        pipeline.set_params(queryscaler__method=method)
        folds = cross_validate(
            pipeline, FACTOR * X, Y, cv=GroupKFold(3), params={"qid": QID, "groups": QID}
        )
        assert search.cv_results_["mean_test_score"][k] == pytest.approx(folds["test_score"].mean())
        assert folds["test_score"].min() > 0.8


@pytest.mark.usefixtures("routing")
def test_scorers_give_queries_to_pipelines_that_predict_with_them():
    model = make_pipeline(QueryScaler(), RankSVM()).fit(X, Y, qid=QID)
    expected = metrics.ndcg(Y, model.predict(X, qid=QID), qid=QID, k=5, ties="average")
    scorer = make_ranking_scorer("ndcg@5")
    assert scorer(model, X, Y, qid=QID) == expected
    with sklearn.config_context(enable_metadata_routing=False):
        assert scorer(model, X, Y, qid=QID) == expected
    call = {"cv": GroupKFold(3), "params": {"qid": QID, "groups": QID}}
    folds = cross_validate(model, FACTOR * X, Y, scoring=scorer, error_score="raise", **call)
    assert folds["test_score"].min() > 0.8


@pytest.mark.parametrize("last", [RankSVM(), Ridge()], ids=["RankSVM", "Ridge"])
@pytest.mark.parametrize("routed", [False, True])
def test_cross_validate_ranking_gives_it_the_queries(last, routed):
    with sklearn.config_context(enable_metadata_routing=routed):
        pipeline = make_pipeline(QueryScaler(), last)
        result = cross_validate_ranking(pipeline, FACTOR * X, Y, qid=QID, cv=3)
    Z = scaled(X, QID)
    for fold, score in zip(
        query_folds(RankingData(X, Y, QID), 3, seed=check_seed(0)),
        result["test_score"],
        strict=True,
    ):
        train, test = fold.train, fold.test
        given = {"qid": QID[train]} if isinstance(last, RankSVM) else {}
        scores = last.fit(Z[train], Y[train], **given).predict(Z[test])
        assert score == pytest.approx(metrics.ndcg(Y[test], scores, qid=QID[test], k=10), rel=1e-3)


def test_documents_without_queries_are_refused_after_a_fit_with_queries():
    pipeline = make_pipeline(QueryScaler(), RankSVM())
    pipeline.fit(X, Y, queryscaler__qid=QID, ranksvm__qid=QID)
    with pytest.raises(ValueError, match=r"qid is None.*QueryScaler"):
        pipeline.predict(X)
    scaler = QueryScaler().fit(RankingData(X, Y, QID))
    assert scaler.by_query_
    with pytest.raises(ValueError, match=r"qid is None.*QueryScaler"):
        scaler.transform(X)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match=r"method='max'.*'minmax'"):
        QueryScaler(method="max").fit(X)
    with pytest.raises(NotFittedError):
        QueryScaler().transform(X)
    with pytest.raises(ValueError, match=r"qid has 3 .* 300"):
        QueryScaler().fit(X, qid=[1, 2, 3])


@pytest.mark.parametrize(("name", "value"), [("y", Y), ("qid", QID), ("group", [300])])
def test_what_the_data_brings_is_not_given_again(name, value):
    data = RankingData(X, Y, QID)
    with pytest.raises(ValueError, match=f"{name}.*RankingData"):
        QueryScaler().fit(data, **{name: value})
    if name != "y":
        with pytest.raises(ValueError, match=f"{name}.*RankingData"):
            QueryScaler().fit(data).transform(data, **{name: value})


def test_names_of_the_data_are_those_of_the_scaler():
    named = RankingData(X, Y, QID, feature_names=list("abcde"))
    scaler = QueryScaler().fit(named)
    assert scaler.feature_names_in_.tolist() == list("abcde")
    other = RankingData(X, Y, QID, feature_names=list("edcba"))
    with pytest.raises(ValueError, match=r"feature 1.*'e'.*'a'"):
        scaler.transform(other)
    scaler.fit(X[:, :2], qid=QID)
    assert not hasattr(scaler, "feature_names_in_")
    assert scaler.n_features_in_ == 2


def test_data_are_not_grouped_again(monkeypatch):
    data = RankingData(X, Y, QID)
    expected = QueryScaler().fit_transform(X, qid=QID)

    def refuse(*_):
        raise AssertionError("the data was grouped again")

    monkeypatch.setattr("marginrank.estimators.query_scaler.group_rows", refuse)
    np.testing.assert_array_equal(QueryScaler().fit_transform(data), expected)
