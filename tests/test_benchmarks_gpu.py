"""benchmarks/gpu.py runs without a card, and the scheme of paper 5 in it is right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.torch_problems import make_data, relative_error

from marginrank.fit.inputs import choose_pairs, objective_on
from marginrank.objective.losses import LOSSES

FOLDER = Path(__file__).parents[1] / "benchmarks"


def test_it_runs(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "MARGINRANK_DATA"}
    arguments = ["--device", "cpu", "--share", "0.01", "--sets", "MQ2008", "--json"]
    subprocess.run(
        [sys.executable, FOLDER / "gpu.py", *arguments, tmp_path / "results.json"],
        check=True,
        env=environment | {"OMP_NUM_THREADS": "1"},
    )
    rows = json.loads((tmp_path / "results.json").read_text())["sets"]["MQ2008"]
    assert set(rows) == {"native", "torch", "P-SWX"}
    for name, row in rows.items():
        assert row["reached the rule"] or name == "P-SWX"  # which has few digits
        assert row["above the optimum"] < 1e-4
        times = [at for at in row["curve"].values() if at is not None]
        assert times == sorted(times)
        assert len(times) >= 4
    assert rows["torch"]["products"] == rows["native"]["products"]
    assert rows["torch"]["accuracy"] == pytest.approx(rows["native"]["accuracy"], abs=1e-3)


def test_the_scheme_of_paper_5_has_the_same_sums_in_single_precision(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from p_swx import SwxMatrix

    data = make_data(5, 300, 7)
    chosen = choose_pairs(data, LOSSES["squared_hinge"])
    native = objective_on(data, chosen)
    swx = objective_on(data, chosen, matrix=SwxMatrix.on(data, "cpu"))
    w, v = np.random.default_rng(0).normal(size=(2, data.n_features))
    expected, found = native.at(w), swx.at(w)
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    assert relative_error(found.gradient, expected.gradient) < 1e-5
    assert relative_error(found.hess_vec(v)[0], expected.hess_vec(v)[0]) < 1e-4
