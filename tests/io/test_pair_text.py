"""Text files of preference pairs: what is read, and what is refused by file and line."""

import gzip
import io

import numpy as np
import pytest
from helpers.tables import each

from marginrank import load_pairs
from marginrank.io import text_sources

PAIRS = np.array([[3, 0], [1, 2], [3, 0], [0, 2]])


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


def test_margins_in_the_fourth_column():
    listed = load_pairs(io.BytesIO(b"4 0 1 0.5\n2 0 2 1\n"))
    np.testing.assert_array_equal(listed.weight, [1.0, 2.0])
    np.testing.assert_array_equal(listed.margin, [0.5, 1.0])


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
    monkeypatch.setattr(text_sources, "CHUNK", 7)
    pairs = np.random.default_rng(0).integers(1000, size=(200, 2))
    text = "".join(f"{i} {j}\n" for i, j in pairs.tolist())
    np.testing.assert_array_equal(load_pairs(io.BytesIO(text.encode())).pairs, pairs)
    with pytest.raises(ValueError, match=r"<file>:201: 'x' is not a row number"):
        load_pairs(io.BytesIO(text.encode() + b"x 1\n"))
    with pytest.raises(ValueError, match=r"<file>:201: the line is empty"):
        load_pairs(io.BytesIO(text.encode() + b"\n" * 30 + b"1 2\n"))


@each(
    ("text", "message"),
    [
        (b"winner,loser\n1,2\n", r"f:1: 'winner' is not a row number.* header"),
        (b"1 2\n1.0 2\n", r"f:2: '1\.0' is not a row number"),
        (b"1 2\n3 -4\n", r"f:2: '-4' is not a row number"),
        (b"1 2\n3 4e2\n", r"f:2: '4e2' is not a row number"),
        (b"1 12345678901234567890\n", r"f:1: '12345678901234567890' is not a row number"),
        (b"1 2\n3 \x1b[2J\n", r"f:2: '\\x1b\[2J' is not a row number"),
        (b"1 2\n3 4\xff\n", r"f:2: '4\\xff' is not a row number"),
        (b"1 2\n3\n", r"f:2: 1 column"),
        (b"1 2 3 4 5\n", r"f:1: 5 columns"),
        (b"1 2 1 1\n1 2 1 -4\n", r"f:2: '-4' is not a margin"),
        (b"1 2 x 1\n", r"f:1: 'x' is not a weight"),
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
