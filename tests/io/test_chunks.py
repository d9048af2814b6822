"""LETOR text in chunks of whole queries."""

import io

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank import RankingData, dump_letor, iter_letor, load_letor, make_ranking
from marginrank.io import text_sources
from marginrank.io.chunks import ChunkSource

X, Y, QID = make_ranking(60, (1, 9), 5, dtype=np.float32, random_state=0)


@pytest.fixture
def path(tmp_path):
    dump_letor(RankingData(X, Y, QID), tmp_path / "text.txt.gz")
    return tmp_path / "text.txt.gz"


@pytest.mark.parametrize("bytes_at_a_time", [500, 1 << 24])
@pytest.mark.parametrize("chunk_documents", [1, 20, 10**6])
@pytest.mark.parametrize("layout", ["dense", "csr", "auto"])
def test_chunks_are_the_whole_in_order(path, chunk_documents, layout, bytes_at_a_time, monkeypatch):
    monkeypatch.setattr(text_sources, "CHUNK", bytes_at_a_time)
    chunks = list(
        iter_letor(path, chunk_documents=chunk_documents, layout=layout, n_features=5, n_jobs=1)
    )
    whole = load_letor(path)
    parts = [chunk.X.toarray() if sp.issparse(chunk.X) else chunk.X for chunk in chunks]
    np.testing.assert_array_equal(np.concatenate(parts), X)
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), whole.y)
    ids = [chunk.query_ids for chunk in chunks]
    np.testing.assert_array_equal(np.concatenate(ids), whole.query_ids)
    assert all(chunk.n_documents >= chunk_documents for chunk in chunks[:-1])
    assert sum(chunk.n_pairs for chunk in chunks) == whole.n_pairs
    if chunk_documents == 1:
        assert len(chunks) == 60


def test_chunks_may_grow_wider(monkeypatch):
    monkeypatch.setattr(text_sources, "CHUNK", 12)
    lines = [b"1 qid:1 1:1", b"0 qid:1 1:2", b"1 qid:2 1:4", b"1 qid:3 2:5", b"0 qid:3 3:7", b""]
    text = io.BytesIO(b"\n".join(lines))
    first, second, third = iter_letor(text, chunk_documents=1, layout="dense")
    assert first.X.tolist() == [[1.0], [2.0]]
    assert second.X.tolist() == [[4.0, 0.0]]
    assert third.X.tolist() == [[0.0, 5.0, 0.0], [0.0, 0.0, 7.0]]


def test_several_files_are_read_as_one(tmp_path):
    (tmp_path / "a").write_text("1 qid:x 1:1\n0 qid:7 1:2\n")
    (tmp_path / "b").write_text("1 qid:7 1:3\n")
    chunks = list(iter_letor([tmp_path / "a", tmp_path / "b"], chunk_documents=1))
    assert [chunk.X.ravel().tolist() for chunk in chunks] == [[1.0], [2.0, 3.0]]


@pytest.mark.parametrize("bytes_at_a_time", [8, 1 << 24])
def test_a_query_that_comes_again(bytes_at_a_time, monkeypatch):
    monkeypatch.setattr(text_sources, "CHUNK", bytes_at_a_time)
    text = io.BytesIO(b"1 qid:1 1:1\n0 qid:2 1:2\n1 qid:1 1:3\n")
    with pytest.raises(ValueError, match=r"query 1 appears again .*; sort"):
        list(iter_letor(text, chunk_documents=1))


def test_errors_name_the_line_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(text_sources, "CHUNK", 12)
    path = tmp_path / "bad.txt"
    path.write_text("1 qid:1 1:1\n0 qid:2 1:2\n1 qid:3 1:x\n")
    with pytest.raises(ValueError, match=r"bad.txt:3:11: "):
        list(iter_letor(path, chunk_documents=1))
    with pytest.raises(ValueError, match="has lines without qid"):
        list(iter_letor(io.BytesIO(b"1 1:1\n0 1:2\n")))
    with pytest.raises(ValueError, match="has no documents"):
        list(iter_letor(io.BytesIO(b"# nothing\n")))


def test_bad_options_are_refused_before_the_first_chunk():
    for options in ({"layout": "coo"}, {"dtype": int}, {"chunk_documents": 0}, {"missing": "x"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            iter_letor(io.BytesIO(b""), **options)


def test_a_source_has_the_same_features_from_the_second_reading_on(tmp_path):
    (tmp_path / "text").write_text("1 qid:1 1:1\n0 qid:2 4:2\n")
    source = ChunkSource(tmp_path / "text", chunk_documents=1)
    assert [chunk.n_features for chunk in source()] == [4, 4]
    assert [chunk.n_features for chunk in source()] == [4, 4]
    assert source.is_text
