"""marginrank train-additive, and what other commands do with its models."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from marginrank import AdditiveRankSVM, load_letor, load_model, make_ranking


def test_the_model_is_the_one_of_the_estimator(run, tmp_path, train_txt, test_txt):
    path = tmp_path / "m.json"
    flags = (
        "-C",
        "0.1",
        "--max-bins",
        "8",
        "--smoothness",
        "0.3",
        "--categorical-features",
        "2",
        "--json",
    )
    done = run("train-additive", train_txt, "--model", path, *flags, "--valid", test_txt)
    told = json.loads(done.stdout)
    train, test = load_letor(train_txt), load_letor(test_txt)
    model = AdditiveRankSVM(C=0.1, max_bins=8, smoothness=0.3, categorical_features=[1]).fit(train)
    assert told["objective"] == model.objective_
    assert told["converged"] is True
    assert "ndcg@10" in told["valid"]
    np.testing.assert_array_equal(load_model(path).predict(test), model.predict(test))
    scores = run("predict", path, test_txt).stdout.split()
    np.testing.assert_array_equal(np.array(scores, dtype=float), model.predict(test))
    run("evaluate", path, test_txt)


def test_monotone_curves(run, error_of, tmp_path, train_txt):
    path = tmp_path / "m.json"
    flags = ("-C", "0.1", "--max-bins", "8", "--monotonic-cst", "1:+1,3:-1", "--json")
    told = json.loads(run("train-additive", train_txt, "--model", path, *flags).stdout)
    train = load_letor(train_txt)
    model = AdditiveRankSVM(C=0.1, max_bins=8, monotonic_cst={0: 1, 2: -1}).fit(train)
    assert told["objective"] == model.objective_
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.predict(train), model.predict(train))
    assert np.all(np.diff(loaded.curves_[0].values) >= 0)
    assert np.all(np.diff(loaded.curves_[2].values) <= 0)
    sentence = error_of("train-additive", train_txt, "--model", path, "--monotonic-cst", "1:up")
    assert sentence == (
        "--monotonic-cst '1:up' must list names or numbers of features with +1 or -1, as in "
        "bm25:+1."
    )


def test_features_that_leave(run, error_of, tmp_path, train_txt):
    path = tmp_path / "m.json"
    flags = ("-C", "1", "--normalization", "pairs", "--max-bins", "8", "--group-l1", "0.1")
    flags = (*flags, "--smoothness", "1", "--json")
    told = json.loads(run("train-additive", train_txt, "--model", path, *flags).stdout)
    options = {
        "C": 1.0,
        "normalization": "pairs",
        "max_bins": 8,
        "group_l1": 0.1,
        "smoothness": 1.0,
    }
    model = AdditiveRankSVM(**options).fit(load_letor(train_txt))
    assert told["objective"] == model.objective_
    shown = json.loads(run("inspect", path, "--json").stdout)
    assert shown["features_in_use"] == sum(bool(c.values.any()) for c in model.curves_)
    assert 0 < shown["features_in_use"] < shown["features"]
    flags = ("--group-l1", "1", "--solver", "tron")
    sentence = error_of("train-additive", train_txt, "--model", path, *flags)
    assert "--solver 'tron'" in sentence
    assert "--group-l1" in sentence


def test_inspect_draws_the_curves(run, tmp_path, train_txt):
    path = tmp_path / "m.json"
    run("train-additive", train_txt, "--model", path, "--tol", "1e-3")
    shown = run("inspect", path, "--top", "2").stdout
    assert "Curves with the largest effect" in shown
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
        [f"f{k + 1}" for k in pair.features] for pair in model.interactions_
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
    assert f"{first} and {second} together" in shown


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.feather", "t.jsonl", "t.txt"])
def test_missing_values_of_files(invoke, tmp_path, name):
    X, y, qid = make_ranking(n_queries=20, docs_per_query=5, n_features=2, random_state=0)
    X[::7, 0] = np.nan
    path = tmp_path / name
    frame = pd.DataFrame({"qid": qid, "label": y, "a": X[:, 0], "b": X[:, 1]})
    if name == "t.txt":
        rows = zip(y, qid, *X.T, strict=True)
        path.write_text("".join(f"{n} qid:{q} 1:{a!s} 2:{b!s}\n" for n, q, a, b in rows))
    elif name == "t.jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    elif name == "t.csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path) if name == "t.parquet" else frame.to_feather(path)
    model = tmp_path / "m.json"
    assert invoke("train-additive", path, "--model", model, "--valid", path).returncode == 0
    expected = AdditiveRankSVM().fit(X, y, qid=qid).predict(X)
    scores = [float(line) for line in invoke("predict", model, path).stdout.split()]
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    assert invoke("evaluate", model, path).returncode == 0
    flags = ("-C", "0.01,0.1", "--folds", "2", "--model", tmp_path / "t.json")
    assert invoke("tune", path, "--additive", *flags).returncode == 0
    done = invoke("train", path, "--model", tmp_path / "linear.json")
    assert done.returncode == 2
    assert re.search("null|nan|NaN", done.stderr)


def test_the_index_of_a_pandas_frame_is_left_out_with_a_warning(invoke, tmp_path):
    frame = pd.DataFrame({"qid": [1, 1, 1], "label": [1, 0, 2], "a": [2.5, 0.5, 3.0]})
    frame.to_csv(tmp_path / "t.csv")
    done = invoke("features", tmp_path / "t.csv", "--json")
    assert [one["feature"] for one in json.loads(done.stdout)["features"]] == ["a"]
    assert "The column '' looks like the index of a pandas frame" in done.stderr


def test_wrong_flags(error_of, tmp_path, train_txt):
    path = tmp_path / "m.json"
    sentence = error_of("train-additive", train_txt, "--model", path, "--max-bins", "0")
    assert sentence == "--max-bins 0 must be an integer from 1 to 254."
    sentence = error_of("train-additive", train_txt, "--model", path, "--categorical-features", "x")
    assert sentence.startswith("--categorical-features 'x' ")
    assert not path.exists()
