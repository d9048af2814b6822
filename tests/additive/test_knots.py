"""Knots at quantiles, and where values lie among them."""

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank.additive import knots as knots_module
from marginrank.additive.knots import choose_knots, encode
from marginrank.data import knots as plain_knots
from marginrank.data.knots import Knots


def interpolated(t, c, x):
    """Return the curve through (t, c) at x, which goes on straight beyond its ends."""
    j = np.clip(np.searchsorted(t, x, side="right") - 1, 0, t.size - 2)
    return c[j] + (x - t[j]) * (c[j + 1] - c[j]) / (t[j + 1] - t[j])


def entries_of(places, k):
    """Return left columns and shares of the right one, of a feature."""
    return places.codes[:, k].astype(int), places.steps[:, k] / 2**15


def test_few_values_are_all_knots():
    X = np.array([[3.0], [1.0], [2.0], [1.0]])
    np.testing.assert_array_equal(choose_knots(X, 2).of(0), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("max_bins", [1, 2, 7, 32, 254])
def test_many_values_have_knots_at_quantiles(max_bins):
    x = np.random.default_rng(0).exponential(size=5000)
    t = choose_knots(x[:, None], max_bins).of(0)
    assert t.size == max_bins + 1
    assert t[0] == x.min()
    assert t[-1] == x.max()
    assert np.isin(t, x).all()
    counts = np.histogram(x, t)[0]
    assert np.abs(counts - 5000 / max_bins).max() <= 2


def test_a_frequent_value_is_a_knot_and_the_others_share_the_rest():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(4000) < 0.9, 0.0, 1.0 + rng.random(4000))
    t = choose_knots(x[:, None], 16).of(0)
    assert 15 <= t.size <= 17
    assert t[0] == 0.0
    assert t[1] == x[x > 0].min()  # so that a curve may jump from zero to the others


def test_no_more_bins_than_asked_for_where_many_values_are_frequent():
    x = np.repeat(np.arange(40.0), np.r_[np.full(20, 100), np.full(20, 3)])
    assert 2 <= choose_knots(x[:, None], 21).of(0).size <= 22


def test_outer_knots_are_those_of_all_documents_where_quantiles_are_those_of_some(monkeypatch):
    monkeypatch.setattr(knots_module, "SAMPLE", 50)
    x = np.random.default_rng(0).normal(size=2000)
    t = choose_knots(x[:, None], 8).of(0)
    assert (t[0], t[-1]) == (x.min(), x.max())


def test_missing_values_are_no_knots():
    X = np.array([[np.nan, np.nan], [1.0, np.nan], [2.0, np.nan]])
    knots = choose_knots(X, 4)
    np.testing.assert_array_equal(knots.of(0), [1.0, 2.0])
    assert knots.of(1).size == 1
    places = encode(knots, X, 1)
    assert (places.codes[0, 0], places.steps[0, 0]) == (0, 0)
    assert not places.codes[:, 1].any()
    assert not places.steps[:, 1].any()


def test_infinity_is_refused_by_its_place(monkeypatch):
    monkeypatch.setattr(plain_knots, "BLOCK_ENTRIES", 4)
    X = np.zeros((5, 2))
    X[3, 1] = -np.inf
    with pytest.raises(ValueError, match=r"X\[3, 1\] is infinity"):
        choose_knots(X)


def test_categories_are_all_values_of_all_documents():
    X = np.array([[5.0, 1.0], [2.0, 2.0], [np.nan, 3.0], [5.0, 4.0]])
    knots = choose_knots(X, 1, categorical=[0])
    np.testing.assert_array_equal(knots.of(0), [2.0, 5.0])
    np.testing.assert_array_equal(knots.of(1), [1.0, 4.0])
    left, p = entries_of(encode(knots, X, 1), 0)
    np.testing.assert_array_equal(left + p, [2, 1, 0, 2])


def test_too_many_categories_are_refused():
    X = np.arange(300.0)[:, None]
    with pytest.raises(ValueError, match=r"X\[:, 0\] has 300 categories.*254"):
        choose_knots(X, categorical=[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "strided", "csr"])
def test_places_give_the_values_back(dtype, layout, monkeypatch):
    monkeypatch.setattr(plain_knots, "BLOCK_ENTRIES", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(dtype)
    X[rng.random(X.shape) < 0.5] = 0.0
    given = {"dense": X, "strided": np.hstack([X, X])[:, :3], "csr": sp.csr_array(X)}[layout]
    knots = choose_knots(given, 8)
    places = encode(knots, given, 2)
    for k in range(3):
        t = knots.at[knots.columns(k)]
        left, p = entries_of(places, k)
        back = (1 - p) * t[left] + p * t[left + 1]
        np.testing.assert_allclose(back, X[:, k], atol=np.diff(t[1:]).max() * 2**-16)


def test_values_beyond_the_outer_knots_are_put_there():
    knots = Knots.of_features([np.array([0.0, 1.0, 3.0])])
    left, p = entries_of(encode(knots, np.array([[-5.0], [7.0], [1.0], [2.0]]), 1), 0)
    np.testing.assert_array_equal(left + p, [1, 3, 2, 2.5])


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_scores_are_sums_of_curves(layout, monkeypatch):
    monkeypatch.setattr(plain_knots, "BLOCK_ENTRIES", 64)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    X[:, 2] = rng.integers(0, 5, 100)
    X[:, 3] = 1.0
    knots = choose_knots(X, 6, categorical=[2])
    X[:, 2] = rng.integers(0, 7, 100)  # 5 and 6 are new
    X[:, :2] *= 3.0  # some lie outside
    values = rng.normal(size=knots.n_columns)
    expected = np.zeros(100)
    for k in (0, 1):
        expected += interpolated(knots.of(k), values[knots.columns(k)][1:], X[:, k])
    of_category = values[knots.columns(2)]
    expected += np.where(X[:, 2] < 5, of_category[np.minimum(X[:, 2].astype(int) + 1, 5)],
                         of_category[0])  # fmt: skip
    expected += values[knots.columns(3)][1]
    given = sp.csr_array(X) if layout == "csr" else X
    np.testing.assert_allclose(knots.scores(given, values, 2), expected, rtol=0, atol=1e-12)
    X[:50] = np.nan
    of_missing = values[knots.starts[:-1]].sum()
    np.testing.assert_allclose(knots.scores(X, values, 1)[:50], of_missing, atol=1e-12)


def test_threads_do_not_change_places_and_scores():
    X = np.random.default_rng(0).normal(size=(3000, 5))
    knots = choose_knots(X)
    values = np.random.default_rng(1).normal(size=knots.n_columns)
    for one, many in zip(encode(knots, X, 1), encode(knots, X, 4), strict=True):
        np.testing.assert_array_equal(one, many)
    np.testing.assert_array_equal(knots.scores(X, values, 1), knots.scores(X, values, 4))
