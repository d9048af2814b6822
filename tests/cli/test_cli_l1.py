"""marginrank train --l1."""

import json

import numpy as np
import pytest

from marginrank import SparseRankSVM, load_letor, load_model, metrics


@pytest.fixture(scope="module")
def data(train_txt):
    return load_letor(train_txt)


@pytest.mark.parametrize(
    ("flags", "parameters"),
    [
        ((), {}),
        (("-C", "5"), {"C": 5.0}),
        (("--radius", "0.3", "--positive"), {"radius": 0.3, "positive": True}),
        (("--radius", "0.3", "--solver", "fenchel"), {"radius": 0.3, "solver": "fenchel"}),
        (
            ("-C", "5", "--l1-ratio", "0.5", "--loss", "huber"),
            {"C": 5.0, "l1_ratio": 0.5, "loss": "huber"},
        ),
        (
            ("-C", "5", "--normalization", "query", "--pair-cost", "gain", "--random-state", "3"),
            {"C": 5.0, "normalization": "query", "pair_cost": "gain", "random_state": 3},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_equals_the_python_api_bitwise(run, tmp_path, train_txt, data, flags, parameters):
    model = tmp_path / "m.json"
    done = run("train", train_txt, "--model", model, "--l1", "--tol", "1e-4", "--json", *flags)
    assert "warning" not in done.stderr
    expected = SparseRankSVM(tol=1e-4, **parameters).fit(data.X, data.y, qid=data.qid)
    loaded = load_model(model)
    assert type(loaded) is SparseRankSVM
    assert loaded.get_params() == expected.get_params()
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)
    result = json.loads(done.stdout)
    assert result["objective"] == expected.objective_
    assert result["gap"] == expected.gap_
    assert result["parameters"] == loaded.get_params()


def test_validation_and_evaluate(run, tmp_path, train_txt, test_txt):
    model = tmp_path / "m.json"
    flags = ("--l1", "--radius", "0.3", "--valid", test_txt, "--metrics", "ndcg@3")
    trained = run("train", train_txt, "--model", model, "--json", *flags)
    test = load_letor(test_txt, n_features=6)
    expected = metrics.ndcg(test.y, load_model(model).predict(test.X), qid=test.qid, k=3)
    assert json.loads(trained.stdout)["valid"] == {"ndcg@3": expected}
    evaluated = run("evaluate", model, test_txt, "--metrics", "ndcg@3")
    assert f"{expected:.6g}" in evaluated.stdout


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--radius", "1"), "--radius needs --l1."),
        (("--l1-ratio", "0.5"), "--l1-ratio needs --l1."),
        (("--positive",), "--positive needs --l1."),
        (("--l1", "--online"), "--l1 and --online are two learners; give one of them."),
        (("--l1", "--pairs", "some.pairs"), "--pairs has no meaning with --l1."),
        (("--l1", "--lam", "0.1"), "--lam has no meaning with --l1."),
        (("--l1", "--margin", "label"), "--margin has no meaning with --l1."),
        (("--l1", "--early-stopping"), "--early-stopping needs --online."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_flags_of_other_learners_are_refused(refused, tmp_path, flags, sentence):
    assert refused("train", "not_read.txt", "--model", tmp_path / "m.json", *flags) == sentence


@pytest.mark.parametrize(
    ("flags", "start"),
    [
        (("--solver", "newton"), "--solver 'newton' must be one of"),
        (("--loss", "hinge"), "--loss 'hinge' has no sparse solver"),
        (("--radius", "0"), "--radius 0"),
        (("--radius", "1", "--l1-ratio", "0.5"), "--l1-ratio 0.5 mixes penalties"),
        (("--l1-ratio", "1.5"), "--l1-ratio 1.5 must be a number from 0 to 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_values_are_refused_before_reading(refused, tmp_path, flags, start):
    sentence = refused("train", "not_read.txt", "--model", tmp_path / "m.json", "--l1", *flags)
    assert sentence.startswith(start)
