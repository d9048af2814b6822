"""
Learning from clicks
====================

Users click what they see, and they see the top of a list. A model that takes clicks for labels
learns to repeat the list that was shown. Two remedies: a position term, and propensities.
"""

# %%
# A log of clicks
# ---------------
# Lists are sorted by age, which has nothing to do with relevance, plus noise, so documents change
# positions. Users examine position k with the probability 1/k. They click relevant documents that
# they examine.

import matplotlib.pyplot as plt
import numpy as np

from marginrank import RankSVM, estimate_propensities, make_clicks, make_ranking, metrics
from marginrank.plots import plot_position_effect

plt.style.use("marginrank.plots.marginrank")

X, y, qid = make_ranking(n_queries=400, docs_per_query=20, n_features=10, noise=0.7, random_state=0)
train, test = np.flatnonzero(qid < 300), qid >= 300
age = X[:, 6]
log = make_clicks(
    y[train], qid=qid[train], scores=age[train], temperature=1.0, n_sessions=8000, random_state=0
)

# %%
# Three ways to use it
# --------------------
# Each session is a query of the fit, and clicks are labels. The position term adds one effect per
# position to the same convex problem. Propensities are the probabilities that positions are
# examined: they follow from documents that changed positions, and a click that was unlikely to
# happen counts more.


def fitted(n_sessions, way):
    rows = log.session < n_sessions
    options = {
        "clicks as labels": {},
        "with position term": {"position": log.position[rows]},
        "with propensities": {"propensity": propensity.of(log.position[rows])},
    }
    model = RankSVM(C=1.0, normalization="pairs", scale="standard")
    shown = X[train][log.document[rows]]
    return model.fit(shown, log.click[rows], qid=log.session[rows], **options[way])


def ndcg(scores):
    return metrics.ndcg(y[test], scores, qid=qid[test], k=10)


propensity = estimate_propensities(log)
sizes = [250, 500, 1000, 2000, 4000, 8000]
ways = ("clicks as labels", "with position term", "with propensities")
models = {way: [fitted(size, way) for size in sizes] for way in ways}

# %%
# What it brings
# --------------
# More clicks do not cure the bias of clicks as labels. The position term removes some of it, and
# propensities remove nearly all: the model comes close to one that was fitted to judgments. The
# lists that were shown have an NDCG@10 of 0.36. :func:`~marginrank.plots.plot_position_effect`
# draws the effects of the position term.

judged = RankSVM(C=1.0, normalization="pairs", scale="standard")
judged.fit(X[train], y[train], qid=qid[train])

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1.7, 1))
for (way, own), color in zip(models.items(), ("C1", "C0", "C2"), strict=True):
    values = [ndcg(model.predict(X[test])) for model in own]
    left.plot(sizes, values, marker="o", color=color)
    left.annotate(way, (sizes[-1], values[-1]), (8, -3), color=color, textcoords="offset points")
goal = ndcg(judged.predict(X[test]))
left.axhline(goal, color="0.5", linestyle="--", linewidth=1)
left.annotate(
    "fitted to judgments", (sizes[0], goal), (0, -13), textcoords="offset points", color="0.4"
)
left.set_xscale("log")
left.set_xticks(sizes, [f"{size:,}" for size in sizes])
left.minorticks_off()
left.set(xlabel="sessions", ylabel="NDCG@10 of new queries")
plot_position_effect(models["with position term"][-1], ax=right)
plt.show()
