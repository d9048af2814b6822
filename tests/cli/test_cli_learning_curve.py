"""marginrank learning-curve."""

import json
import os

import numpy as np
import pytest

from marginrank import learning_curve_ranking, load_letor


@pytest.fixture(scope="module")
def curve(train_txt):
    return learning_curve_ranking(load_letor(train_txt), C=0.1, cv=3)


def test_the_values_of_the_api(run, train_txt, curve):
    done = run("learning-curve", train_txt, "-C", "0.1", "--folds", "3", "--json")
    result = json.loads(done.stdout)
    assert result["metric"] == "ndcg@10"
    assert result["verdict"] == curve.verdict
    assert result["gain"] == curve.gain._asdict()
    assert [point["queries"] for point in result["points"]] == curve.sizes.tolist()
    for k, point in enumerate(result["points"]):
        assert point["valid"] == curve.valid_mean[k]
        assert point["valid_error"] == curve.valid_error[k]
        assert point["train_scores"] == curve.train_scores[k].tolist()
    assert result["data"]["queries"] == 30
    assert {"read", "curve"} <= result["seconds"].keys()


def test_table_and_verdict(run, train_txt, curve):
    done = run("learning-curve", train_txt, "-C", "0.1", "--folds", "3")
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert done.stdout.startswith(f"{curve.verdict}\n")
    rows = lines[3:]
    assert [int(row[0]) for row in rows] == curve.sizes.tolist()
    assert [row[-3] for row in rows] == [f"{mean:.4f}" for mean in curve.valid_mean]
    assert " ".join(lines[1]) == "Learning curve (queries with pairs; mean ± standard error)"


def test_validation_data_sizes_and_metric(run, train_txt, test_txt):
    flags = ("--valid", test_txt, "--sizes", "5,10,20", "--folds", "2", "--metric", "ndcg@3")
    done = run("learning-curve", train_txt, *flags, "--gain", "linear", "--json")
    result = json.loads(done.stdout)
    assert result["metric"] == "ndcg@3(gain='linear')"
    assert [point["queries"] for point in result["points"]] == [5, 10, 20]
    shares = run("learning-curve", train_txt, "--valid", test_txt, "--sizes", "0.5,1", "--json")
    points = json.loads(shares.stdout)["points"]
    expected = learning_curve_ranking(
        load_letor(train_txt), validation=load_letor(test_txt), sizes=[0.5, 1.0]
    )
    np.testing.assert_array_equal(points[0]["valid_scores"], expected.valid_scores[0])


def test_plot(run, train_txt, tmp_path):
    run("learning-curve", train_txt, "--folds", "2", "--plot", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert os.listdir(tmp_path) == ["curve.png"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--sizes", "few"), "--sizes few must be numbers"),
        (("--folds", "0"), "--folds 0 must be an integer of at least 1"),
        (("--folds", "1"), "--folds 1 must be an integer of at least 2"),
        (("--metric", "ngcd"), "use one of"),
        (("-C", "1", "--lam", "1"), "--C cannot be combined with --lam"),
        (("-C", "-1"), "--C -1.0 must be"),
        (("--valid-group", "g.txt"), "--valid-group needs --valid"),
        (("--plot", "curve.xyz"), ".png"),
    ],
)
def test_refused_before_any_data_is_read(run, flags, word):
    done = run("learning-curve", "no such file.txt", *flags, code=2)
    assert word in done.stderr
    assert "no such file" not in done.stderr


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--sizes", "5,500"), "--sizes must be whole numbers of queries, up to "),
        (("--folds", "31"), "31 folds need as many queries, and there are 30"),
    ],
)
def test_refused_by_what_is_wrong(error_of, train_txt, flags, word):
    assert word in error_of("learning-curve", train_txt, *flags)
