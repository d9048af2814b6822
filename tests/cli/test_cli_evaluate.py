"""marginrank evaluate."""

import json

import numpy as np
import pytest

from marginrank import load_letor, load_model, metrics

NAMES = "ndcg@5,average_precision,pairwise_accuracy"


@pytest.fixture(scope="module")
def scored(model_json, test_txt):
    test = load_letor(test_txt, n_features=6)
    return test, load_model(model_json).predict(test.X)


@pytest.fixture(scope="module")
def scores_txt(files, scored):
    path = files / "scores.txt"
    path.write_text("".join(f"{s!r}\n" for s in scored[1].tolist()))
    return path


def test_model_and_scores_give_the_values_of_the_api(run, model_json, test_txt, scores_txt, scored):
    test, scores = scored
    by_model = json.loads(
        run("evaluate", model_json, test_txt, "--metrics", NAMES, "--json").stdout
    )
    by_scores = json.loads(
        run("evaluate", "--scores", scores_txt, test_txt, "--metrics", NAMES, "--json").stdout
    )
    assert by_model["metrics"] == by_scores["metrics"]
    assert by_model["metrics"] == {
        "ndcg@5": metrics.ndcg(test.y, scores, qid=test.qid, k=5),
        "average_precision": metrics.average_precision(test.y, scores, qid=test.qid),
        "pairwise_accuracy": metrics.pairwise_accuracy(test.y, scores, qid=test.qid),
    }


def test_table_of_the_default_metrics(run, model_json, test_txt):
    done = run("evaluate", model_json, test_txt)
    names = [line.split()[0] for line in done.stdout.splitlines()[1:] if line.strip()]
    assert names[:3] == ["ndcg@1", "ndcg@5", "ndcg@10"]
    assert "pairwise_accuracy" in names


@pytest.mark.parametrize(("ending", "delimiter"), [("tsv", "\t"), ("csv", ",")])
def test_per_query(run, model_json, test_txt, tmp_path, scored, ending, delimiter):
    test, scores = scored
    out = tmp_path / f"by_query.{ending}"
    run("evaluate", model_json, test_txt, "--metrics", "ndcg@5", "--per-query", out)
    header, *lines = [line.split(delimiter) for line in out.read_text().splitlines()]
    assert header == ["qid", "ndcg@5"]
    assert [qid for qid, _ in lines] == [str(qid) for qid in test.query_ids]
    expected = metrics.ndcg(test.y, scores, qid=test.qid, k=5, per_query=True)
    np.testing.assert_array_equal([float(value) for _, value in lines], expected)


def test_wrong_number_of_scores(refused, tmp_path, test_txt):
    (tmp_path / "short.txt").write_text("1\n2\n")
    assert "2 scores" in refused("evaluate", "--scores", tmp_path / "short.txt", test_txt)


def test_malformed_score(refused, tmp_path, test_txt):
    (tmp_path / "bad.txt").write_text("1\nx\n")
    sentence = refused("evaluate", "--scores", tmp_path / "bad.txt", test_txt)
    assert sentence.startswith(f"{tmp_path}/bad.txt:2:1: ")


def test_no_model_and_no_scores(refused, test_txt):
    assert "--scores" in refused("evaluate", test_txt)


@pytest.mark.parametrize(
    ("name", "word"),
    [("ngcd", "use one of"), ("ndcg@0", "1 or more"), ("kendall_tau@3", "no option 'k'")],
)
def test_wrong_metric(refused, model_json, test_txt, name, word):
    assert word in refused("evaluate", model_json, test_txt, "--metrics", name)
