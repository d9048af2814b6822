"""Lists of preference pairs: what is accepted, what is refused, and text files of them."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from marginrank import load_pairs
from marginrank.data.formats import letor
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


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1], [2, 4]], r"pairs\[1\] names row 4, but there are only the rows 0 to 3"),
        ([[0, 1], [-1, 2]], r"pairs\[1\] names row -1.*counting from 0"),
        ([[0, 2**70]], r"pairs\[0\] names row"),
        (np.array([[0, 2**64 - 1]], dtype=np.uint64), r"pairs\[0\] names row"),
        ([[0, 1e30]], r"pairs\[0\] names row"),
        ([[0, 1], [2, 2]], r"pairs\[1\] pairs row 2 with itself; drop it"),
        ([[0, 1], [1.5, 2]], r"pairs\[1\] is \(1\.5, 2\.0\); row numbers must be integers"),
        ([[0, np.nan]], r"pairs\[0\] is \(0\.0, nan\)"),
        ([[0, np.inf]], r"pairs\[0\] is \(0\.0, inf\)"),
        ([[0, None]], r"pairs\[0\] is \(0, None\)"),
        (np.array([[0, "1"]], dtype=object), r"pairs\[0\] is \(0, 1\)"),
        (np.array([[0, 1 + 2j]], dtype=object), r"pairs\[0\] is \(0, \(1\+2j\)\)"),
        ([["a", "b"]], r"pairs holds <U1 and must hold row numbers"),
        ([[True, False]], r"pairs holds bool"),
        ([[1j, 0]], r"pairs holds complex128"),
        ([[0, 1, 2]], r"pairs has shape \(1, 3\) and needs \(n_pairs, 2\)"),
        ([[0, 1, 2], [3, 2, 1]], r"shape \(2, 3\).*transpose it"),
        ([0, 1], r"pairs has shape \(2,\)"),
        (3, r"pairs has shape \(\)"),
        ([[0, 1], [2]], r"pairs must be rows of two row numbers"),
        ([], r"pairs is empty"),
        (np.empty((0, 2), dtype=int), r"pairs is empty"),
        (sp.csr_array((0, 4)), r"pairs is empty"),
        (pair_matrix(PAIRS, 5), r"shape \(4, 5\) and needs 4 columns"),
        (sp.coo_array(np.ones(4)), r"shape \(4,\) and needs 4 columns"),
        (sparse_rows([1, -1, 0, 0], [1, 0, 0, 0]), r"pairs\[1\] is a row of a pair matrix"),
        (sparse_rows([1, -1, 0, 1]), r"pairs\[0\] is a row of a pair matrix"),
        (sparse_rows([1, -2, 0, 0]), r"pairs\[0\] is a row of a pair matrix"),
        (sparse_rows([1, 1, 0, 0]), r"must hold one 1, for the preferred document, and one -1"),
        (sparse_rows([1, np.nan, 0, 0]), r"pairs\[0\] is a row of a pair matrix"),
        (sparse_rows([0, 0, 0, 0]), r"pairs\[0\] is a row of a pair matrix"),
        (outside(), r"pairs is not a valid sparse matrix"),
    ],
)  # fmt: skip
def test_malformed_pairs_are_named(pairs, message):
    with pytest.raises(ValueError, match=message):
        check_pairs(pairs, None, 4)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, 1], r"pair_weight has 3 entries and needs 4, one weight a pair"),
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
    with pytest.raises(ValueError, match="the pairs have weights already"):
        check_pairs(PairList(PAIRS, weight), weight, 4)


# Files


@pytest.mark.parametrize(
    "text",
    [
        b"3\t0\n1\t2\n3\t0\n0\t2\n",
        b"3 0\n1 2\n3 0\n0 2",
        b"3,0\r\n1, 2\r\n 3 ,0\r\n0\t,\t2\r\n",
        b"\xef\xbb\xbf  3   0  \n1 2\n003 0\n0,2\n\n  \n\r\n",
    ],
)
def test_separators(text, tmp_path):
    path = tmp_path / "train.pairs"
    path.write_bytes(text)
    listed = load_pairs(path)
    np.testing.assert_array_equal(listed.pairs, PAIRS)
    assert listed.pairs.dtype == np.int64
    assert listed.weight is None
    assert listed.place(2) == f"{path}:3"
    assert len(listed) == 4


def test_weights_in_the_third_column():
    listed = load_pairs(io.BytesIO(b"3,0,1\n1,2,.5\n3,0,+2.e-3\n0,2,0\n"))
    np.testing.assert_array_equal(listed.pairs, PAIRS)
    np.testing.assert_array_equal(listed.weight, [1, 0.5, 2e-3, 0])


def test_compressed_files(tmp_path):
    path = tmp_path / "p.txt.gz"
    path.write_bytes(gzip.compress(b"3 0\n1 2\n"))
    assert load_pairs(path).pairs.tolist() == [[3, 0], [1, 2]]
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(ValueError, match=r"p\.txt\.gz: the compressed file is damaged"):
        load_pairs(path)


def test_lines_of_many_chunks(monkeypatch):
    monkeypatch.setattr(letor, "CHUNK", 7)
    pairs = np.random.default_rng(0).integers(1000, size=(200, 2))
    text = "".join(f"{i} {j}\n" for i, j in pairs.tolist())
    np.testing.assert_array_equal(load_pairs(io.BytesIO(text.encode())).pairs, pairs)
    with pytest.raises(ValueError, match=r"<file>:201: 'x' is not a row number"):
        load_pairs(io.BytesIO(text.encode() + b"x 1\n"))
    with pytest.raises(ValueError, match=r"<file>:201: the line is empty"):
        load_pairs(io.BytesIO(text.encode() + b"\n" * 30 + b"1 2\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"winner,loser\n1,2\n", r"f:1: 'winner' is not a row number.* no header"),
        (b"1 2\n1.0 2\n", r"f:2: '1\.0' is not a row number"),
        (b"1 2\n3 -4\n", r"f:2: '-4' is not a row number"),
        (b"1 2\n3 4e2\n", r"f:2: '4e2' is not a row number"),
        (b"1 12345678901234567890\n", r"f:1: '12345678901234567890' is not a row number"),
        (b"1 2\n3 \x1b[2J\n", r"f:2: '\\x1b\[2J' is not a row number"),
        (b"1 2\n3 4\xff\n", r"f:2: '4\\xff' is not a row number"),
        (b"1 2\n3\n", r"f:2: 1 column"),
        (b"1 2 3 4\n", r"f:1: 4 columns; write the preferred row"),
        (b"1 2\n3 4 1\n", r"f:2: 3 columns, but the first line has 2"),
        (b"1 2 1\n3 4\n", r"f:2: 2 columns, but the first line has 3"),
        (b"1,,2\n", r"f:1: '' is not a row number"),
        (b"1 2\n\n3 4\n", r"f:2: the line is empty"),
        (b"\n1 2\n", r"f:1: the line is empty"),
        (b"1 2 1\n1 2 -1\n", r"f:2: '-1' is not a weight"),
        (b"1 2 nan\n", r"f:1: 'nan' is not a weight"),
        (b"1 2 1\n1 2 1e999\n", r"f:2: '1e999' is not a weight"),
        (b"1 2 0x1p3\n", r"f:1: '0x1p3' is not a weight"),
        (b"", r"f has no pairs"),
        (b"\n\n", r"f has no pairs"),
    ],
)
def test_malformed_lines_are_named(text, message):
    file = io.BytesIO(text)
    file.name = "f"
    with pytest.raises(ValueError, match=message):
        load_pairs(file)


def test_rows_of_a_file_are_named_by_line():
    listed = PairList(np.array([[0, 1], [7, 2]]), None, "train.pairs")
    with pytest.raises(ValueError, match=r"^train\.pairs:2 names row 7"):
        check_pairs(listed, None, 4)
