"""marginrank train --pairs."""

import gzip
import json

import numpy as np
import pytest

from marginrank import RankSVM, load_letor, load_model, load_pairs


@pytest.fixture(scope="module")
def data(train_txt):
    return load_letor(train_txt)


@pytest.fixture
def pairs_file(tmp_path, data):
    """Every third pair of train.txt."""
    pairs = np.argwhere((data.qid[:, None] == data.qid) & (data.y[:, None] > data.y))[::3]
    np.savetxt(tmp_path / "train.pairs", pairs, fmt="%d", delimiter="\t")
    return tmp_path / "train.pairs"


def test_equals_the_python_api_bitwise(run, tmp_path, train_txt, data, pairs_file):
    model = tmp_path / "m.json"
    done = run("train", train_txt, "--pairs", pairs_file, "--model", model, "-C", "0.1", "--json")
    listed = load_pairs(pairs_file)
    expected = RankSVM(C=0.1).fit(data.X, pairs=listed, qid=data.qid)
    np.testing.assert_array_equal(load_model(model).coef_, expected.coef_)
    result = json.loads(done.stdout)
    assert result["objective"] == expected.objective_
    assert result["data"]["pairs"] == result["n_pairs"] == len(listed)
    assert list(result["seconds"]) == ["import", "read", "group", "solve", "write"]
    assert load_model(model).n_pairs_ == len(listed)


def test_weights_validation_and_compression(run, tmp_path, train_txt, test_txt, data, pairs_file):
    lines = pairs_file.read_text().splitlines()
    weights = np.random.default_rng(0).uniform(size=len(lines)).tolist()
    weighted = tmp_path / "weighted.csv.gz"
    text = [f"{line}\t{w!r}\n" for line, w in zip(lines, weights, strict=True)]
    weighted.write_bytes(gzip.compress("".join(text).replace("\t", ",").encode()))
    flags = ("--pairs", weighted, "--valid", test_txt, "--metrics", "pairwise_accuracy", "--json")
    done = run("train", train_txt, "--model", tmp_path / "m.json", *flags)
    listed = load_pairs(pairs_file)
    expected = RankSVM().fit(data.X, pairs=listed.pairs, pair_weight=weights, qid=data.qid)
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").coef_, expected.coef_)
    assert json.loads(done.stdout)["valid"]["pairwise_accuracy"] > 0.6


def test_margins_are_the_fourth_column(run, tmp_path, train_txt, data, pairs_file):
    lines = pairs_file.read_text().splitlines()
    margins = np.random.default_rng(0).uniform(size=len(lines)).tolist()
    text = [f"{line}\t1\t{m!r}\n" for line, m in zip(lines, margins, strict=True)]
    pairs_file.write_text("".join(text))
    run("train", train_txt, "--pairs", pairs_file, "--model", tmp_path / "m.json")
    listed = load_pairs(pairs_file)
    np.testing.assert_array_equal(listed.margin, margins)
    expected = RankSVM().fit(data.X, pairs=listed.pairs, pair_margin=margins, qid=data.qid)
    np.testing.assert_allclose(load_model(tmp_path / "m.json").coef_, expected.coef_, rtol=1e-12)


def test_neither_queries_nor_labels_are_needed(run, tmp_path):
    (tmp_path / "d.txt").write_text("0 1:1\n0 1:2\n0 1:1.5\n")
    (tmp_path / "d.csv").write_text("a\n1\n2\n1.5\n")
    (tmp_path / "d.pairs").write_text("1 0\n1 2\n")
    coefs = []
    for name in ("d.txt", "d.csv"):
        model = tmp_path / f"{name}.json"
        done = run("train", tmp_path / name, "--pairs", tmp_path / "d.pairs", "--model", model)
        assert "warning" not in done.stderr
        coefs.append(load_model(model).coef_)
    np.testing.assert_allclose(coefs[0], coefs[1])
    assert coefs[0] > 0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1\t0\n0\tx\n", ":2: 'x' is not a row number; write integers from 0 on"),
        ("1 0\n999999 0\n", ":2 has row 999999, but rows are numbered from 0 to"),
        ("1 0\n3 3\n", ":2 pairs row 3 with itself; drop it."),
        ("0 1\n0 100\n", ":2 joins row 0 of query 0 and row 100 of query"),
        ("", " has no pairs: it is empty."),
    ],
)
def test_bad_pairs_are_named_by_line(error_of, tmp_path, train_txt, text, sentence):
    bad = tmp_path / "bad.pairs"
    bad.write_text(text)
    told = error_of("train", train_txt, "--pairs", bad, "--model", tmp_path / "m.json")
    assert told.startswith(f"{bad}{sentence}")
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--pairs", "no.pairs"), "no.pairs: No such file or directory"),
        (("--pairs", "-"), '"-" is given twice, but standard input can be read only once.'),
        (
            ("--pairs", "no.pairs", "--pair-selection", "adjacent"),
            "--pair-selection cannot be combined with --pairs; drop one.",
        ),
    ],
)
def test_wrong_flags_are_refused_before_reading(run, tmp_path, flags, sentence):
    done = run("train", "-", "--model", tmp_path / "m.json", *flags, code=2)
    assert done.stderr == f"marginrank: {sentence}\n"


@pytest.mark.parametrize("flag", ["--label", "--qid"])
def test_a_column_that_was_asked_for_must_be_there(error_of, tmp_path, pairs_file, data, flag):
    table = tmp_path / "train.csv"
    header = ",".join(f"f{j}" for j in range(data.n_features))
    X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    np.savetxt(table, X, delimiter=",", header=header, comments="")
    arguments = ("train", table, "--pairs", pairs_file, "--model", tmp_path / "m.json")
    assert "nope" in error_of(*arguments, flag, "nope")
