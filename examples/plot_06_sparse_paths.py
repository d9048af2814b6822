"""
Sparse paths
============

Of 100 features only six matter. :func:`~marginrank.sparse_path` fits models from none to many
features, and every model comes with a certificate that it is the optimum.
"""

# %%
# A path of models
# ----------------
# We fit 40 values of C and evaluate each model on queries that were not used for training.

import matplotlib.pyplot as plt
import numpy as np

from marginrank import RankingData, SparseRankSVMCV, make_ranking, sparse_path
from marginrank.plots import plot_path

plt.style.use("marginrank.plots.marginrank")

X, y, qid, truth = make_ranking(
    n_queries=120, n_features=100, informative=6, noise=1.0, return_coef=True, random_state=101
)
useful = {f"useful {k}": j for k, j in enumerate(np.argsort(-abs(truth))[:6], 1)}
names = [f"other {j}" for j in range(100)]
for name, j in useful.items():
    names[j] = name


def part(rows):
    return RankingData(X[rows], y[rows], qid[rows], feature_names=names)


path = sparse_path(part(qid < 60), validation=part(qid >= 60), n_points=40)

# %%
# Features enter one after another, the useful ones first. The score of the new queries is highest
# when a few others have entered, and then falls slowly.

figure, ax = plt.subplots(figsize=(8, 6))
plot_path(path, ax=ax)
plt.show()

# %%
# Which features are selected?
# ----------------------------
# ``rule="one_se"`` takes the sparsest model whose score is within one standard error of the best.

for rule in ("best", "one_se"):
    model = SparseRankSVMCV(rule=rule, cv=5).fit(part(qid < 60))
    selected = [names[j] for j in np.flatnonzero(model.coef_)]
    found = sum(name in useful for name in selected)
    C = model.best_params_["C"]
    print(f"{rule:7} C = {C:.3g}: {len(selected)} features, {found} of the 6 useful ones")
