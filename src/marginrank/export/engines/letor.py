"""Systems that read LETOR text, where features have indices from 1 on."""

import json

import numpy as np

from marginrank._utils.optional import require
from marginrank.export.engines._documents import Documents, Files, Run


def ranklib(files: Files, documents: Documents) -> Run:
    """Score as RankLib does: features in float32, sums in float64, in the order of the file."""
    lines = files[""].decode().splitlines()
    (weights,) = [line for line in lines if line and not line.startswith("##")]
    X = documents.filled().astype(np.float32).astype(np.float64)
    total = np.zeros(len(X))
    for entry in weights.split():
        index, _, weight = entry.partition(":")
        total += float(weight) * X[:, int(index) - 1]
    return Run("reference of RankLib", total, is_reference=True)


def fastrank(files: Files, documents: Documents) -> Run:
    """Score with fastrank, to which a column of a matrix is what an index is in text."""
    library = require("fastrank", "verify")
    model = library.CModel.from_dict(json.loads(files[""]))
    X = np.zeros((len(documents.X), 1 + documents.X.shape[1]), np.float32)
    X[:, 1:] = documents.filled()
    data = library.CDataset.from_numpy(X, np.zeros(len(X)), np.ones(len(X), np.int64))
    scores = np.array(model.predict_dense_scores(data), dtype=np.float64)
    return Run(f"fastrank {library.__version__}", scores)
