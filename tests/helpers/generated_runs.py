"""Runs and qrels of a generated collection, for tests of fusion."""

import numpy as np


def generated_runs(seed=0, quality=(1.5, 0.5), n_queries=20, n_documents=30, depth=15):
    """Return runs s0, s1, … and qrels; a signal of higher quality follows the labels more closely.

    A fifth of the relevant documents is judged and retrieved by nobody.
    """
    rng = np.random.default_rng(seed)
    runs = {f"s{k}": {} for k in range(len(quality))}
    qrels = {}
    for query in (f"q{k}" for k in range(n_queries)):
        label = np.where(rng.random(n_documents) < 0.2, rng.integers(1, 4, n_documents), 0)
        hidden = rng.random(n_documents) < 0.2
        qrels[query] = {f"d{d}": int(label[d]) for d in np.flatnonzero(label)}
        qrels[query].setdefault("d0", 0)
        for k, own in enumerate(quality):
            scores = own * label + rng.normal(size=n_documents) * 1.5 + 10 * k
            best = [d for d in np.argsort(-scores) if not hidden[d]][:depth]
            runs[f"s{k}"][query] = {f"d{d}": float(scores[d]) for d in best}
    return runs, qrels
