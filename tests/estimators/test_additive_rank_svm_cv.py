"""AdditiveRankSVMCV: the choice is the best by folds, made without what it is judged on."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import AdditiveRankSVM, AdditiveRankSVMCV, RankingData, load_model, metrics
from marginrank.plots import plot_search

X = np.random.default_rng(0).normal(size=(300, 2))
Y = np.round(-2 * np.abs(X[:, 0]) + X[:, 1])
Y -= Y.min()
QID = np.arange(300) // 15
OPTIONS = {"Cs": [0.1, 10.0], "smoothness": [0.1, 1e4], "max_bins": [2, 8], "cv": 3}
WHY = "knots are quantiles of the documents, whatever they weigh"
EXPECTED = {
    f"check_sample_weight_equivalence_on_{layout}_data": WHY for layout in ("dense", "sparse")
}


# Checks of scikit-learn 1.6 have ten documents, six of one label: of seven that are left to learn
# from, two always differ.
@parametrize_with_checks(
    [AdditiveRankSVMCV(Cs=[1.0], smoothness=1.0, max_bins=4, cv=4, tol=1e-3)],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def model():
    return AdditiveRankSVMCV(**OPTIONS).fit(X, Y, qid=QID)


def test_the_best_of_the_grid_is_fitted_to_all(model, tmp_path):
    results = model.cv_results_
    assert len(results["params"]) == 8
    best = int(np.argmax(results["mean_test_score"]))
    assert model.best_params_ == results["params"][best] == results["params"][model.best_index_]
    assert model.best_params_["smoothness"] == 0.1  # as lines do not rank these
    alone = AdditiveRankSVM(normalization="pairs", **model.best_params_).fit(X, Y, qid=QID)
    assert_array_equal(model.predict(X), alone.predict(X))
    assert model.objective_ == alone.objective_
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert type(loaded) is AdditiveRankSVM
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert model.explain(X[0], X[1])


def test_the_choice_is_told_as_that_of_lines(model):
    scores = np.array([model.cv_results_[f"split{k}_test_score"] for k in range(3)])
    assert model.n_splits_ == 3
    assert model.best_score_ == scores.mean(axis=0).max()
    assert model.cv_results_["param_max_bins"].tolist() == [2] * 4 + [8] * 4
    assert model.cv_results_["param_smoothness"].tolist() == [0.1, 0.1, 1e4, 1e4] * 2
    assert model.comparison_.difference >= 0
    labels = {line.get_label() for line in plot_search(model.search_).lines}
    assert "max_bins=2, smoothness=0.1" in labels


def test_scores_are_those_of_models_that_have_not_seen_the_fold():
    folds = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    options = OPTIONS | {"cv": folds, "Cs": [10.0], "smoothness": 0.1, "max_bins": 8}
    model = AdditiveRankSVMCV(**options, tol=1e-9).fit(X, Y, qid=QID)
    for k, (train, test) in enumerate(folds):
        alone = AdditiveRankSVM(
            C=10.0, smoothness=0.1, max_bins=8, normalization="pairs", tol=1e-9
        ).fit(X[train], Y[train], qid=QID[train])
        expected = metrics.ndcg(Y[test], alone.predict(X[test]), qid=QID[test], k=10)
        assert model.cv_results_[f"split{k}_test_score"][0] == pytest.approx(expected, abs=0.02)


def test_rare_values_are_missing_in_some_folds():
    """Missing values and categories: a fold may have other columns than the next."""
    gaps = X.copy()
    gaps[:4, 0], gaps[:, 1] = np.nan, np.round(gaps[:, 1])
    options = {"Cs": [1.0, 10.0], "smoothness": [1.0, 10.0], "categorical_features": [1], "cv": 3}
    model = AdditiveRankSVMCV(**options).fit(gaps, Y, qid=QID)
    assert model.best_score_ > 0.85
    assert model.curves_[1].categorical


def test_a_grid_goes_on_where_its_end_is_the_best():
    model = AdditiveRankSVMCV(smoothness=0.1, cv=3, scoring=_grows_with_the_spread)
    assert model.fit(X, Y, qid=QID).best_params_ == {"C": 1000.0}
    assert_allclose(model.cv_results_["param_C"].data, [0.1, 1.0, 10.0, 100.0, 1000.0])
    given = AdditiveRankSVMCV(smoothness=0.1, cv=3, scoring=_grows_with_the_spread, Cs=[0.1, 1.0])
    assert given.fit(X, Y, qid=QID).best_params_ == {"C": 1.0}


def _grows_with_the_spread(y, scores, qid=None, per_query=False):
    values = np.array([np.ptp(scores[qid == q]) for q in np.unique(qid)])
    return values if per_query else values.mean()


def test_a_C_is_that_of_a_pair_whatever_the_normalization():
    sums = AdditiveRankSVMCV(smoothness=1.0, cv=3, normalization="none").fit(X, Y, qid=QID)
    means = AdditiveRankSVMCV(smoothness=1.0, cv=3, normalization="pairs").fit(X, Y, qid=QID)
    n_pairs = RankingData(X, Y, QID).n_pairs
    assert_allclose(
        sums.cv_results_["param_C"].data * n_pairs, means.cv_results_["param_C"].data, rtol=1e-3
    )
    assert_allclose(sums.predict(X), means.predict(X), atol=1e-3)


def test_one_se_takes_a_smaller_C_and_no_refit_leaves_no_model():
    options = OPTIONS | {"smoothness": 0.1, "max_bins": 8, "Cs": [1.0, 10.0, 100.0]}
    best = AdditiveRankSVMCV(**options).fit(X, Y, qid=QID)
    within = best.search_.mean >= best.best_score_ - best.search_.error[best.best_index_]
    simplest = best.cv_results_["param_C"].data[within].min()
    chosen = AdditiveRankSVMCV(**options, rule="one_se", refit=False).fit(X, Y, qid=QID)
    assert chosen.best_params_ == {"C": simplest}
    with pytest.raises(NotFittedError, match="AdditiveRankSVM with best_params_"):
        chosen.predict(X)


def test_the_choice_does_not_depend_on_the_threads(model):
    again = AdditiveRankSVMCV(**OPTIONS, n_jobs=1).fit(X, Y, qid=QID)
    assert_array_equal(again.search_.scores, model.search_.scores)
    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"Cs": [1.0, 0.0]}, "Cs=0.0 must be a finite number, more than 0"),
        ({"smoothness": []}, "has no values to try"),
        ({"smoothness": [1.0, -1.0]}, "smoothness=-1.0 must be a finite number, more than 1e-12"),
        ({"max_bins": [0]}, "max_bins=0 must be an integer from 1 to 254"),
        ({"scoring": "nonsense"}, "nonsense"),
        ({"rule": "worst"}, "rule='worst'"),
    ],
)
def test_wrong_parameters(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        AdditiveRankSVMCV(**OPTIONS | parameters).fit(X, Y, qid=QID)


def test_what_is_chosen_from_arrays_are_plain_numbers():
    options = {"smoothness": np.array([0.1, 1.0]), "max_bins": np.array([4, 8]), "cv": 3}
    model = AdditiveRankSVMCV(Cs=np.array([1.0]), **options).fit(X, Y, qid=QID)
    for params in model.cv_results_["params"]:
        assert {name: type(value) for name, value in params.items()} == {
            "C": float, "max_bins": int, "smoothness": float
        }  # fmt: skip
    alone = AdditiveRankSVMCV(Cs=[1.0], smoothness=np.array(0.1), max_bins=np.int64(4), cv=3)
    chosen = alone.fit(X, Y, qid=QID).best_estimator_
    assert (type(chosen.smoothness), type(chosen.max_bins)) == (float, int)


@pytest.mark.parametrize("listed", [[[1, 2]], [1, [2]], [(1,), 2], np.ones((1, 2))])
def test_lists_of_lists_are_refused(listed):
    with pytest.raises(ValueError, match=r"smoothness=.*numbers"):
        AdditiveRankSVMCV(smoothness=listed).fit(X, Y, qid=QID)


def test_missing_values_of_any_kind_are_nan():
    gaps = X.copy()
    gaps[::4, 0] = np.nan
    options = {"Cs": [1.0], "smoothness": 1.0, "max_bins": 4, "cv": 3}
    model = AdditiveRankSVMCV(**options).fit(gaps, Y, qid=QID)
    same = AdditiveRankSVMCV(**options).fit(np.where(np.isnan(gaps), None, gaps), Y, qid=QID)
    assert_array_equal(same.predict(gaps), model.predict(gaps))
    assert same.best_score_ == model.best_score_


@pytest.mark.parametrize("n_documents", [299, 250, 90])
def test_values_of_C_are_numbers_for_people(n_documents):
    """Also where a grid goes on, and for another smoothness."""
    some = slice(None, n_documents)
    options = {"smoothness": [1e4, 1.0, 0.1], "max_bins": 4, "cv": 3, "normalization": "none"}
    model = AdditiveRankSVMCV(**options).fit(X[some], Y[some], qid=QID[some])
    Cs = [params["C"] for params in model.cv_results_["params"]]
    assert len(set(Cs)) > 3
    assert [C for C in Cs if float(f"{C:.4g}") != C] == []
