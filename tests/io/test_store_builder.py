"""Stores built of blocks: what reading all at once gives, in the order of the queries."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank import RankingData, load_letor
from marginrank.data.store import feature_rows
from marginrank.data.store.feature_rows import Entries, FeatureRows
from marginrank.data.stored_data import open_stored
from marginrank.io import store_builder, text_sources
from marginrank.io.letor import narrowed
from marginrank.io.store_builder import DocumentBlock, build_store, table_blocks, text_blocks


def letor_text(n=300, n_queries=20, sparse=False, grouped=False, ids="q{}", seed=0):
    rng = np.random.default_rng(seed)
    queries = rng.integers(0, n_queries, n)
    if grouped:
        queries = np.sort(queries)
    lines = []
    for row, query in enumerate(queries):
        columns = rng.choice(200, 3, replace=False) if sparse else np.arange(6)
        features = " ".join(f"{c + 1}:{rng.integers(0, 400) / 4:g}" for c in sorted(columns))
        lines.append(f"{rng.integers(0, 3)} qid:{ids.format(query)} {features} # doc {row}\n")
    return "".join(lines)


@pytest.fixture
def small_blocks(monkeypatch):
    """Read 1,000 bytes of text at a time, and write few rows at a time."""
    monkeypatch.setattr(text_sources, "CHUNK", 1000)
    monkeypatch.setattr(feature_rows, "BLOCK", 256)


def assert_grouped(built, expected):
    """Assert that a store has the documents of data, query by query."""
    rows = expected.queries.rows
    rows = np.arange(expected.n_documents) if rows is None else rows
    assert built.queries.rows is None
    assert sp.issparse(built.X) == sp.issparse(expected.X)
    assert built.X.dtype == expected.X.dtype
    if sp.issparse(built.X):
        assert built.X.indices.dtype == expected.X.indices.dtype
        assert (expected.X[rows] != built.X).nnz == 0
        assert built.X.nnz == expected.X.nnz
    else:
        np.testing.assert_array_equal(built.X, expected.X[rows])
    np.testing.assert_array_equal(built.y, expected.y[rows])
    np.testing.assert_array_equal(built.query_ids, expected.query_ids)
    assert built.query_ids.dtype == expected.query_ids.dtype
    np.testing.assert_array_equal(built.qid, expected.qid[rows])
    np.testing.assert_array_equal(built.queries.level, expected.queries.level)
    assert list(built.comments) == [expected.comments[row] for row in rows]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ids", ["q{}", "{}"])
def test_text_becomes_what_it_is_read_as(tmp_path, small_blocks, grouped, sparse, ids):
    path = tmp_path / "t.txt.gz"
    path.write_bytes(gzip.compress(letor_text(sparse=sparse, grouped=grouped, ids=ids).encode()))
    built = build_store(text_blocks(path), tmp_path / "s", of_text=True, narrow=True)
    assert built.moved != grouped
    expected = load_letor(path, comments=True)
    assert_grouped(RankingData.open(tmp_path / "s"), expected)
    assert sorted(os.listdir(tmp_path)) == ["s", "t.txt.gz"]


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_layout_that_is_asked_for(tmp_path, small_blocks, layout):
    (tmp_path / "t.txt").write_text(letor_text(sparse=layout == "dense"))
    blocks = text_blocks(tmp_path / "t.txt", layout=layout, dtype=np.float32)
    build_store(blocks, tmp_path / "s", layout=layout, of_text=True)
    expected = load_letor(tmp_path / "t.txt", layout=layout, comments=True)
    assert_grouped(RankingData.open(tmp_path / "s"), expected)


@pytest.mark.parametrize("where", [0, 299])
def test_one_long_number_anywhere_keeps_all_digits(tmp_path, small_blocks, where):
    lines = letor_text().splitlines(keepends=True)
    lines[where] = re.sub(" 1:[^ ]*", " 1:0.12345678912", lines[where])
    (tmp_path / "t.txt").write_text("".join(lines))
    build_store(text_blocks(tmp_path / "t.txt"), tmp_path / "s", of_text=True, narrow=True)
    expected = load_letor(tmp_path / "t.txt", dtype="float64", comments=True)
    assert narrowed(expected.X) is expected.X
    assert_grouped(RankingData.open(tmp_path / "s"), expected)


def test_ids_are_integers_only_if_all_are(tmp_path, small_blocks):
    text = letor_text(ids="{}", grouped=True) + "1 qid:01 1:1\n"
    (tmp_path / "t.txt").write_text(text)
    build_store(text_blocks(tmp_path / "t.txt"), tmp_path / "s", of_text=True, narrow=True)
    assert_grouped(RankingData.open(tmp_path / "s"), load_letor(tmp_path / "t.txt", comments=True))


def test_a_later_block_may_have_more_features(tmp_path, small_blocks):
    (tmp_path / "t.txt").write_text(letor_text(grouped=True) + "1 qid:z 9:7\n")
    build_store(text_blocks(tmp_path / "t.txt"), tmp_path / "s", of_text=True, narrow=True)
    opened = RankingData.open(tmp_path / "s")
    assert opened.n_features == 9
    assert_grouped(opened, load_letor(tmp_path / "t.txt", comments=True))


def test_group_sizes_instead_of_ids(tmp_path, small_blocks):
    lines = [f"{k % 3} 1:{k}\n" for k in range(400)]
    (tmp_path / "t.txt").write_text("".join(lines))
    sizes = np.array([100, 300])
    blocks = text_blocks(tmp_path / "t.txt", has_group=True)
    build_store(blocks, tmp_path / "s", group=lambda n: sizes if n == 400 else None, of_text=True)
    assert RankingData.open(tmp_path / "s").queries.offsets.tolist() == [0, 100, 400]


def test_bad_lines_are_named_by_number(tmp_path, small_blocks):
    (tmp_path / "t.txt").write_text(letor_text() + "1 qid:q1 1:x\n")
    with pytest.raises(ValueError, match=r"t\.txt:301:12: "):
        build_store(text_blocks(tmp_path / "t.txt"), tmp_path / "s")
    assert os.listdir(tmp_path) == ["t.txt"]


@pytest.mark.parametrize("first", ["with", "without"])
def test_a_line_without_qid_in_a_later_block_is_named(tmp_path, small_blocks, first):
    with_qid, without = ["1 qid:q1 1:2\n"] * 200, ["1 1:2\n"] * 400
    comments = ["# nothing\n", "\n"]
    lines = with_qid + comments + without if first == "with" else without + comments + with_qid
    (tmp_path / "t.txt").write_text("".join(lines))
    with pytest.raises(ValueError, match=r"this line has (no|a) qid:, but others have") as error:
        build_store(text_blocks(tmp_path / "t.txt"), tmp_path / "s")
    line = int(str(error.value).split(":")[1])
    assert line == (203 if first == "with" else 403)


def test_empty_text_is_refused(tmp_path):
    (tmp_path / "t.txt").write_text("# nothing\n")
    with pytest.raises(ValueError, match="has no documents"):
        build_store(text_blocks(tmp_path / "t.txt"), tmp_path / "s")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_of_what_fails(tmp_path, error):
    def blocks():
        yield DocumentBlock(np.ones((2, 1), np.float32), np.array([0.0, 1.0]), np.array([1, 1]))
        raise error

    with pytest.raises(error):
        build_store(blocks(), tmp_path / "s")
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_too_small_is_refused_with_numbers(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(store_builder.shutil, "disk_usage", lambda _: usage._replace(free=10))
    block = DocumentBlock(np.ones((2, 1), np.float32), np.array([0.0, 1.0]), np.array([1, 1]))
    with pytest.raises(OSError, match=r"needs up to .* GB .* are free.*: '.*s'"):
        build_store([block], tmp_path / "s")
    assert os.listdir(tmp_path) == []


def test_parquet_in_batches_is_what_it_is_at_once(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    from marginrank.io import table_files

    monkeypatch.setattr(table_files, "BATCH", 50)
    rng = np.random.default_rng(1)
    n = 100
    query = rng.integers(0, 9, n)
    frame = pandas.DataFrame(
        {
            "qid": [f"q{k}" for k in query],
            "label": rng.integers(0, 3, n),
            "a": rng.integers(0, 9, n).astype(np.int16),
            "b": rng.random(n).astype(np.float32),
            "w": rng.random(n),
            "v": query + 1.0,
            "note": [f"doc {k}" for k in range(n)],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=30)
    columns = {"sample_weight": "w", "query_weight": "v", "comments": "note"}
    blocks = list(table_blocks(tmp_path / "t.parquet", label="label", qid="qid", **columns))
    assert len(blocks) > 3
    build_store(iter(blocks), tmp_path / "s")
    built = RankingData.open(tmp_path / "s")
    expected = RankingData.from_frame(frame, **columns)
    assert_grouped(built, expected)
    assert built.feature_names == ["a", "b"]
    np.testing.assert_array_equal(built.query_weight, expected.query_weight)
    weights = expected.sample_weight[expected.queries.rows]
    np.testing.assert_array_equal(built.sample_weight, weights)


def test_a_bad_value_of_parquet_is_named_by_its_row(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    from marginrank.io import table_files

    monkeypatch.setattr(table_files, "BATCH", 30)
    frame = pandas.DataFrame({"qid": 1, "label": np.arange(50) % 2, "a": np.arange(50.0)})
    frame.loc[37, "a"] = np.inf
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"column 'a', row 37 is infinity"):
        build_store(table_blocks(tmp_path / "t.parquet", label="label", qid="qid"), tmp_path / "s")


def test_rows_of_csr_are_taken_as_scipy_takes_them(monkeypatch):
    monkeypatch.setattr(feature_rows, "BLOCK", 64)
    X = sp.random_array((50, 30), density=0.2, format="csr", random_state=np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(50)
    rows = replace(FeatureRows.of(X), order=order)
    blocks = list(rows.blocks())
    assert len(blocks) > 5
    assert all(isinstance(block, Entries) for block in blocks)
    taken = np.concatenate([block.dense(30, X.dtype) for block in blocks])
    np.testing.assert_array_equal(taken, X.toarray()[order])
    lengths = np.concatenate([np.diff(block.indptr) for block in blocks])
    np.testing.assert_array_equal(lengths, np.diff(X[order].indptr))


def random_text(seed):
    """Return text with ids, numbers and comments of all kinds."""
    rng = np.random.default_rng(seed)
    n, sparse, ids = 200, rng.random() < 0.5, rng.choice(["{}", "0{}", "q{}", "ü{}"])
    numbers = [
        ["0", "-0.0", "NULL", "nan", "-3"],
        [f"{x:.{rng.integers(1, 12)}g}" for x in rng.random(9)],
    ]
    lines = ["# a comment\n", "\n"]
    queries = rng.integers(0, 20, n)
    for query in np.sort(queries) if rng.random() < 0.5 else queries:
        columns = np.sort(rng.choice(90, rng.integers(0, 5), False)) if sparse else np.arange(6)
        values = [rng.choice(numbers[int(rng.random() < 0.9)]) for _ in columns]
        features = "".join(f" {c + 1}:{v}" for c, v in zip(columns, values, strict=True))
        comment = rng.choice(["", " # doc é", " #"])
        ending = rng.choice(["\n", "\r\n"])
        lines.append(f"{rng.integers(-1, 3)} qid:{ids.format(query)}{features}{comment}{ending}")
    return "".join(lines)


@pytest.mark.parametrize("seed", range(12))
def test_random_text_is_bit_by_bit_what_it_is_read_as(tmp_path, small_blocks, seed):
    (tmp_path / "t.txt").write_bytes(random_text(seed).encode())
    reading = {"missing": 7.5}
    blocks = text_blocks(tmp_path / "t.txt", **reading)
    build_store(blocks, tmp_path / "s", of_text=True, narrow=True)
    built = RankingData.open(tmp_path / "s")
    expected = load_letor(tmp_path / "t.txt", dtype="float64", comments=True, **reading)
    expected = expected.with_features(narrowed(expected.X))
    assert_grouped(built, expected)
    rows = expected.queries.rows
    X = expected.X if rows is None else expected.X[rows]
    if sp.issparse(X):
        assert built.X.data.tobytes() == X.data.tobytes()
        assert built.X.indices.tobytes() == X.indices.tobytes()
        assert built.X.indptr.tobytes() == X.indptr.tobytes()
    else:
        assert built.X.tobytes() == (X + 0.0).tobytes()  # -0 becomes 0


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("w", [1.0, 1.0, -2.0], r"sample_weight\[2\] is -2; weights must be zero or more"),
        ("v", [1.0, 1.0, 2.0], r"query_weight\[2\] differs"),
        ("qid", [[1], [1], [2]], "qid must hold hashable values"),
    ],
)
def test_bad_columns_of_parquet_are_refused_as_those_of_a_frame(tmp_path, column, values, said):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": "a", "label": [0, 1, 1], "a": 1.0, "w": 1.0, "v": 1.0})
    frame[column] = values
    frame.to_parquet(tmp_path / "t.parquet")
    columns = {"sample_weight": "w", "query_weight": "v"}
    with pytest.raises(ValueError, match=said):
        RankingData.from_frame(frame, **columns)
    blocks = table_blocks(tmp_path / "t.parquet", label="label", qid="qid", **columns)
    with pytest.raises(ValueError, match=said):
        build_store(blocks, tmp_path / "s")
    assert os.listdir(tmp_path) == ["t.parquet"]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64, np.uint64])
def test_labels_of_any_type_become_what_they_are_at_once(tmp_path, dtype):
    y = np.array([3, 1, 2, 200], dtype=dtype)
    if np.dtype(dtype).itemsize == 8:
        y += 2**62  # float64 cannot tell these apart
    X, qid = np.ones((4, 1), np.float32), np.array([5, 6, 5, 5])
    build_store(
        [DocumentBlock(X[:2], y[:2], qid[:2]), DocumentBlock(X[2:], y[2:], qid[2:])], tmp_path / "s"
    )
    built, expected = RankingData.open(tmp_path / "s"), RankingData(X, y, qid)
    np.testing.assert_array_equal(built.y, expected.queries.grouped(expected.y))
    assert built.y.dtype == expected.y.dtype
    assert built.queries.level.tolist() == [1, 0, 2, 0]


BUILD = """
import resource, sys
import numpy as np, scipy.sparse as sp
from marginrank.data.store import feature_rows
from marginrank.io import store_builder
from marginrank.data.store import store_writer
from marginrank.io.store_builder import DocumentBlock, build_store

SOME = 1 << 14
feature_rows.BLOCK_ROWS = store_builder.AT_A_TIME = store_writer.ENTRIES_AT_A_TIME = SOME
store_writer.TEXTS_AT_A_TIME = SOME
folder, order = sys.argv[1:3]
n, limit = map(int, sys.argv[3:])

def blocks(n):
    comments = ["a comment"] * SOME
    X = sp.csr_array(np.ones((SOME, 1), dtype=np.float32))
    for first in range(0, n, SOME):
        rows = np.arange(first, first + SOME)
        qid = rows // 200 if order == "grouped" else rows % 5000
        yield DocumentBlock(X, rows % 3, qid, rows + 1.0, comments=comments)

build_store(blocks(SOME), folder + ".first", layout="csr")
with open("/proc/self/status") as status:
    used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + limit, used + limit))
build_store(blocks(n), folder, layout="csr")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA is Linux's")
@pytest.mark.parametrize(("order", "bytes_a_document"), [("grouped", 8), ("mixed", 20)])
def test_documents_take_hardly_any_memory(tmp_path, order, bytes_a_document):
    n = 1 << 18
    limit = bytes_a_document * n + 6_000_000  # of a block, whatever n is
    command = [sys.executable, "-c", BUILD, tmp_path / "s", order, str(n), str(limit)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    opened = open_stored(tmp_path / "s", verify=False)
    assert opened.n_documents == n
    assert (opened.sample_weight[:2].tolist() == [1.0, 2.0]) == (order == "grouped")


CONVERT = """
import resource, sys
import scipy.sparse, pyarrow.parquet
from marginrank.cli import main
from marginrank.io import store_builder
from marginrank.io import text_sources
text_sources.CHUNK = 1 << 20
with open("/proc/self/status") as status:
    used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
limit = used + int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
main()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_DATA is Linux's")
def test_text_larger_than_memory_becomes_a_store(tmp_path):
    rng = np.random.default_rng(0)
    n, width = 40_000, 100
    lines = [
        b"%d qid:%d " % (row % 3, query)
        + b" ".join(b"%d:%d" % (k + 1, (row * k + query) % 9 + 1) for k in range(width))
        for row, query in enumerate(rng.integers(0, 50, 400).tolist())
    ]
    text = b"\n".join(lines) + b"\n"
    with gzip.open(tmp_path / "t.txt.gz", "wb", compresslevel=1) as file:
        for _ in range(n // 400 * 6):
            file.write(text)
    limit = 100_000_000  # the features alone, in float64, need 192 MB
    command = [sys.executable, "-c", CONVERT, str(limit), "convert", tmp_path / "t.txt.gz"]
    options = {"env": os.environ | {"OMP_NUM_THREADS": "1"}, "capture_output": True, "text": True}
    at_once = subprocess.run([*command, tmp_path / "t.parquet"], **options)
    assert at_once.returncode == 2
    assert "memory" in at_once.stderr
    done = subprocess.run([*command, tmp_path / "t.store"], **options)
    assert done.returncode == 0, done.stderr
    opened = open_stored(tmp_path / "t.store")
    assert (opened.n_documents, opened.n_queries, opened.n_features) == (6 * n, 50, width)
    assert opened.stored.packed.row_bytes == width
