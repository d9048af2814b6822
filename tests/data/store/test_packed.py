"""Packed columns: the smallest type that holds every number, and the same bits again."""

import json

import numpy as np
import pytest

from marginrank import RankingData, _core
from marginrank._utils import memory
from marginrank.data import stored_data
from marginrank.data.store import feature_rows
from marginrank.data.store.packed import TYPES, PackedColumns, smallest_types
from marginrank.data.store.store_writer import save_store
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import open_stored
from marginrank.io.chunks import ChunkSource

TINY_HALF = 2.0**-24

COLUMNS = {
    "byte": ([0, 255], "uint8"),
    "constant": ([7, 7], "uint8"),
    "zero": ([0, 0], "uint8"),
    "above a byte": ([0, 256], "uint16"),
    "two bytes": ([1, 65535], "uint16"),
    "above two bytes": ([1, 65536], "float32"),
    "negative integer": ([-1, 2], "float16"),
    "negative zero": ([-0.0, 2], "float16"),
    "negative zero among large ones": ([-0.0, 65535], "float32"),
    "half": ([0.5, -65504], "float16"),
    "above the halves": ([0.5, 65520], "float32"),
    "smallest half": ([TINY_HALF, 3 * TINY_HALF], "float16"),
    "below the halves": ([TINY_HALF / 2, 1], "float32"),
    "rounds to a half": ([1 + 2.0**-11, 1], "float32"),
    "a tenth": ([np.float32(0.1), 1], "float32"),
    "subnormal": ([np.float32(1e-45), 1], "float32"),
    "beyond float32": ([0.1, 1], "float64"),
    "huge": ([1e300, 1], "float64"),
    "tiny": ([1e-300, 1], "float64"),
}
IN_FLOAT32 = {name: column for name, column in COLUMNS.items() if column[1] != "float64"}


def bits(X):
    return np.ascontiguousarray(X).view(np.uint8)


def matrix(columns, dtype):
    return np.array([values for values, _ in columns.values()], dtype=dtype).T


@pytest.mark.parametrize(("columns", "dtype"), [(IN_FLOAT32, np.float32), (COLUMNS, np.float64)])
def test_the_smallest_type_that_holds_a_column(columns, dtype):
    X = matrix(columns, dtype)
    packed = smallest_types([X], X.shape[1], dtype)
    assert dict(zip(columns, packed.types, strict=True)) == {n: t for n, (_, t) in columns.items()}
    assert np.array_equal(bits(packed.unpack(packed.pack(X))), bits(X))


def test_every_block_counts():
    blocks = [np.array([[0.0, 0.0]]), np.array([[0.0, 0.5]]), np.array([[300.0, 1.0]])]
    packed = smallest_types(blocks, 2, np.float64)
    assert packed.types == ("uint16", "float16")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_come_back_whatever_their_columns_are(dtype, threads):
    rng = np.random.default_rng(0)
    names = [name for name in TYPES if np.dtype(name).itemsize <= np.dtype(dtype).itemsize]
    for n_rows, n_columns in [(0, 3), (1, 1), (3, 1), (70_001, 1), (501, 137), (5, 70_000)]:
        types = rng.choice(names, n_columns)
        packed = PackedColumns(tuple(types.tolist()), np.dtype(dtype))
        X = rng.integers(0, 200, (n_rows, n_columns)).astype(dtype)
        assert np.array_equal(packed.unpack(packed.pack(X), threads=threads), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_half_is_what_numpy_makes_of_it(dtype):
    halves = np.arange(1 << 16, dtype=np.uint16)
    packed = PackedColumns(("float16",), np.dtype(dtype))
    X = packed.unpack(halves.view(np.uint8).reshape(-1, 2))[:, 0]
    expected = halves.view(np.float16).astype(dtype)
    assert np.array_equal(X, expected, equal_nan=True)
    assert np.array_equal(np.signbit(X), np.signbit(expected))


def test_rows_are_unpacked_where_one_says():
    packed = PackedColumns(("uint8", "float16"), np.dtype(np.float32))
    X = np.array([[1, 0.5], [2, -0.5]], dtype=np.float32)
    out = np.full((2, 2), 9, dtype=np.float32)
    assert packed.unpack(packed.pack(X), out) is out
    assert np.array_equal(out, X)


def test_bytes_need_not_be_aligned():
    packed = PackedColumns(("float64", "uint8"), np.dtype(np.float64))
    X = np.array([[0.1, 3], [1e300, 4]])
    shifted = np.empty(19, dtype=np.uint8)[1:].reshape(2, 9)
    shifted[:] = packed.pack(X)
    assert np.array_equal(packed.unpack(shifted), X)


@pytest.mark.parametrize(
    ("packed", "counts", "position", "message"),
    [
        ((2, 3), [0, 0, 0, 0, 2], [0, 1], "bytes of their columns"),
        ((1, 2), [0, 0, 0, 0, 2], [0, 1], "same rows"),
        ((2, 2), [0, 0, 0, 0, 2], [0, 2], "inside"),
        ((2, 2), [0, 0, 0, 0, 2], [0], "a position"),
        ((2, 2), [0, 0, 0, 0, 1], [0, 1], "a type"),
        ((2, 2), [0, 0, 0, -1, 3], [0, 1], "must be of columns"),
    ],
)
def test_the_kernel_reads_nothing_outside_its_arrays(packed, counts, position, message):
    out = np.empty((2, 2), dtype=np.float32)
    with pytest.raises(ValueError, match=message):
        _core.unpack_rows(np.zeros(packed, np.uint8), counts, np.array(position), out, 1)


def test_an_output_that_cannot_be_written_is_refused():
    out = np.empty((2, 2), dtype=np.float32)
    out.flags.writeable = False
    with pytest.raises(TypeError):
        _core.unpack_rows(np.zeros((2, 2), np.uint8), [0, 0, 0, 0, 2], np.array([0, 1]), out, 1)


def small_numbers(dtype=np.float32, n=60):
    rng = np.random.default_rng(3)
    X = np.stack(
        [rng.integers(0, 9, n), rng.integers(0, 999, n), rng.integers(-9, 9, n) / 8, rng.random(n)],
        axis=1,
    )
    return RankingData(X.astype(dtype), rng.integers(0, 3, n), np.arange(n) // 6)


@pytest.fixture
def packed_store(tmp_path):
    data = small_numbers()
    save_store(data._parts(), tmp_path / "s", packed=True)
    return data, tmp_path / "s"


def edit(folder, **fields):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | fields))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_a_packed_store_opens_as_what_it_was(tmp_path, monkeypatch, dtype, block):
    monkeypatch.setattr(feature_rows, "BLOCK", block)
    data = small_numbers(dtype)
    save_store(data._parts(), tmp_path / "s", packed=True)
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert manifest["version"] == 3
    assert manifest["layout"] == "packed"
    assert manifest["columns"] == ["uint8", "uint16", "float16", np.dtype(dtype).name]
    opened = RankingData.open(tmp_path / "s")
    assert opened.X.dtype == dtype
    assert np.array_equal(bits(opened.X), bits(data.X))
    assert not opened.X.flags.writeable
    assert opened.stored.layout == "packed"


def test_what_would_save_little_stays_plain(tmp_path):
    X = np.random.default_rng(0).random((20, 8)).astype(np.float32)
    X[:, 0] = 1  # 29 bytes of 32
    save_store(RankingData(X, np.arange(20) % 3)._parts(), tmp_path / "s", packed=True)
    manifest = json.loads((tmp_path / "s" / "manifest.json").read_text())
    assert (manifest["version"], manifest["layout"]) == (2, "dense")


def test_rows_of_a_packed_store_are_read_some_at_a_time(packed_store):
    data, folder = packed_store
    stored = open_stored(folder).X
    assert isinstance(stored, StoredFeatures)
    assert stored.spans(2, 5) == [(2 * 9, 5 * 9)]
    assert (stored.n_bytes(2, 5), stored.n_bytes_in_memory(2, 5)) == (3 * 9, 3 * 16)
    content = np.fromfile(stored.files[0].path, dtype=np.uint8)[stored.files[0].start :]
    out = np.empty((3, 4), dtype=np.float32)
    assert stored.rows(2, 5, [content[18:45]], out=out) is out
    assert np.array_equal(out, data.X[2:5])
    assert np.array_equal(stored.rows(0, 60, [content], threads=2), data.X)


@pytest.mark.parametrize(
    "fields",
    [
        {"columns": None},
        {"columns": ["uint8"] * 3},
        {"columns": ["uint8", "uint16", "float16", "int8"]},
        {"columns": ["uint8", "uint16", "float16", "float64"]},
        {"columns": ["uint8", "uint16", "float16", 7]},
        {"columns": ["uint8", "uint16", "float16", ["float32"]]},
        {"version": 2},
        {"layout": "dense"},
    ],
    ids=str,
)
@pytest.mark.parametrize("open_store", [RankingData.open, open_stored])
def test_a_wrong_manifest_is_refused(packed_store, fields, open_store):
    _, folder = packed_store
    edit(folder, **fields)
    with pytest.raises(ValueError, match=r"manifest.json is damaged: a field"):
        open_store(folder)


@pytest.mark.parametrize("open_store", [RankingData.open, open_stored])
def test_a_row_of_another_size_is_refused(packed_store, open_store):
    _, folder = packed_store
    edit(folder, columns=["uint8", "uint8", "float16", "float32"])
    with pytest.raises(ValueError, match=r"X.npy is damaged: its shape is \(60, 9\) instead"):
        open_store(folder)


def test_a_packed_store_that_does_not_fit_is_refused_with_the_way_out(packed_store, monkeypatch):
    data, folder = packed_store
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"unpacking X \(60 × 4\) needs .* GB .*memory_limit="):
        RankingData.open(folder)
    assert open_stored(folder).n_documents == data.n_documents


def test_data_of_a_packed_store_is_saved_plain(packed_store, tmp_path):
    data, folder = packed_store
    for number, opened in enumerate([RankingData.open(folder), open_stored(folder)]):
        opened.save(tmp_path / f"plain{number}")
        plain = RankingData.open(tmp_path / f"plain{number}")
        assert plain.stored.layout == "dense"
        assert np.array_equal(plain.X, data.X)


def test_a_packed_store_that_does_not_fit_comes_in_chunks(tmp_path, monkeypatch):
    n = 60
    weights = {"sample_weight": np.arange(n) + 1.0, "query_weight": np.arange(10) + 1.0}
    plain = small_numbers()
    data = RankingData(plain.X, plain.y, plain.qid, comments=[f"{k}" for k in range(n)], **weights)
    save_store(data._parts(), tmp_path / "s", packed=True)
    assert len(list(ChunkSource(tmp_path / "s", chunk_documents=20)())) == 1
    monkeypatch.setattr(stored_data, "available_memory", lambda: 100)
    chunks = list(ChunkSource(tmp_path / "s", chunk_documents=20)())
    assert [chunk.n_documents for chunk in chunks] == [18, 18, 18, 6]
    for name in ("X", "y", "sample_weight", "query_weight", "query_ids", "comments"):
        joined = np.concatenate([getattr(chunk, name) for chunk in chunks])
        np.testing.assert_array_equal(joined, getattr(data, name))
    for chunk in chunks:
        again = RankingData(chunk.X, chunk.y, chunk.qid)
        np.testing.assert_array_equal(chunk.queries.level, again.queries.level)
        np.testing.assert_array_equal(chunk.queries.n_pairs, again.queries.n_pairs)
