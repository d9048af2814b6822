"""
Which learner?
==============

Four learners on four kinds of data. If the truth is a weighted sum, all of them find it, and the
simplest one will do. If features have thresholds or optima, an additive model finds them. If only a
few of many features matter, a sparse model finds these. A kernel model finds how features act
together.
"""

# %%
# Four kinds of data
# ------------------
# 60 queries for training and 200 to evaluate, 20 documents each.

import matplotlib.pyplot as plt
import numpy as np

from marginrank import (
    AdditiveRankSVMCV,
    KernelRankSVM,
    RankSVMCV,
    SparseRankSVMCV,
    make_ranking,
    metrics,
)

plt.style.use("marginrank.plots.marginrank")


def make_linear(n_features=10, informative=None):
    return make_ranking(
        n_queries=260, n_features=n_features, informative=informative, noise=1.0, random_state=0
    )


def make_curved():
    X, _, qid = make_linear()
    noise = np.random.default_rng(0).normal(size=len(X))
    utility = 3 * np.exp(-(X[:, 0] ** 2)) + 2 * np.tanh(3 * X[:, 1]) + X[:, 2] + 0.5 * noise
    return X, np.searchsorted(np.quantile(utility, [0.5, 0.75, 0.9]), utility), qid


def make_crossed():
    X, _, qid = make_linear(n_features=4)
    noise = np.random.default_rng(0).normal(size=len(X))
    utility = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.3 * noise
    return X, np.searchsorted(np.quantile(utility, [0.5, 0.75, 0.9]), utility), qid


problems = {
    "a weighted sum": make_linear(),
    "thresholds and optima": make_curved(),
    "5 of 300 features": make_linear(n_features=300, informative=5),
    "products of features": make_crossed(),
}
learners = {
    "RankSVM": RankSVMCV(cv=3, n_points=8, normalization="pairs", scale="standard"),
    "SparseRankSVM": SparseRankSVMCV(cv=3, n_points=15),
    "AdditiveRankSVM": AdditiveRankSVMCV(cv=3, n_points=4, max_bins=8),
    "KernelRankSVM": KernelRankSVM(C=10.0, gamma=0.05, normalization="pairs"),
}

# %%
# Sixteen fits
# ------------
# C is chosen by cross-validation. We keep the NDCG@10 of each query that was not used for training.

quality = np.empty((len(problems), len(learners), 200))
for i, (X, y, qid) in enumerate(problems.values()):
    train, test = qid < 60, qid >= 60
    for j, learner in enumerate(learners.values()):
        scores = learner.fit(X[train], y[train], qid=qid[train]).predict(X[test])
        quality[i, j] = metrics.ndcg(y[test], scores, qid=qid[test], k=10, per_query=True)

# %%
# Nobody wins everywhere
# ----------------------
# The best learner of each kind of data is highlighted. Without knowing the truth, let
# cross-validation decide: :func:`~marginrank.cross_validate_ranking` takes any of them.

figure, axes = plt.subplots(1, len(problems), figsize=(11, 3), sharey=True)
for ax, name, values in zip(axes, problems, quality, strict=True):
    mean, error = values.mean(axis=1), 1.96 * values.std(axis=1) / np.sqrt(values.shape[1])
    for j, (m, e) in enumerate(zip(mean, error, strict=True)):
        color = "C1" if j == mean.argmax() else "0.6"
        ax.errorbar(m, j, xerr=e, fmt="o", color=color, capsize=3)
        ax.annotate(
            f"{m:.2f}", (m, j), (0, 6), textcoords="offset points", color=color, ha="center"
        )
    ax.set(title=name, xlabel="NDCG@10", ylim=(len(learners) - 0.5, -0.6))
axes[0].set_yticks(range(len(learners)), learners)
plt.show()
