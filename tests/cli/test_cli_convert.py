"""marginrank convert."""

import gzip
import json
import os

import numpy as np
import pytest

from marginrank import QueryScaler, RankingData, load_letor, load_model
from marginrank.data.query_scaling import METHODS


def assert_same(a, b):
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.query_ids[a.qid], b.query_ids[b.qid])


@pytest.fixture(scope="module")
def store(run, files, train_txt):
    run("convert", train_txt, files / "train.store")
    return files / "train.store"


@pytest.fixture(scope="module")
def parquet(run, files, store):
    run("convert", store, files / "train.parquet")
    return files / "train.parquet"


def test_round_trip_through_store_and_parquet_is_exact(run, tmp_path, train_txt, store, parquet):
    original = load_letor(train_txt)
    assert_same(RankingData.open(store), original)
    run("convert", parquet, tmp_path / "again.txt")
    assert_same(load_letor(tmp_path / "again.txt"), original)


def test_text_store_and_parquet_train_the_same_model(run, tmp_path, model_json, store, parquet):
    expected = load_model(model_json).coef_
    for data in (store, parquet):
        run("train", data, "--model", tmp_path / "m.json", "-C", "0.1")
        np.testing.assert_array_equal(load_model(tmp_path / "m.json").coef_, expected)


def test_comments_survive_compressed_text(run, tmp_path):
    text = "1 qid:a 1:0.5 # first\n0 qid:a 1:2 # second\n"
    (tmp_path / "in.txt.gz").write_bytes(gzip.compress(text.encode()))
    run("convert", tmp_path / "in.txt.gz", tmp_path / "out.txt.gz")
    assert gzip.decompress((tmp_path / "out.txt.gz").read_bytes()).decode() == text


def test_to_overrides_the_ending(run, tmp_path, train_txt):
    done = run("convert", train_txt, tmp_path / "folder.v1", "--to", "store", "--json")
    assert json.loads(done.stdout)["kind"] == "store"
    assert_same(RankingData.open(tmp_path / "folder.v1"), load_letor(train_txt))


def test_existing_file_is_kept_unless_told(run, error_of, tmp_path, train_txt):
    out = tmp_path / "out.txt"
    out.write_text("precious")
    assert "--overwrite" in error_of("convert", train_txt, out)
    assert out.read_text() == "precious"
    run("convert", train_txt, out, "--overwrite")
    assert_same(load_letor(out), load_letor(train_txt))


def test_wrong_column(error_of, tmp_path, parquet):
    sentence = error_of("convert", parquet, tmp_path / "out.txt", "--label", "grade")
    assert "grade" in sentence


def test_comments_become_a_column_if_told(run, tmp_path):
    (tmp_path / "in.txt").write_text("1 qid:a 1:0.5 # first\n0 qid:a 1:2 # second\n")
    table = tmp_path / "data.csv"
    run("convert", tmp_path / "in.txt", table, "--comments", "doc")
    run("convert", table, tmp_path / "out.txt", "--comments", "doc", "--features", "f1")
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "in.txt").read_text()


def test_wrong_kind(error_of, tmp_path, train_txt):
    assert "--to" in error_of("convert", train_txt, tmp_path / "out", "--to", "excel")


def test_tables_are_not_read_as_one(error_of, tmp_path, parquet):
    assert "must all be text" in error_of("convert", parquet, parquet, tmp_path / "out.txt")


@pytest.fixture(scope="module")
def weighted(files):
    """Return a store with weights and rows that are not grouped by query."""
    data = RankingData(
        [[1.0], [2.0], [3.0], [4.0]],
        [0, 1, 1, 0],
        ["a", "b", "a", "b"],
        sample_weight=[1.0, 2.0, 3.0, 4.0],
        query_weight=[0.5, 0.25],
    )
    data.save(files / "weighted.store")
    return files / "weighted.store"


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_weights_survive_a_table(run, tmp_path, weighted, ending):
    run("convert", weighted, tmp_path / f"t.{ending}")
    run("convert", tmp_path / f"t.{ending}", tmp_path / "again.store")
    again = RankingData.open(tmp_path / "again.store")
    assert again.queries.rows is None  # "a", "b", "a", "b" before
    assert again.X.tolist() == [[1.0], [3.0], [2.0], [4.0]]
    assert again.y.tolist() == [0, 1, 1, 0]
    assert again.query_ids[again.qid].tolist() == ["a", "a", "b", "b"]
    assert again.sample_weight.tolist() == [1.0, 3.0, 2.0, 4.0]
    assert again.query_weight.tolist() == [0.5, 0.25]


@pytest.mark.parametrize(
    ("source", "said"), [("mixed", "reordered"), ("sorted", "in their original")]
)
def test_a_store_has_its_queries_together_and_says_if_rows_moved(run, tmp_path, source, said):
    lines = ["1 qid:a 1:5 # x", "0 qid:b 1:300 # y", "0 qid:a 1:6 # z"]
    if source == "sorted":
        lines = [lines[0], lines[2], lines[1]]
    (tmp_path / "in.txt").write_text("\n".join(lines))
    done = run("convert", tmp_path / "in.txt", tmp_path / "t.store", "--json")
    result = json.loads(done.stdout)
    assert result["rows"].startswith(said)
    assert result["layout"] == "packed"
    data = RankingData.open(tmp_path / "t.store")
    assert data.X.tolist() == [[5.0], [6.0], [300.0]]
    assert list(data.comments) == ["x", "z", "y"]
    run("convert", tmp_path / "t.store", tmp_path / "again.store")
    assert_same(RankingData.open(tmp_path / "again.store"), data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.store", "in.txt", "t.store"]


def empty_data(tmp_path, name):
    """Return data without features, or without documents."""
    if name == "no features":
        (tmp_path / "t.txt").write_text("1 qid:1\n0 qid:1\n")
        return tmp_path / "t.txt"
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"label": [1], "qid": ["a"], "f1": [2.0]})
    frame.iloc[:0].to_parquet(tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


@pytest.mark.parametrize("name", ["no features", "no documents"])
def test_empty_data_is_refused_as_in_memory(error_of, tmp_path, name):
    data = empty_data(tmp_path, name)
    at_once = error_of("convert", data, tmp_path / "out.csv")
    assert "while a minimum of 1 is required" in at_once
    assert error_of("convert", data, tmp_path / "out.store") == at_once
    assert list(tmp_path.iterdir()) == [data]


@pytest.mark.parametrize("moment", ["text", "table", "write"])
def test_an_interrupted_convert_leaves_nothing_and_what_was_there(
    invoke, tmp_path, monkeypatch, moment
):
    from marginrank.io import store_builder

    ending = "parquet" if moment == "table" else "txt"
    (tmp_path / "in.txt").write_text("1 qid:a 1:0.5\n0 qid:a 1:2\n")
    assert invoke("convert", tmp_path / "in.txt", tmp_path / "in.parquet").returncode == 0
    assert invoke("convert", tmp_path / "in.txt", tmp_path / "t.store").returncode == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    def after_the_first(*arguments, **options):
        yield next(original(*arguments, **options))
        stop()

    if moment == "write":
        monkeypatch.setattr(store_builder, "write_parts", stop)
    else:
        source = {"text": "parsed_blocks", "table": "read_batches"}[moment]
        original = getattr(store_builder, source)
        monkeypatch.setattr(store_builder, source, after_the_first)
    done = invoke("convert", tmp_path / f"in.{ending}", tmp_path / "t.store", "--overwrite")
    assert done.returncode == 130
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_weights_are_not_lost_in_text(error_of, tmp_path, weighted):
    sentence = error_of("convert", weighted, tmp_path / "t.txt")
    assert sentence.endswith("text cannot hold the column sample_weight; write a store or table.")
    assert list(tmp_path.iterdir()) == []


def test_comments_survive_a_table(run, tmp_path):
    text = "1 qid:a 1:0.5 # 007\n0 qid:a 1:2\n0 qid:a 1:3 # 1.50\n"
    (tmp_path / "in.txt").write_text(text)
    for name in ("t.csv", "t.parquet"):
        run("convert", tmp_path / "in.txt", tmp_path / name)
        run("convert", tmp_path / name, tmp_path / "out.txt", "--overwrite")
        assert (tmp_path / "out.txt").read_text() == text
        run("train", tmp_path / name, "--model", tmp_path / "m.json")
        assert load_model(tmp_path / "m.json").coef_.size == 1
    run("convert", tmp_path / "t.csv", tmp_path / "t.store")
    assert list(RankingData.open(tmp_path / "t.store").comments) == ["007", "", "1.50"]


def test_text_without_comments_has_no_column_of_them(run, tmp_path):
    (tmp_path / "in.txt").write_text("1 qid:a 1:0.5\n0 qid:a 1:2\n")
    run("convert", tmp_path / "in.txt", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[0] == '"label","qid","f1"'


@pytest.mark.parametrize("name", ["t.csv.xz", "t.tsv.xz", "t.csv.gz"])
def test_compressed_tables_are_not_written_as_text(error_of, tmp_path, train_txt, name):
    assert "a table must end in" in error_of("convert", train_txt, tmp_path / name)


def test_standard_input_is_nothing_to_write_to(error_of, train_txt):
    assert "name a file to write to" in error_of("convert", train_txt, "-", "--to", "text")


def test_dash_is_standard_input_even_beside_a_folder_of_that_name(tmp_path, monkeypatch):
    from marginrank.cli.support.data import kind_of

    (tmp_path / "-").mkdir()
    monkeypatch.chdir(tmp_path)
    assert kind_of("-") == "text"
    assert kind_of(f".{os.sep}-") == "store"


@pytest.mark.parametrize("method", METHODS)
def test_features_are_scaled_inside_queries(run, tmp_path, train_txt, parquet, method):
    original = load_letor(train_txt)
    expected = QueryScaler(method=method).fit_transform(original)
    for data, out in ((train_txt, "a.store"), (parquet, "b.store"), (train_txt, "c.txt")):
        flags = ("--query-scale", method, "--json")
        done = run("convert", data, tmp_path / out, *flags)
        result = json.loads(done.stdout)
        assert result["query_scale"] == method
        assert {"read", "scale", "write"} <= result["seconds"].keys()
        read = load_letor if out.endswith(".txt") else RankingData.open
        scaled = read(tmp_path / out)
        np.testing.assert_allclose(scaled.X, expected, atol=1e-6)
        np.testing.assert_array_equal(scaled.y, original.y)
        np.testing.assert_array_equal(scaled.query_ids, original.query_ids)


def test_scaled_data_keep_names_comments_and_sparsity(run, tmp_path):
    (tmp_path / "t.csv").write_text("label,qid,bm25,comment\n1,a,2.5,x\n0,a,0.5,y\n")
    run("convert", tmp_path / "t.csv", tmp_path / "t.store", "--query-scale", "minmax")
    data = RankingData.open(tmp_path / "t.store")
    assert data.feature_names == ["bm25"]
    assert list(data.comments) == ["x", "y"]
    assert data.X.tolist() == [[1.0], [0.0]]
    (tmp_path / "sparse.txt").write_text("1 qid:1 1:4\n0 qid:1 7:2 1000:-1\n")
    run("convert", tmp_path / "sparse.txt", tmp_path / "out.txt", "--query-scale", "minmax")
    # The first line has the last feature, so that their number is kept.
    assert (tmp_path / "out.txt").read_text() == "1 qid:1 1:1 1000:0\n0 qid:1 7:1 1000:-1\n"


def test_an_unknown_scale_is_refused_before_any_data_is_read(error_of, tmp_path, train_txt):
    sentence = error_of("convert", train_txt, tmp_path / "out.txt", "--query-scale", "max")
    assert sentence == "--query-scale 'max' must be one of 'minmax', 'standard', 'rank'."
