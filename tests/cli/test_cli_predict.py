"""marginrank predict."""

import json

import numpy as np
import pytest

from marginrank import load_letor, load_model


@pytest.fixture(scope="module")
def expected(model_json, test_txt):
    return load_model(model_json).predict(load_letor(test_txt, n_features=6).X)


def test_scores_equal_the_python_api_bitwise(run, model_json, test_txt, tmp_path, expected):
    run("predict", model_json, test_txt, "--out", tmp_path / "scores.txt")
    scores = [float(line) for line in (tmp_path / "scores.txt").read_text().splitlines()]
    np.testing.assert_array_equal(scores, expected)


def test_stdout_has_nothing_but_scores(run, model_json, test_txt, expected):
    done = run("predict", model_json, test_txt)
    np.testing.assert_array_equal([float(line) for line in done.stdout.splitlines()], expected)


def test_ranks(run, model_json, test_txt):
    test = load_letor(test_txt, n_features=6)
    ranks = load_model(model_json).rank(test.X, qid=test.qid)
    done = run("predict", model_json, test_txt, "--ranks")
    assert [int(line) for line in done.stdout.splitlines()] == ranks.tolist()


def test_json(run, model_json, test_txt, expected):
    result = json.loads(run("predict", model_json, test_txt, "--json").stdout)
    assert result["scores"] == expected.tolist()
    assert result["documents"] == len(expected)


def test_data_with_fewer_features_are_aligned(run, model_json, tmp_path):
    (tmp_path / "few.txt").write_text("0 qid:1 2:1\n")
    done = run("predict", model_json, tmp_path / "few.txt")
    assert float(done.stdout) == load_model(model_json).coef_[1]


def test_data_with_more_features_are_refused(refused, model_json, tmp_path):
    (tmp_path / "many.txt").write_text("0 qid:1 2:1 7:1\n")
    assert refused("predict", model_json, tmp_path / "many.txt").startswith(
        f"{tmp_path}/many.txt:1:"
    )


def test_damaged_model_is_refused(refused, tmp_path, test_txt):
    (tmp_path / "bad.json").write_text("{")
    assert "bad.json" in refused("predict", tmp_path / "bad.json", test_txt)


def test_table_by_names_without_labels_and_queries(run, refused, tmp_path):
    table = tmp_path / "train.csv"
    table.write_text("label,qid,title,age\n2,1,0.9,0.1\n1,1,0.5,0.3\n0,1,0.1,0.2\n")
    run("train", table, "--model", tmp_path / "m.json", "--valid", table)
    new = tmp_path / "new.csv"
    new.write_text("age,ignored,title\n0.5,x,0.25\n")
    done = run("predict", tmp_path / "m.json", new)
    title, age = load_model(tmp_path / "m.json").coef_
    assert float(done.stdout) == pytest.approx(0.25 * title + 0.5 * age)
    assert "warning" not in done.stderr
    assert "'qid'" in refused("predict", tmp_path / "m.json", new, "--ranks")


def test_store_with_other_names_is_refused(run, refused, tmp_path):
    table = tmp_path / "train.csv"
    table.write_text("label,qid,title,age\n2,1,0.9,0.1\n1,1,0.5,0.3\n")
    run("train", table, "--model", tmp_path / "m.json")
    table.write_text("label,qid,age,title\n2,1,0.9,0.1\n1,1,0.5,0.3\n")
    run("convert", table, tmp_path / "swapped")
    assert "'title'" in refused("predict", tmp_path / "m.json", tmp_path / "swapped")


def test_missing_folder_is_refused(refused, model_json, test_txt, tmp_path):
    out = tmp_path / "no" / "scores.txt"
    assert "no/scores.txt" in refused("predict", model_json, test_txt, "--out", out)
