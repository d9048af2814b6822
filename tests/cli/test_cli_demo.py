"""marginrank demo."""

import json
import os

import pytest


@pytest.fixture(scope="module")
def result(run):
    return json.loads(run("demo", "--n-queries", "100", "--json").stdout)


def test_the_model_beats_the_baselines(result):
    accuracy = {name: v["pairwise_accuracy"]["mean"] for name, v in result["metrics"].items()}
    assert accuracy["RankSVM"] > accuracy["ridge regression"] > accuracy["best feature"] > 0.5
    assert accuracy["AdditiveRankSVM"] > accuracy["RankSVM"] + 0.02
    assert accuracy["LightGBM"] > accuracy["RankSVM"]


def test_curves_have_the_shapes_of_the_data(result):
    values = {one["feature"]: one["values"] for one in result["curves"]}
    assert set(values) == {"bm25", "length", "price"}
    saturating, peaked, falling = (values[name] for name in ("bm25", "length", "price"))
    middle, some = len(peaked) // 2, len(peaked) // 4
    assert peaked[middle] > max(peaked[0], peaked[-1]) + 0.3
    assert saturating[middle + some] - saturating[middle - some] > 0.3
    assert falling[middle + some] - falling[middle - some] < -0.2


def test_intervals_hold_their_means(result):
    for values in result["metrics"].values():
        for value in values.values():
            assert value["low"] < value["mean"] < value["high"]
            assert value["high"] - value["low"] < 0.2


def test_every_query_is_won_tied_or_lost(result):
    contest = result["comparison"]
    assert contest["wins"] + contest["ties"] + contest["losses"] == 100
    assert (contest["model"], contest["baseline"]) == ("AdditiveRankSVM", "LightGBM")
    names = ("AdditiveRankSVM", "LightGBM")
    means = [result["metrics"][name]["ndcg@10"]["mean"] for name in names]
    assert contest["difference"] == pytest.approx(means[0] - means[1])
    assert contest["interval"][0] < contest["difference"] < contest["interval"][1]
    assert 0 < contest["randomization_p"] <= 1


def test_the_fingerprint_is_of_the_data(run, result):
    same, other = (
        json.loads(run("demo", "--n-queries", "100", "--random-state", seed, "--json").stdout)
        for seed in (0, 1)
    )
    assert same["fingerprint"] == result["fingerprint"] != other["fingerprint"]
    assert same["objective"] == result["objective"]


def test_without_boosted_trees_the_baseline_is_a_regression(run_process, tmp_path, monkeypatch):
    for library in ("lightgbm", "xgboost"):
        (tmp_path / f"{library}.py").write_text("raise OSError('libgomp.so.1 is missing')")
    paths = filter(None, (str(tmp_path), os.environ.get("PYTHONPATH")))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    result = json.loads(run_process("demo", "--n-queries", "20", "--json").stdout)
    assert result["comparison"]["baseline"] == "ridge regression"
    assert "LightGBM" not in result["metrics"]
    assert "pip install lightgbm" in run_process("demo", "--n-queries", "20").stdout


def test_a_picture_is_written_if_one_is_wanted(run, error_of, tmp_path):
    done = run("demo", "--n-queries", "20", "--plot", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert f"plotted in {tmp_path / 'curves.png'}" in done.stdout.replace("\n", "")
    assert "must end in one of" in error_of("demo", "--plot", tmp_path / "curves.xyz")


def test_tables_are_plain_and_fit_a_terminal(run):
    done = run("demo", "--n-queries", "20")
    for word in (
        "Fingerprint",
        "certified gap",
        "stopped because",
        "ndcg@10",
        "ridge regression",
        ": wins ",
        ", p = ",
        "marginrank tune train.txt --additive",
        "AdditiveRankSVM against LightGBM",
    ):
        assert word in done.stdout
    assert "pip install" not in done.stdout
    lines = done.stdout.splitlines()
    drawn = [line for line in lines if not line.isascii()]
    assert sorted(line.split()[0] for line in drawn) == ["bm25", "length", "price"]
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "flags",
    [("--n-queries", "0"), ("--n-queries", "9" * 20), ("--random-state", "-1")],
    ids=" ".join,
)
def test_wrong_numbers(error_of, flags):
    assert error_of("demo", *flags).startswith(" ".join(flags))
