"""Maximize the area under the ROC curve on text-like data with few positive documents.

One query of all documents with labels 0 and 1 makes RankSVM an AUC maximizer: its pairs are those
of a positive and a negative document, and AUC is the share of them that the scores put in order.
"""

import time

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from marginrank import RankSVM
from marginrank.models import foreign_scores


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


X, y = make_text(n_documents=18_000, n_words=8_000, share_positive=0.03)
train, valid, test = (np.arange(len(y)) % 3 == part for part in range(3))
models = {
    "RankSVM": [RankSVM(C=C, normalization="pairs") for C in (0.1, 1, 10, 100)],
    "LinearSVC": [LinearSVC(C=C) for C in (0.01, 0.1, 1, 10)],
    "LogisticRegression": [LogisticRegression(C=C, max_iter=1000) for C in (0.1, 1, 10, 100)],
}
n_pairs = int(y[train].sum()) * int((1 - y[train]).sum())
print(f"{train.sum():,} documents, {y[train].sum()} of them positive: {n_pairs:,} pairs")
print(f"{'':20} {'C':>6} {'train':>8} {'test':>8} {'seconds':>8}")
for name, grid in models.items():
    start = time.perf_counter()
    for model in grid:
        one_query = {"group": [train.sum()]} if name == "RankSVM" else {}
        model.fit(X[train], y[train], **one_query)
    seconds = (time.perf_counter() - start) / len(grid)
    best = max(grid, key=lambda m: roc_auc_score(y[valid], foreign_scores(m, X[valid])))
    auc = [roc_auc_score(y[rows], foreign_scores(best, X[rows])) for rows in (train, test)]
    print(f"{name:20} {best.C:6g} {auc[0]:8.4f} {auc[1]:8.4f} {seconds:8.2f}")
