"""The native matrix of hat functions, against the same matrix written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginrank import _core

WIDTHS = np.array([2, 5, 256, 3, 40, 900 // 4, 7])
STARTS = np.concatenate([[0], np.cumsum(WIDTHS)]).astype(np.int64)
rng = np.random.default_rng(0)
CODES = (rng.random((700, WIDTHS.size)) * (WIDTHS - 1)).astype(np.uint8)
STEPS = rng.integers(0, 2**15 + 1, CODES.shape).astype(np.uint16)
OFFSETS = np.array([0, 1, 30, 700])
ROWS = rng.permutation(700)


def written_out():
    X = np.zeros((700, STARTS[-1]))
    i = np.arange(700)
    for k, start in enumerate(STARTS[:-1]):
        p = STEPS[:, k] / 2**15
        X[i, start + CODES[:, k]] += 1 - p
        X[i, start + CODES[:, k] + 1] += p
    return X


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(_core.instruction_sets()[-1])


def pairs_of(rows):
    level = np.zeros(700, dtype=np.int32)
    level[1::2] = 1
    return _core.Pairs(
        n_rows=700, offsets=OFFSETS, rows=rows, level=level,
        n_levels=np.array([1, 2, 2], dtype=np.int32), query_weight=np.ones(3), preferred=None,
        other=None, margin=None, width=2**31 - 1, pieces=np.array([[1.0, 1.0, 2.0]]), ranks=None,
    )  # fmt: skip


@pytest.mark.parametrize("n_features", [1, 3, 4, WIDTHS.size])
def test_products(instruction_set, n_features):
    starts = STARTS[: n_features + 1].copy()
    codes, steps = (np.ascontiguousarray(a[:, :n_features]) for a in (CODES, STEPS))
    hats = _core.Matrix.hats(codes, steps, starts)
    X = written_out()[:, : starts[-1]]
    v, z = rng.normal(size=starts[-1]), rng.normal(size=700)
    assert (hats.n_rows, hats.n_columns) == X.shape
    assert hats.n_entries == 2 * codes.size
    assert_allclose(hats.dot(v), X @ v, atol=1e-12)
    assert_allclose(hats.dot(v, ROWS, 2), X[ROWS] @ v, atol=1e-12)
    for rows in (None, ROWS):
        of_rows = X if rows is None else X[rows]
        assert_allclose(_core.transpose_dot(hats, pairs_of(rows), z, 2), of_rows.T @ z, atol=1e-11)


def test_a_product_is_the_same_whatever_documents_are_beside_it(instruction_set):
    hats, v = _core.Matrix.hats(CODES, STEPS, STARTS), rng.normal(size=STARTS[-1])
    together = hats.dot(v)
    for n in (1, 2, 3, 5):
        some = np.arange(n, dtype=np.int64) + 7
        assert_array_equal(hats.dot(v, some), together[some])


def test_features_of_several_tiles(instruction_set):
    widths = np.tile([256, 2, 35], 20)
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    codes = (rng.random((9, 60)) * (widths - 1)).astype(np.uint8)
    steps = rng.integers(0, 2**15 + 1, codes.shape).astype(np.uint16)
    X, i = np.zeros((9, starts[-1])), np.arange(9)
    for k, start in enumerate(starts[:-1]):
        X[i, start + codes[:, k]] += 1 - steps[:, k] / 2**15
        X[i, start + codes[:, k] + 1] += steps[:, k] / 2**15
    hats, v, z = _core.Matrix.hats(codes, steps, starts), rng.normal(size=starts[-1]), np.ones(9)
    pairs = _core.Pairs(
        n_rows=9, offsets=np.array([0, 9]), rows=None, level=(i % 2).astype(np.int32),
        n_levels=np.array([2], dtype=np.int32), query_weight=np.ones(1), preferred=None,
        other=None, margin=None, width=2**31 - 1, pieces=np.array([[1.0, 1.0, 2.0]]), ranks=None,
    )  # fmt: skip
    assert_allclose(hats.dot(v), X @ v, atol=1e-12)
    assert_allclose(_core.transpose_dot(hats, pairs, z, 2), X.sum(axis=0), atol=1e-12)


def test_entries():
    hats, X = _core.Matrix.hats(CODES, STEPS, STARTS), written_out()
    assert hats.sum() == pytest.approx(X.sum())
    assert_allclose(hats.magnitudes(2), X.max(axis=0), atol=1e-7)
    for j in (0, 1, 6, int(STARTS[2]), int(STARTS[-1]) - 1):
        assert_array_equal(hats.column(j, ROWS), X[ROWS, j])
    chosen = np.array([0, 3, 200, 265])
    some, v = hats.take_columns(chosen), rng.normal(size=4)
    assert_allclose(some.dot(v), X[:, chosen] @ v, atol=1e-12)


@pytest.mark.parametrize(
    ("codes", "steps", "starts", "sentence"),
    [
        (CODES, STEPS[:5], STARTS, "codes and steps must have the same shape"),
        (CODES, STEPS, STARTS[:-1], "starts must begin with 0"),
        (CODES, STEPS, STARTS + 1, "starts must begin with 0"),
        (CODES[:, :1], STEPS[:, :1], np.array([0, 1]), "a feature must have 2 to 256 columns"),
        (CODES[:, :1], STEPS[:, :1], np.array([0, 257]), "a feature must have 2 to 256 columns"),
        (np.full((2, 1), 4, np.uint8), np.zeros((2, 1), np.uint16), np.array([0, 5]),
         "codes must have a column to their right"),
    ],
)  # fmt: skip
def test_what_would_be_read_outside_of_memory_is_refused(codes, steps, starts, sentence):
    with pytest.raises(ValueError, match=sentence):
        _core.Matrix.hats(np.ascontiguousarray(codes), np.ascontiguousarray(steps), starts)


def test_knots_that_do_not_fit_are_refused():
    X, starts = np.zeros((2, 1)), np.array([0, 3])
    with pytest.raises(ValueError, match="categorical must have one entry per feature"):
        _core.encode_hats(X, np.zeros(3), starts, np.zeros(2, np.uint8), 1)
    with pytest.raises(ValueError, match="knots must have one entry per column"):
        _core.encode_hats(X, np.zeros(2), starts, np.zeros(1, np.uint8), 1)
    with pytest.raises(ValueError, match="values must have one entry per column"):
        _core.curve_scores(X, np.zeros(3), starts, np.zeros(1, np.uint8), np.zeros(2), 1)
