"""Damaged files that would end the process that reads them."""

import json
import re
import subprocess
import sys

import lightgbm
import numpy as np
import pytest
import xgboost

from marginrank import make_ranking
from marginrank.models import read_any_model, trial

X, Y, QID = make_ranking(30, 10, 6, n_levels=3, random_state=0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m"


def write_lightgbm(path, field, value):
    """Write a model with other values in the first list of that name, of the same length."""
    data = lightgbm.Dataset(X, Y)
    model = lightgbm.train({"num_threads": 1, "verbosity": -1}, data, 3)
    text = model.model_to_string()
    old = re.search(rf"{field}=([^\n]*)", text)
    path.write_text(text.replace(old[0], f"{field}=" + value(len(old[1])), 1))


def write_xgboost(path, change):
    model = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, label=Y), 3)
    content = json.loads(model.save_raw("json"))
    change(content["learner"])
    path.write_text(json.dumps(content, separators=(",", ":")))


def first_tree(learner):
    return learner["gradient_booster"]["model"]["trees"][0]


def set_in_tree(field, value):
    def change(learner):
        tree = first_tree(learner)
        tree[field] = [value] * len(tree[field])

    return change


def test_a_sound_file_is_read_as_ever(path):
    write_xgboost(path, lambda learner: None)
    assert read_any_model(path).n_features == 6


@pytest.mark.parametrize("field", ["left_child", "split_feature", "num_leaves"])
def test_lightgbm_that_crashes(path, field):
    write_lightgbm(path, field, lambda size: "9" * size)
    with pytest.raises(ValueError, match=r"/m is damaged: a process that read it was ended by sig"):
        read_any_model(path)


@pytest.mark.parametrize("field", ["left_children", "split_indices"])
def test_xgboost_that_crashes(path, field):
    write_xgboost(path, set_in_tree(field, 10**8))
    with pytest.raises(ValueError, match=r"/m is damaged: a process that read it was ended by sig"):
        read_any_model(path)


def test_a_file_that_is_read_for_ever(path, monkeypatch):
    """A child of each node is the root."""
    monkeypatch.setattr(trial, "SECONDS", 8.0)
    write_lightgbm(path, "left_child", lambda size: ("0 " * size)[:size])
    with pytest.raises(ValueError, match=r"/m is damaged: reading it does not end within 8 s"):
        read_any_model(path)


def test_a_file_that_asks_for_absurd_memory(path):
    def change(learner):
        learner["learner_model_param"]["num_feature"] = "2000000000"

    write_xgboost(path, change)
    with pytest.raises(ValueError, match=r"/m is damaged: "):
        read_any_model(path)


def test_what_is_mapped_before_does_not_count(path):
    """A sanitizer maps terabytes before Python starts."""
    write_xgboost(path, lambda learner: None)
    script = """
import mmap, sys
from marginrank.models import trial
before = mmap.mmap(-1, 2 * trial.MEMORY, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
trial.run(sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_python_complains_of_is_told_as_it_is(path):
    write_lightgbm(path, "num_leaves", lambda size: "x" * size)
    with pytest.raises(ValueError, match=r"/m is damaged: ") as caught:
        read_any_model(path)
    assert "\n" not in str(caught.value)


def test_the_current_folder_is_no_place_for_modules(path, tmp_path, monkeypatch):
    (tmp_path / "lightgbm.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    write_lightgbm(path, "num_leaves", lambda size: "9" * size)
    with pytest.raises(ValueError, match="ended by signal"):
        read_any_model(path)


def test_limits_grow_with_the_file(path, monkeypatch):
    seen = []

    class Child:
        returncode = 0

    def run(*arguments, timeout, **options):
        seen.append(timeout)
        return Child

    monkeypatch.setattr(trial.subprocess, "run", run)
    path.write_bytes(bytes(np.zeros(1 << 22, np.uint8)))
    trial.try_in_child(str(path))
    assert seen == [trial.SECONDS + 4]
