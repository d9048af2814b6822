"""
Curves against LambdaMART
=========================

Boosted trees (LambdaMART) are the usual choice for features like text scores, prices and ages. An
additive model has one curve per feature instead of thousands of splits. Is the model that can be
read also good enough?
"""

# %%
# A shop
# ------
# Customers like products that match their words, with diminishing returns. They prefer a moderate
# price and recent products. Five more features are pure noise.

import lightgbm
import matplotlib.pyplot as plt
import numpy as np

from marginrank import AdditiveRankSVM, RankSVM, metrics

plt.style.use("marginrank.plots.marginrank")

TRUTH = {
    "text match": lambda v: 2.5 * np.tanh(2 * v),
    "price": lambda v: 3 * np.exp(-((v - 0.3) ** 2) / 0.3),
    "age": lambda v: -np.log1p(np.exp(3 * v)),
}
rng = np.random.default_rng(0)
X = rng.uniform(-1.5, 1.5, size=(400 * 25, 8))
qid = np.repeat(np.arange(400), 25)
utility = sum(f(X[:, k]) for k, f in enumerate(TRUTH.values())) + rng.normal(0, 1, len(X))
y = np.searchsorted(np.quantile(utility, [0.5, 0.75, 0.9, 0.97]), utility)
fitting, valid, test = qid < 150, (qid >= 150) & (qid < 200), qid >= 200

# %%
# Three learners
# --------------
# Curves have a smoothness, trees have a size, and weights have a C. We choose each on 50 queries
# that the fits do not see, and evaluate the selected models on 200 other queries.

learners = {
    "curves (AdditiveRankSVM)": [
        AdditiveRankSVM(C=30, smoothness=smoothness, normalization="pairs")
        for smoothness in (0.1, 0.01, 0.001)
    ],
    "LambdaMART (LightGBM)": [
        lightgbm.LGBMRanker(num_leaves=leaves, n_jobs=1, verbose=-1, random_state=0)
        for leaves in (4, 8, 31)
    ],
    "weights (RankSVM)": [RankSVM(C=C, normalization="pairs") for C in (0.1, 1, 10)],
}


def ndcg(model, rows, **options):
    return metrics.ndcg(y[rows], model.predict(X[rows]), qid=qid[rows], k=10, **options)


selected = {}
for name, candidates in learners.items():
    for model in candidates:
        queries = {"qid": qid[fitting]} if "RankSVM" in name else {"group": np.full(150, 25)}
        model.fit(X[fitting], y[fitting], **queries)
    selected[name] = max(candidates, key=lambda model: ndcg(model, valid))

# %%
# The curves are part of the answer
# ---------------------------------
# Curves and trees rank equally well here, because each feature adds its own part to the utility.
# Only the curves say so. They are drawn beside the truth, which has the same mean and scale: a
# constant and a factor change no ranking. :func:`~marginrank.plots.plot_additive` draws any
# additive model.

figure = plt.figure(figsize=(10, 6))
top, bottom = figure.subfigures(2, 1, height_ratios=(1, 1.6))
ax = top.subplots()
for k, (name, model) in enumerate(selected.items()):
    values = ndcg(model, test, per_query=True)
    error = 1.96 * values.std() / np.sqrt(values.size)
    print(f"{name:25} {values.mean():.3f} ± {error:.3f}")
    ax.errorbar(values.mean(), k, xerr=error, fmt="o", capsize=3)
ax.set_yticks(range(3), selected)
ax.set(xlabel="NDCG@10 of 200 new queries, 95% interval", ylim=(2.5, -0.5))

curves = selected["curves (AdditiveRankSVM)"].curves_
panels = bottom.subplots(1, 3, sharey=True)
for curve, (name, truth), ax in zip(curves, TRUTH.items(), panels, strict=False):
    true = truth(curve.knots)
    slope, shift = np.polyfit(true, curve.values, 1)
    ax.plot(curve.knots, slope * true + shift, color="C1", linestyle="--")
    ax.plot(curve.knots, curve.values, color="C0")
    ax.set(title=name, xlabel="value")
panels[0].set_ylabel("contribution to the score")
panels[0].annotate("learned", (0.05, 0.9), xycoords="axes fraction", color="C0")
panels[0].annotate("true", (0.05, 0.8), xycoords="axes fraction", color="C1")
plt.show()
