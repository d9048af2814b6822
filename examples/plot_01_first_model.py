"""
A first model
=============

A search engine shows documents for each query. People have labeled some of them, from 0 (useless)
to 4 (perfect), and every document has a few numbers that say how well it fits: its features.
:class:`~marginrank.RankSVM` learns one weight per feature, such that documents with higher labels
get higher scores.
"""

# %%
# The data
# --------
# :func:`~marginrank.make_ranking` draws 200 queries with 20 documents each. The true weights are
# known, so we can check what is learned. The first 100 queries are for training.

import matplotlib.pyplot as plt
import numpy as np

from marginrank import RankSVM, make_ranking, metrics, rank_features

plt.style.use("marginrank.plots.marginrank")

X, y, qid, truth = make_ranking(
    n_queries=200, docs_per_query=20, n_features=8, noise=1.0, return_coef=True, random_state=0
)
train, test = qid < 100, qid >= 100

# %%
# The fit
# -------
# ``qid`` says which documents belong to the same query: only they are compared with each other.

model = RankSVM(C=0.01).fit(X[train], y[train], qid=qid[train])
print(f"{model.n_pairs_:,} pairs of documents, stopped because {model.stop_reason_.value}")

# %%
# The ranking
# -----------
# ``predict`` returns scores, and ``rank`` returns ranks within each query. NDCG@10 is 1 for the
# ideal order. We compare with the best single feature and with a random order.

features = rank_features(X[train], y[train], qid=qid[train])
best = features.order[0]
rankings = {
    "RankSVM": model.predict(X[test]),
    "best feature": features.direction[best] * X[test, best],
    "random order": np.random.default_rng(0).random(test.sum()),
}
quality = {
    name: metrics.ndcg(y[test], scores, qid=qid[test], k=10, per_query=True)
    for name, scores in rankings.items()
}
for name, values in quality.items():
    print(f"{name:15} NDCG@10 = {values.mean():.3f}")

# %%
# What was learned
# ----------------
# The standard error of each weight follows from the same fit. Up to a common factor, which changes
# no ranking, the weights are the true ones.

error = model.coef_stderr(X[train], y[train], qid=qid[train])
factor = (model.coef_ @ truth) / (truth @ truth)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), width_ratios=(1, 1.3))
means = [values.mean() for values in quality.values()]
errors = [1.96 * values.std() / np.sqrt(values.size) for values in quality.values()]
left.errorbar(means, range(3), xerr=errors, fmt="o", capsize=3)
left.set_yticks(range(3), quality)
left.set(xlabel="NDCG@10 of 100 new queries, 95% interval", ylim=(2.5, -0.5))

order = np.argsort(truth)
right.errorbar(model.coef_[order], range(8), xerr=2 * error[order], fmt="o", capsize=3)
right.plot(factor * truth[order], range(8), "D", color="C1", fillstyle="none", markersize=9)
right.set_yticks(range(8), [f"feature {j + 1}" for j in order])
right.set_xlabel("weight")
right.annotate("learned, ± 2 standard errors", (0.05, 0.93), xycoords="axes fraction", color="C0")
right.annotate("true", (0.05, 0.85), xycoords="axes fraction", color="C1")
plt.show()
