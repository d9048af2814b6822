"""marginrank compare."""

import json

import pytest

from marginrank import load_letor, load_model


@pytest.fixture(scope="module")
def worse_txt(files, model_json, test_txt):
    """Return a file of the opposite scores."""
    scores = load_model(model_json).predict(load_letor(test_txt, n_features=6).X)
    path = files / "worse.txt"
    path.write_text("".join(f"{-s!r}\n" for s in scores.tolist()))
    return path


def test_a_model_beats_the_opposite_scores(run, model_json, test_txt, worse_txt):
    sides = ("--model-a", model_json, "--scores-b", worse_txt, "--metric", "ndcg@5")
    result = json.loads(run("compare", test_txt, *sides, "--json").stdout)
    assert result["metric"] == "ndcg@5"
    assert result["mean_a"] > result["mean_b"]
    assert result["t_test_p"] < 0.01
    assert result["randomization_p"] < 0.01


def test_table(run, model_json, test_txt, worse_txt):
    done = run("compare", test_txt, "--model-a", model_json, "--scores-b", worse_txt)
    assert "ndcg@10" in done.stdout


@pytest.mark.parametrize("both", [True, False])
def test_each_side_needs_one_source(error_of, model_json, test_txt, worse_txt, both):
    b = ("--model-b", model_json, "--scores-b", worse_txt) if both else ()
    sentence = error_of("compare", test_txt, "--model-a", model_json, *b)
    assert "either --model-b or --scores-b" in sentence


def test_gain_of_the_metric(run, model_json, test_txt, worse_txt):
    sides = ("--model-a", model_json, "--scores-b", worse_txt, "--json")
    one, other = (
        json.loads(run("compare", test_txt, *sides, "--gain", gain).stdout)["mean_a"]
        for gain in ("linear", "exponential")
    )
    assert one != other


def test_piped_data_serve_two_models_of_other_features(run, tmp_path):
    table = tmp_path / "d.csv"
    table.write_text("label,qid,a,b\n1,1,2,1\n0,1,1,2\n1,2,3,1\n0,2,1,0\n")
    text = "1 qid:1 1:2 2:1\n0 qid:1 1:1 2:2\n1 qid:2 1:3 2:1\n0 qid:2 1:1\n"
    run("train", table, "--model", tmp_path / "named.json")
    run("train", "-", "--model", tmp_path / "plain.json", input=text)
    sides = ("--model-a", tmp_path / "named.json", "--model-b", tmp_path / "plain.json")
    done = run("compare", "-", *sides, "--json", input=text)
    assert json.loads(done.stdout)["n_queries"] == 2
