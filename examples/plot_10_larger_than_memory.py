"""
Data larger than memory
=======================

A fit needs a few dozen passes over the rows, in their order, and a disk can serve that. A
:class:`~marginrank.RankSVM` fits to a store on disk, within a limit of memory, to the same optimum.
"""

# %%
# A store on disk
# ---------------
# A store is a folder of arrays. ``marginrank convert`` makes one from text or tables of any size,
# in chunks; :meth:`RankingData.save <marginrank.RankingData.save>` writes data that are in memory.
# This example is small, so that it runs in seconds: 190 MB.

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from marginrank import RankingData, RankSVM, load_model, make_ranking

plt.style.use("marginrank.plots.marginrank")

folder = tempfile.TemporaryDirectory()
store = Path(folder.name, "train.store")
X, y, qid = make_ranking(
    n_queries=3000, docs_per_query=60, n_features=260, dtype=np.float32, random_state=0
)
RankingData(X, y, qid).save(store)
n_bytes = X.nbytes
print(f"X has {n_bytes / 1e6:.0f} MB")
del X, y, qid

# %%
# In Python
# ---------
# ``memory_limit`` is what the process may use in all.

model = RankSVM(C=1e-4).fit(store, memory_limit="1GB")
print(f"{model.n_pairs_:,} pairs, {model.stop_reason_.value}")

# %%
# From the command line
# ---------------------
# With ``--json``, the command also reports how much it read. Python and its libraries need 100 MB
# of the limit, and the fit has 160 MB of buffers and samples. What is left keeps blocks of X.

limits, read, kept, weights = np.array([360, 450, 540]), [], [], []
for limit in limits:
    options = f"--model {folder.name}/model.json -C 1e-4 --memory-limit {limit}MB --json"
    done = subprocess.run(
        [sys.executable, "-m", "marginrank", "train", str(store), *options.split()],
        check=True,
        capture_output=True,
    )
    stream = json.loads(done.stdout)["stream"]
    read.append(stream["bytes_read"] / 1e9)
    kept.append(stream["pinned_bytes"] / n_bytes)
    weights.append(load_model(f"{folder.name}/model.json").coef_)

# %%
# Less memory means more reading, and never another model: all bits of the weights are the same.

print(all(np.array_equal(own, weights[0]) for own in weights))

figure, ax = plt.subplots(figsize=(7.5, 3.8))
ax.bar(limits, read, width=50)
for limit, amount, share in zip(limits, read, kept, strict=True):
    ax.annotate(
        f"{share:.0%} of X\nkept in memory",
        (limit, amount),
        (0, 4),
        textcoords="offset points",
        ha="center",
        size="small",
    )
ax.set_xticks(limits)
ax.grid(visible=False, axis="x")
ax.set(xlabel="memory limit of the process, in MB", ylabel="read from disk, in GB")
ax.set_ylim(0, 1.2 * max(read))
plt.show()
folder.cleanup()
