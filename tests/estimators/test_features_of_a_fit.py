"""Names and number of the features change together with what was learned from them."""

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
