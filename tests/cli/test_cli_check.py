"""`marginrank check`: findings as text and JSON, and the exit code for pipelines."""

import json

import numpy as np
import pytest

from marginrank import RankingData, check_data, dump_letor, load_letor, make_ranking


def write(path, X, y, qid):
    dump_letor(RankingData(X, y, qid), path)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return clean training and test data, and data with a constant and a leaking feature."""
    folder = tmp_path_factory.mktemp("check")
    X, y, qid = make_ranking(60, 20, 5, random_state=0)
    test = qid % 3 == 0
    X = X.astype(np.float32).astype(np.float64)
    constant, leaking = (np.column_stack([X, column]) for column in (np.ones(len(y)), y))
    return {
        "train": write(folder / "train.txt", X[~test], y[~test], qid[~test]),
        "test": write(folder / "test.txt", X[test], y[test], qid[test]),
        "constant": write(folder / "constant.txt", constant, y, qid),
        "leak": write(folder / "leak.txt", leaking, y, qid),
    }


def test_clean_data(run, files):
    done = run("check", files["train"], "--test", files["test"], "--fail-on", "warning")
    assert (
        done.stdout == "0 errors, 0 warnings, 0 notes in 800 documents, 40 queries and 5 features\n"
    )


def test_the_exit_code_depends_on_the_worst_finding(run, files):
    run("check", files["constant"])
    run("check", files["constant"], "--fail-on", "warning", code=3)
    run("check", files["leak"], code=3)


def test_findings_as_text(run, files):
    done = run("check", files["leak"], code=3)
    assert (
        "error: label-leak\nf6 alone orders 100.00 % of the pairs as the labels do." in done.stdout
    )
    assert "→ Check whether the column is computed from the labels" in done.stdout
    assert "1 error, 0 warnings, 0 notes in 1,200 documents" in done.stdout


def test_findings_as_json(run, files):
    done = run("check", files["leak"], "--test", files["leak"], "--json", code=3)
    result = json.loads(done.stdout)
    data = load_letor(files["leak"])
    assert result["findings"] == [finding.to_dict() for finding in check_data(data, data)]
    assert {one["code"] for one in result["findings"]} == {"label-leak", "shared-documents"}
    assert result["failed"] is True
    assert result["test"] == result["data"]
    assert json.loads(run("check", files["train"], "--json").stdout)["findings"] == []


def test_every_kind_of_data(run, files, tmp_path):
    expected = run("check", files["leak"], code=3).stdout
    for name in ("leak.store", "leak.csv"):
        run("convert", files["leak"], tmp_path / name)
        found = run("check", tmp_path / name, code=3).stdout
        assert found == expected
    assert run("check", "-", input=files["leak"].read_text(), code=3).stdout == expected


def test_missing_values_are_no_error(run, tmp_path):
    lines = [f"{k % 3} qid:{k // 6} 1:{(k * 7) % 11} 2:NULL" for k in range(60)]
    (tmp_path / "d.txt").write_text("\n".join(lines))
    assert "f2 is missing in all 60 documents." in run("check", tmp_path / "d.txt").stdout


def test_bad_input(run, files, tmp_path):
    wide = write(tmp_path / "wide.txt", *make_ranking(5, 10, 7, random_state=0))
    done = run("check", files["train"], "--test", wide, code=2)
    assert "5 features of the training data" in done.stderr
    done = run("check", files["train"], "--fail-on", "note", code=2)
    assert "--fail-on" in done.stderr
    assert "--test-group needs --test" in run("check", wide, "--test-group", wide, code=2).stderr
