"""Stores that are larger than memory: when X stays on disk, and what is told of it."""

import numpy as np
import pytest

from marginrank import RankingData, make_ranking
from marginrank._utils.memory import private_memory
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.fit import inputs
from marginrank.fit.inputs import open_documents
from marginrank.fit.linear import Parameters, fit_linear
from marginrank.fit.sparse import SparseParameters, fit_sparse
from marginrank.operators.parts import streaming

ROOM = 400_000_000  # beside what the process has already


@pytest.fixture
def store(tmp_path):
    X, y, qid = make_ranking(300, 10, 6, dtype=np.float32, random_state=0)
    RankingData(X, y, qid).save(tmp_path / "data.store")
    return tmp_path / "data.store"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(streaming, "PART_BYTES", 1 << 13)


def test_a_limit_leaves_x_on_disk(store):
    for source in (store, str(store), RankingData.open(store)):
        opened = open_documents(source, "2GB")
        assert isinstance(opened.data.X, StoredFeatures)
        assert opened.memory_limit == 2 * 10**9
        assert opened.message is None


def test_without_a_limit_x_is_mapped_if_memory_holds_it(store):
    opened = open_documents(store)
    assert isinstance(opened.data.X, np.ndarray)
    assert opened[1:] == (None, None)


def test_without_a_limit_x_stays_on_disk_if_memory_is_too_small(store, monkeypatch):
    monkeypatch.setattr(inputs, "available_memory", lambda: 1000)
    opened = open_documents(store)
    assert isinstance(opened.data.X, StoredFeatures)
    assert opened.memory_limit >= 800
    assert str(store) in opened.message
    assert "memory_limit=" in opened.message


@pytest.mark.parametrize(
    "size",
    [
        "",
        "x",
        "2 XB",
        "-1",
        "0",
        "0GB",
        "nan",
        "inf",
        "9" * 400,
        "1e",
        "2GB2",
        True,
        -3,
        10**400,
        float("nan"),
    ],
)
def test_what_is_no_size(store, size):
    with pytest.raises(ValueError, match=r"^memory_limit=.* must be a number of bytes, or a size"):
        open_documents(store, size)


def test_a_limit_for_data_in_memory(store):
    stored = RankingData.open(store)
    data = RankingData(np.array(stored.X), stored.y, stored.qid)
    assert open_documents(data).data is data
    with pytest.raises(ValueError, match=r"memory_limit .* these are in memory"):
        open_documents(data, "2GB")


def test_rows_of_a_query_apart_are_refused_with_the_way_out(tmp_path):
    X, y, qid = make_ranking(30, 10, 6, shuffle=True, random_state=0)
    RankingData(X, y, qid).save(tmp_path / "apart.store")
    with pytest.raises(ValueError, match=r"apart\.store: .* marginrank convert OLD NEW"):
        open_documents(tmp_path / "apart.store", "2GB")


@pytest.mark.parametrize(
    ("fit", "parameters"),
    [(fit_linear, Parameters(C=0.1)), (fit_sparse, SparseParameters(radius=1.0))],
    ids=["linear", "sparse"],
)
def test_a_fit_tells_what_was_read(store, fit, parameters):
    opened = open_documents(store, private_memory() + ROOM)
    reads = []
    found = fit(
        opened.data,
        parameters,
        memory_limit=opened.memory_limit,
        on_read=lambda *read: reads.append(read),
    )
    n_bytes = opened.data.X.memory_bytes
    assert found.report.stream.n_parts == -(-n_bytes // (1 << 13))
    assert found.report.stream.pinned_bytes >= n_bytes  # aligned
    assert found.report.stream.bytes_read == sum(n_bytes for _, n_bytes in reads) == n_bytes
    rows = sum(n_rows for n_rows, _ in reads)
    assert rows > 2 * opened.data.n_documents
    assert rows % opened.data.n_documents == 0


def test_a_fit_in_memory_reads_nothing(store):
    assert fit_linear(RankingData.open(store), Parameters(C=0.1)).report.stream is None
