"""The propensity-weighted objective: every click competes with all other documents of its list."""

import numpy as np
import pytest

from marginrank import AdditiveRankSVM, RankingData, RankSVM, SGDRankSVM
from marginrank.fit.inputs import choose_pairs
from marginrank.fit.positions import POSITION_RIDGE
from marginrank.objective.losses import LOSSES

RNG = np.random.default_rng(1)
SIZES = RNG.integers(1, 9, size=40)
QID = RNG.permutation(np.repeat(np.arange(40), SIZES))
N = len(QID)
X = RNG.normal(size=(N, 4))
CLICKS = (X[:, 0] + RNG.normal(size=N) > 0.3).astype(float)
CLICKS[np.isin(QID, QID[:1])] = 1.0  # all documents of a list are clicked
PROPENSITY = RNG.uniform(0.1, 1.0, size=N)


def competitions():
    """Return (click, other) for every click and every other document of its list."""
    return np.array(
        [(i, j) for i in range(N) for j in range(N) if CLICKS[i] and QID[i] == QID[j] and i != j]
    )


def brute_force(w, C, weight=None):
    i, j = competitions().T
    s = X @ w
    cost = (1 / PROPENSITY[i]) * (1.0 if weight is None else weight[i] * weight[j])
    return 0.5 * w @ w + C * np.sum(cost * np.maximum(0, 1 - (s[i] - s[j])) ** 2)


def test_the_objective_is_the_sum_over_clicks():
    model = RankSVM(C=0.1, tol=1e-12).fit(X, CLICKS, qid=QID, propensity=PROPENSITY)
    assert model.n_pairs_ == len(competitions())
    assert model.objective_ == pytest.approx(brute_force(model.coef_, 0.1), rel=1e-12)
    listed = RankSVM(C=0.1, tol=1e-12).fit(
        X, qid=QID, pairs=competitions(), pair_weight=1 / PROPENSITY[competitions()[:, 0]]
    )
    np.testing.assert_allclose(model.coef_, listed.coef_, atol=1e-9)
    weight = RNG.uniform(0.5, 2.0, size=N)
    weighted = RankSVM(C=0.1, tol=1e-12).fit(
        X, CLICKS, qid=QID, propensity=PROPENSITY, sample_weight=weight
    )
    assert weighted.objective_ == pytest.approx(brute_force(weighted.coef_, 0.1, weight), rel=1e-12)


def test_additive_models_minimize_the_same_objective():
    model = AdditiveRankSVM(C=0.1).fit(X, CLICKS, qid=QID, propensity=PROPENSITY)
    assert model.n_pairs_ == len(competitions())


def test_an_online_fit_does_not_compare_two_clicks():
    """It sees some queries at a time, so it cannot know whether all labels are clicks."""
    model = SGDRankSVM(C=0.1, tol=1e-4).fit(X, CLICKS, qid=QID, propensity=PROPENSITY)
    assert model.n_pairs_ == RankingData(X, CLICKS, QID).n_pairs < len(competitions())


def test_positions_and_propensities_go_together():
    position = RNG.integers(1, 6, size=N)
    model = RankSVM(C=0.1, tol=1e-12).fit(
        X, CLICKS, qid=QID, propensity=PROPENSITY, position=position
    )
    scores = X @ model.coef_ + model.position_effect_[position - 1]
    i, j = competitions().T
    loss = np.sum(np.maximum(0, 1 - (scores[i] - scores[j])) ** 2 / PROPENSITY[i])
    penalty = model.coef_ @ model.coef_ + POSITION_RIDGE * np.sum(model.position_effect_**2)
    assert model.objective_ == pytest.approx(0.5 * penalty + 0.1 * loss, rel=1e-10)


def test_graded_labels_and_single_clicks_need_no_virtual_queries():
    graded = CLICKS + (np.arange(N) % 5 == 0)
    data = RankingData(X, graded, QID)
    pairs = choose_pairs(data, LOSSES["squared_hinge"], propensity=PROPENSITY).pairs
    assert pairs.n_pairs == data.n_pairs
    first = np.zeros(N)
    first[np.unique(QID, return_index=True)[1]] = 1.0
    data = RankingData(X, first, QID)
    pairs = choose_pairs(data, LOSSES["squared_hinge"], propensity=PROPENSITY).pairs
    assert pairs.n_pairs == data.n_pairs
    assert pairs.n_documents == N


def test_several_clicks_require_memory(tmp_path):
    order = np.argsort(QID, kind="stable")
    RankingData(X[order], CLICKS[order], QID[order]).save(tmp_path / "s")
    with pytest.raises(ValueError, match="several clicks"):
        RankSVM().fit(tmp_path / "s", propensity=PROPENSITY[order], memory_limit="1GB")
