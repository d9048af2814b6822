"""marginrank train-additive, and what other commands do with its models."""

import json

import numpy as np

from marginrank import AdditiveRankSVM, load_letor, load_model


def test_the_model_is_the_one_of_the_estimator(run, tmp_path, train_txt, test_txt):
    path = tmp_path / "m.json"
    flags = ("-C", "0.1", "--max-bins", "8", "--smoothness", "0.3", "--categorical", "2", "--json")
    done = run("train-additive", train_txt, "--model", path, *flags, "--valid", test_txt)
    told = json.loads(done.stdout)
    train, test = load_letor(train_txt), load_letor(test_txt)
    model = AdditiveRankSVM(C=0.1, max_bins=8, smoothness=0.3, categorical=[1]).fit(train)
    assert told["objective"] == model.objective_
    assert told["converged"] is True
    assert "ndcg@10" in told["valid"]
    np.testing.assert_array_equal(load_model(path).predict(test), model.predict(test))
    scores = run("predict", path, test_txt).stdout.split()
    np.testing.assert_array_equal(np.array(scores, dtype=float), model.predict(test))
    run("evaluate", path, test_txt)


def test_monotone_curves(run, refused, tmp_path, train_txt):
    path = tmp_path / "m.json"
    flags = ("-C", "0.1", "--max-bins", "8", "--monotone", "1:+1,3:-1", "--json")
    told = json.loads(run("train-additive", train_txt, "--model", path, *flags).stdout)
    train = load_letor(train_txt)
    model = AdditiveRankSVM(C=0.1, max_bins=8, monotone={0: 1, 2: -1}).fit(train)
    assert told["objective"] == model.objective_
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.predict(train), model.predict(train))
    assert np.all(np.diff(loaded.curves_[0].values) >= 0)
    assert np.all(np.diff(loaded.curves_[2].values) <= 0)
    sentence = refused("train-additive", train_txt, "--model", path, "--monotone", "1:up")
    assert sentence == (
        "--monotone '1:up' must give names or numbers of features +1 or -1, as bm25:+1."
    )


def test_features_that_leave(run, refused, tmp_path, train_txt):
    path = tmp_path / "m.json"
    flags = ("-C", "1", "--normalization", "pairs", "--max-bins", "8", "--l1", "0.1", "--json")
    told = json.loads(run("train-additive", train_txt, "--model", path, *flags).stdout)
    options = {"C": 1.0, "normalization": "pairs", "max_bins": 8, "l1": 0.1}
    model = AdditiveRankSVM(**options).fit(load_letor(train_txt))
    assert told["objective"] == model.objective_
    shown = json.loads(run("inspect", path, "--json").stdout)
    assert shown["features_in_use"] == sum(bool(c.values.any()) for c in model.curves_)
    assert 0 < shown["features_in_use"] < shown["features"]
    flags = ("--l1", "1", "--loss", "hinge")
    sentence = refused("train-additive", train_txt, "--model", path, *flags)
    assert sentence.startswith("--loss 'hinge' has a kink; with --l1 take")


def test_inspect_draws_the_curves(run, tmp_path, train_txt):
    path = tmp_path / "m.json"
    run("train-additive", train_txt, "--model", path, "--tol", "1e-3")
    shown = run("inspect", path, "--top", "2").stdout
    assert "Curves with the largest spread" in shown
    assert "█" in shown
    assert "▁" in shown
    told = json.loads(run("inspect", path, "--top", "2", "--json").stdout)
    assert len(told["top_curves"]) == 2
    first, second = told["top_curves"]
    assert first["spread"] >= second["spread"]
    assert len(first["knots"]) == len(first["values"])


def test_pairs_of_features_are_maps(run, tmp_path, train_txt):
    path = tmp_path / "m.json"
    run("train-additive", train_txt, "--model", path, "--interactions", "2", "--tol", "1e-3")
    model = AdditiveRankSVM(interactions=2, tol=1e-3).fit(load_letor(train_txt))
    told = json.loads(run("inspect", path, "--json").stdout)["interactions"]
    assert [one["features"] for one in told] == [
        [k + 1 for k in pair.features] for pair in model.interactions_
    ]
    assert told[0]["values"] == model.interactions_[0].values.tolist()
    shades = told[0]["map"]
    assert (len(shades[0]), len(shades)) == tuple(len(knots) for knots in told[0]["knots"][::-1])
    highest = np.unravel_index(
        np.argmax(model.interactions_[0].values[1:, 1:]), (len(shades), len(shades[0]))
    )
    assert shades[::-1][highest[0]][highest[1]] == "█"
    shown = run("inspect", path).stdout
    first, second = told[0]["features"]
    assert f"Features {first} and {second} together" in shown


def test_wrong_flags(refused, tmp_path, train_txt):
    path = tmp_path / "m.json"
    sentence = refused("train-additive", train_txt, "--model", path, "--max-bins", "0")
    assert sentence == "--max-bins 0 must be an integer from 1 to 254."
    sentence = refused("train-additive", train_txt, "--model", path, "--categorical", "x")
    assert sentence.startswith("--categorical 'x' is none of the ")
    sentence = refused("train", train_txt, "--model", path, "--additive")
    assert sentence == "train --additive is a command of its own now: marginrank train-additive."
    assert not path.exists()
