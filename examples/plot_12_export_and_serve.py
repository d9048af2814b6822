"""
Export and serve
================

A fitted model is a list of numbers. It can rank in a database, in a search engine, or in a service
of your own, and you can check that each of them ranks as the fit did.
"""

# %%
# A model
# -------

import sqlite3
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from marginrank import AdditiveRankSVM, LinearScorer, RankingData, RankSVM, make_ranking

plt.style.use("marginrank.plots.marginrank")

names = ["bm25", "price", "age", "rating", "clicks"]
X, y, qid = make_ranking(n_queries=200, docs_per_query=25, n_features=5, random_state=0)
data = RankingData(X, y, qid, feature_names=names)
linear = RankSVM(C=0.01, scale="standard").fit(data)
additive = AdditiveRankSVM(C=10, normalization="pairs").fit(data)

# %%
# In a database
# -------------
# ``export`` writes SQL; other targets are Elasticsearch, OpenSearch, Solr, Vespa, ONNX, PMML, C,
# Java and JavaScript.

folder = tempfile.TemporaryDirectory()
statements = {}
for name, model in (("weights", linear), ("curves", additive)):
    path = Path(folder.name, f"{name}.sql")
    model.export(path, "sqlite", name="documents")
    statements[name] = path.read_text()
print(statements["weights"])

# %%
# SQLite computes all scores, and we compare them with ``predict``.

database = sqlite3.connect(":memory:")
pd.DataFrame(X, columns=names).to_sql("documents", database, index=False)
computed = {
    name: pd.read_sql_query(statement.rstrip().rstrip(";"), database)["score"].to_numpy()
    for name, statement in statements.items()
}
for name, model in (("weights", linear), ("curves", additive)):
    error = np.abs(computed[name] - model.predict(data)).max()
    print(f"{name:8} largest difference of two scores: {error:.1e}")

# %%
# In a service
# ------------
# :class:`~marginrank.LinearScorer` reads the model file without scikit-learn and ranks one query at
# a time. We measure the processor time of a request by the number of candidates. ``top_k`` does not
# sort the rest, which pays for thousands of candidates.

model = RankSVM(C=0.01, scale="standard").fit(X, y, qid=qid)
model.save(Path(folder.name, "model.json"))
scorer = LinearScorer.load(Path(folder.name, "model.json"))
sizes = [10, 30, 100, 300, 1000, 3000, 10_000]
candidates = np.random.default_rng(0).normal(size=(max(sizes), len(names)))


def microseconds(rank, documents, repeats=200):
    """Return the processor time of one call."""
    begin = time.process_time()
    for _ in range(repeats):
        rank(documents)
    return (time.process_time() - begin) / repeats * 1e6


times = {
    "RankSVM.rank, with all checks": [
        microseconds(lambda query: model.rank(query, group=[len(query)]), candidates[:size])
        for size in sizes
    ],
    "LinearScorer.rank_one": [microseconds(scorer.rank_one, candidates[:size]) for size in sizes],
    "LinearScorer.top_k, ten of them": [
        microseconds(lambda query: scorer.top_k(query, 10), candidates[:size]) for size in sizes
    ],
}

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1, 1.3))
left.plot(linear.predict(data), computed["weights"], ".", markersize=3)
left.plot(additive.predict(data), computed["curves"], ".", markersize=3)
left.annotate("weights", (0.05, 0.9), xycoords="axes fraction", color="C0")
left.annotate("curves", (0.05, 0.82), xycoords="axes fraction", color="C1")
left.set(xlabel="score in Python", ylabel="score in SQLite")
for (name, values), color in zip(times.items(), ("C1", "C0", "C2"), strict=True):
    right.loglog(sizes, values, marker="o", color=color)
    right.annotate(name, (sizes[-1], values[-1]), (8, -3), textcoords="offset points", color=color)
right.set_xticks(sizes, [f"{size:,}" for size in sizes])
right.minorticks_off()
right.set(xlabel="candidates of a query", ylabel="microseconds per query")
plt.show()
folder.cleanup()
