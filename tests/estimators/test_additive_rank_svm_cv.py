"""AdditiveRankSVMCV: the choice is the best by folds, made without what it is judged on."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import AdditiveRankSVM, AdditiveRankSVMCV, load_model, metrics

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


def test_the_best_of_the_grid_is_fitted_to_all(tmp_path):
    model = AdditiveRankSVMCV(**OPTIONS).fit(X, Y, qid=QID)
    assert model.scores_.shape == (2, 2, 2, 3)
    b, s, c = np.unravel_index(np.argmax(model.scores_.mean(axis=-1)), (2, 2, 2))
    chosen = {"C": [0.1, 10.0][c], "smoothness": [0.1, 1e4][s], "max_bins": [2, 8][b]}
    assert model.best_params_ == chosen
    assert chosen["smoothness"] == 0.1  # as lines do not rank these
    alone = AdditiveRankSVM(normalization="pairs", **chosen).fit(X, Y, qid=QID)
    assert_array_equal(model.predict(X), alone.predict(X))
    assert model.objective_ == alone.objective_
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert type(loaded) is AdditiveRankSVM
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert model.explain(X[0], X[1])


def test_scores_are_those_of_models_that_have_not_seen_the_fold():
    folds = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    model = AdditiveRankSVMCV(**OPTIONS | {"cv": folds, "tol": 1e-9}).fit(X, Y, qid=QID)
    for k, (train, test) in enumerate(folds):
        alone = AdditiveRankSVM(
            C=10.0, smoothness=0.1, max_bins=8, normalization="pairs", tol=1e-9
        ).fit(X[train], Y[train], qid=QID[train])
        expected = metrics.ndcg(Y[test], alone.predict(X[test]), QID[test], k=10)
        assert model.scores_[1, 0, 1, k] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"Cs": [1.0, 0.0]}, "Cs=0.0 must be a finite number, more than 0"),
        ({"smoothness": []}, "has nothing to choose"),
        ({"max_bins": [0]}, "max_bins=0 must be an integer from 1 to 254"),
        ({"scoring": "nonsense"}, "nonsense"),
    ],
)
def test_wrong_parameters(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        AdditiveRankSVMCV(**OPTIONS | parameters).fit(X, Y, qid=QID)
