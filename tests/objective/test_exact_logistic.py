"""The logistic loss on listed pairs, which is log(1 + exp(−t)) itself."""

import numpy as np
import pytest
from helpers.brute_force import BruteForce, ExplicitPairs
from helpers.parts_backend import MemoryParts
from sklearn.linear_model import LogisticRegression

from marginrank import RankingData, RankSVM
from marginrank.data.pair_lists import PairList
from marginrank.fit.inputs import choose_pairs, objective_on
from marginrank.fit.linear import Parameters, fit_linear, preferences_of
from marginrank.objective.composite import Composite
from marginrank.objective.losses import LOSSES, exact
from marginrank.objective.regularizers import L1Ball
from marginrank.operators.torch.matrix import TorchMatrix

LONG = np.longdouble
LOGISTIC = exact(LOSSES["logistic"])
rng = np.random.default_rng(5)
X = rng.normal(size=(300, 8))
QID = np.arange(300) // 20
PAIRS = np.array(
    [(20 * q + a, 20 * q + b) for q in range(15) for a, b in rng.permutation(20).reshape(10, 2)]
)
PAIRS = np.concatenate([PAIRS, PAIRS[::3, ::-1], PAIRS[:40] // 20 * 20 + [[1, 2]]])
WEIGHT = rng.uniform(0.1, 2.0, len(PAIRS))
MARGIN = rng.normal(size=len(PAIRS))


def objective(C=1.0, weight=None, margin=None, threads=1, dtype=np.float64):
    data = RankingData(X.astype(dtype), np.zeros(300), QID)
    listed = PairList(PAIRS, weight, margin=margin)
    chosen = choose_pairs(data, LOGISTIC, pairs=listed, threads=threads)
    return objective_on(data, chosen, C=C, threads=threads)


def brute_force(C=1.0, weight=None, margin=None):
    i, j = PAIRS.T
    ones, zeros = np.ones(len(PAIRS)), np.zeros(len(PAIRS))
    shift = zeros if margin is None else margin
    pairs = ExplicitPairs(i, j, ones if weight is None else weight, shift)
    return BruteForce(X, pairs, LOGISTIC, C)


@pytest.mark.parametrize(("weight", "margin"), [(None, None), (WEIGHT, None), (WEIGHT, MARGIN)])
@pytest.mark.parametrize("size", [0.1, 3.0, 500.0])
def test_value_gradient_and_hessian(weight, margin, size):
    ours, theirs = objective(2.0, weight, margin), brute_force(2.0, weight, margin)
    w, v = size * rng.normal(size=8), rng.normal(size=8)
    point = ours.at(w)
    assert point.value == pytest.approx(theirs.value(w), rel=1e-13)
    np.testing.assert_allclose(point.gradient, theirs.gradient(w), rtol=1e-11, atol=1e-11 * size)
    hessian = theirs.hessian(w)
    np.testing.assert_allclose(point.hess_vec(v)[0], hessian @ v, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(point.hessian(), hessian, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(point.hess_diag(), np.diag(hessian), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(point.rough_hessian(), hessian, rtol=1e-4, atol=1e-4 * 600)


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 1e4])
def test_rounding_is_within_the_bound(size):
    """Held against long double arithmetic over explicit pairs."""
    for _ in range(10):
        point = objective(weight=WEIGHT, margin=MARGIN).at(size * rng.normal(size=8))
        differences = (X[PAIRS[:, 0]] - X[PAIRS[:, 1]]).astype(LONG)
        wide = X.astype(LONG)
        scores = wide @ point.w.astype(LONG)
        t = scores[PAIRS[:, 0]] - scores[PAIRS[:, 1]] - MARGIN
        true = WEIGHT.astype(LONG) @ np.logaddexp(LONG(0), -t)
        assert abs(true - point.loss_value) <= point.rounding
        slope = WEIGHT.astype(LONG) * np.exp(-np.logaddexp(LONG(0), t))
        gradient = point.w - differences.T @ slope
        error = np.linalg.norm((gradient - point.gradient).astype(float))
        assert error <= point.gradient_rounding


def test_scores_that_are_not_finite_give_nan():
    ours = objective()
    found = ours.pair_loss.evaluate(np.full(ours.pairs.n_documents, np.inf), None)
    assert np.isnan(found.losses.value)
    unit = np.ones(ours.pairs.n_documents)
    assert not ours.pair_loss.hess_vec(found.state, unit).any()


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_optimum_is_that_of_logistic_regression(C, dtype):
    rows = X.astype(dtype)
    D = rows[PAIRS[:, 0]].astype(float) - rows[PAIRS[:, 1]].astype(float)
    both = np.concatenate([D, -D]), np.repeat([1, 0], len(D))
    other = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10_000)
    other.fit(*both, sample_weight=np.full(2 * len(D), 0.5))
    w = other.coef_[0]
    theirs = 0.5 * w @ w + C * np.sum(np.logaddexp(0.0, -D @ w))
    for solver in ("newton", "tron"):
        model = RankSVM(C=C, loss="logistic", solver=solver, tol=1e-9)
        model.fit(rows, qid=QID, pairs=PAIRS)
        assert model.stop_reason_.converged
        assert model.objective_ == pytest.approx(theirs, rel=1e-8)


def test_backends_agree():
    ours = objective(3.0, WEIGHT)
    data = RankingData(X, np.zeros(300), QID)
    w, v = X[:2]
    point = ours.at(w)
    for matrix in (MemoryParts(data), TorchMatrix.of(data)):
        other = ours.on(matrix).at(w)
        assert other.value == pytest.approx(point.value, rel=1e-13)
        np.testing.assert_allclose(other.gradient, point.gradient, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(other.hess_vec(v)[0], point.hess_vec(v)[0], rtol=1e-11)
        assert other.gap == pytest.approx(point.gap, rel=1e-6)


def test_any_number_of_threads_gives_the_same_bits():
    found = []
    for threads in (1, 2, 3):
        point = objective(5.0, WEIGHT, MARGIN, threads).at(X[0])
        found.append((point.value, *point.gradient, *point.hess_vec(X[1])[0]))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_the_report_says_which_loss_was_minimized(device):
    data = RankingData(X, rng.integers(0, 3, 300), QID)
    parameters = Parameters(loss="logistic", device=device)
    listed = fit_linear(data, parameters, pairs=PairList(PAIRS)).report
    assert listed.loss_error == 0.0
    assert listed.support_pairs == len(PAIRS)
    assert fit_linear(data, parameters).report.loss_error == 0.01
    assert fit_linear(data, Parameters(loss="logistic@0.001")).report.loss_error == 0.001


def test_an_approximation_on_listed_pairs_is_exact():
    data = RankingData(X, np.zeros(300), QID)
    for name in ("logistic", "logistic@0.001"):
        chosen = preferences_of(data, Parameters(loss=name), pairs=PairList(PAIRS))
        assert chosen.loss == LOGISTIC


def test_derivatives_of_the_value():
    t, h = np.linspace(-30.0, 30.0, 41), 1e-5
    slope = (LOGISTIC.value(t + h) - LOGISTIC.value(t - h)) / (2 * h)
    np.testing.assert_allclose(LOGISTIC.derivative(t), slope, atol=1e-9)
    curvature = (LOGISTIC.derivative(t + h) - LOGISTIC.derivative(t - h)) / (2 * h)
    np.testing.assert_allclose(LOGISTIC.curvature(t), curvature, atol=1e-9)
    assert np.max(LOGISTIC.curvature(t)) == 0.25


def test_labels_need_hinge_terms():
    data = RankingData(X, np.arange(300) % 3, QID)
    chosen = choose_pairs(data, LOGISTIC)
    with pytest.raises(ValueError, match="pieces"):
        chosen.pairs.native(LOGISTIC)
    with pytest.raises(ValueError, match="hinge terms"):
        Composite(objective(), L1Ball(1.0))
