"""
Why is A above B?
=================

"Why does my product rank below this one?" Linear and additive models answer exactly: the difference
of two scores is the sum of one contribution per feature.
"""

# %%
# A model of products
# -------------------
# Text match saturates, a moderate price is best, and every year makes a product less attractive.

import matplotlib.pyplot as plt
import numpy as np

from marginrank import AdditiveRankSVM, RankingData
from marginrank.plots import plot_explanation

plt.style.use("marginrank.plots.marginrank")

names = ["text match", "price in €", "age in years", "rating", "number of reviews"]
rng = np.random.default_rng(0)
n_queries, n_documents = 200, 20
X = np.column_stack(
    [
        rng.gamma(3, 2, size=4000),
        rng.lognormal(4, 0.6, size=4000),
        rng.uniform(0, 8, size=4000),
        rng.normal(4, 0.5, size=4000).clip(1, 5),
        rng.lognormal(3, 1, size=4000),
    ]
).round(1)
qid = np.repeat(np.arange(n_queries), n_documents)
match, price, age, rating, reviews = X.T
utility = 2 * np.tanh(match / 5) - np.log(price / 50) ** 2 - 0.1 * age + rating + reviews / 100
y = np.searchsorted(np.quantile(utility + rng.normal(0, 0.5, 4000), [0.5, 0.8, 0.95]), utility)
data = RankingData(X, y, qid, feature_names=names)
model = AdditiveRankSVM(C=10, smoothness=0.1, normalization="pairs").fit(data)

# %%
# Two products of one query
# -------------------------
# The best one and the one at rank five. ``explain`` returns the reasons, the largest first, and
# :func:`~marginrank.plots.plot_explanation` draws them: each bar begins where the one above it
# ends.

rows = np.flatnonzero(qid == 0)
best_first = rows[np.argsort(-model.predict(data)[rows])]
a, b = X[best_first[0]], X[best_first[4]]
reasons = model.explain(a, b)

figure, ax = plt.subplots(figsize=(8, 3))
plot_explanation(reasons, documents=("product A", "product B"), ax=ax)
plt.show()

# %%
# The contributions of an additive model are read off its curves: the value of the curve for A minus
# its value for B.

figure, axes = plt.subplots(1, len(names), figsize=(12, 2.8), sharey=True)
for ax, curve, name, value_a, value_b in zip(axes, model.curves_, names, a, b, strict=True):
    ax.plot(curve.knots, curve.values, color="0.6")
    for value, color, product in ((value_a, "C0", "A"), (value_b, "C1", "B")):
        height = np.interp(value, curve.knots, curve.values)
        ax.plot(value, height, "o", color=color)
        ax.annotate(product, (value, height), (0, 6), textcoords="offset points", color=color)
    ax.set_xlabel(name)
    ax.set_xlim(*np.quantile(data.X[:, names.index(name)], [0, 0.99]))
axes[0].set(ylabel="contribution to the score", ylim=(-2, 2))
plt.show()
