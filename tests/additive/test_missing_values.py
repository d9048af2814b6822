"""Rows that are filled when they are asked for, against a filled copy of all."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from marginrank import RankingData
from marginrank.additive.knots import FilledRows, choose_knots, with_filled
from marginrank.fit.scaling import find_scale

rng = np.random.default_rng(0)
DENSE = rng.normal(size=(60, 3)).astype(np.float32)
DENSE[rng.random(DENSE.shape) < 0.3] = 0.0
DENSE[::4, 0] = np.nan
DENSE[5, 2] = np.nan
QID = rng.integers(0, 7, 60)


def filled_copy(knots):
    middle = [knots.of(k)[knots.of(k).size // 2] for k in range(3)]
    return np.where(np.isnan(DENSE), np.asarray(middle, dtype=np.float32), DENSE)


@pytest.mark.parametrize("of", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("rows", [slice(0, 1), slice(3, 40), np.array([5, 4, 0]), slice(1, 4)])
def test_rows_are_those_of_a_filled_copy(of, rows):
    X, knots, before = of(DENSE), choose_knots(DENSE, 4), DENSE.copy()
    block = FilledRows(X, knots)[rows]
    assert sp.issparse(block) == sp.issparse(X)
    assert block.dtype == np.float32
    assert_array_equal(block.toarray() if sp.issparse(block) else block, filled_copy(knots)[rows])
    assert_array_equal(X.toarray() if sp.issparse(X) else X, before)


def test_rows_without_missing_values_are_not_copied():
    X = np.ones((4, 2))
    assert FilledRows(X, choose_knots(X)).shape == (4, 2)
    assert np.shares_memory(FilledRows(X, choose_knots(X))[1:3], X)


@pytest.mark.parametrize("scale", ["standard", "range", "query"])
@pytest.mark.parametrize("of", [np.asarray, sp.csr_matrix])
def test_scales_are_those_of_a_filled_copy(of, scale):
    knots = choose_knots(DENSE, 4)
    data = RankingData(of(DENSE), np.arange(60), QID, allow_nan=True)
    lazy = find_scale(with_filled(data, knots), scale)
    copied = find_scale(data.with_features(of(filled_copy(knots))), scale)
    np.testing.assert_allclose(lazy.values, copied.values, rtol=1e-12)
