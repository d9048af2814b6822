"""marginrank demo."""

import json


def test_the_model_is_nearly_as_good_as_the_truth(run):
    judged = json.loads(run("demo", "--n-queries", "50", "--json").stdout)["metrics"]
    trained, truth, chance = (values["pairwise_accuracy"] for values in judged.values())
    assert truth - 0.03 < trained
    assert trained > chance + 0.2


def test_tables(run):
    done = run("demo", "--n-queries", "20")
    for word in ("objective", "certified gap", "random order", "marginrank train"):
        assert word in done.stdout


def test_wrong_number(refused):
    assert "--n-queries" in refused("demo", "--n-queries", "0")
