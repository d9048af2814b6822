"""X of a store that is left on disk."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank import RankingData, make_ranking
from marginrank.data.queries import bounded_ranges
from marginrank.data.store import store
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import open_stored
from marginrank.objective.level_pairs import LevelPairs

LAYOUTS = ["dense", "csr"]


def ranking(layout="dense", dtype=np.float32):
    X, y, qid = make_ranking(n_queries=12, docs_per_query=8, n_features=5, random_state=2)
    X = np.where(X > 0, X, 0).astype(dtype)
    return RankingData(sp.csr_array(X) if layout == "csr" else X, y, qid)


def saved(folder, layout="dense", dtype=np.float32):
    data = ranking(layout, dtype)
    data.save(folder)
    return data


def read(stored, first, last):
    """Read rows as a reader would."""
    contents = []
    for file, (begin, end) in zip(stored.files, stored.spans(first, last), strict=True):
        with open(file.path, "rb") as stream:
            stream.seek(file.start + begin)
            contents.append(np.frombuffer(stream.read(end - begin), dtype=np.uint8))
    return stored.rows(first, last, contents)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_read_from_where_they_are(tmp_path, layout, dtype):
    data = saved(tmp_path / "s", layout, dtype)
    opened = open_stored(tmp_path / "s")
    assert isinstance(opened.X, StoredFeatures)
    assert opened.X is opened.stored
    assert opened.n_features == 5
    assert opened.X.n_entries == data.matrix.n_entries
    for first, last in [(0, 96), (0, 0), (7, 8), (13, 90), (96, 96)]:
        rows = read(opened.X, first, last)
        assert rows.dtype == dtype
        assert np.array_equal(dense(rows), dense(data.X)[first:last])
    assert np.array_equal(opened.y, data.y)
    assert np.array_equal(opened.queries.level, data.queries.level)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_entries_of_x_are_not_read(tmp_path, layout, verify):
    saved(tmp_path / "s", layout)
    path = tmp_path / "s" / ("X.npy" if layout == "dense" else "data.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path.name} is damaged: its checksum"):
        RankingData.open(tmp_path / "s")
    assert open_stored(tmp_path / "s", verify=verify).n_documents == 96


@pytest.mark.parametrize("file", ["X", "data", "indices"])
def test_a_file_that_was_cut_is_refused(tmp_path, file):
    saved(tmp_path / "s", "dense" if file == "X" else "csr")
    path = tmp_path / "s" / f"{file}.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=rf"{file}.npy is damaged: it has \d+ bytes instead"):
        open_stored(tmp_path / "s")
    path.unlink()
    with pytest.raises(ValueError, match=rf"{file}.npy is damaged: it is missing"):
        open_stored(tmp_path / "s")


def test_a_header_that_is_damaged_is_refused(tmp_path):
    saved(tmp_path / "s")
    path = tmp_path / "s" / "X.npy"
    whole = path.read_bytes()
    path.write_bytes(b"?" + whole[1:])
    with pytest.raises(ValueError, match=r"X.npy is damaged: its header"):
        open_stored(tmp_path / "s")
    path.write_bytes(whole.replace(b"(96, 5)", b"(95, 5)"))
    with pytest.raises(ValueError, match=r"X.npy is damaged: its shape is \(95, 5\)"):
        open_stored(tmp_path / "s")


def test_labels_are_verified_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "CHECKED", 20)  # of 96 documents, in queries of 8
    saved(tmp_path / "s")
    assert open_stored(tmp_path / "s").n_queries == 12
    path = tmp_path / "s" / "y.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"y.npy is damaged: its checksum"):
        open_stored(tmp_path / "s")


@pytest.mark.parametrize("size", [1, 7, 8, 20, 96, 1000])
def test_ranges_of_queries_are_bounded_and_leave_none_out(size):
    offsets = np.array([0, 8, 9, 40, 41, 42, 96])
    ranges = list(bounded_ranges(offsets, size))
    assert [first for first, _ in ranges] == [0] + [last for _, last in ranges[:-1]]
    assert ranges[-1][1] == 6
    for first, last in ranges:
        assert last == first + 1 or offsets[last] - offsets[first] <= size


@pytest.mark.parametrize(("starts", "right"), [([0, 1, 1, 5], True), ([0, 3, 2, 5], False)])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_starts_of_rows_are_looked_at_across_blocks(monkeypatch, starts, right, size):
    monkeypatch.setattr(store, "CHECKED", size)
    assert store.increases(np.array(starts)) == right
    assert not store.increases(np.array(starts) + 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mapped_data_knows_where_it_came_from(tmp_path, layout):
    data = saved(tmp_path / "s", layout)
    assert data.stored is None
    mapped = RankingData.open(tmp_path / "s")
    assert np.array_equal(dense(read(mapped.stored, 3, 9)), dense(data.X)[3:9])
    assert mapped.with_features(np.ones((96, 2))).stored is None
    again = pickle.loads(pickle.dumps(mapped))
    assert np.array_equal(dense(read(again.stored, 3, 9)), dense(data.X)[3:9])


def test_stored_data_can_be_pickled(tmp_path):
    data = saved(tmp_path / "s", "csr")
    again = pickle.loads(pickle.dumps(open_stored(tmp_path / "s")))
    assert np.array_equal(read(again.X, 0, 96).toarray(), data.X.toarray())


def test_pairs_are_made_without_the_features(tmp_path):
    data = saved(tmp_path / "s")
    opened = open_stored(tmp_path / "s")
    options = {"pair_weights": None, "margins": None, "threads": 1}
    assert LevelPairs.from_data(opened, **options).n_rows == data.n_documents


def test_the_path_does_not_depend_on_the_working_directory(tmp_path, monkeypatch):
    data = saved(tmp_path / "s")
    monkeypatch.chdir(tmp_path)
    opened = open_stored("s")
    monkeypatch.chdir("/")
    assert np.array_equal(read(opened.X, 0, 96), data.X)
