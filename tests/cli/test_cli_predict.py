"""marginrank predict."""

import json
import subprocess
import sys

import numpy as np
import pytest

from marginrank import KernelRankSVM, load_letor, load_model


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


def test_data_with_more_features_are_refused(error_of, model_json, tmp_path):
    (tmp_path / "many.txt").write_text("0 qid:1 2:1 7:1\n")
    assert error_of("predict", model_json, tmp_path / "many.txt").startswith(
        f"{tmp_path}/many.txt:1:"
    )


def test_damaged_model_is_refused(error_of, tmp_path, test_txt):
    (tmp_path / "bad.json").write_text("{")
    assert "bad.json" in error_of("predict", tmp_path / "bad.json", test_txt)


def test_table_by_names_without_labels_and_queries(run, error_of, tmp_path):
    table = tmp_path / "train.csv"
    table.write_text("label,qid,title,age\n2,1,0.9,0.1\n1,1,0.5,0.3\n0,1,0.1,0.2\n")
    run("train", table, "--model", tmp_path / "m.json", "--valid", table)
    new = tmp_path / "new.csv"
    new.write_text("age,ignored,title\n0.5,x,0.25\n")
    done = run("predict", tmp_path / "m.json", new)
    title, age = load_model(tmp_path / "m.json").coef_
    assert float(done.stdout) == pytest.approx(0.25 * title + 0.5 * age)
    assert "warning" not in done.stderr
    assert "'qid'" in error_of("predict", tmp_path / "m.json", new, "--ranks")


def test_store_with_other_names_is_refused(run, error_of, tmp_path):
    table = tmp_path / "train.csv"
    table.write_text("label,qid,title,age\n2,1,0.9,0.1\n1,1,0.5,0.3\n")
    run("train", table, "--model", tmp_path / "m.json")
    table.write_text("label,qid,age,title\n2,1,0.9,0.1\n1,1,0.5,0.3\n")
    run("convert", table, tmp_path / "swapped")
    assert "'title'" in error_of("predict", tmp_path / "m.json", tmp_path / "swapped")


def test_missing_folder_is_refused(error_of, model_json, test_txt, tmp_path):
    out = tmp_path / "no" / "scores.txt"
    assert "no/scores.txt" in error_of("predict", model_json, test_txt, "--out", out)


@pytest.mark.parametrize("format", ["json", "liblinear", "svmrank"])
def test_models_from_pipes(run, model_json, test_txt, tmp_path, format):
    model = tmp_path / "m"
    load_model(model_json).save(model, format=format)
    expected = run("predict", model, test_txt).stdout
    text = model.read_text()
    for path in ("-", "/dev/stdin", "/dev/fd/0"):
        assert run("predict", path, test_txt, input=text).stdout == expected
    evaluated = run("evaluate", "-", test_txt, "--json", input=text).stdout
    metrics = json.loads(run("evaluate", model, test_txt, "--json").stdout)["metrics"]
    assert json.loads(evaluated)["metrics"] == metrics
    sides = ("--model-a", "-", "--model-b", model)
    done = run("compare", test_txt, *sides, "--json", input=text)
    assert json.loads(done.stdout)["difference"] == 0


def test_a_model_from_a_process_substitution(model_json, test_txt, run):
    command = f"{sys.executable} -m marginrank predict <(cat {model_json}) {test_txt}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout == run("predict", model_json, test_txt).stdout


def test_kernel_models_from_pipes(tmp_path, test_txt, run):
    data = load_letor(test_txt)
    KernelRankSVM(n_components=5).fit(data.X, data.y, qid=data.qid).save(tmp_path / "m.npz")
    expected = run("predict", tmp_path / "m.npz", test_txt).stdout
    command = f"cat {tmp_path}/m.npz | {sys.executable} -m marginrank predict - {test_txt}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert done.stdout == expected


def test_bad_models_from_pipes_are_called_standard_input(run, test_txt):
    done = run("predict", "-", test_txt, input="{", code=2)
    assert done.stderr.startswith("marginrank: standard input is damaged: it is not JSON")


def test_models_and_data_are_not_both_standard_input(run, error_of):
    assert "only once" in error_of("predict", "-", "-")
    assert "only once" in error_of("evaluate", "-", "-")
    assert "only once" in error_of("compare", "d.txt", "--model-a", "-", "--model-b", "-")


EMPTY = "marginrank: standard input is empty; check whether the command before it failed."


def test_a_failed_command_in_a_pipe_is_told_by_the_next(run, model_json, test_txt):
    for command in (
        ("evaluate", "--scores", "-", test_txt),
        ("predict", "-", test_txt),
        ("predict", model_json, "-"),
        ("inspect", "-"),
    ):
        done = run(*command, input="", code=2)
        assert done.stderr.splitlines()[-1] == EMPTY


def test_a_failed_predict_says_why_and_prints_nothing(run, model_json):
    done = run("predict", model_json, "no.txt", code=2)
    assert (done.stdout, done.stderr) == ("", "marginrank: no.txt: No such file or directory\n")


@pytest.mark.parametrize("flags", [(), ("--ranks",), ("--json",)], ids=" ".join)
def test_scores_that_are_no_numbers_are_refused(invoke, model_json, tmp_path, flags):
    model = load_model(model_json)
    model.coef_[:] = [1e308, -1e308, 0, 0, 0, 0]
    model.save(tmp_path / "m.json")
    data = tmp_path / "d.txt"
    data.write_text("0 qid:1 3:1\n0 qid:1 1:10\n0 qid:1 1:10 2:10\n")
    out = ("--out", tmp_path / "scores.txt")
    for command in (("predict", tmp_path / "m.json", data, *flags), ("evaluate", "m.json", data)):
        command = [tmp_path / "m.json" if word == "m.json" else word for word in command]
        done = invoke(*command, *(out if command[0] == "predict" else ()))
        assert (done.returncode, done.stdout) == (2, "")
        assert "the score of document 2 (the first is 1) is inf" in done.stderr
    assert not (tmp_path / "scores.txt").exists()
