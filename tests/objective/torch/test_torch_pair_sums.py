"""Sums over pairs on PyTorch, against the native kernels and against each other."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from helpers.tables import each
from helpers.torch_problems import N_FEATURES, both, make_data, relative_error

from marginrank import RankingData
from marginrank.objective.losses import LOSSES
from marginrank.objective.pair_weights import gain_difference

W = np.array([0.5, -0.25, 1.0, 0.75])
V = np.array([1.0, 0.3, -0.7, 0.1])
PRECISION = 1e-12


def assert_same(objectives, w=W):
    native, found = (objective.at(w) for objective in objectives)
    assert found.value == pytest.approx(native.value, rel=PRECISION)
    assert relative_error(found.gradient, native.gradient) < PRECISION
    assert found.sum_rounding == pytest.approx(native.sum_rounding, rel=1e-9)
    assert found.slope_rounding == pytest.approx(native.slope_rounding, rel=1e-9)
    assert found.losses.n_documents == native.losses.n_documents
    products = [point.hess_vec(V) for point in (native, found)]
    assert relative_error(products[1][0], products[0][0]) < PRECISION
    assert relative_error(products[1][1].numpy(), products[0][1]) < PRECISION


@each("loss", LOSSES)
@pytest.mark.parametrize("selection", ["all", "adjacent"])
@pytest.mark.parametrize("k", [1, 2, 5, 1000, "l"])
def test_any_number_of_levels(k, selection, loss):
    data = make_data(k, 1500, 7)
    assert_same(both(data, LOSSES[loss], pair_selection=selection))


@pytest.mark.parametrize(
    "layout", [np.asarray, np.float32, sp.csr_array], ids=["f64", "f32", "csr"]
)
@pytest.mark.parametrize("k", [2, 5, "l"])
def test_weights_and_margins(k, layout):
    data = make_data(k, 800, 5, layout=layout, weights=True)
    rng = np.random.default_rng(1)
    options = {"pair_weights": gain_difference(data.y), "margins": rng.normal(size=len(data.y))}
    assert_same(both(data, LOSSES["huber"], **options))


def test_scores_exactly_at_the_margin():
    """Whole scores and θ = 1: many pairs are exactly at a kink, on both sides the same."""
    data = make_data(5, 600, 3)
    for loss in ("hinge", "squared_hinge"):
        assert_same(both(data, LOSSES[loss]), np.array([2.0, -2.0, 0.0, 4.0]))


@pytest.mark.parametrize("has_ties", [True, False])
@pytest.mark.parametrize("k", [5, "l"])
def test_one_query_of_a_hundred_thousand_documents(k, has_ties):
    data = make_data(k, 100_000, 1)
    if not has_ties:
        data = data.with_features(np.random.default_rng(1).normal(size=data.X.shape))
    assert_same(both(data, LOSSES["squared_hinge"]))


def test_numbers_of_very_different_sizes():
    """A common offset, one huge document, tiny values: native kernels keep the digits as well."""
    data = make_data(5, 400, 2)
    X = np.array(data.X)
    X[:, 0] += 1e6
    X[7, 1] = 1e5
    X[:, 2] *= 1e-7
    data = RankingData(X, data.y, data.qid)
    native, found = (objective.at(W) for objective in both(data, LOSSES["squared_hinge"]))
    assert found.value == pytest.approx(native.value, rel=1e-12)
    error = np.abs(found.gradient - native.gradient)
    allowed = native.slope_rounding * native.objective.feature_magnitudes
    assert np.all(error <= 4 * allowed)


def test_scores_that_are_no_numbers_show():
    data = make_data(3, 60, 3)
    native, found = both(data, LOSSES["squared_hinge"])
    for bad in (np.nan, np.inf):
        points = [objective.at(np.array([bad, 1.0, 1.0, 1.0])) for objective in (native, found)]
        assert np.isnan(points[1].value)
        assert not points[1].objective.space.is_finite(points[1].score_gradient)
        assert not points[1].objective.space.is_finite(points[1].scores)


def test_a_query_does_not_feel_the_others():
    """Bits of a query's slopes and products are the same beside any other queries."""
    data = make_data(5, 500, 4, seed=3)
    order = np.argsort(data.qid, kind="stable")
    X, y, qid = np.array(data.X)[order] * np.pi, data.y[order], data.qid[order]
    whole = both(RankingData(X, y, qid), LOSSES["huber"])[1].at(W)
    z = whole.score_gradient.numpy()
    image = whole.hess_vec_scores(whole.scores).numpy()
    for q in range(4):
        mine = qid == q
        alone = both(RankingData(X[mine], y[mine], qid[mine]), LOSSES["huber"])[1]
        scores = torch.as_tensor(whole.scores.numpy()[mine].copy())
        point = alone.at(W, scores)
        np.testing.assert_array_equal(point.score_gradient.numpy(), z[mine])
        np.testing.assert_array_equal(point.hess_vec_scores(scores).numpy(), image[mine])


@pytest.mark.parametrize("k", [5, "l"])
def test_the_number_of_torch_threads_does_not_change_the_bits(k):
    objective = both(make_data(k, 60_000, 3), LOSSES["huber"])[1]
    rng = np.random.default_rng(0)
    scores, u = (torch.as_tensor(rng.normal(size=60_000)) for _ in range(2))
    found = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        point = objective.at(np.zeros(N_FEATURES), scores)
        image = point.hess_vec_scores(u).numpy()
        found.append((point.value, point.score_gradient.numpy(), image))
    for other in found[1:]:
        assert other[0] == found[0][0]
        np.testing.assert_array_equal(other[1], found[0][1])
        np.testing.assert_array_equal(other[2], found[0][2])
