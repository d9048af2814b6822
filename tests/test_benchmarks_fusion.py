"""The protocol of benchmarks/fusion.py, on generated runs."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from helpers.generated_runs import generated_runs

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
fusion = SimpleNamespace(**runpy.run_path(str(BENCHMARKS / "fusion.py")))


def test_learned_weights_hold_up_on_other_queries():
    runs, qrels = generated_runs(0, quality=(2.0, 0.3), n_queries=40, n_documents=20, depth=10)
    found = fusion.protocol(runs, qrels, 15, 3, n_bootstraps=20)
    learned, grid, rrf = (np.mean(found[name]) for name in ("learned", "grid", "RRF"))
    assert learned > rrf
    assert learned > grid - 0.02


def test_bm25_prefers_rare_words():
    run = fusion.bm25({"a": "the wing", "b": "the the tail", "c": "the"}, {"q": "the wing"})
    assert next(iter(run["q"])) == "a"
