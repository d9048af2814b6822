"""Warnings about queries that were forgotten, and calls that are silent."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginrank import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    KernelRankSVM,
    QueryScaler,
    RankingData,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    cross_validate_ranking,
    linear_path,
    make_ranking,
    rank_features,
)
from marginrank.data.queries import MANY_DOCUMENTS
from marginrank.metrics import make_ranking_scorer, ndcg, pairwise_accuracy

ONE_QUERY = "Neither qid nor group was given"
FITTED_WITH = "The model was fitted with queries"
NO_QID = "The scorer got no qid"

X, y, qid = make_ranking(n_queries=250, docs_per_query=10, n_features=5, random_state=0)
SCORER = make_ranking_scorer("ndcg@10")


def warned(call):
    """Return the warnings of a call, each with the file it points to."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(str(one.message), one.filename) for one in caught]


WITHOUT = {
    "RankSVM": lambda: RankSVM(C=0.01).fit(X, y),
    "RankSVMCV": lambda: RankSVMCV(Cs=[0.01, 0.1], cv=3, tol=1e-3).fit(X, y),
    "KernelRankSVM": lambda: KernelRankSVM(n_components=10, C=0.01).fit(X, y),
    "SGDRankSVM": lambda: SGDRankSVM(C=0.01).fit(X, y),
    "AdditiveRankSVM": lambda: AdditiveRankSVM(max_bins=4).fit(X, y),
    "AdditiveRankSVMCV": lambda: AdditiveRankSVMCV(
        Cs=[0.01, 0.1], cv=3, max_bins=4, smoothness=1.0
    ).fit(X, y),
    "RankingData": lambda: RankingData(X, y),
    "linear_path": lambda: linear_path(X, y, Cs=[0.01]),
    "rank_features": lambda: rank_features(X, y),
    "cross_validate_ranking": lambda: cross_validate_ranking(RankSVM(C=0.01), X, y, cv=3),
    "ndcg": lambda: ndcg(y, X[:, 0]),
    "pairwise_accuracy": lambda: pairwise_accuracy(y, X[:, 0]),
}


@pytest.mark.parametrize("call", WITHOUT.values(), ids=WITHOUT)
def test_many_documents_without_queries_warn_once_at_the_line_that_called(call):
    ((message, file),) = warned(call)
    assert message.startswith(ONE_QUERY)
    assert "group=[n_documents]" in message
    assert file == __file__


def test_few_documents_may_be_one_query():
    few = slice(0, MANY_DOCUMENTS)
    assert warned(lambda: RankSVM(C=0.01).fit(X[few], y[few]).score(X[few], y[few])) == []
    assert warned(lambda: ndcg(y[few], X[few, 0])) == []


def test_one_query_that_is_named_is_silent():
    for queries in ({"group": [len(y)]}, {"qid": np.zeros(len(y))}):
        assert warned(lambda given=queries: RankSVM(C=0.01).fit(X, y, **given)) == []
        assert warned(lambda given=queries: ndcg(y, X[:, 0], **given)) == []


def test_listed_pairs_need_no_queries():
    assert warned(lambda: RankSVM(C=0.01).fit(X, pairs=[[0, 1], [3, 2]])) == []
    assert warned(lambda: AdditiveRankSVM(max_bins=4).fit(X, pairs=[[0, 1], [3, 2]])) == []


@pytest.mark.parametrize(
    "model",
    [
        RankSVM(C=0.01),
        RankSVMCV(Cs=[0.01, 0.1], cv=3, tol=1e-3),
        KernelRankSVM(n_components=10, C=0.01),
        SGDRankSVM(C=0.01),
        AdditiveRankSVM(max_bins=4),
        AdditiveRankSVMCV(Cs=[0.1], cv=3, max_bins=4, smoothness=1.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_of_queries_warns_where_there_are_none(model):
    model.fit(X, y, qid=qid)
    for call in (lambda: model.score(X[:60], y[:60]), lambda: model.rank(X[:60])):
        ((message, file),) = warned(call)
        assert message.startswith(FITTED_WITH)
        assert file == __file__
    # The documents of one query, with or without its id.
    assert warned(lambda: model.rank(X[:10])) == []
    assert warned(lambda: model.rank(X[:60], group=[60])) == []
    assert warned(lambda: model.score(X, y, qid=qid)) == []


def test_a_model_of_one_query_is_silent_on_few_documents():
    model = RankSVM(C=0.01).fit(X[:100], y[:100])
    assert warned(lambda: model.score(X[:500], y[:500])) == []


def test_a_second_fit_without_queries_forgets_those_of_the_first():
    model = RankSVM(C=0.01).fit(X, y, qid=qid).fit(X[:100], y[:100])
    assert warned(lambda: model.score(X[:500], y[:500])) == []


def test_scaling_inside_queries_warns():
    assert ONE_QUERY in warned(lambda: QueryScaler().fit_transform(X))[0][0]


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_search_without_routing_names_the_line_to_add(pipeline):
    step = "ranksvm__" if pipeline else ""
    model = make_pipeline(StandardScaler(), RankSVM()) if pipeline else RankSVM()
    search = GridSearchCV(
        model, {f"{step}C": [0.01]}, scoring=SCORER, cv=GroupKFold(3), refit=False
    )
    caught = warned(lambda: search.fit(X, y, groups=qid, **{f"{step}qid": qid}))
    assert {file for _, file in caught} == {__file__}
    (message,) = {message for message, _ in caught}
    assert message.startswith(NO_QID)
    assert "sklearn.set_config(enable_metadata_routing=True)" in message


def test_a_search_that_scores_by_the_estimator_names_the_line_to_add():
    search = GridSearchCV(RankSVM(), {"C": [0.01]}, cv=GroupKFold(3), refit=False)
    (message,) = {text for text, _ in warned(lambda: search.fit(X, y, groups=qid, qid=qid))}
    assert message.startswith(FITTED_WITH)
    assert "sklearn.set_config(enable_metadata_routing=True)" in message


def test_a_scorer_of_many_documents_warns_whatever_the_estimator():
    model = StandardScaler()
    model.predict = lambda X: X[:, 0]
    ((message, _),) = warned(lambda: SCORER(model, X, y))
    assert message.startswith(NO_QID)
    assert warned(lambda: SCORER(model, X[:500], y[:500])) == []
