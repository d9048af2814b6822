"""marginrank inspect."""

import json

import numpy as np
import pytest

from marginrank import RankingData, load_letor, load_model
from marginrank.cli.commands.inspect import describe_data
from marginrank.data import stored_data
from marginrank.io import chunks


def test_data_as_json(run, train_txt):
    result = json.loads(run("inspect", train_txt, "--json").stdout)
    data = load_letor(train_txt)
    sizes = np.diff(data.queries.offsets)
    assert result["pairs"] == data.n_pairs
    assert result["matrix"] == {"layout": "dense", "dtype": "float32"}
    assert result["documents_per_query"]["max"] == sizes.max()
    assert result["documents_per_query"]["median"] == np.median(sizes)
    assert result["queries_without_pair"] == np.count_nonzero(data.queries.n_pairs == 0)
    values, counts = np.unique(data.y, return_counts=True)
    histogram = {one["label"]: one["documents"] for one in result["labels"]}
    assert histogram == dict(zip(values.tolist(), counts.tolist(), strict=True))


def test_many_labels_are_shown_in_bins(run, tmp_path):
    lines = [f"{label / 7} qid:1 1:1" for label in range(50)]
    (tmp_path / "real.txt").write_text("\n".join(lines))
    labels = json.loads(run("inspect", tmp_path / "real.txt", "--json").stdout)["labels"]
    assert labels[0]["from"] == 0
    assert sum(one["documents"] for one in labels) == 50


def test_data_as_tables(run, train_txt):
    done = run("inspect", train_txt)
    for word in (
        "documents per query",
        "distinct labels per query",
        "median",
        "pairs",
        "Labels",
        "█",
    ):
        assert word in done.stdout


@pytest.fixture
def packed(run, tmp_path):
    lines = [f"{k % 3} qid:{k // 4} 1:{k} 2:{k * 9} 3:{k / 8} 4:7\n" for k in range(100)]
    (tmp_path / "t.txt").write_text("".join(lines))
    run("convert", tmp_path / "t.txt", tmp_path / "t.store")
    return tmp_path / "t.store"


def test_a_store_shows_how_it_holds_its_columns(run, packed):
    result = json.loads(run("inspect", packed, "--json").stdout)
    assert result["stored"] == {
        "layout": "packed",
        "bytes_on_disk": 100 * 6,
        "bytes_in_memory": 100 * 16,
        "columns": {"float16": 1, "uint16": 1, "uint8": 2},
    }
    assert "packed, columns: 1 float16, 1 uint16, 2 uint8" in run("inspect", packed).stdout


def test_a_packed_store_is_inspected_without_being_unpacked(packed, monkeypatch):
    data = RankingData.open(packed)
    expected = describe_data(data)
    assert expected["constant_in_queries"] == {"features": 1, "first": ["f4"]}
    monkeypatch.setattr(stored_data, "available_memory", lambda: 100)
    monkeypatch.setattr(chunks, "CHUNK_DOCUMENTS", 30)
    left = stored_data.open_if_it_fits(packed)
    assert left.X is left.stored
    assert describe_data(left) == expected


def test_model_as_json(run, model_json):
    result = json.loads(run("inspect", model_json, "--top", "3", "--json").stdout)
    coef = load_model(model_json).coef_
    largest = np.argsort(-abs(coef))[:3]
    assert [one["feature"] for one in result["top_weights"]] == [f"f{k + 1}" for k in largest]
    assert [one["weight"] for one in result["top_weights"]] == coef[largest].tolist()
    assert result["parameters"]["C"] == 0.1


def test_model_with_feature_names(run, tmp_path):
    table = tmp_path / "data.csv"
    rows = [(2, 1, 0.9, 0.1), (1, 1, 0.5, 0.3), (0, 1, 0.1, 0.2)]
    lines = [",".join(map(str, row)) for row in (("label", "qid", "title", "age"), *rows)]
    table.write_text("\n".join(lines))
    run("train", table, "--model", tmp_path / "m.json")
    done = run("inspect", tmp_path / "m.json")
    assert "title" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("kind", ["liblinear", "svmrank"])
def test_models_of_others(run, tmp_path, model_json, kind):
    model = load_model(model_json)
    model.save(tmp_path / "other.model", format=kind)
    result = json.loads(run("inspect", tmp_path / "other.model", "--json").stdout)
    weights = {one["feature"]: one["weight"] for one in result["top_weights"]}
    np.testing.assert_allclose([weights[f"f{i}"] for i in range(1, 7)], model.coef_, rtol=1e-6)


def test_missing_file(error_of, tmp_path):
    assert error_of("inspect", tmp_path / "no.txt").endswith("No such file or directory")


def test_a_model_and_data_are_not_read_as_one(error_of, model_json, train_txt):
    for files in ((train_txt, model_json), (model_json, model_json)):
        assert error_of("inspect", *files) == (
            f"{model_json} is a model, but only the first file can be one; pass one model, then "
            "optionally its training data."
        )


def test_a_model_and_its_training_data_show_standard_errors(run, error_of, model_json, train_txt):
    result = json.loads(run("inspect", model_json, train_txt, "--json").stdout)
    expected = load_model(model_json).coef_stderr(load_letor(train_txt))
    found = {one["feature"]: one["stderr"] for one in result["top_weights"]}
    assert found == {f"f{k + 1}": error for k, error in enumerate(expected.tolist())}
    assert "standard error" in run("inspect", model_json, train_txt).stdout
    assert "standard error" not in run("inspect", model_json).stdout


def test_standard_errors_are_of_the_weights_of_a_rank_svm(run, error_of, tmp_path, train_txt):
    run("train-additive", train_txt, "--model", tmp_path / "curves.json")
    message = error_of("inspect", tmp_path / "curves.json", train_txt)
    assert message.endswith("have no standard errors; inspect it without training data.")
    run("train-sparse", train_txt, "--model", tmp_path / "sparse.json")
    assert "SparseRankSVM" in error_of("inspect", tmp_path / "sparse.json", train_txt)


def test_models_and_data_from_pipes(run, model_json, train_txt):
    for path in (model_json, train_txt):
        expected = run("inspect", path, "--json").stdout
        for piped in ("-", "/dev/fd/0"):
            assert run("inspect", piped, "--json", input=path.read_text()).stdout == expected


def test_bad_data_from_a_pipe_are_called_standard_input(run):
    done = run("inspect", "-", input="1 qid:1 1:x\n", code=2)
    assert done.stderr.startswith("marginrank: standard input:1:")
    done = run("inspect", "-", input="1 1:2\n0 1:1\n")
    assert "warning: standard input has no qid" in done.stderr
