"""Stores: exact, read-only, atomic, and refused with the file's name when damaged."""

import json
import os
import signal
import subprocess
import sys
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from marginrank import RankingData, RankSVM, make_ranking
from marginrank._utils import atomic_files
from marginrank.data.store import store, store_writer
from marginrank.data.store.store import FILES, MANIFEST, StoredText

QUERIES = ("offsets", "rows", "level", "n_levels", "n_pairs", "n_adjacent_pairs")


def ranking(layout="dense", dtype=np.float32, index=np.int32, n_queries=12, **more):
    X, y, qid = make_ranking(n_queries=n_queries, docs_per_query=8, n_features=5, random_state=2)
    X = np.where(X > 0, X, 0).astype(dtype)
    if layout == "csr":
        X = sp.csr_array(X)
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return RankingData(X, y, np.random.default_rng(0).permutation(qid), **more)


def everything(n=96):
    rng = np.random.default_rng(1)
    return {
        "sample_weight": rng.random(n),
        "query_weight": rng.random(12),
        "cost": rng.random(n),
        "position": np.tile(np.arange(1, n // 12 + 1), 12),
        "context": rng.integers(0, 3, n),
        "feature_names": ["a", "é", "", 'q"', "日本"],
        "comments": [f"doc {k} é日" * (k % 3) for k in range(n)],
    }


def reopened(data, folder, **options):
    data.save(folder)
    return RankingData.open(folder, **options)


def assert_same(a, b):
    if sp.issparse(a.X):
        for part in ("data", "indices", "indptr"):
            assert_same_array(getattr(a.X, part), getattr(b.X, part))
        assert a.X.shape == b.X.shape
    else:
        assert_same_array(a.X, b.X)
    for name in (
        "y",
        "qid",
        "query_ids",
        "sample_weight",
        "query_weight",
        "cost",
        "position",
        "context",
    ):
        assert_same_array(getattr(a, name), getattr(b, name))
    for name in QUERIES:
        assert_same_array(getattr(a.queries, name), getattr(b.queries, name))
    assert a.feature_names == b.feature_names
    assert (a.comments is None) == (b.comments is None)
    assert list(a.comments or []) == list(b.comments or [])
    assert a.n_pairs == b.n_pairs


def assert_same_array(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


LAYOUTS = {
    "dense float32": ("dense", np.float32, None),
    "dense float64": ("dense", np.float64, None),
    "csr float32": ("csr", np.float32, np.int32),
    "csr float64 int64": ("csr", np.float64, np.int64),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
sizes = pytest.mark.parametrize("small", [0, store.SMALL], ids=["mapped", "in memory"])


@sizes
@every_layout
def test_round_trip(tmp_path, monkeypatch, layout, small):
    monkeypatch.setattr(store, "SMALL", small)
    data = ranking(*layout, **everything())
    assert data.queries.rows is not None
    assert_same(data, reopened(data, tmp_path / "s", verify=True))


def test_round_trip_of_the_least(tmp_path):
    data = RankingData([[1.0]], [5])
    assert_same(data, reopened(data, tmp_path / "s"))


def test_round_trip_without_entries(tmp_path):
    data = RankingData(sp.csr_array((3, 2)), [0, 1, 2], comments=["", "", ""])
    assert_same(data, reopened(data, tmp_path / "s"))


@pytest.mark.parametrize(
    "X",
    [np.arange(24.0).reshape(8, 3)[::2], np.arange(24.0).reshape(4, 6)[:, 1:4], np.ones((4, 1))],
    ids=["rows", "columns", "one column"],
)
def test_parts_of_a_matrix(tmp_path, X):
    data = RankingData(X, [0, 1, 2, 3])
    np.testing.assert_array_equal(reopened(data, tmp_path / "s").X, X)


def test_stored_entries_beyond_the_last_row_are_dropped(tmp_path):
    X = sp.csr_array(np.eye(3))
    X.data, X.indices = np.append(X.data, 9.0), np.append(X.indices, np.int32(1))
    back = reopened(RankingData(X, [0, 1, 2]), tmp_path / "s")
    np.testing.assert_array_equal(back.X.toarray(), np.eye(3))
    assert back.X.data.size == 3


def test_a_store_can_be_saved_again(tmp_path):
    data = ranking(**everything())
    again = reopened(reopened(data, tmp_path / "s"), tmp_path / "t")
    assert_same(data, again)
    again.save(tmp_path / "t", overwrite=True)  # onto the files it is mapped from
    assert_same(data, again)
    assert_same(data, RankingData.open(tmp_path / "t"))


@every_layout
@sizes
def test_memory_and_store_give_bitwise_the_same_model(tmp_path, monkeypatch, layout, small):
    monkeypatch.setattr(store, "SMALL", small)
    data = ranking(*layout)
    back = reopened(data, tmp_path / "s")
    fits = [RankSVM(C=0.1).fit(d.X, d.y, qid=d.qid) for d in (data, back)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    scores = [fits[0].predict(d.X) for d in (data, back)]
    np.testing.assert_array_equal(*scores)


@every_layout
def test_arrays_are_read_only(tmp_path, layout):
    back = reopened(ranking(*layout, **everything()), tmp_path / "s")
    X = [back.X] if layout[0] == "dense" else [back.X.data, back.X.indices, back.X.indptr]
    groups = [getattr(back.queries, name) for name in QUERIES]
    weights = (back.sample_weight, back.query_weight, back.cost)
    for array in (*X, back.y, back.query_ids, *weights, *groups):
        assert not array.flags.writeable


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_large_files_are_mapped_and_not_read(tmp_path, monkeypatch, layout):
    n = 300_000
    X = np.random.default_rng(0).random((n, 2))
    data = RankingData(X if layout == "dense" else sp.csr_array(X), np.arange(n) % 5)
    data.save(tmp_path / "s")

    def refuse(*_):
        raise AssertionError("X was looked at")

    for name in ("check_finite", "as_matrix", "group_rows"):
        monkeypatch.setattr(f"marginrank.data.ranking_data.{name}", refuse)
    with open("/proc/self/io") as file:
        before = int(file.readline().split()[1])
    back = RankingData.open(tmp_path / "s", verify=False)
    with open("/proc/self/io") as file:
        read = int(file.readline().split()[1]) - before
    assert read < store.SMALL
    mapped = back.X if layout == "dense" else back.X.data
    while not isinstance(mapped, np.memmap):
        mapped = mapped.base


@given(
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8),
        st.lists(st.text(), min_size=1, max_size=8),
        st.lists(st.one_of(st.text(), st.integers(), st.booleans()), min_size=1, max_size=8).map(
            lambda ids: np.array([*ids, None], dtype=object)[:-1]
        ),
        st.lists(st.floats(allow_nan=False), min_size=1, max_size=8),
        st.lists(st.binary(min_size=1).filter(lambda b: not b.endswith(b"\0")), min_size=1),
        st.lists(st.datetimes().map(np.datetime64), min_size=1, max_size=8),
    )
)
def test_query_ids_keep_their_type(tmp_path_factory, ids):
    data = RankingData(np.zeros((len(ids), 1)), np.zeros(len(ids)), ids)
    back = reopened(data, tmp_path_factory.mktemp("store") / "s")
    assert back.query_ids.dtype == data.query_ids.dtype
    assert back.query_ids.tolist() == data.query_ids.tolist()
    assert [type(i) for i in back.query_ids] == [type(i) for i in data.query_ids]


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=8))
def test_comments_are_exact(tmp_path_factory, comments):
    comments = ["", *comments]
    data = RankingData(np.zeros((len(comments), 1)), np.zeros(len(comments)), comments=comments)
    back = reopened(data, tmp_path_factory.mktemp("store") / "s")
    assert list(back.comments) == comments


def test_stored_text_is_a_sequence():
    texts = StoredText(np.frombuffer(b"abbccc", dtype=np.uint8), np.array([0, 1, 3, 3, 6]))
    assert list(texts) == ["a", "bb", "", "ccc"]
    assert len(texts) == 4
    assert (texts[-1], texts[-4], texts[1:3], texts[::-2]) == (
        "ccc",
        "a",
        ["bb", ""],
        ["ccc", "bb"],
    )
    for outside in (4, -5):
        with pytest.raises(IndexError):
            texts[outside]


@pytest.mark.parametrize("ids", [[(1, 2), (3, 4)], [frozenset(), "a"]])
def test_other_query_ids_are_refused(tmp_path, ids):
    objects = np.empty(2, dtype=object)
    objects[:] = ids
    with pytest.raises(ValueError, match="cannot be stored"):
        RankingData([[1.0], [2.0]], [0, 1], objects).save(tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_the_manifest_tells_what_is_inside(tmp_path):
    data = ranking("csr", **everything())
    data.save(tmp_path / "s")
    manifest = json.loads((tmp_path / "s" / MANIFEST).read_text())
    assert manifest["format"] == "marginrank-data"
    assert manifest["version"] == 2
    assert (manifest["layout"], manifest["dtype"], manifest["shape"]) == ("csr", "float32", [96, 5])
    assert manifest["counts"] == {"documents": 96, "queries": 12, "pairs": data.n_pairs}
    assert manifest["feature_names"] == data.feature_names
    names = {path.stem for path in (tmp_path / "s").glob("*.npy")}
    assert set(manifest["files"]) == names
    for name in names:
        array = np.load(tmp_path / "s" / f"{name}.npy", allow_pickle=False)
        entry = manifest["files"][name]
        assert entry["shape"] == list(array.shape)
        assert entry["dtype"] == array.dtype.str
        assert entry["bytes"] == (tmp_path / "s" / f"{name}.npy").stat().st_size


@pytest.fixture
def damaged(tmp_path):
    """A dense store with every kind of file, and what to break it with."""
    ranking(**everything()).save(tmp_path / "s")
    return tmp_path / "s"


def files(layout):
    features = {"X.npy"} if layout == "dense" else {"data.npy", "indices.npy", "indptr.npy"}
    return sorted(features | FILES - {"X.npy", "data.npy", "indices.npy", "indptr.npy", MANIFEST})


ANY_ORDER = {"query_ids.npy", "context.npy"}
EVERY_FILE = [(layout, file) for layout in ("dense", "csr") for file in files(layout)]


@sizes
@pytest.mark.parametrize(("layout", "file"), EVERY_FILE)
def test_damage_of_every_file_is_named(tmp_path, monkeypatch, layout, file, small):
    ranking(layout, **everything()).save(tmp_path / "s")
    monkeypatch.setattr(store, "SMALL", small)
    path = tmp_path / "s" / file
    content = path.read_bytes()
    flipped = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
    breakages = {
        content[:-1]: r"bytes instead of",
        content + b"\0": r"bytes instead of",
        b"": r"has 0 bytes",
        flipped: r"checksum",
        b"\0" * len(content): r"checksum|header",
    }
    for broken, message in breakages.items():
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=rf"{file} is damaged: .*{message}.*; restore"):
            RankingData.open(tmp_path / "s", verify=True)
    path.unlink()
    with pytest.raises(ValueError, match=rf"{file} is damaged: it is missing"):
        RankingData.open(tmp_path / "s")


@pytest.mark.parametrize(("layout", "file"), EVERY_FILE)
def test_headers_are_checked_without_checksums(tmp_path, monkeypatch, layout, file):
    """An array of another shape or type in a file of the right size."""
    ranking(layout, **everything()).save(tmp_path / "s")
    monkeypatch.setattr(store, "SMALL", 0)
    path = tmp_path / "s" / file
    content = path.read_bytes()
    for old, new in ((b"(", b"(1"), (b"'<", b"'>"), (b"'|u1", b"'|i1"), (b"{", b"[")):
        # Query ids and contexts may have any byte order.
        if old not in content[:128] or (file in ANY_ORDER and old == b"'<"):
            continue
        header = content[:128].replace(old, new, 1).replace(b" }", b"}", len(new) - len(old))
        path.write_bytes(header + content[len(header) :])
        with pytest.raises(ValueError, match=r"\.npy is damaged: .*(shape|type|header|bytes)"):
            RankingData.open(tmp_path / "s", verify=False)


MANIFESTS = {
    "empty": (b"", " is damaged: it is not JSON"),
    "cut off": (b'{"format": "marginrank-data", "ver', " is damaged: it is not JSON"),
    "binary": (b"\xff\xfe\x00", " is damaged: it is not JSON"),
    "nested": (b"[" * 100_000, " is damaged: it is not JSON"),
    "list": (b"[]", ": the format is not 'marginrank-data'"),
    "foreign": (b'{"format": "zarr"}', ": the format is not 'marginrank-data'"),
}


@pytest.mark.parametrize(("content", "message"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_bad_manifest_is_refused(damaged, content, message):
    (damaged / MANIFEST).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{MANIFEST}{message}"):
        RankingData.open(damaged)


def edit(folder, **fields):
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | fields))


@pytest.mark.parametrize("version", [4, 99, "2", None, 0, 1])
def test_another_version_is_refused(damaged, version):
    edit(damaged, version=version)
    with pytest.raises(ValueError, match=rf"version {version!r}.*reads versions 2 and 3; update"):
        RankingData.open(damaged)


@pytest.mark.parametrize(
    "fields",
    [
        {"layout": "columns"},
        {"shape": [96]},
        {"shape": [96, 0]},
        {"shape": "many"},
        {"shape": [95, 5]},
        {"shape": None},
        {"dtype": "float99"},
        {"dtype": "int32"},
        {"counts": {}},
        {"counts": {"documents": 96, "queries": -12, "pairs": 3}},
        {"counts": []},
        {"query_ids": "pickle"},
        {"feature_names": ["a"]},
        {"feature_names": 7},
        {"feature_names": ["a", "b", "c", "d", 5]},
        {"shape": [96, 10**30]},
        {"shape": [96.0, 5]},
        {"counts": {"documents": 96, "queries": 97, "pairs": 3}},
        {"counts": {"documents": 96, "queries": 12, "pairs": -3}},
        {"files": 7},
        {"files": {"X": 3}},
        {"files": {"X": {"bytes": 3}}},
        {"files": {"X": {"bytes": 3, "dtype": "f", "crc32": "xyz"}}},
    ],
    ids=str,
)
def test_wrong_fields_are_refused(damaged, fields):
    edit(damaged, **fields)
    with pytest.raises(ValueError, match=rf"{MANIFEST} is damaged: a field"):
        RankingData.open(damaged)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shape": [96, 4], "feature_names": None}, r"X.npy is damaged: its shape"),
        ({"dtype": "float64"}, r"X.npy is damaged: its type"),
        ({"counts": {"documents": 96, "queries": 11, "pairs": 3}}, r"offsets.npy .* its shape"),
        ({"counts": {"documents": 96, "queries": 12, "pairs": 3}}, r"n_pairs.npy is damaged"),
        ({"files": []}, r"manifest.json is damaged: it does not list X.npy"),
        ({"layout": "csr"}, r"manifest.json is damaged: it does not list indptr.npy"),
        ({"query_ids": "json"}, r"query_ids.npy is damaged: its type"),
    ],
    ids=str,
)
def test_a_manifest_of_other_data_is_refused(damaged, fields, message):
    edit(damaged, **fields)
    with pytest.raises(ValueError, match=message):
        RankingData.open(damaged)


def replace_array(folder, name, array):
    """Put another array in a store, with a manifest that agrees."""
    manifest = json.loads((folder / MANIFEST).read_text())
    path = folder / f"{name}.npy"
    np.save(path, array, allow_pickle=False)
    entry = {"dtype": array.dtype.str, "shape": list(array.shape), "bytes": path.stat().st_size}
    manifest["files"][name] = entry | {"crc32": f"{zlib.crc32(path.read_bytes()):08x}"}
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_weights_are_stored_by_row(tmp_path):
    data = ranking(**everything())
    data.save(tmp_path / "s")
    np.testing.assert_array_equal(
        np.load(tmp_path / "s" / "sample_weight.npy"), everything()["sample_weight"]
    )


def test_grouping_that_is_not_of_the_data_is_refused(damaged):
    offsets = np.load(damaged / "offsets.npy")
    offsets[-1] += 1
    replace_array(damaged, "offsets", offsets)
    with pytest.raises(ValueError, match=r"offsets.npy is damaged: its queries"):
        RankingData.open(damaged)


def test_fortran_order_is_refused(damaged):
    replace_array(damaged, "X", np.asfortranarray(np.load(damaged / "X.npy")))
    with pytest.raises(ValueError, match=r"X.npy is damaged: it is in Fortran order"):
        RankingData.open(damaged)


@pytest.mark.parametrize("text", [b"[1, 2", b"{}", b"[1]"])
def test_ids_that_are_not_ids_are_refused(tmp_path, text):
    ids = np.array(["a", 1], dtype=object)
    RankingData([[1.0], [2.0]], [0, 1], ids).save(tmp_path / "s")
    replace_array(tmp_path / "s", "query_ids", np.frombuffer(text, dtype=np.uint8))
    with pytest.raises(ValueError, match=r"query_ids.npy is damaged: it does not hold"):
        RankingData.open(tmp_path / "s")


def test_objects_are_never_unpickled(damaged):
    (damaged / "query_ids.npy").unlink()
    with open(damaged / "query_ids.npy", "wb") as file:
        np.save(file, np.array([print] * 12, dtype=object), allow_pickle=True)
    content = (damaged / "query_ids.npy").read_bytes()
    manifest = json.loads((damaged / MANIFEST).read_text())
    entry = {"dtype": "|O", "shape": [12], "bytes": len(content)}
    manifest["files"]["query_ids"] = entry | {"crc32": f"{zlib.crc32(content):08x}"}
    (damaged / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"query_ids.npy is damaged: its header"):
        RankingData.open(damaged)


def test_damaged_indices_are_refused_before_a_kernel_follows_them(tmp_path):
    ranking("csr").save(tmp_path / "s")
    indices = np.load(tmp_path / "s" / "indices.npy")
    indices[3] = 1_000_000
    replace_array(tmp_path / "s", "indices", indices)
    data = RankingData.open(tmp_path / "s")
    with pytest.raises(ValueError, match="column indices must lie inside"):
        _ = data.matrix


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a folder"):
        RankingData.open(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match=r"file is not a folder"):
        RankingData.open(tmp_path / "file")
    with pytest.raises(ValueError, match=r"manifest.json is missing: .* not a marginrank store"):
        RankingData.open(tmp_path)


def test_a_store_is_replaced_only_if_asked(tmp_path):
    old, new = ranking(), ranking(n_queries=3)
    old.save(tmp_path / "s")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        new.save(tmp_path / "s")
    assert_same(old, RankingData.open(tmp_path / "s", verify=True))
    new.save(tmp_path / "s", overwrite=True)
    assert_same(new, RankingData.open(tmp_path / "s", verify=True))
    assert os.listdir(tmp_path) == ["s"]


def test_a_damaged_store_can_be_replaced(damaged):
    (damaged / MANIFEST).write_text("{")
    ranking().save(damaged, overwrite=True)
    assert_same(ranking(), RankingData.open(damaged))


@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_but_a_store_is_replaced(tmp_path, overwrite):
    data = ranking()
    data.save(tmp_path / "s")
    (tmp_path / "s" / "notes.txt").write_text("mine")
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "X.npy").touch()
    (tmp_path / "file").write_text("mine")
    for name in ("s", "arrays", "file"):
        with pytest.raises(ValueError, match=r"not a marginrank store.*; choose another"):
            data.save(tmp_path / name, overwrite=overwrite)
    assert (tmp_path / "s" / "notes.txt").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["arrays", "file", "s"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "s").mkdir()
    assert_same(ranking(), reopened(ranking(), tmp_path / "s"))


def test_a_link_to_a_store_stays_a_link(tmp_path):
    ranking().save(tmp_path / "s")
    (tmp_path / "link").symlink_to("s")
    ranking(n_queries=3).save(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert RankingData.open(tmp_path / "s").n_queries == 3


class Failure(Exception):
    """Raised in the middle of a write."""


def fails_at(call, function, error):
    """Return `function`, which raises at a call of that number."""
    calls = 0

    def replacement(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == call:
            raise error
        return function(*args, **kwargs)

    return replacement


@pytest.mark.parametrize("error", [Failure(), KeyboardInterrupt(), OSError(28, "No space left")])
@pytest.mark.parametrize(
    ("module", "name", "call"),
    [
        (store_writer, "_write_array", 1),
        (store_writer, "_write_array", 7),
        (store_writer.json, "dump", 1),
        (atomic_files, "_sync", 1),
        (atomic_files, "_exchange", 1),
        (atomic_files.os, "rename", 1),
        (atomic_files.os, "rename", 2),
    ],
)
def test_a_failing_save_leaves_the_old_store(tmp_path, monkeypatch, module, name, call, error):
    old = ranking(**everything())
    old.save(tmp_path / "s")
    with monkeypatch.context() as patch:
        if name == "rename":
            patch.setattr(atomic_files, "_exchange", lambda *_: False)
        patch.setattr(module, name, fails_at(call, getattr(module, name), error))
        with pytest.raises(type(error)):
            ranking(n_queries=3).save(tmp_path / "s", overwrite=True)
    assert os.listdir(tmp_path) == ["s"]
    assert_same(old, RankingData.open(tmp_path / "s", verify=True))


def test_a_failing_first_save_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(
        store_writer, "_write_array", fails_at(3, store_writer._write_array, Failure())
    )
    with pytest.raises(Failure):
        ranking().save(tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_a_missing_parent_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere/s"):
        ranking().save(tmp_path / "nowhere" / "s")


@pytest.mark.parametrize("names", [["a"], list("abcdef"), []])
def test_names_and_comments_must_fit(names):
    with pytest.raises(ValueError, match=rf"feature_names has {len(names)} entries and needs 5"):
        ranking(feature_names=names)
    with pytest.raises(ValueError, match=rf"comments has {len(names)} entries and needs 96"):
        ranking(comments=names)


WRITER = """
import sys, numpy as np
from marginrank import RankingData
stores = [RankingData(np.full((4, 3), k), [k, k, 0.5, 0.5], comments=[str(k)] * 4) for k in (1, 2)]
stores[0].save(sys.argv[1])
print(flush=True)
while True:
    for one in stores:
        one.save(sys.argv[1], overwrite=True)
"""


def test_a_store_beside_a_writer_is_always_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "ATTEMPTS", 10**9)  # whichever process gets more of the machine
    path = tmp_path / "s"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
    try:
        writer.stdout.readline()
        seen, n_opened = set(), 0
        while n_opened < 1000 or seen != {1.0, 2.0}:
            assert writer.poll() is None
            data = RankingData.open(path)
            values = {float(data.X[0, 0]), float(data.y[0]), float(data.comments[3])}
            assert len(values) == 1
            seen |= values
            n_opened += 1
    finally:
        writer.kill()
        writer.communicate()


def test_a_store_that_is_replaced_while_it_is_opened_is_opened_anew(tmp_path, monkeypatch):
    ranking().save(tmp_path / "s")
    new = ranking(n_queries=3)
    read_ids = store._Store._query_ids

    def replaced_meanwhile(*args):
        monkeypatch.setattr(store._Store, "_query_ids", read_ids)
        new.save(tmp_path / "s", overwrite=True)
        return read_ids(*args)

    monkeypatch.setattr(store._Store, "_query_ids", replaced_meanwhile)
    assert_same(new, RankingData.open(tmp_path / "s"))


def test_a_store_that_is_replaced_forever_is_refused(tmp_path, monkeypatch):
    ranking().save(tmp_path / "s")
    read_ids = store._Store._query_ids

    def replaced_meanwhile(*args):
        ranking().save(tmp_path / "s", overwrite=True)
        return read_ids(*args)

    monkeypatch.setattr(store._Store, "_query_ids", replaced_meanwhile)
    monkeypatch.setattr(store, "ATTEMPTS", 3)
    with pytest.raises(ValueError, match="s was replaced by another process 3 times"):
        RankingData.open(tmp_path / "s")


KILLED = """
import os, signal, sys, numpy as np
from marginrank import RankingData
from marginrank._utils import atomic_files
def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
{setup}
RankingData(np.zeros((2, 1)), [0, 1]).save(sys.argv[1], overwrite=True)
"""
KILLS = {
    "while the arrays are written": "import json; json.dump = kill",
    "before the exchange": "atomic_files._exchange = kill",
    "after the exchange": "atomic_files.shutil.rmtree = kill",
}


@pytest.fixture
def killed(tmp_path, request):
    """A store whose replacement was killed; its folder."""
    ranking().save(tmp_path / "s")
    script = KILLED.format(setup=request.param)
    run = subprocess.run([sys.executable, "-c", script, tmp_path / "s"], capture_output=True)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert len(os.listdir(tmp_path)) == 2
    return tmp_path / "s"


@pytest.mark.parametrize("killed", KILLS.values(), ids=KILLS, indirect=True)
def test_the_next_save_clears_up_after_a_killed_one(killed):
    ranking(n_queries=3).save(killed, overwrite=True)
    assert os.listdir(killed.parent) == ["s"]
    assert_same(ranking(n_queries=3), RankingData.open(killed))


def tampered(name, change):
    """Change an array of a store, with a checksum that agrees."""

    def tamper(folder):
        array = np.load(folder / f"{name}.npy")
        replace_array(folder, name, change(array))

    return tamper


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


TAMPERED = {
    "rows twice": ("rows", put(3, 5), "repeated"),
    "rows outside": ("rows", put(3, 2**40), "out of range"),
    "negative weights": ("sample_weight", put(3, -1.0), "a weight is"),
    "NaN weights": ("query_weight", put(3, np.nan), "a weight is"),
    "infinite weights": ("query_weight", put(3, np.inf), "a weight is"),
    "NaN labels": ("y", put(3, np.nan), "a label is not finite"),
    "other labels": ("level", lambda level: level[::-1].copy(), "does not agree with the labels"),
    "many levels": ("n_levels", put(3, 10**9), "more distinct labels than documents"),
    "no levels": ("n_levels", put(3, 0), "more distinct labels than documents, or none"),
    "empty query": ("offsets", put(3, 16), "its queries"),
    "pairs": ("n_adjacent_pairs", lambda pairs: pairs + 1, "does not agree with the labels"),
}


@pytest.mark.parametrize(("name", "change", "message"), TAMPERED.values(), ids=TAMPERED)
def test_what_makes_no_sense_is_named(damaged, name, change, message):
    tampered(name, change)(damaged)
    with pytest.raises(ValueError, match=rf"{name}.npy is damaged: .*{message}"):
        RankingData.open(damaged)


@pytest.mark.parametrize("file", ["X", "rows"])
def test_one_flipped_bit_in_a_large_file_is_found_unless_told_not_to_look(tmp_path, file):
    n = 300_000
    data = RankingData(np.ones((n, 1)), np.arange(n) % 5, np.arange(n) % 7)
    data.save(tmp_path / "s")
    path = tmp_path / "s" / f"{file}.npy"
    content = bytearray(path.read_bytes())
    content[1_500_007] ^= 64
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"{file}.npy is damaged: its checksum"):
        RankingData.open(tmp_path / "s")
    assert RankingData.open(tmp_path / "s", verify=False).n_documents == n


@pytest.mark.parametrize("y", [[2**60 + 1, 2**60], [2**63 + 1, 2**63]])
def test_large_integer_labels_are_exact(tmp_path, y):
    data = RankingData(np.eye(2), y)
    back = reopened(data, tmp_path / "s")
    assert back.y.tolist() == y
    assert_same(data, back)


def test_labels_beyond_64_bits_are_refused(tmp_path):
    with pytest.raises(ValueError, match="64 bits"):
        RankingData(np.eye(2), [2**80, -1]).save(tmp_path / "s")
    assert not list(tmp_path.iterdir())
