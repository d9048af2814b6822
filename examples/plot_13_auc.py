"""
Maximizing the area under the ROC curve
=======================================

With labels 0 and 1 and all documents in one query, each pair of :class:`~marginrank.RankSVM` has
one positive and one negative document. The share of pairs in the right order is the area under the
ROC curve (AUC), so RankSVM maximizes AUC.
"""

# %%
# Rare positive documents
# -----------------------
# Three documents in a hundred are positive. A tenth of their words is on a topic.

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.svm import LinearSVC

from marginrank import RankSVM
from marginrank.models import foreign_scores

plt.style.use("marginrank.plots.marginrank")


def make_text(n_documents, n_words, share_positive, random_state=0):
    """Return TF-IDF rows and labels; a tenth of the words of positive documents is on a topic."""
    rng = np.random.default_rng(random_state)
    y = (rng.random(n_documents) < share_positive).astype(int)
    frequency = 1 / np.arange(2, n_words + 2)
    topic = rng.permutation(frequency)
    document = np.repeat(np.arange(n_documents), rng.integers(20, 120, n_documents))
    from_topic = (y[document] == 1) & (rng.random(document.size) < 0.1)
    word = rng.choice(n_words, document.size, p=frequency / frequency.sum())
    word[from_topic] = rng.choice(n_words, from_topic.sum(), p=topic / topic.sum())
    shape = (n_documents, n_words)
    counts = sp.csr_matrix((np.ones(word.size), (document, word)), shape=shape)
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts), y


X, y = make_text(n_documents=12_000, n_words=5_000, share_positive=0.03)
train, valid, test = (np.arange(len(y)) % 3 == part for part in range(3))
n_pairs = int(y[train].sum()) * int((1 - y[train]).sum())
print(f"{train.sum():,} documents, {y[train].sum()} of them positive: {n_pairs:,} pairs")

# %%
# RankSVM and two classifiers
# ---------------------------
# Each C is chosen on other documents. ``group=[n]`` says that all documents are one query.

models = {
    "RankSVM": [RankSVM(C=C, normalization="pairs") for C in (0.1, 1, 10, 100)],
    "LinearSVC": [LinearSVC(C=C) for C in (0.01, 0.1, 1, 10)],
    "LogisticRegression": [LogisticRegression(C=C, max_iter=1000) for C in (0.1, 1, 10, 100)],
}
curves = {}
for name, grid in models.items():
    one_query = {"group": [train.sum()]} if name == "RankSVM" else {}
    for model in grid:
        model.fit(X[train], y[train], **one_query)
    best = max(grid, key=lambda model: roc_auc_score(y[valid], foreign_scores(model, X[valid])))
    scores = foreign_scores(best, X[test])
    curves[name] = (*roc_curve(y[test], scores)[:2], roc_auc_score(y[test], scores))
    print(f"{name:20} C = {best.C:<5g} AUC = {curves[name][2]:.4f}")

# %%
# Enough words separate the training documents, so all three are close on data of this kind. A
# direct loss for AUC pays if classes overlap and one is rare.

figure, ax = plt.subplots(figsize=(5, 4.6))
for k, (name, (false, true, auc)) in enumerate(curves.items()):
    ax.plot(false, true, color=f"C{k}")
    ax.annotate(f"{name}: {auc:.3f}", (0.4, 0.3 - 0.08 * k), color=f"C{k}")
ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
ax.set(xlabel="share of negative documents above", ylabel="share of positive documents above")
ax.set_aspect("equal")
plt.show()
