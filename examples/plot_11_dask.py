"""
Data on a cluster
=================

If data are larger than one machine, :class:`~marginrank.dask.DaskRankSVM` fits where they are: on
the workers of a Dask cluster. The workers keep the documents, and only vectors with one number per
feature travel.
"""

# %%
# A cluster
# ---------
# This one has two workers in the process of the example. ``Client("scheduler:8786")`` connects to a
# real one, and nothing else changes.

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client

from marginrank import RankSVM, make_ranking
from marginrank.dask import DaskRankSVM, metric

plt.style.use("marginrank.plots.marginrank")

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0")

# %%
# A data frame in eight partitions
# --------------------------------
# All documents of a query must be in one partition. ``partitions="by_query"`` moves them there if
# they are not.

names = [f"feature {k}" for k in range(1, 31)]
X, y, qid = make_ranking(
    n_queries=600, docs_per_query=40, n_features=30, correlation=0.8, random_state=0
)
frame = pd.DataFrame(X, columns=names).assign(label=y, query=qid)
documents = dd.from_pandas(frame, npartitions=8, sort=False)

# %%
# The fit
# -------

model = DaskRankSVM(C=1e-3).fit(documents, "label", qid="query")
scores = model.predict(documents)  # a Dask series
quality = metric("ndcg@10", documents["label"], scores, qid=documents["query"])
print(f"NDCG@10 = {quality:.3f}, {model.n_pairs_:,} pairs, {model.stop_reason_.value}")

# %%
# What travels
# ------------
# A pass sends the weights to each partition and gets one sum per feature back. The gap between the
# objective and its proven lower bound falls with every iteration, as on one machine.

local = RankSVM(C=1e-3).fit(frame[names], y, qid=qid)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
for name, own, style in (("cluster", model, "C0o-"), ("one machine", local, "C1D--")):
    history = [one for one in own.history_ if one.fraction == 1]
    passes = [one.sweeps for one in history]
    left.semilogy(passes, [one.gap / own.objective_ for one in history], style, label=name)
left.legend()
left.set(xlabel="passes over X", ylabel="certified relative gap")
passes = model.history_[-1].sweeps
sent = {
    "vectors, there and back": 2 * passes * documents.npartitions * 8 * len(names),
    "the documents": X.nbytes,
}
right.barh(list(sent), [n / 1e6 for n in sent.values()], color=["C0", "0.75"], height=0.5)
for row, n in enumerate(sent.values()):
    right.annotate(
        f"{n / 1e6:.2f} MB", (n / 1e6, row), (4, 0), textcoords="offset points", va="center"
    )
right.grid(visible=False, axis="y")
right.set(xlabel="MB, in the whole fit", xlim=(0, 1.25 * X.nbytes / 1e6))
plt.show()

# %%
# A local copy predicts without Dask. Its scores equal the scores of the fit on one machine, up to
# ``tol``.

difference = model.to_local().predict(frame[names]) - local.predict(frame[names])
print(f"largest difference of two scores: {np.abs(difference).max():.1e}")
client.close()
