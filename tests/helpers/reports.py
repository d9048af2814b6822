"""Data for reports whose names would do harm if a page trusted them."""

import base64
import json

import numpy as np

from marginrank import RankingData

# Names, comments and ids that would do harm if a page ran or trusted them.
HOSTILE = (
    "</script><script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'>",
    "\u202eevil\u2066 {{ 7 * 7 }} ${7 * 7} ' \" & <b>",
    "]]><!--<script>",
)


def make_data(n_queries=30, n_documents=25, n_features=5, dtype=np.float32, seed=0):
    """Return data whose names, ids and comments are hostile."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_documents
    X = rng.normal(size=(n, n_features)).astype(dtype)
    X = np.round(X, 1)  # equal values, and documents with equal scores
    y = np.clip(np.round(X @ np.arange(n_features) / 2 + rng.normal(size=n)), 0, 4)
    return RankingData(
        X,
        y,
        qid=[f"{HOSTILE[q % 4]} {q}" for q in np.repeat(np.arange(n_queries), n_documents)],
        feature_names=[f"{HOSTILE[k % 4]}{k}" for k in range(n_features)],
        comments=[f"{HOSTILE[i % 4]}{i}" for i in range(n)],
    )


def record_in(page):
    """Return the record that a page holds."""
    start = page.index('id="record">') + len('id="record">')
    return json.loads(page[start : page.index("</script>", start)])


def decoded(block, name="score", dtype="<f8"):
    """Return an array of a block."""
    return np.frombuffer(base64.b64decode(block[name]), dtype=dtype)
