"""Tables in files: what comes back, and what is refused by name."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from marginrank import RankingData, make_ranking
from marginrank._utils import memory
from marginrank.io import table_files
from marginrank.io.table_files import read_frame, write_frame

pa = pytest.importorskip("pyarrow")

COLUMNS = {"qid": ["b", "a", "b"], "label": [2, 0, 1], "a": [0.5, 1.5, -2.0]}


def ranking(sparse=False, **more):
    X, y, qid = make_ranking(n_queries=9, docs_per_query=7, n_features=4, random_state=3)
    X = X.astype(np.float32)
    return RankingData(sp.csr_array(X) if sparse else X, y + 0.1, qid[::-1], **more)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("row_group", [1, 1 << 24], ids=["rows", "at once"])
def test_parquet_gives_back_what_was_written(tmp_path, monkeypatch, sparse, row_group):
    monkeypatch.setattr(table_files, "ROW_GROUP", row_group)
    data = ranking(sparse, comments=[f"é{k}" for k in range(63)])
    write_frame(data, tmp_path / "t.parquet", comments="url")
    back = RankingData.from_frame(read_frame(tmp_path / "t.parquet"), comments="url")
    dense = data.X.toarray() if sparse else data.X
    assert back.X.dtype == np.float32
    np.testing.assert_array_equal(back.X, dense)
    np.testing.assert_array_equal(back.y, data.y)
    np.testing.assert_array_equal(back.query_ids, data.query_ids)
    np.testing.assert_array_equal(back.qid, data.qid)
    assert back.comments == data.comments
    assert back.feature_names == ["f1", "f2", "f3", "f4"]
    assert [p.name for p in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_delimited_text_gives_back_the_numbers(tmp_path, ending):
    data = ranking(feature_names=["a", "b,c", 'd"', "e"])
    write_frame(data, tmp_path / f"t.{ending}", label="y", qid="query")
    table = read_frame(tmp_path / f"t.{ending}")
    back = RankingData.from_frame(table, label="y", qid="query")
    np.testing.assert_array_equal(back.X.astype(np.float32), data.X)
    np.testing.assert_array_equal(back.y, data.y)
    np.testing.assert_array_equal(back.query_ids, data.query_ids)
    assert back.feature_names == data.feature_names


def test_compressed_csv_is_read(tmp_path):
    pd.DataFrame(COLUMNS).to_csv(tmp_path / "t.csv.gz", index=False)
    assert RankingData.from_frame(read_frame(tmp_path / "t.csv.gz")).n_documents == 3


def test_an_empty_cell_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("label,qid,a\n1,x,0.5\n0,x,\n")
    with pytest.raises(ValueError, match="column 'a', row 1 is null"):
        RankingData.from_frame(read_frame(tmp_path / "t.csv"))


@pytest.mark.parametrize("name", ["t.txt", "t", "t.parquet.gz", "t.csv.rar"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"must end in \.parquet, \.csv, \.tsv"):
        read_frame(tmp_path / name)
    with pytest.raises(ValueError, match=r"must end in \.parquet, \.csv, \.tsv"):
        write_frame(ranking(), tmp_path / name)


@pytest.mark.parametrize(("name", "content"), [("t.parquet", b"PAR1"), ("t.csv", b"a,b\n1,2,3\n")])
def test_a_damaged_table_is_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}: "):
        read_frame(tmp_path / name)


def test_a_missing_table_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_frame(tmp_path / "t.parquet")


@pytest.mark.parametrize("names", [["a", "b", "c", "label"], ["a", "b", "c", "a"]])
def test_two_columns_of_one_name_are_not_written(tmp_path, names):
    with pytest.raises(ValueError, match="Two columns of the table would be called"):
        write_frame(ranking(feature_names=names), tmp_path / "t.parquet")
    assert not list(tmp_path.iterdir())


def test_query_ids_of_several_types_are_not_written(tmp_path):
    ids = np.array(["x", 1], dtype=object)
    with pytest.raises(ValueError, match="Query ids have several types"):
        write_frame(RankingData([[1.0], [2.0]], [0, 1], ids), tmp_path / "t.parquet")
    assert not list(tmp_path.iterdir())


def test_a_failing_write_leaves_the_old_table(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    path.write_bytes(b"old")
    monkeypatch.setattr(table_files, "ROW_GROUP", 1)
    data = ranking()
    data.comments = ["fine"] * 62 + [7]
    with pytest.raises(pa.ArrowTypeError):
        write_frame(data, path, comments="url")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_weights_are_written_in_the_order_of_the_rows(tmp_path):
    X, y, qid = make_ranking(9, 7, 4, shuffle=True, random_state=3)
    weight = np.arange(1.0, 64.0)
    data = RankingData(X, y, qid, sample_weight=weight, query_weight=qid + 1.0)
    write_frame(data, tmp_path / "t.parquet")
    table = read_frame(tmp_path / "t.parquet")
    np.testing.assert_array_equal(table["sample_weight"], weight)
    np.testing.assert_array_equal(table["query_weight"], qid + 1.0)


def test_columns_of_numbers_are_read_as_text_if_told(tmp_path):
    (tmp_path / "t.csv").write_text("label,comment\n1,007\n0,\n")
    table = read_frame(tmp_path / "t.csv", texts=["comment", "absent"])
    assert table["comment"].to_pylist() == ["007", ""]


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_large_integer_labels_are_exact(tmp_path, ending):
    data = RankingData(np.eye(3), [2**60, 2**60 + 1, 2**60 + 3])
    write_frame(data, tmp_path / f"t{ending}")
    back = RankingData.from_frame(read_frame(tmp_path / f"t{ending}"))
    assert back.y.tolist() == data.y.tolist()
    assert back.n_pairs == 3


def test_labels_beyond_64_bits_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"t.parquet: labels .* 64 bits"):
        write_frame(RankingData(np.eye(2), [2**80, -1]), tmp_path / "t.parquet")
    assert not list(tmp_path.iterdir())


def test_more_columns_than_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    data = RankingData(sp.csr_array((2, 2**31 - 1)), [0, 1])
    with pytest.raises(ValueError, match=r"t.parquet: a table of 2147483647 columns needs"):
        write_frame(data, tmp_path / "t.parquet")


@pytest.mark.parametrize("ending", [".feather", ".jsonl"])
def test_feather_and_json_lines_are_read(tmp_path, ending):
    path = tmp_path / f"data{ending}"
    frame = pd.DataFrame({"qid": ["a", "a"], "label": [1, 0], "bm25": [2.5, None]})
    if ending == ".feather":
        frame.to_feather(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    data = RankingData.from_frame(read_frame(path), allow_nan=True)
    assert data.feature_names == ["bm25"]
    np.testing.assert_array_equal(data.X, [[2.5], [np.nan]])
    with pytest.raises(ValueError, match=r"must end in \.parquet, \.csv, \.tsv"):
        write_frame(ranking(), path)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_the_index_of_a_pandas_frame_is_not_a_feature(tmp_path, name):
    frame = pd.DataFrame({"qid": [1, 1], "label": [1, 0], "bm25": [2.5, 0.5]}, index=[7, 8])
    path = tmp_path / name
    frame.to_csv(path) if name == "t.csv" else frame.to_parquet(path)
    with pytest.warns(UserWarning, match="looks like the index of a pandas frame") as caught:
        data = RankingData.from_frame(read_frame(path))
    assert caught[0].filename == __file__
    assert data.feature_names == ["bm25"]


def test_the_index_of_a_pandas_frame_may_be_asked_for():
    frame = pd.DataFrame({"Unnamed: 0": [0, 1], "label": [1, 0], "qid": [1, 1], "a": [0.0, 1.0]})
    with pytest.warns(UserWarning, match="'Unnamed: 0' looks like the index"):
        assert RankingData.from_frame(frame).feature_names == ["a"]
    chosen = RankingData.from_frame(frame, features=["Unnamed: 0", "a"])
    assert chosen.feature_names == ["Unnamed: 0", "a"]
