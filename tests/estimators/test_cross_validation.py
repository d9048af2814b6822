"""cross_validate_ranking: any estimator, judged as a loop over folds written out would."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import xgboost
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import BaggingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from marginrank import (
    RankingData,
    RankSVM,
    RankSVMCV,
    SelectKBestRanking,
    cross_validate_ranking,
    make_ranking,
    metrics,
)
from marginrank.estimators.base import check_seed
from marginrank.metrics import make_ranking_scorer
from marginrank.selection.folds import folds_of, query_folds, rows_of

ORDER = np.random.default_rng(0).permutation(400)
X, Y, QID = (part[ORDER] for part in make_ranking(40, 10, 6, random_state=0))
IDS = np.array([f"query {q}" for q in QID])  # shuffled rows, and ids that XGBoost does not take
FOLDS = query_folds(RankingData(X, Y, IDS), 3, seed=check_seed(0))


def by_hand(fit_and_predict, metric=metrics.ndcg, **options):
    """Return the metric of each fold; the function gets training data by query, and test data."""
    options = {"k": 10, "ties": "average"} | options
    values = []
    for fold in FOLDS:
        train = fold.train[np.argsort(IDS[fold.train], kind="stable")]
        scores = fit_and_predict(X[train], Y[train], IDS[train], X[fold.test])
        values.append(metric(Y[fold.test], scores, qid=IDS[fold.test], **options))
    return values


def ranked(A, y, q, B):
    return RankSVM().fit(A, y, qid=q).predict(B)


def sizes(q):
    return np.unique(q, return_counts=True)[1]


def boosted(A, y, q, B):
    return lightgbm.LGBMRanker(n_estimators=5, verbose=-1).fit(A, y, group=sizes(q)).predict(B)


CASES = {
    "ours": (RankSVM(), ranked),
    "regressor": (Ridge(), lambda A, y, q, B: Ridge().fit(A, y).predict(B)),
    "pipeline": (
        make_pipeline(SelectKBestRanking(k=3), StandardScaler(), RankSVM()),
        lambda A, y, q, B: ranked(
            (kept := SelectKBestRanking(k=3).fit(A, y, qid=q)).transform(A), y, q, kept.transform(B)
        ),
    ),
    "pipeline without queries": (
        make_pipeline(StandardScaler(), Ridge()),
        lambda A, y, q, B: make_pipeline(StandardScaler(), Ridge()).fit(A, y).predict(B),
    ),
    "lightgbm": (lightgbm.LGBMRanker(n_estimators=5, verbose=-1), boosted),
    "lightgbm in a pipeline": (
        make_pipeline(SimpleImputer(), lightgbm.LGBMRanker(n_estimators=5, verbose=-1)),
        boosted,
    ),
    "xgboost": (
        xgboost.XGBRanker(n_estimators=5, n_jobs=1),
        lambda A, y, q, B: (
            xgboost.XGBRanker(n_estimators=5, n_jobs=1).fit(A, y, group=sizes(q)).predict(B)
        ),
    ),
    "classifier": (
        LogisticRegression(),
        lambda A, y, q, B: (
            (model := LogisticRegression().fit(A, y)).predict_proba(B) @ model.classes_
        ),
    ),
    "ensemble": (
        BaggingRegressor(Ridge(), n_estimators=1, bootstrap=False),
        lambda A, y, q, B: Ridge().fit(A, y).predict(B),
    ),
    "search": (
        GridSearchCV(
            RankSVM(), {"C": [1.0]}, scoring=make_ranking_scorer("ndcg"), cv=GroupKFold(2)
        ),
        ranked,
    ),
}


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_a_loop_over_folds(case, routing):
    estimator, fit_and_predict = CASES[case]
    with sklearn.config_context(enable_metadata_routing=routing):
        result = cross_validate_ranking(estimator, X, Y, qid=IDS, cv=3)
    expected = by_hand(fit_and_predict)
    np.testing.assert_allclose(result["test_score"], expected, rtol=1e-3)
    assert result.mean == {"ndcg@10": pytest.approx(result["test_score"].mean())}
    error = result["test_score"].std(ddof=1) / np.sqrt(3)
    assert result.standard_error == {"ndcg@10": pytest.approx(error)}
    assert (result["fit_time"] > 0).all()
    assert (result["score_time"] > 0).all()
    assert result.keys() == {"fit_time", "score_time", "test_score"}


def test_the_estimator_that_was_given_is_not_changed():
    step = lightgbm.LGBMRanker(n_estimators=2, verbose=-1)
    cross_validate_ranking(make_pipeline(StandardScaler(), step), X, Y, qid=IDS, cv=2)
    assert not hasattr(step, "_metadata_request")
    assert not hasattr(step, "booster_")
    assert not sklearn.get_config()["enable_metadata_routing"]


FOLD_ROWS = [(fold.train, fold.test) for fold in FOLDS]


def test_two_classes_are_ranked_by_the_distance_to_the_border():
    result = cross_validate_ranking(LinearSVC(), X, Y > 2, qid=IDS, cv=FOLD_ROWS, scoring="auc")
    expected = []
    for fold in FOLDS:
        model = LinearSVC().fit(X[fold.train], Y[fold.train] > 2)
        scores = model.decision_function(X[fold.test])
        expected.append(metrics.auc(Y[fold.test] > 2, scores, qid=IDS[fold.test]))
    np.testing.assert_allclose(result["test_score"], expected)


def test_several_metrics_training_scores_and_estimators():
    scoring = ["ndcg@5", metrics.average_precision, make_ranking_scorer("precision@2", threshold=2)]
    result = cross_validate_ranking(
        RankSVM(),
        X,
        Y,
        qid=IDS,
        cv=3,
        scoring=scoring,
        return_train_score=True,
        return_estimator=True,
    )
    names = ["ndcg@5", "average_precision", "precision@2(threshold=2, ties='average')"]
    assert result.metrics == names
    assert list(result.mean) == names
    for f, (fold, model) in enumerate(zip(FOLDS, result["estimator"], strict=True)):
        for side, rows in (("train", fold.train), ("test", fold.test)):
            expected = metrics.ndcg(Y[rows], model.predict(X[rows]), qid=IDS[rows], k=5)
            assert result[f"{side}_ndcg@5"][f] == pytest.approx(expected)
    lines = result.table().splitlines()
    assert [line.split()[0] for line in lines] == ["ndcg@5", "average_precision", names[2][:24]]
    assert f"{result.mean['ndcg@5']:.4f} ± {result.standard_error['ndcg@5']:.4f}" in lines[0]


def test_features_are_as_the_estimator_takes_them():
    expected = cross_validate_ranking(Ridge(), X, Y, qid=IDS, cv=3)["test_score"]
    frame = pd.DataFrame(X, columns=list("abcdef"))
    result = cross_validate_ranking(
        Ridge(), frame, pd.Series(Y), qid=IDS, cv=3, return_estimator=True
    )
    np.testing.assert_allclose(result["test_score"], expected)
    assert result["estimator"][0].feature_names_in_.tolist() == list("abcdef")
    sparse = cross_validate_ranking(Ridge(), sp.coo_array(X), Y.tolist(), qid=IDS, cv=3)
    np.testing.assert_allclose(sparse["test_score"], expected, rtol=1e-3)
    gaps = np.where(np.arange(X.size).reshape(X.shape) % 7 == 0, np.nan, X)
    imputed = cross_validate_ranking(
        make_pipeline(SimpleImputer(), Ridge()), gaps, Y, qid=IDS, cv=3
    )
    assert 0.5 < imputed.mean["ndcg@10"] < expected.mean()


def test_folds_do_not_depend_on_the_order_of_the_rows():
    rows = np.argsort(QID, kind="stable")
    result = cross_validate_ranking(Ridge(), X[rows], Y[rows], qid=IDS[rows], cv=3)
    expected = cross_validate_ranking(Ridge(), X, Y, qid=IDS, cv=3)
    np.testing.assert_allclose(result["test_score"], expected["test_score"])


def test_other_processes_give_the_same():
    expected = cross_validate_ranking(RankSVM(n_jobs=1), X, Y, qid=IDS, cv=3)["test_score"]
    result = cross_validate_ranking(RankSVM(n_jobs=1), X, Y, qid=IDS, cv=3, n_jobs=2)
    np.testing.assert_array_equal(result["test_score"], expected)


def test_the_weights_of_a_ranking_data_reach_the_fit():
    weight = np.random.default_rng(0).uniform(0.1, 3, len(Y))
    by_query = np.random.default_rng(1).uniform(0.1, 3, 40)
    data = RankingData(X, Y, IDS, sample_weight=weight, query_weight=by_query)
    pipeline = make_pipeline(StandardScaler(), RankSVM(C=1e-3))
    result = cross_validate_ranking(pipeline, data, cv=3, return_estimator=True)
    for fold, model in zip(FOLDS, result["estimator"], strict=True):
        rows = fold.train
        alone = RankSVM(C=1e-3).fit(
            StandardScaler().fit_transform(X[rows]),
            Y[rows],
            qid=IDS[rows],
            sample_weight=weight[rows],
            query_weight=by_query[data.qid[rows]],
        )
        np.testing.assert_allclose(model[-1].coef_, alone.coef_, rtol=1e-4)
    with pytest.raises(ValueError, match=r"query_weight.*fit of Ridge"):
        cross_validate_ranking(Ridge(), data, cv=3)
    given = cross_validate_ranking(Ridge(), X, Y, qid=IDS, cv=3, sample_weight=weight)
    assert given["test_score"].tolist() != by_hand(CASES["regressor"][1])
    with pytest.raises(ValueError, match=r"sample_weight.*RankingData"):
        cross_validate_ranking(RankSVM(), data, sample_weight=weight)


class FeatureOne:
    """An estimator that knows nothing of scikit-learn but its methods, and groups as CatBoost."""

    def __init__(self, seen=None):
        self.seen = seen

    def get_params(self, deep=True):
        return {"seen": self.seen}

    def set_params(self, **parameters):
        return self

    def fit(self, X, y, group_id=None):
        self.group_id = group_id
        return self

    def predict(self, X):
        return X[:, :1]


def test_estimators_of_other_libraries():
    result = cross_validate_ranking(FeatureOne(), X, Y, qid=IDS, cv=3, return_estimator=True)
    assert result["test_score"].tolist() == by_hand(lambda A, y, q, B: B[:, 0])
    for model in result["estimator"]:
        assert (np.diff(model.group_id) >= 0).all()


class Failing(BaseEstimator):
    """An estimator that does not get on with one query."""

    def fit(self, X, y, qid=None):
        if 5 not in qid:
            raise RuntimeError("query 5 is missing")
        return self

    def predict(self, X):
        return X[:, 0]


def test_errors_name_the_fold():
    with pytest.raises(RuntimeError, match="query 5 is missing") as caught:
        cross_validate_ranking(Failing(), X, Y, qid=IDS, cv=3)
    without_5 = next(f.number for f in FOLDS if 5 in RankingData(X, Y, IDS).qid[f.test])
    assert caught.value.__notes__ == [f"The error occurred in fold {without_5}."]


@pytest.mark.parametrize(
    ("estimator", "options", "message"),
    [
        (StandardScaler(), {}, "StandardScaler.*predict or decision_function"),
        (LinearSVC(), {}, r"decision_function of LinearSVC.*\(\d+, \d\)"),
        (Ridge(), {"scoring": []}, r"scoring=\[\]"),
        (Ridge(), {"scoring": "r2"}, "'r2'"),
        (Ridge(), {"cv": 41}, "41 folds.* 40"),
        (Ridge(), {"random_state": "x"}, "random_state='x' must be"),
    ],
)
def test_what_cannot_be_judged_is_refused(estimator, options, message):
    with pytest.raises(ValueError, match=message):
        cross_validate_ranking(estimator, X, Y, qid=IDS, **options)


def test_folds_without_a_value_are_named():
    relevant = QID < 2  # all documents of two queries
    labels = np.where(relevant, 1, Y > 1)
    without = (np.flatnonzero(~relevant), np.flatnonzero(relevant))
    with pytest.warns(UserWarning, match=r"auc.*fold 4 of 4") as caught:
        result = cross_validate_ranking(
            Ridge(), X, labels, qid=IDS, cv=[*FOLD_ROWS, without], scoring="auc"
        )
    assert caught[0].filename == __file__
    assert np.isnan(result["test_score"][3])
    assert result.mean["auc"] == pytest.approx(result["test_score"][:3].mean())


def test_ties_count_as_in_random_order():
    rows = np.lexsort((-Y, QID))  # the best first
    result = cross_validate_ranking(Constant(), X[rows], Y[rows], qid=QID[rows])
    assert result.mean["ndcg@10"] < 0.9


class Constant(BaseEstimator):
    """An estimator that ties all documents."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_folds_without_a_pair_to_judge_by_are_left_out():
    labels = np.where(QID < 2, 0, Y)  # NDCG is 0, not nan, where nothing is relevant
    without = (np.flatnonzero(QID > 1), np.flatnonzero(QID < 2))
    with pytest.warns(UserWarning, match=r"ndcg@10.*fold 4 of 4"):
        result = cross_validate_ranking(Ridge(), X, labels, qid=IDS, cv=[*FOLD_ROWS, without])
    assert np.isnan(result["test_score"][3])
    assert result.mean["ndcg@10"] == pytest.approx(result["test_score"][:3].mean())


def test_a_search_inside_has_the_folds_of_its_own_fit():
    """Its queries are numbers in the order of the ids, which the rows do not follow."""
    features, labels, numbers = make_ranking(40, 10, 5, random_state=0)
    data = RankingData(features, labels, np.random.default_rng(0).permutation(1000)[numbers])
    search = RankSVMCV(n_points=3, cv=3)
    found = cross_validate_ranking(search, data, cv=2, return_estimator=True)
    for fold, inside in zip(folds_of(data, 2, check_seed(0)), found["estimator"], strict=True):
        own = clone(search).fit(rows_of(data, fold.train))
        for key in ("split0_test_score", "split1_test_score", "split2_test_score"):
            np.testing.assert_allclose(inside.cv_results_[key], own.cv_results_[key], rtol=1e-6)
