"""marginrank tune --additive: the choice of AdditiveRankSVMCV, as a command."""

import json
import shlex

import numpy as np
import pytest

from marginrank import AdditiveRankSVM, AdditiveRankSVMCV, load_letor, load_model, metrics

GRID = ("--smoothness", "0.1,10", "--max-bins", "4,8", "--folds", "3")


@pytest.fixture
def tune(invoke, tmp_path, train_txt):
    """Return a function that tunes curves on train.txt, into m.json, and returns what it tells."""

    def tune(*flags):
        path = tmp_path / "m.json"
        done = invoke("tune", train_txt, "--model", path, "--additive", "--json", *flags)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return tune


def test_the_choice_and_the_model_are_those_of_the_estimator(tune, tmp_path, train_txt, test_txt):
    told = tune(*GRID, "--normalization", "pairs", "--test", test_txt)
    train, test = load_letor(train_txt), load_letor(test_txt)
    model = AdditiveRankSVMCV(smoothness=[0.1, 10.0], max_bins=[4, 8], cv=3).fit(train)
    candidates = told["selection"]["candidates"]
    names = ("C", "max_bins", "smoothness")
    tried = [{name: one[name] for name in names} for one in candidates]
    assert tried == [{name: one[name] for name in names} for one in model.cv_results_["params"]]
    assert [one["scores"] for one in candidates] == model.search_.scores.tolist()
    assert told["selection"]["chosen"] == model.best_index_
    loaded = load_model(tmp_path / "m.json")
    assert type(loaded) is AdditiveRankSVM
    np.testing.assert_array_equal(loaded.predict(test), model.predict(test))
    expected = metrics.ndcg(test.y, model.predict(test), qid=test.qid, k=10)
    assert told["test"]["ndcg@10"] == pytest.approx(expected)


def test_the_command_that_it_prints_repeats_the_fit(tune, invoke, tmp_path):
    told = tune("-C", "0.01,0.1", "--categorical-features", "2", "--scale", "range", *GRID)
    path = tmp_path / "m.json"
    written = load_model(path)
    path.unlink()
    program, command, *words = shlex.split(told["repeat"])
    assert (program, command) == ("marginrank", "train-additive")
    assert invoke(command, *words).returncode == 0
    assert load_model(path).get_params() == written.get_params()
    for again, before in zip(load_model(path).curves_, written.curves_, strict=True):
        np.testing.assert_array_equal(again.values, before.values)


def test_validation_data_nested_folds_and_a_budget(tune, test_txt):
    one = ("--smoothness", "1", "--max-bins", "4")
    selection = tune(*one, "--valid", test_txt)["selection"]
    assert {len(one["scores"]) for one in selection["candidates"]} == {1}
    nested = tune(*one, "--folds", "2", "--nested", "-C", "0.01,0.1")["selection"]["nested"]
    assert 0.0 < nested["mean"] < 1.0
    assert len(nested["chosen"]) == 2
    finer = tune(*one, "--folds", "2", "--budget", "1e-9")["selection"]
    assert finer["out_of_time"]
    assert finer["candidates"]


def test_the_table_names_smoothness_and_bins(invoke, tmp_path, train_txt):
    flags = ("tune", train_txt, "--model", tmp_path / "m.json", "--additive", "-C", "0.1", *GRID)
    done = invoke(*flags, "--plot", tmp_path / "t.png")
    assert done.returncode == 0, done.stderr
    header = next(line for line in done.stdout.splitlines() if line.startswith("C "))
    assert header.split() == ["C", "max_bins", "smoothness", "ndcg@10"]
    assert " 0.1 " in done.stdout
    assert (tmp_path / "t.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--smoothness", "3"), "--smoothness needs --additive."),
        (("--max-bins", "8"), "--max-bins needs --additive."),
        (("--categorical-features", "2"), "--categorical-features needs --additive."),
        (
            ("--additive", "--smoothness", "3,x"),
            "--smoothness 'x' must be a finite number, more than 1e-12.",
        ),
        (
            ("--additive", "--max-bins", "8,255"),
            "--max-bins 255 must be an integer from 1 to 254.",
        ),
        (
            ("--additive", "--max-bins", "8,8"),
            "--max-bins 8 is given twice; drop one of them.",
        ),
        (
            ("--additive", "--points", "3", "-C", "1"),
            "--points cannot be combined with --C; drop one.",
        ),
    ],
)
def test_flags_without_meaning_are_refused(error_of, tmp_path, train_txt, flags, sentence):
    path = tmp_path / "m.json"
    assert error_of("tune", train_txt, "--model", path, *flags) == sentence
    assert not path.exists()
