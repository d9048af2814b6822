"""marginrank evaluate."""

import json

import numpy as np
import pytest
from scipy import stats

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


def test_means_have_intervals_and_shares_of_pairs_have_none(run, model_json, test_txt, scored):
    test, scores = scored
    lines = run("evaluate", model_json, test_txt, "--metrics", NAMES).stdout.splitlines()
    values = metrics.ndcg(test.y, scores, qid=test.qid, k=5, per_query=True)
    values = values[~np.isnan(values)]
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    half = (interval.high - interval.low) / 2
    assert lines[1].split() == ["ndcg@5", f"{values.mean():.4f}", "±", f"{half:.4f}"]
    assert lines[3].split()[0] == "pairwise_accuracy"
    assert "±" not in lines[3]


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


def test_wrong_number_of_scores(error_of, tmp_path, test_txt):
    (tmp_path / "short.txt").write_text("1\n2\n")
    assert "2 scores" in error_of("evaluate", "--scores", tmp_path / "short.txt", test_txt)


def test_malformed_score(error_of, tmp_path, test_txt):
    (tmp_path / "bad.txt").write_text("1\nx\n")
    sentence = error_of("evaluate", "--scores", tmp_path / "bad.txt", test_txt)
    assert sentence.startswith(f"{tmp_path}/bad.txt:2:1: ")


def test_no_model_and_no_scores(error_of, test_txt):
    assert "--scores" in error_of("evaluate", test_txt)


@pytest.mark.parametrize(
    ("name", "word"),
    [("ngcd", "use one of"), ("ndcg@0", "1 or more"), ("kendall_tau@3", "no option 'k'")],
)
def test_wrong_metric(error_of, model_json, test_txt, name, word):
    assert word in error_of("evaluate", model_json, test_txt, "--metrics", name)


@pytest.mark.parametrize("score", ["nan", "inf", "x", ""])
def test_scores_are_finite_numbers(error_of, tmp_path, test_txt, score):
    scores = tmp_path / "scores.txt"
    scores.write_text(f"1\n{score}\n")
    sentence = f"{scores}:2:1: {score!r} is not a finite number."
    assert error_of("evaluate", "--scores", scores, test_txt) == sentence
    sides = ("--scores-a", scores, "--scores-b", scores)
    assert error_of("compare", test_txt, *sides) == sentence


@pytest.fixture
def large(tmp_path):
    """Return the flags for scores, and data with labels too large for an exponential gain."""
    (tmp_path / "large.txt").write_text("2000 qid:1 1:1\n1000 qid:1 1:2\n0 qid:1 1:3\n")
    (tmp_path / "s.txt").write_text("2\n3\n1\n")
    return "--scores", tmp_path / "s.txt", tmp_path / "large.txt"


def test_one_warning_for_one_reason_and_the_flag_that_helps(run, large):
    warnings = [w for w in run("evaluate", *large).stderr.splitlines() if ": warning: " in w]
    assert len([w for w in warnings if "gain" in w]) == 1
    assert "ndcg@1, ndcg@5, ndcg@10 are left out" in warnings[0]
    assert 'use ndcg with --gain "linear"' in warnings[0]


def test_gain_and_discount(run, large):
    flags = ("--metrics", "ndcg,pairwise_accuracy", "--gain", "linear", "--discount", "letor")
    result = json.loads(run("evaluate", *large, *flags, "--json").stdout)["metrics"]
    expected = metrics.ndcg([2000, 1000, 0], [2, 3, 1], gain="linear", discount="letor")
    assert result["ndcg"] == expected


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--gain", "quadratic"), "--gain 'quadratic' must be one of 'exponential', 'linear'"),
        (("--gain", "linear", "--metrics", "auc"), "--gain applies to ndcg"),
        (("--metrics", "ndcg,mop"), "--metrics 'mop' is not known"),
        (("--metrics", "ndcg@x"), "--metrics 'ndcg@x' has no cut-off after the @"),
    ],
)
def test_wrong_metrics(error_of, large, flags, word):
    assert word in error_of("evaluate", *large, *flags)


def test_no_metric_left(monkeypatch, large):
    from marginrank.cli.app import app
    from marginrank.cli.support import metrics as _metrics

    monkeypatch.setattr(_metrics, "COMMON_METRICS", ("ndcg@1", "ndcg@5"))
    with pytest.raises(SystemExit) as exit:
        app(["evaluate", *map(str, large)])
    assert exit.value.code == 2


def test_standard_input_is_read_once(error_of):
    assert "only once" in error_of("evaluate", "--scores", "-", "-")
    assert "only once" in error_of("compare", "-", "--scores-a", "-", "--scores-b", "s.txt")


@pytest.fixture
def tied(tmp_path):
    """Return data sorted by label, and scores that say nothing."""
    labels = [2, 1, 0, 0] * 3
    lines = [f"{label} qid:{k // 4} 1:{k}\n" for k, label in enumerate(labels)]
    (tmp_path / "d.txt").write_text("".join(lines))
    (tmp_path / "same.txt").write_text("1\n" * 12)
    (tmp_path / "good.txt").write_text(
        "".join(f"{label + k / 99}\n" for k, label in enumerate(labels))
    )
    return tmp_path


def test_what_ties_decide_is_said(invoke, tied):
    data = load_letor(tied / "d.txt")
    names = "ndcg@2,average_precision,err,pairwise_accuracy,auc,precision@1"
    command = ("evaluate", "--scores", tied / "same.txt", tied / "d.txt", "--metrics", names)
    done = invoke(*command)
    scores = np.ones(12)
    average = metrics.ndcg(data.y, scores, qid=data.qid, k=2, ties="average")
    lines = [line for line in done.stdout.splitlines() if line.startswith("equal scores change")]
    assert lines[0] == (
        f"equal scores change ndcg@2 by up to {1 - average:.4f} (input order: 1.0000, averaged: "
        f"{average:.4f})"
    )
    assert [line.split()[3] for line in lines] == [
        "ndcg@2",
        "average_precision",
        "err",
        "pairwise_accuracy",
        "precision@1",
    ]
    assert "as wrong: 0.0000, as half: 0.5000" in lines[3]
    result = json.loads(invoke(*command, "--json").stdout)["ties"]
    assert result["ndcg@2"] == {"input_order": 1.0, "averaged": average}
    average = metrics.err(data.y, scores, qid=data.qid, ties="average")
    assert result["err"]["averaged"] == pytest.approx(average)
    assert average < result["err"]["input_order"]


def test_scores_without_ties_are_not_spoken_of(invoke, tied):
    command = ("evaluate", "--scores", tied / "good.txt", tied / "d.txt")
    assert "ties" not in invoke(*command).stdout
    assert json.loads(invoke(*command, "--json").stdout)["ties"] == {}


def test_ties_are_said_by_compare_and_train_too(invoke, tied):
    sides = ("--scores-a", tied / "same.txt", "--scores-b", tied / "good.txt")
    done = invoke("compare", tied / "d.txt", *sides)
    lines = [line for line in done.stdout.splitlines() if line.startswith("equal scores change")]
    assert len(lines) == 1
    assert lines[0].startswith("equal scores change ndcg@10 of a by ")
    assert "(input order: 1.0000, averaged: " in lines[0]
    flags = ("--model", tied / "m.json", "-C", "1e-9", "--valid", tied / "d.txt")
    done = invoke("train-sparse", tied / "d.txt", *flags)
    assert "equal scores change ndcg@10 by " in done.stdout


def test_queries_without_relevant_documents_are_counted(invoke, tmp_path, model_json):
    path = tmp_path / "three.txt"
    path.write_text("1 qid:1 1:1\n0 qid:1 1:2\n0 qid:2 1:1\n0 qid:3 1:1\n")
    out = invoke("evaluate", str(model_json), str(path)).stdout
    assert "2 of 3 queries have no label above 0" in " ".join(out.split())
