"""A RankingData in the place of X: the same model, and nothing checked or grouped again."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers import tables
from helpers.plain_defaults import plain_kernel

import marginrank
from marginrank import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    KernelRankSVM,
    RankingData,
    RankSVM,
    RankSVMCV,
    SelectKBestRanking,
    SGDRankSVM,
    SparseRankSVM,
    SparseRankSVMCV,
    learning_curve_ranking,
    linear_path,
    load_letor,
    make_ranking,
    rank_features,
    sparse_path,
)
from marginrank.data import ranking_data
from marginrank.estimators import sgd_rank_svm

X, Y, QID = make_ranking(20, 10, 4, shuffle=True, random_state=0)
SAMPLE_WEIGHT = np.random.default_rng(1).uniform(0.5, 2.0, len(Y))
QUERY_WEIGHT = 1.0 + np.arange(20.0)[QID]
NAMES = list("abcd")
N_FOLDS = 2

RANKERS = [
    RankSVM(),
    RankSVMCV(n_points=3, cv=N_FOLDS, normalization="none", scale=None),
    SparseRankSVM(),
    SparseRankSVMCV(n_points=3, cv=N_FOLDS),
    SGDRankSVM(tol=0.1),
    plain_kernel(),
    AdditiveRankSVM(max_bins=8),
    AdditiveRankSVMCV(Cs=[0.1, 1.0], smoothness=1.0, max_bins=8, cv=N_FOLDS),
]
ESTIMATORS = [*RANKERS, SelectKBestRanking(k=2, metric="auc")]


def each(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda one: type(one).__name__)


def data(**more):
    return RankingData(X, Y, QID, **more)


def weights_of(estimator):
    given = {"sample_weight": SAMPLE_WEIGHT, "query_weight": QUERY_WEIGHT}
    return given if "sample_weight" in inspect.signature(estimator.fit).parameters else {}


def learned(estimator):
    for name in ("coef_", "dual_coef_", "scores_"):
        if hasattr(estimator, name):
            return getattr(estimator, name).copy()
    return np.concatenate([[curve.missing, *curve.values] for curve in estimator.curves_])


def test_every_estimator_is_here():
    names = {name for name in marginrank.__all__ if hasattr(getattr(marginrank, name), "fit")}
    names -= {"QueryScaler"}  # it needs no labels: see test_query_scaler.py
    names -= {"FusionRanker"}  # it needs runs: see test_fusion.py
    assert names == {type(one).__name__ for one in ESTIMATORS}


@each(ESTIMATORS)
def test_data_and_arrays_give_bitwise_the_same(estimator):
    weights = weights_of(estimator)
    expected = learned(estimator.fit(X, Y, qid=QID, **weights))
    np.testing.assert_array_equal(learned(estimator.fit(data(**weights))), expected)
    assert estimator.n_features_in_ == 4
    assert not hasattr(estimator, "feature_names_in_")


@each(ESTIMATORS)
def test_weights_stay_beside_their_rows(estimator):
    """Rows that come query by query, with the weights they had, make the same model."""
    weights = weights_of(estimator)
    shuffled = learned(estimator.fit(data(**weights)))
    order = data().queries.rows
    contiguous = {name: weight[order] for name, weight in weights.items()}
    estimator.fit(RankingData(X[order], Y[order], QID[order], **contiguous))
    if isinstance(estimator, KernelRankSVM):  # a weight a row
        shuffled = shuffled[order]
    np.testing.assert_allclose(learned(estimator), shuffled, rtol=1e-4, atol=1e-6)


@each(ESTIMATORS)
def test_names_of_the_data_are_those_of_the_estimator(estimator):
    estimator.fit(data(feature_names=NAMES))
    assert estimator.feature_names_in_.tolist() == NAMES
    assert estimator.feature_names_in_.dtype == object
    estimator.fit(data())
    assert not hasattr(estimator, "feature_names_in_")


def test_the_last_fit_of_a_cross_validation_keeps_the_names_of_a_frame():
    model = SparseRankSVMCV(n_points=3, cv=2).fit(pd.DataFrame(X, columns=NAMES), Y, qid=QID)
    assert model.best_estimator_.feature_names_in_.tolist() == NAMES


@each(ESTIMATORS)
def test_nothing_is_grouped_or_ranked_again(estimator, monkeypatch):
    given = data()
    calls = []
    for name in ("group_rows", "rank_labels"):
        function = getattr(ranking_data, name)

        def counted(*arguments, function=function, name=name):
            calls.append(name)
            return function(*arguments)

        monkeypatch.setattr(ranking_data, name, counted)
    estimator.fit(given)
    # A fold is another set of rows to learn from; it is scored as rows of a matrix.
    folds = N_FOLDS if isinstance(estimator, (SparseRankSVMCV, AdditiveRankSVMCV)) else 0
    assert calls == ["group_rows", "rank_labels"] * folds


ENTRIES = {
    "RankSVM": (RankSVM(), RankSVM, "_fit_function"),
    "SparseRankSVM": (SparseRankSVM(), SparseRankSVM, "_fit_function"),
    "SGDRankSVM": (SGDRankSVM(tol=0.1), sgd_rank_svm, "fit_online"),
}


@pytest.mark.parametrize(("estimator", "owner", "name"), ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_training_gets_the_data_itself(estimator, owner, name, layout, monkeypatch):
    given = RankingData(layout(X), Y, QID)
    matrix, queries = given.matrix, given.queries
    train = getattr(owner, name)
    seen = []

    def look(data, *arguments, **options):
        seen.extend(data() if callable(data) else [data])  # passes are made over chunks
        return train(data, *arguments, **options)

    def refuse(*_):
        raise AssertionError("the kernels got another view of X")

    monkeypatch.setattr(owner, name, look)
    monkeypatch.setattr(ranking_data, "as_matrix", refuse)
    estimator.fit(given)
    assert len(seen) == 1
    assert seen[0] is given
    assert given.matrix is matrix
    assert given.queries is queries


@each(RANKERS)
def test_predict_rank_and_score_take_data(estimator):
    given = data(sample_weight=SAMPLE_WEIGHT, feature_names=NAMES)
    estimator.fit(given)
    frame = pd.DataFrame(X, columns=NAMES)
    np.testing.assert_array_equal(estimator.predict(given), estimator.predict(frame))
    np.testing.assert_array_equal(estimator.rank(given), estimator.rank(frame, qid=QID))
    expected = estimator.score(frame, Y, qid=QID, sample_weight=SAMPLE_WEIGHT)
    assert estimator.score(given) == expected


def test_prediction_uses_the_matrix_of_the_data(monkeypatch):
    given = data()
    model = RankSVM().fit(given)

    def refuse(*_):
        raise AssertionError("X was wrapped again")

    monkeypatch.setattr("marginrank.estimators.input.as_matrix", refuse)
    assert model.predict(given).shape == (200,)


@each(RANKERS)
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (list("abdc"), r"feature 3 of the data is 'd', but 'c' in the fit"),
        (None, r"X has 3 features, but \w+ is expecting 4 features"),
        (list("abc"), r"the data has 3 features, but the fit had 4"),
    ],
    ids=["order", "number", "names"],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_data_of_other_features_are_refused(estimator, names, message):
    estimator.fit(data(feature_names=NAMES))
    n_features = 3 if names is None else len(names)
    other = RankingData(X[:, :n_features], Y, QID, feature_names=names)
    for method in (estimator.predict, estimator.rank, estimator.score):
        with pytest.raises(ValueError, match=message):
            method(other)


def test_partial_fit_takes_chunks():
    model, expected = SGDRankSVM(), SGDRankSVM()
    for queries in (QID < 10, QID >= 10):
        part = RankingData(X[queries], Y[queries], QID[queries], feature_names=NAMES)
        model.partial_fit(part)
        expected.partial_fit(part.X, part.y, qid=part.qid)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match=r"feature 1.*'d'.*'a'"):
        model.partial_fit(data(feature_names=NAMES[::-1]))


GIVEN = {
    "y": Y,
    "qid": QID,
    "group": [len(Y)],
    "sample_weight": SAMPLE_WEIGHT,
    "query_weight": QUERY_WEIGHT,
}


@each(ESTIMATORS)
@tables.each("name", GIVEN)
def test_what_the_data_brings_is_not_given_again(estimator, name):
    methods = [getattr(estimator, m, None) for m in ("fit", "partial_fit", "score", "rank")]
    estimator.fit(data())
    for method in filter(None, methods):
        if name in inspect.signature(method).parameters:
            with pytest.raises(ValueError, match=rf"^{name}\b.*RankingData"):
                method(data(), **{name: GIVEN[name]})


@each(ESTIMATORS)
def test_a_matrix_still_needs_labels(estimator):
    with pytest.raises(ValueError, match=r"y is None.*RankingData"):
        estimator.fit(X)


@pytest.mark.parametrize(
    "function", [learning_curve_ranking, rank_features, linear_path, sparse_path]
)
def test_functions_refuse_what_the_data_brings(function):
    with pytest.raises(ValueError, match=r"y\b.*RankingData"):
        function(data(), Y)
    with pytest.raises(ValueError, match="y is None"):
        function(X)


def test_features_are_ranked_by_the_names_of_the_data():
    ranking = rank_features(data(feature_names=NAMES), metric="auc")
    assert ranking.feature_names == NAMES
    np.testing.assert_array_equal(ranking.best, rank_features(X, Y, qid=QID, metric="auc").best)


def test_pairs_and_propensities_go_with_data():
    pairs = np.array(
        [(i, j) for i in range(50) for j in range(50) if QID[i] == QID[j] and Y[i] > Y[j]]
    )
    given = data(sample_weight=SAMPLE_WEIGHT)
    expected = RankSVM().fit(X, pairs=pairs, qid=QID, sample_weight=SAMPLE_WEIGHT)
    np.testing.assert_array_equal(RankSVM().fit(given, pairs=pairs).coef_, expected.coef_)
    propensity = np.linspace(0.1, 1.0, len(Y))
    expected = RankSVM().fit(X, Y, qid=QID, propensity=propensity)
    np.testing.assert_array_equal(
        RankSVM().fit(data(), propensity=propensity).coef_, expected.coef_
    )


def test_text_and_store_are_fitted_as_they_are(tmp_path):
    marginrank.dump_letor(data(), tmp_path / "t.txt")
    text = load_letor(tmp_path / "t.txt", dtype=np.float64)
    text.save(tmp_path / "s")
    store = RankingData.open(tmp_path / "s")
    expected = RankSVM().fit(X, Y, qid=QID).coef_
    for one in (text, store):
        np.testing.assert_array_equal(RankSVM().fit(one).coef_, expected)


def test_the_columns_of_a_frame_are_names_of_features():
    frame = pd.DataFrame({"bm25": [1.0, 2.0, 0.5], "age": [3.0, 1.0, 2.0]})
    data = RankingData(frame, [0, 1, 0])
    assert data.feature_names == ["bm25", "age"]
    model = RankSVM().fit(data)
    assert list(model.feature_names_in_) == ["bm25", "age"]
    with pytest.raises(ValueError, match=r"feature 1.*'age'.*'bm25'"):
        model.predict(RankingData(frame[["age", "bm25"]], [0, 1, 0]))
    assert RankingData(frame.to_numpy(), [0, 1, 0]).feature_names is None
    assert RankingData(pd.DataFrame([[1.0], [2.0]]), [0, 1]).feature_names is None
