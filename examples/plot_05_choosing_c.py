"""
Choosing C
==========

C weighs the loss against the size of the weights. If C is too small the model ignores the data; if
it is too large the model learns noise. :class:`~marginrank.RankSVMCV` tries many values on folds of
whole queries. All fits share the passes over the data, so a hundred fits take the time of a few.
"""

# %%
# Few queries, many features
# --------------------------
# Only 40 queries for 150 features: here, C matters.

import matplotlib.pyplot as plt

from marginrank import RankSVMCV, learning_curve_ranking, make_ranking
from marginrank.plots import plot_learning_curve, plot_search

plt.style.use("marginrank.plots.marginrank")

X, y, qid = make_ranking(n_queries=40, docs_per_query=15, n_features=150, random_state=1, noise=1.0)

# %%
# The search
# ----------
# Lists of values of other parameters are tried in all combinations.

model = RankSVMCV(loss=["squared_hinge", "huber"], normalization="pairs", scale="standard")
model.fit(X, y, qid=qid)
print(f"{model.search_.n_fits} fits; selected: {model.best_params_}")

figure, ax = plt.subplots(figsize=(8, 4))
plot_search(model.search_, ax=ax)
plt.show()

# %%
# The band is one standard error over the folds. To the right, the model learns noise. Near the top
# the curve is flat: a C within a factor of ten of the best one is about as good, and so is the
# other loss.
#
# Would more queries help?
# ------------------------
# The score of held-out queries still rises with the number of training queries, and it is far below
# the score of the training queries. So more labels would help.

curve = learning_curve_ranking(X, y, qid=qid, cv=4)
figure, ax = plt.subplots(figsize=(8, 4))
plot_learning_curve(curve, ax=ax)
plt.show()
