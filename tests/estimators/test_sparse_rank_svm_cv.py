"""SparseRankSVMCV: what it chooses, by a loop over folds written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import (
    RankingData,
    SparseRankSVM,
    SparseRankSVMCV,
    load_model,
    make_ranking,
    metrics,
    sparse_path,
)
from marginrank.estimators.base import check_seed
from marginrank.selection import folds as folds_module
from marginrank.selection.folds import query_folds
from marginrank.selection.sparse_paths import SparseLearner

X, Y, QID = make_ranking(40, (5, 25), 12, correlation=0.3, random_state=0)


# With one value to choose from, weights are repeated rows. With more, repeated rows make other
# folds, which may choose another value: whether that happens to a check is chance.
@parametrize_with_checks([SparseRankSVMCV(Cs=[5.0], cv=3, scale=None)])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


def folds_of_the_fit(n_folds):
    return query_folds(RankingData(X, Y, QID), n_folds, seed=check_seed(0))


def scores_of(model):
    """Return the score of each value on each fold."""
    return model.search_.scores


def values_of(model):
    """Return the values of the grid."""
    return model.cv_results_[f"param_{model.search_.parameter}"].data


def best_value(model):
    (value,) = model.best_params_.values()
    return value


@pytest.fixture(scope="module")
def model():
    return SparseRankSVMCV(n_points=6, cv=4).fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    "options",
    [
        {"Cs": [30.0, 2.0, 8.0], "l1_ratio": 0.5, "scoring": "average_precision"},
        {"radii": [0.05, 0.4], "positive": True, "loss": "huber"},
        {"Cs": [20.0], "pair_cost": "gain", "normalization": "query"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_scores_are_those_of_models_fitted_without_the_fold(options, monkeypatch):
    monkeypatch.setattr(SparseLearner, "search_tol", 1e-9)
    model = SparseRankSVMCV(cv=3, tol=1e-9, **options).fit(X, Y, qid=QID)
    grid = options.get("Cs", options.get("radii"))
    np.testing.assert_array_equal(values_of(model), sorted(grid))
    assert scores_of(model).shape == (len(grid), 3)
    own = {k: v for k, v in options.items() if k not in ("Cs", "radii", "scoring")}
    metric = metrics.get_metric(model.scoring)
    for f, fold in enumerate(folds_of_the_fit(3)):
        train, test = fold.train, fold.test
        assert not set(QID[train]) & set(QID[test])
        for k, value in enumerate(values_of(model)):
            alone = SparseRankSVM(**{model.search_.parameter: value}, tol=1e-9, **own)
            scores = alone.fit(X[train], Y[train], qid=QID[train]).predict(X[test])
            expected = metric(Y[test], scores, qid=QID[test])
            assert scores_of(model)[k, f] == pytest.approx(expected, abs=1e-3)


def test_the_last_fit_is_a_sparse_rank_svm_with_the_best_value(model):
    best = int(np.argmax(scores_of(model).mean(axis=1)))
    assert best_value(model) == values_of(model)[best]
    alone = SparseRankSVM(C=best_value(model)).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    for name in (
        "scale_",
        "sparsity_",
        "objective_",
        "gap_",
        "stop_reason_",
        "n_iter_",
        "n_pairs_",
    ):
        np.testing.assert_array_equal(getattr(model, name), getattr(alone, name))
    assert len(model.history_) == model.n_iter_ > 0
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    assert model.score(X, Y, qid=QID) == alone.score(X, Y, qid=QID)


def test_the_path_is_of_all_data_with_the_mean_scores(model):
    path = model.path_
    np.testing.assert_array_equal(path.scores, scores_of(model).mean(axis=1))
    assert path.metric == "ndcg@10"
    np.testing.assert_array_equal(path.values, values_of(model))
    w = path.coefs[[path.best_index]].toarray()[0]
    np.testing.assert_allclose(w, model.coef_, atol=0.02 * np.abs(model.coef_).max())


def test_too_much_regularisation_is_not_chosen(model):
    assert scores_of(model)[0].mean() < scores_of(model)[model.path_.best_index].mean() - 0.1
    assert best_value(model) > values_of(model)[0]


def test_splits_of_ones_own():
    folds = list(GroupKFold(4).split(X, Y, QID))
    expected = scores_of(SparseRankSVMCV(n_points=3, cv=folds).fit(X, Y, qid=QID))
    for cv in (iter(folds), GroupKFold(4)):
        scores = scores_of(SparseRankSVMCV(n_points=3, cv=cv).fit(X, Y, qid=QID))
        np.testing.assert_array_equal(scores, expected)
    few = QID < 3
    model = SparseRankSVMCV(n_points=3, cv=LeaveOneGroupOut()).fit(X[few], Y[few], qid=QID[few])
    assert scores_of(model).shape == (3, 3)


def test_rows_in_any_order_and_sparse_features(model):
    order = np.random.default_rng(0).permutation(len(Y))
    names = np.array([f"query {q}" for q in QID])
    weights = np.random.default_rng(1).uniform(0.5, 2, len(Y))
    by_query = np.random.default_rng(2).uniform(0.5, 2, 40)
    options = {"n_points": 4, "tol": 1e-9}
    ordered = SparseRankSVMCV(cv=4, **options)
    ordered.fit(X, Y, qid=names, sample_weight=weights, query_weight=by_query)
    shuffled = SparseRankSVMCV(cv=4, **options).fit(
        sp.csr_array(X[order]),
        Y[order],
        qid=names[order],
        sample_weight=weights[order],
        query_weight=by_query[QID[order]],
    )
    np.testing.assert_allclose(values_of(shuffled), values_of(ordered))
    np.testing.assert_allclose(scores_of(shuffled), scores_of(ordered), atol=5e-3)
    np.testing.assert_allclose(shuffled.coef_, ordered.coef_, atol=1e-3 * abs(ordered.coef_).max())
    unweighted = SparseRankSVMCV(cv=4, **options).fit(X, Y, qid=names)
    assert not np.allclose(unweighted.coef_, ordered.coef_, rtol=1e-2)


def test_the_documents_of_a_single_query_are_divided():
    model = SparseRankSVMCV(n_points=3, cv=2, scoring="auc").fit(X, Y > 1)
    assert scores_of(model).shape == (3, 2)
    assert scores_of(model)[-1].min() > 0.7
    again = SparseRankSVMCV(n_points=3, cv=2, scoring="auc", random_state=1).fit(X, Y > 1)
    assert not np.array_equal(scores_of(again), scores_of(model))


def test_a_matrix_of_costs_when_a_fold_lacks_a_label():
    labels = np.where(QID == 0, Y, np.minimum(Y, 1))  # only the first query has high labels
    n = np.unique(labels).size
    assert n > 2
    cost = np.tril(np.arange(1.0, n * n + 1).reshape(n, n), -1)
    model = SparseRankSVMCV(n_points=3, cv=3, pair_cost=cost).fit(X, labels, qid=QID)

    def of_labels(preferred, other):
        return cost[tuple(np.searchsorted(np.unique(labels), [preferred, other]))]

    by_function = SparseRankSVMCV(n_points=3, cv=3, pair_cost=of_labels)
    np.testing.assert_array_equal(scores_of(model), scores_of(by_function.fit(X, labels, qid=QID)))


def test_a_file_holds_the_last_fit(model, tmp_path):
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert type(loaded) is SparseRankSVM
    assert best_value(model) == loaded.C
    assert loaded.get_params() == model.best_estimator_.get_params()
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameter": "lambda"}, "parameter='lambda' must be one of"),
        ({"cv": 1}, "cv=1 must be"),
        ({"cv": 41}, "41 folds need as many queries, and there are 40"),
        ({"cv": list(KFold(3).split(X))}, "in the training rows and in the test rows of fold 1"),
        ({"Cs": []}, "^Cs must be a list of numbers with at least one entry"),
        ({"Cs": [-1.0]}, "^Cs=-1.0 must be"),
        ({"radii": [-1.0]}, "^radii=-1.0 must be"),
        ({"Cs": [1.0], "radii": [1.0]}, "Cs and radii"),
        ({"rule": "two_se"}, "rule='two_se' must be"),
        ({"tol": 0.0}, "tol=0.0 must be"),
        ({"scoring": "fun"}, "metric 'fun' is not known"),
        ({"parameter": "radius", "l1_ratio": 0.5}, "l1_ratio=0.5 "),
    ],
)
def test_wrong_parameters_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        SparseRankSVMCV(**options).fit(X, Y, qid=QID)


def test_folds_without_a_value_are_left_out():
    labels = np.where(np.isin(QID, [0, 1]), 1, Y > 1)  # two queries of relevant documents only
    folds = list(GroupKFold(3).split(X, labels, QID))
    without = (np.flatnonzero(QID > 1), np.flatnonzero(QID <= 1))
    model = SparseRankSVMCV(n_points=4, cv=[*folds, without], scoring="auc")
    with pytest.warns(UserWarning, match=r"auc.*fold 4 of 4"):
        model.fit(X, labels, qid=QID)
    assert np.isnan(scores_of(model)[:, 3]).all()
    expected = SparseRankSVMCV(n_points=4, cv=folds, scoring="auc").fit(X, labels, qid=QID)
    np.testing.assert_array_equal(model.path_.scores, expected.path_.scores)
    assert best_value(model) == best_value(expected)
    with pytest.raises(ValueError, match=r"auc.*fold"):
        SparseRankSVMCV(n_points=4, cv=[without], scoring="auc").fit(X, labels, qid=QID)


def test_folds_are_checked_by_as_many_threads_as_asked_for(monkeypatch):
    seen = []

    def make(*args, n_jobs=None, **others):
        seen.append(n_jobs)
        return RankingData(*args, n_jobs=n_jobs, **others)

    monkeypatch.setattr(folds_module, "RankingData", make)
    SparseRankSVMCV(Cs=[5.0], cv=2, n_jobs=1).fit(X, Y, qid=QID)
    assert seen == [1] * 2


def test_rows_sorted_by_label_do_not_choose_the_empty_model():
    rows = np.lexsort((-Y, QID))
    model = SparseRankSVMCV(n_points=6, cv=4).fit(X[rows], Y[rows], qid=QID[rows])
    assert model.sparsity_ > 0
    assert scores_of(model)[0].mean() < scores_of(model).mean(axis=1).max() - 0.1


def test_the_spread_of_a_fold_is_that_of_its_training_documents():
    big = X * 10.0 ** np.arange(-6, 6)
    model = SparseRankSVMCV(n_points=5, cv=GroupKFold(3), scale="standard").fit(big, Y, qid=QID)
    np.testing.assert_allclose(model.scale_, big.std(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(model.path_.scale, model.scale_)
    for k, (train, test) in enumerate(GroupKFold(3).split(big, Y, QID)):
        scale = big[train].std(axis=0)
        path = sparse_path(
            big[train] / scale,
            Y[train],
            qid=QID[train],
            Cs=values_of(model),
            validation=(big[test] / scale, Y[test], QID[test]),
        )
        np.testing.assert_allclose(path.scores, scores_of(model)[:, k], atol=5e-3)


def test_folds_without_a_pair_to_judge_by_are_left_out():
    labels = np.where(QID < 2, 0, Y)  # NDCG is 0, not nan, where nothing is relevant
    folds = list(GroupKFold(3).split(X, labels, QID))
    without = (np.flatnonzero(QID > 1), np.flatnonzero(QID < 2))
    model = SparseRankSVMCV(n_points=3, cv=[*folds, without])
    with pytest.warns(UserWarning, match=r"ndcg@10.*fold 4 of 4"):
        model.fit(X, labels, qid=QID)
    assert np.isnan(scores_of(model)[:, 3]).all()
    np.testing.assert_allclose(model.path_.scores, scores_of(model)[:, :3].mean(axis=1))


def test_fits_that_stop_early_are_one_warning_beside_that_of_the_last_fit():
    with pytest.warns(ConvergenceWarning) as caught:
        SparseRankSVMCV(n_points=3, cv=3, max_iter=1).fit(X, Y, qid=QID)
    search, last = (str(warning.message) for warning in caught)
    assert "of 9 fits to folds did not reach" in search
    assert "max_iter" in last
    assert caught[0].filename == __file__


def test_one_standard_error_takes_a_sparser_model(model):
    simple = SparseRankSVMCV(n_points=6, cv=4, rule="one_se").fit(X, Y, qid=QID)
    mean, error = model.search_.mean, model.search_.error[model.best_index_]
    near = values_of(model)[mean >= model.best_score_ - error]
    assert simple.best_params_ == {"C": near.min()}
    assert simple.sparsity_ <= model.sparsity_


def test_without_refit_there_is_a_search_and_no_model():
    search = SparseRankSVMCV(n_points=3, cv=3, refit=False).fit(X, Y, qid=QID)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.comparison_.n_queries == 40
    with pytest.raises(NotFittedError, match="refit=False"):
        search.predict(X)


def test_features_without_effect_are_one_warning():
    with pytest.warns(UserWarning, match="without effect") as caught:
        SparseRankSVMCV(n_points=3, cv=3, scale="standard").fit(np.c_[X, QID], Y, qid=QID)
    assert len(caught) == 1
