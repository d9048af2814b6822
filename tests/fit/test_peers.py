"""The objectives of SVM^rank and LIBLINEAR-ranksvm, judged over explicit pairs by others."""

import numpy as np
import pytest
from helpers.brute_force import explicit_pairs
from helpers.oracle import Oracle

from marginrank import RankingData
from marginrank.fit.peers import CLOSE, fit_like_liblinear, fit_like_svm_rank, scores_by
from marginrank.objective.losses import LOSSES

C = [0.01, 1.0, 30.0]
SEEDS = range(4)


def problem(seed, n_queries=6, n_features=4):
    """Return documents of a few queries, of which the first has no pair."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(2, 7, n_queries))
    y = rng.integers(0, 3, qid.size)
    y[qid == 0] = 1
    return RankingData(rng.normal(size=(qid.size, n_features)), y, qid)


def above_optimum(w, data, loss, pairs):
    """Return (F(w) − F*) / F*, at most."""
    judge = Oracle(data.X, pairs, LOSSES[loss], 1.0)
    lower, upper = judge.solution
    assert upper - lower <= 1e-8 * upper  # the judge knows F* better than is claimed here
    return float((judge.value(w) - lower) / lower)


@pytest.mark.parametrize("c", C)
@pytest.mark.parametrize("seed", SEEDS)
def test_svm_rank_divides_c_by_the_number_of_queries(c, seed):
    data = problem(seed)
    pairs = explicit_pairs(data.y, data.qid)
    pairs.weight *= c / data.n_queries
    w = fit_like_svm_rank(data, c=c).coef
    assert above_optimum(w, data, "hinge", pairs) <= CLOSE


@pytest.mark.parametrize("c", C)
@pytest.mark.parametrize("seed", SEEDS)
def test_svm_rank_with_shares_divides_by_the_pairs_of_each_query_too(c, seed):
    data = problem(seed)
    pairs = explicit_pairs(data.y, data.qid)
    pairs.weight *= c / data.n_queries
    pairs.weight /= data.queries.n_pairs[data.qid[pairs.preferred]]
    w = fit_like_svm_rank(data, c=c, by_query=True).coef
    assert above_optimum(w, data, "hinge", pairs) <= CLOSE


@pytest.mark.parametrize("c", C)
@pytest.mark.parametrize("seed", SEEDS)
def test_liblinear_sums_over_all_pairs(c, seed):
    data = problem(seed)
    pairs = explicit_pairs(data.y, data.qid)
    pairs.weight *= c
    w = fit_like_liblinear(data, c=c).coef
    assert above_optimum(w, data, "squared_hinge", pairs) <= CLOSE


def test_liblinear_equals_linear_svc_on_differences():
    from sklearn.svm import LinearSVC

    data = problem(7)
    pairs = explicit_pairs(data.y, data.qid)
    differences = data.X[pairs.preferred] - data.X[pairs.other]
    sign = np.where(np.arange(len(differences)) % 2, 1, -1)
    svc = LinearSVC(C=0.5, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    svc.fit(sign[:, None] * differences, sign)
    w = fit_like_liblinear(data, c=0.5, epsilon=1e-8).coef
    np.testing.assert_allclose(w, svc.coef_[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-7, 1e-9])
def test_liblinear_bounds_the_gradient(epsilon):
    data = problem(1, n_queries=40, n_features=8)
    pairs = explicit_pairs(data.y, data.qid)
    judge = Oracle(data.X, pairs, LOSSES["squared_hinge"], 3.0)
    w = fit_like_liblinear(data, c=3.0, epsilon=epsilon).coef
    start, end = (np.linalg.norm(judge.gradient(v).astype(float)) for v in (0 * w, w))
    assert end <= epsilon * start


def test_features_unknown_to_the_model_are_left_out():
    data = RankingData([[1.0, 2.0, 3.0]], [0])
    assert scores_by(np.array([10.0, 1.0]), data) == [12.0]
    assert scores_by(np.array([10.0, 1.0, 0.0, 5.0]), data) == [12.0]
