"""RankSVM as a maximiser of AUC: binary labels, one query."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.tables import each
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from marginrank import RankSVM, metrics


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(-3, 3) | st.floats(-1e9, 1e9)), min_size=2, max_size=60
    )
)
def test_auc_is_that_of_scikit_learn_with_ties_too(documents):
    y, scores = (np.array(column, dtype=float) for column in zip(*documents, strict=True))
    if y.min() == y.max():
        assert np.isnan(metrics.auc(y, scores))
        return
    expected = roc_auc_score(y, scores)
    assert metrics.auc(y, scores) == pytest.approx(expected, abs=1e-12)
    assert metrics.pairwise_accuracy(y, scores, ties="half") == pytest.approx(expected, abs=1e-12)


def test_auc_of_many_tied_documents():
    rng = np.random.default_rng(0)
    y = (rng.random(100_000) < 0.01).astype(int)
    scores = np.round(rng.normal(size=y.size) + y, 1)
    assert np.unique(scores).size < 120
    auc = metrics.auc(y, scores, group=[len(y)])
    assert auc == pytest.approx(roc_auc_score(y, scores), abs=1e-12)


def imbalanced(n, seed):
    """Return documents of which one or two in a hundred are positive, by a noisy utility."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    utility = X @ rng.normal(size=10)
    chance = 0.5 / (1 + np.exp(np.quantile(utility, 0.98) - utility))
    return X, (rng.random(n) < chance).astype(int)


@each("seed", range(5))
def test_training_auc_is_at_least_that_of_a_classifier(seed):
    X, y = imbalanced(3000, seed)
    assert y.mean() < 0.05
    ranker = RankSVM(C=100, normalization="pairs").fit(X, y, group=[len(y)])
    auc = metrics.auc(y, ranker.predict(X), group=[len(y)])
    assert auc < 0.99
    for C in (0.01, 1.0, 100.0):
        classifier = LinearSVC(C=C, random_state=0, max_iter=10_000).fit(X, y)
        assert auc >= roc_auc_score(y, classifier.decision_function(X))


def test_one_long_query_of_sparse_documents():
    rng = np.random.default_rng(1)
    X = sp.random_array((40_000, 5_000), density=0.005, format="csr", random_state=rng)
    truth = rng.normal(size=5_000)
    margin = X @ truth
    y = (margin + 0.2 * rng.normal(size=margin.size) > np.quantile(margin, 0.95)).astype(int)
    model = RankSVM(C=100, normalization="pairs").fit(X, y, group=[len(y)])
    positive = int(y.sum())
    assert model.n_pairs_ == positive * (y.size - positive)
    assert model.stop_reason_.converged
    assert metrics.auc(y, model.predict(X), group=[len(y)]) > 0.95
    score = model.score(X, y, group=[len(y)])
    assert score == pytest.approx(roc_auc_score(y, model.predict(X)), abs=1e-9)


def test_any_two_labels_give_the_same_model():
    X, y = imbalanced(500, 0)
    zero_one = RankSVM().fit(X, y)
    signs = RankSVM().fit(X, 2 * y - 1)
    np.testing.assert_array_equal(signs.coef_, zero_one.coef_)
