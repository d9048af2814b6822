"""marginrank demo."""

import json

import pytest


@pytest.fixture(scope="module")
def result(run):
    return json.loads(run("demo", "--n-queries", "100", "--json").stdout)


def test_the_model_beats_the_baselines(result):
    accuracy = {name: v["pairwise_accuracy"]["mean"] for name, v in result["metrics"].items()}
    assert accuracy["RankSVM"] > accuracy["ridge regression"] > accuracy["best feature"] > 0.5


def test_intervals_hold_their_means(result):
    for values in result["metrics"].values():
        for value in values.values():
            assert value["low"] < value["mean"] < value["high"]
            assert value["high"] - value["low"] < 0.2


def test_every_query_is_won_tied_or_lost(result):
    contest = result["comparison"]
    assert contest["wins"] + contest["ties"] + contest["losses"] == 100
    means = [result["metrics"][name]["ndcg@10"]["mean"] for name in ("RankSVM", "ridge regression")]
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


def test_tables_are_plain_and_fit_a_terminal(run):
    done = run("demo", "--n-queries", "20")
    for word in (
        "Fingerprint",
        "certified gap",
        "stopped because",
        "ndcg@10",
        "ridge regression",
        "wins, ties, losses",
        "p, randomisation test",
        "marginrank train train.txt",
    ):
        assert word in done.stdout
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "flags",
    [("--n-queries", "0"), ("--n-queries", "9" * 20), ("--random-state", "-1")],
    ids=" ".join,
)
def test_wrong_numbers(refused, flags):
    assert refused("demo", *flags).startswith(" ".join(flags))
