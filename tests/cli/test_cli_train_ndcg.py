"""marginrank train --objective."""

import json

import numpy as np
import pytest

from marginrank import RankSVM, load_letor, load_model


def test_equals_the_python_api_bitwise(run, tmp_path, train_txt):
    model = tmp_path / "m.json"
    done = run("train", train_txt, "--objective", "ndcg@5", "--model", model, "-C", "0.1", "--json")
    expected = RankSVM(objective="ndcg@5", C=0.1).fit(load_letor(train_txt))
    loaded = load_model(model)
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)
    assert loaded.objective == "ndcg@5"
    result = json.loads(done.stdout)
    assert result["parameters"]["objective"] == "ndcg@5"
    assert result["n_rounds"] == loaded.n_rounds_ == expected.n_rounds_


def test_the_table_tells_the_rounds(invoke, tmp_path, train_txt):
    done = invoke("train", train_txt, "--objective", "ndcg@5", "--model", tmp_path / "m.json")
    assert "rounds" in done.stdout
    done = invoke("train", train_txt, "--model", tmp_path / "m.json")
    assert "rounds" not in done.stdout


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--objective", "ndcg"), "--objective 'ndcg' must be 'pairs' or 'ndcg@k'"),
        (
            ("--objective", "ndcg@5", "--pair-cost", "gain"),
            "--objective 'ndcg@5' cannot be combined with --pair-cost",
        ),
        (
            ("--objective", "ndcg@5", "--pairs", "p.txt"),
            "--objective cannot be combined with --pairs; drop one.",
        ),
        (
            ("--objective", "ndcg@5", "--memory-limit", "1GB"),
            "--objective cannot be combined with --memory-limit; drop one.",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(invoke, tmp_path, train_txt, flags, sentence):
    done = invoke("train", train_txt, "--model", tmp_path / "m.json", *flags)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (tmp_path / "m.json").exists()
