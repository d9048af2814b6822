"""
Weights of hybrid search
========================

Hybrid search adds up the scores of a keyword index (BM25) and of vectors. How much should each
count? :class:`~marginrank.FusionRanker` finds the weights that maximize NDCG@10 on judged queries,
and says whether they are better than reciprocal rank fusion (RRF).
"""

# %%
# Two signals
# -----------
# We simulate 120 judged queries. Each signal retrieves 50 of 300 documents. Vectors see relevant
# documents better, but keywords find some that vectors miss.

import matplotlib.pyplot as plt
import numpy as np

from marginrank import FusionRanker, metrics
from marginrank.models import FusionModel

plt.style.use("marginrank.plots.marginrank")

rng = np.random.default_rng(0)
runs, qrels = {"BM25": {}, "vectors": {}}, {}
for query in (f"q{k}" for k in range(120)):
    label = rng.integers(1, 4, size=300) * (rng.random(300) < 0.04)
    keywords = 12 + 3.5 * label * (rng.random(300) < 0.7) + rng.gumbel(0, 2, size=300)
    cosines = 0.5 + 0.055 * label + rng.normal(0, 0.06, size=300)
    for name, scores in (("BM25", keywords), ("vectors", cosines)):
        best = np.argsort(-scores)[:50]
        runs[name][query] = {f"d{d}": float(scores[d]) for d in best}
    qrels[query] = {f"d{d}": int(label[d]) for d in np.flatnonzero(label)}

# %%
# The fit
# -------

ranker = FusionRanker(metric="ndcg@10").fit(runs, qrels)
print(ranker.verdict_)
print(ranker.weights_)

# %%
# The metric along the weights
# ----------------------------
# NDCG@10 changes only where two documents swap, so it is a step function of the weight, and no
# gradient can climb it. The best interval is found exactly. The weight is an average over bootstrap
# samples of the queries, because the highest step is partly luck.

weights = np.linspace(0, 1, 101)
values = []
for weight in weights:
    fused = FusionModel(("BM25", "vectors"), [1 - weight, weight]).fuse(runs)
    values.append(metrics.evaluate_run(fused, qrels, ["ndcg@10"]).means["ndcg@10"])

evaluation = ranker.evaluation_
learned = ranker.weights_["vectors"]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
left.plot(weights, values, drawstyle="steps-mid")
left.axvline(learned, color="C1")
left.annotate(f"learned: {learned:.2f}", (learned, min(values)), (4, 0), color="C1", rotation=90,
              textcoords="offset points")  # fmt: skip
left.set(xlabel="weight of vectors (BM25 has the rest)", ylabel="NDCG@10 of all queries")
names = sorted(evaluation.means, key=evaluation.means.get)
for row, name in enumerate(names):
    color = "C1" if name == "learned" else "0.5"
    mean, half = evaluation.means[name], evaluation.half_intervals[name]
    right.errorbar(mean, row, xerr=half, fmt="o", capsize=3, color=color)
right.set_yticks(range(len(names)), names)
right.set_xlabel("NDCG@10, cross-validated, 95% interval")
plt.show()
