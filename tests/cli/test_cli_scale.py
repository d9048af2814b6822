"""--scale, and what is told of scales."""

import json
import re

import numpy as np
import pytest

from marginrank import RankSVM, SGDRankSVM, SparseRankSVM, load_letor, load_model
from marginrank.models import read_model

LEARNERS = {
    "train": (RankSVM, {"C": 0.1}),
    "train-sparse": (SparseRankSVM, {"C": 5.0}),
    "train-online": (SGDRankSVM, {"C": 0.1, "tol": 0.05}),
}


@pytest.fixture
def odd_txt(tmp_path):
    """Write documents whose second feature is constant inside queries."""
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(0, 3)} qid:{q} 1:{rng.normal():.6f} 2:{q / 8} 3:{1000 * rng.normal():.3f}"
        for q in range(30)
        for _ in range(8)
    ]
    path = tmp_path / "odd.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("scale", ["standard", "range", "query"])
@pytest.mark.parametrize("command", LEARNERS)
def test_command_file_and_python_have_the_same_bits(invoke, train_txt, tmp_path, command, scale):
    estimator, parameters = LEARNERS[command]
    flags = [part for name, value in parameters.items() for part in (f"--{name}", value)]
    path = tmp_path / "model.json"
    done = invoke(command, train_txt, "--model", path, "--scale", scale, *flags, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["parameters"]["scale"] == scale
    model = estimator(scale=scale, **parameters)
    if command == "train-online":
        model.fit(train_txt)
    else:
        model.fit(load_letor(train_txt))
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    np.testing.assert_array_equal(loaded.scale_, model.scale_)
    assert loaded.scale == scale
    model.save(tmp_path / "again.json")
    again = read_model(tmp_path / "again.json")
    np.testing.assert_array_equal(again.scale, model.scale_)


def test_a_path_of_scaled_models(invoke, train_txt, tmp_path):
    path = tmp_path / "model.json"
    flags = ("--path", "5", "--valid", train_txt, "--scale", "standard")
    done = invoke("train-sparse", train_txt, "--model", path, *flags, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["path"]
    model = load_model(path)
    best = result["points"][result["best"]]
    assert best["C"] == model.C
    np.testing.assert_allclose(model.objective_, best["objective"], rtol=2e-4)


@pytest.mark.parametrize("command", LEARNERS)
def test_none_is_no_scale(invoke, train_txt, tmp_path, command):
    paths = tmp_path / "plain.json", tmp_path / "none.json"
    assert invoke(command, train_txt, "--model", paths[0]).returncode == 0
    assert invoke(command, train_txt, "--model", paths[1], "--scale", "none").returncode == 0
    plain, none = map(load_model, paths)
    assert none.scale_ is None
    if command == "train-sparse":  # which divides by standard deviations by default
        assert plain.scale_ is not None
    else:
        np.testing.assert_array_equal(plain.coef_, none.coef_)


@pytest.mark.parametrize("command", LEARNERS)
def test_a_wrong_name_is_refused(error_of, train_txt, tmp_path, command):
    told = error_of(command, train_txt, "--model", tmp_path / "m.json", "--scale", "minmax")
    assert told == "--scale 'minmax' must be one of 'none', 'standard', 'range', 'query'."


@pytest.mark.parametrize("command", LEARNERS)
def test_features_without_effect_are_named_once(invoke, odd_txt, tmp_path, command):
    flags = ("--model", tmp_path / "m.json", "--scale", "query")
    done = invoke(command, odd_txt, *flags)
    assert done.returncode == 0, done.stderr
    told = "within every query: f2. Drop them."
    assert done.stderr.count(told) == 1
    assert told not in invoke(command, odd_txt, *flags[:2], "--scale", "none").stderr


def test_inspect_tells_what_no_pair_sees(invoke, odd_txt):
    result = json.loads(invoke("inspect", odd_txt, "--json").stdout)
    assert result["constant_in_queries"] == {"features": 1, "first": ["f2"]}
    assert "features constant in queries  f2" in invoke("inspect", odd_txt).stdout


def test_inspect_shows_the_scale_of_a_model(invoke, odd_txt, tmp_path):
    path = tmp_path / "m.json"
    assert invoke("train", odd_txt, "--model", path, "--scale", "standard").returncode == 0
    model = load_model(path)
    result = json.loads(invoke("inspect", path, "--json").stdout)
    by_size = np.argsort(-np.abs(model.coef_ * model.scale_), kind="stable")
    assert [one["feature"] for one in result["top_weights"]] == [f"f{k + 1}" for k in by_size]
    assert [one["scale"] for one in result["top_weights"]] == model.scale_[by_size].tolist()
    assert re.search("feature +weight +scale", invoke("inspect", path).stdout)


def test_inspect_shows_what_the_largest_weights_are_sorted_by(invoke, odd_txt, tmp_path):
    path = tmp_path / "m.json"
    assert invoke("train", odd_txt, "--model", path, "--scale", "standard").returncode == 0
    model = load_model(path)
    effects = np.sort(np.abs(model.coef_ * model.scale_))[::-1]
    lines = invoke("inspect", path).stdout.splitlines()
    first = lines.index(next(line for line in lines if line.startswith("Largest weights"))) + 2
    assert re.search("weight . scale", lines[first - 1])
    shown = [abs(float(line.split()[-1])) for line in lines[first : first + 3]]
    np.testing.assert_allclose(shown, effects, rtol=1e-4)


def test_inspect_tells_weights_that_rounding_left_of_zeros(invoke, odd_txt, tmp_path):
    path = tmp_path / "m.json"
    assert invoke("train", odd_txt, "--model", path, "--scale", "standard").returncode == 0
    content = json.loads(path.read_text())
    content["coef"][1] = 1e-17
    path.write_text(json.dumps(content))
    result = json.loads(invoke("inspect", path, "--json").stdout)
    assert (result["nonzero_weights"], result["effective_weights"]) == (3, 2)
    assert "2, and 1 that are zero up to rounding" in invoke("inspect", path).stdout
