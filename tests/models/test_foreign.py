"""Models of other libraries as scores."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xgboost
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from marginrank import KernelRankSVM, RankSVM, make_ranking
from marginrank.models import foreign_scores

X, Y, QID = make_ranking(30, 10, 6, n_levels=3, random_state=0)
LEVELS = Y.astype(int)
BINARY = (Y > 0).astype(int)
SIZES = np.bincount(QID)
SMALL = {"n_estimators": 5, "n_jobs": 1}
LGBM = {**SMALL, "verbose": -1, "min_child_samples": 5}


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize(
    "model",
    [
        LinearRegression().fit(X, Y),
        RankSVM().fit(X, Y, qid=QID),
        KernelRankSVM().fit(X, Y, qid=QID),
        lightgbm.LGBMRanker(**LGBM).fit(X, LEVELS, group=SIZES),
        lightgbm.LGBMRegressor(**LGBM).fit(X, Y),
        xgboost.XGBRanker(**SMALL).fit(X, LEVELS, qid=QID),
        xgboost.XGBRegressor(**SMALL).fit(X, Y),
    ],
    ids=lambda model: type(model).__name__,
)
def test_rankers_and_regressors_predict(model, layout):
    scores = foreign_scores(model, layout(X))
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, model.predict(X), rtol=1e-6)


def test_two_classes_by_the_decision_function():
    labels = np.where(BINARY, 3, -1)
    model = LinearSVC().fit(X, labels)
    np.testing.assert_array_equal(foreign_scores(model, X), model.decision_function(X))
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}).fit(X, labels)
    np.testing.assert_array_equal(foreign_scores(search, X), search.decision_function(X))


@pytest.mark.parametrize("model", [GaussianNB(), xgboost.XGBClassifier(**SMALL)])
def test_two_classes_by_the_probability_of_the_higher(model):
    model.fit(X, BINARY)
    np.testing.assert_allclose(foreign_scores(model, X), model.predict_proba(X)[:, 1], rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        lightgbm.LGBMClassifier(**LGBM),
        xgboost.XGBClassifier(**SMALL),
    ],
)
def test_more_classes_by_the_expected_label(model):
    labels = LEVELS if "XGB" in type(model).__name__ else np.array([-1.0, 2.0, 5.0])[LEVELS]
    model.fit(X, labels)
    probabilities = model.predict_proba(X)
    expected = sum(probabilities[:, c] * label for c, label in enumerate(np.unique(labels)))
    np.testing.assert_allclose(foreign_scores(model, X), expected, rtol=1e-6)


def test_boosters():
    ranker = lightgbm.LGBMRanker(**LGBM).fit(X, LEVELS, group=SIZES)
    scores = foreign_scores(ranker.booster_, sp.csr_array(X))
    np.testing.assert_allclose(scores, ranker.predict(X))
    for classifier in (lightgbm.LGBMClassifier(**LGBM), xgboost.XGBClassifier(**SMALL)):
        classifier.fit(X, LEVELS)
        booster = classifier.booster_ if hasattr(classifier, "booster_") else None
        booster = classifier.get_booster() if booster is None else booster
        expected = classifier.predict_proba(X) @ [0, 1, 2]
        np.testing.assert_allclose(foreign_scores(booster, X), expected, rtol=1e-6)


def test_a_booster_that_stopped_early_is_cut_there():
    rng = np.random.default_rng(0)
    model = xgboost.XGBRegressor(n_estimators=50, early_stopping_rounds=2, n_jobs=1)
    model.fit(X, Y, eval_set=[(X, rng.permutation(Y))], verbose=False)
    assert model.best_iteration < model.get_booster().num_boosted_rounds() - 1
    np.testing.assert_allclose(foreign_scores(model.get_booster(), X), model.predict(X), rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_data_frames():
    table = pd.DataFrame(X, columns=list("abcdef"))
    regressor = xgboost.XGBRegressor(**SMALL).fit(table, Y)
    for model in (
        LinearRegression().fit(table, Y),
        lightgbm.LGBMRegressor(**LGBM).fit(table, Y).booster_,
        regressor,
        regressor.get_booster(),
    ):
        expected = foreign_scores(model, table)
        np.testing.assert_allclose(foreign_scores(model, X), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression().fit(X, Y),
        lightgbm.LGBMRegressor(**LGBM).fit(X, Y).booster_,
        xgboost.XGBRegressor(**SMALL).fit(X, Y).get_booster(),
    ],
)
def test_another_number_of_features_is_refused(model):
    with pytest.raises(ValueError, match="the data has 5 features, but the model has 6"):
        foreign_scores(model, X[:, :5])


def test_what_has_no_scores_is_refused():
    with pytest.raises(ValueError, match=r"classes of LinearSVC are not numbers: \['bad', 'go"):
        foreign_scores(LinearSVC().fit(X, np.array(["bad", "good"])[BINARY]), X)
    with pytest.raises(ValueError, match="LinearSVC has 3 classes and no predict_proba"):
        foreign_scores(LinearSVC().fit(X, LEVELS), X)
    with pytest.raises(ValueError, match=r"sklearn LinearRegression .* shape \(300, 2\)"):
        foreign_scores(LinearRegression().fit(X, np.stack([Y, Y], axis=1)), X)
    with pytest.raises(ValueError, match=r"HistGradientBoostingRegressor cannot .* need dense"):
        foreign_scores(HistGradientBoostingRegressor(max_iter=2).fit(X, Y), sp.csr_array(X))
    broken = LinearRegression().fit(X, Y)
    broken.intercept_ = np.nan
    with pytest.raises(ValueError, match="gives document 0 the score nan"):
        foreign_scores(broken, X)
