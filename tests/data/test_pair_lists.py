"""Lists of preference pairs: what is accepted and what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.tables import each

from marginrank.data.pair_lists import PairList, check_pairs

PAIRS = np.array([[3, 0], [1, 2], [3, 0], [0, 2]])


def pair_matrix(pairs, n, dtype=np.float64):
    rows = np.repeat(np.arange(len(pairs)), 2)
    signs = np.tile([1, -1], len(pairs)).astype(dtype)
    return sp.coo_array((signs, (rows, np.ravel(pairs))), shape=(len(pairs), n))


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        PAIRS.tolist(),
        PAIRS.astype(np.int32),
        PAIRS.astype(np.uint64),
        PAIRS.astype(np.float16),
        PAIRS.astype(np.uint8),
        PAIRS.astype(object),
        np.asfortranarray(PAIRS),
        PAIRS[::-1][::-1],
        pd.DataFrame(PAIRS, columns=["winner", "loser"]),
        PairList(PAIRS),
        PairList(PAIRS.tolist()),
        pair_matrix(PAIRS, 4),
        pair_matrix(PAIRS, 4, np.int8).tocsr(),
        sp.csc_matrix(pair_matrix(PAIRS, 4)),
        sp.lil_array(pair_matrix(PAIRS, 4)),
    ],
)
def test_forms_of_pairs(pairs):
    listed = check_pairs(pairs, None, 4)
    np.testing.assert_array_equal(listed.pairs, PAIRS)
    assert listed.pairs.dtype == np.int64
    assert listed.weight is None


def test_stored_zeros_and_sums_of_a_pair_matrix():
    matrix = sp.coo_array(([1.0, 0.0, -0.5, -0.5], ([0, 0, 0, 0], [2, 1, 0, 0])), shape=(1, 3))
    assert check_pairs(matrix, None, 3).pairs.tolist() == [[2, 0]]
    assert matrix.nnz == 4  # not modified


def test_an_array_that_fits_is_not_copied():
    assert check_pairs(PAIRS, None, 4).pairs is PAIRS


def sparse_rows(*rows):
    return sp.csr_array(np.array(rows, dtype=float))


def outside():
    matrix = pair_matrix(PAIRS, 4).tocsr()
    matrix.indices = matrix.indices + 100
    return matrix


@each(("pairs", "message"),
    [
        ([[0, 1], [2, 4]], r"pairs\[1\] has row 4, .* from 0 to 3"),
        ([[0, 1], [-1, 2]], r"pairs\[1\] has row -1"),
        ([[0, 2**70]], r"pairs\[0\] has row"),
        (np.array([[0, 2**64 - 1]], dtype=np.uint64), r"pairs\[0\] has row"),
        ([[0, 1e30]], r"pairs\[0\] has row"),
        ([[0, 1], [2, 2]], r"pairs\[1\] pairs row 2 with itself; drop it"),
        ([[0, 1], [1.5, 2]], r"pairs\[1\] is \(1\.5, 2\.0\); row numbers must be integers"),
        ([[0, np.nan]], r"pairs\[0\] is \(0\.0, nan\)"),
        ([[0, np.inf]], r"pairs\[0\] is \(0\.0, inf\)"),
        ([[0, None]], r"pairs\[0\] is \(0, None\)"),
        (np.array([[0, "1"]], dtype=object), r"pairs\[0\] is \(0, 1\)"),
        (np.array([[0, 1 + 2j]], dtype=object), r"pairs\[0\] is \(0, \(1\+2j\)\)"),
        ([["a", "b"]], r"pairs has dtype <U1"),
        ([[True, False]], r"pairs has dtype bool"),
        ([[1j, 0]], r"pairs has dtype complex128"),
        ([[0, 1, 2]], r"pairs has shape \(1, 3\) .* \(n_pairs, 2\)"),
        ([[0, 1, 2], [3, 2, 1]], r"shape \(2, 3\).*transpose it"),
        ([0, 1], r"pairs has shape \(2,\)"),
        (3, r"pairs has shape \(\)"),
        ([[0, 1], [2]], r"pairs must have shape"),
        ([], r"pairs is empty"),
        (np.empty((0, 2), dtype=int), r"pairs is empty"),
        (sp.csr_array((0, 4)), r"pairs is empty"),
        (pair_matrix(PAIRS, 5), r"shape \(4, 5\).* 4 columns"),
        (sp.coo_array(np.ones(4)), r"shape \(4,\).* 4 columns"),
        (sparse_rows([1, -1, 0, 0], [1, 0, 0, 0]), r"pairs\[1\] \(a row of a sparse matrix\)"),
        (sparse_rows([1, -1, 0, 1]), r"pairs\[0\] \(a row of a sparse matrix\)"),
        (sparse_rows([1, -2, 0, 0]), r"pairs\[0\] \(a row of a sparse matrix\)"),
        (sparse_rows([1, 1, 0, 0]), r"must have one 1, for the preferred document, and one -1"),
        (sparse_rows([1, np.nan, 0, 0]), r"pairs\[0\] \(a row of a sparse matrix\)"),
        (sparse_rows([0, 0, 0, 0]), r"pairs\[0\] \(a row of a sparse matrix\)"),
        (outside(), r"pairs is not a valid sparse matrix"),
    ],)  # fmt: skip
def test_malformed_pairs_are_named(pairs, message):
    with pytest.raises(ValueError, match=message):
        check_pairs(pairs, None, 4)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1], r"pair_weight has 3 entries and needs 4, one weight per pair"),
        ([1, -1, 1, 1], r"pair_weight\[1\] is -1"),
        ([1, 1, np.nan, 1], r"pair_weight\[2\] is NaN"),
        ([1, 1, 1, np.inf], r"pair_weight\[3\] is infinity"),
        (np.ones((4, 2)), r"pair_weight has shape \(4, 2\)"),
        ("heavy", r"pair_weight must hold real numbers"),
    ],
)
def test_malformed_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        check_pairs(PAIRS, weight, 4)


def test_weights_are_given_once():
    weight = np.arange(4.0)
    np.testing.assert_array_equal(check_pairs(PairList(PAIRS), weight, 4).weight, weight)
    with pytest.raises(ValueError, match=r"pair_weight\[1\] is -1"):
        check_pairs(PairList(PAIRS, -weight), None, 4)
    with pytest.raises(ValueError, match=r"pair_weight.* already"):
        check_pairs(PairList(PAIRS, weight), weight, 4)


def test_rows_of_a_file_are_named_by_line():
    listed = PairList(np.array([[0, 1], [7, 2]]), None, "train.pairs")
    with pytest.raises(ValueError, match=r"^train\.pairs:2 has row 7"):
        check_pairs(listed, None, 4)
