"""Names and number of the features change together with what was learned from them."""

import runpy

import numpy as np
import pandas as pd
import pytest

from marginrank import (
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    SelectKBestRanking,
    SGDRankSVM,
    SparseRankSVM,
    SparseRankSVMCV,
    load_model,
    make_ranking,
    rank_features,
)

X, Y, QID = make_ranking(20, 10, 4, random_state=0)
NAMED = pd.DataFrame(X, columns=list("abcd"))
OTHERS = pd.DataFrame(X[:, :2], columns=["x", "y"])

ESTIMATORS = [
    RankSVM(),
    RankSVMCV(n_points=3, cv=2),
    SparseRankSVM(),
    SparseRankSVMCV(n_points=3, cv=2),
    SGDRankSVM(tol=0.1),
    KernelRankSVM(),
    SelectKBestRanking(k=2, metric="auc"),
]
every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__
)


def outcome(estimator, documents):
    if hasattr(estimator, "predict"):
        return estimator.predict(documents)
    return estimator.transform(documents)


@every_estimator
def test_a_fit_that_fails_changes_nothing(estimator, tmp_path):
    estimator.fit(NAMED, Y, qid=QID)
    expected = outcome(estimator, NAMED)
    with pytest.raises(ValueError, match=r"\bpair|auc"):
        estimator.fit(OTHERS, np.ones(len(Y)), qid=QID)
    assert estimator.feature_names_in_.tolist() == list("abcd")
    assert estimator.n_features_in_ == 4
    np.testing.assert_array_equal(outcome(estimator, NAMED), expected)
    if hasattr(estimator, "save"):
        estimator.save(tmp_path / "m")
        assert load_model(tmp_path / "m").feature_names_in_.tolist() == list("abcd")


@every_estimator
def test_names_are_forgotten_by_a_fit_without_names(estimator, tmp_path):
    estimator.fit(NAMED, Y, qid=QID).fit(X[:, :2], Y, qid=QID)
    assert not hasattr(estimator, "feature_names_in_")
    assert estimator.n_features_in_ == 2
    estimator.fit(OTHERS, Y, qid=QID)
    assert estimator.feature_names_in_.tolist() == ["x", "y"]


def test_a_feature_without_a_name_has_the_same_one_everywhere(tmp_path):
    """It is counted from 1: the third column of X is f3 in results, explanations and exports."""
    third = np.zeros_like(X)
    third[:, 2] = Y
    model = RankSVM().fit(third, Y, qid=QID)
    assert rank_features(third, Y, qid=QID).feature_names[2] == "f3"
    best, worst = np.argmax(Y), np.argmin(Y)
    assert model.explain(third[best], third[worst])[0].name == "f3"
    model.export(tmp_path / "model.py", "python")
    names = runpy.run_path(str(tmp_path / "model.py"))["FEATURES"]
    assert names == ["f1", "f2", "f3", "f4"]
