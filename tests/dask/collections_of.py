"""The same documents as every kind of Dask collection."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from marginrank import RankingData

NAMES = ["bm25", "length", "clicks", "age", "rank"]


def frame_of(X, y, qid):
    frame = pd.DataFrame(X, columns=NAMES[: X.shape[1]])
    return frame.assign(label=y, query=qid)


def as_arrays(chunks, *arrays):
    """Return Dask arrays of these heights of chunks."""
    return [da.from_array(a, chunks=(tuple(chunks), *a.shape[1:])) for a in arrays]


def as_data(chunks, X, y, qid):
    """Return arguments of fit: Dask arrays of these heights of chunks."""
    return dict(zip(("X", "y", "qid"), as_arrays(chunks, X, y, qid), strict=True))


def as_frame(chunks, X, y, qid):
    """Return a dataframe whose partitions have these heights; some may be zero."""
    frame, ends = frame_of(X, y, qid), np.cumsum(chunks)
    parts = [frame.iloc[end - height : end] for height, end in zip(chunks, ends, strict=True)]
    return dd.from_map(lambda k: parts[k], range(len(parts)), meta=frame.iloc[:0])


def as_stores(folder, chunks, X, y, qid):
    """Return the paths of stores of these numbers of documents."""
    paths, first = [], 0
    for k, height in enumerate(chunks):
        rows = slice(first, first + height)
        paths.append(folder / f"store{k}")
        RankingData(X[rows], y[rows], qid[rows]).save(paths[-1])
        first += height
    return paths
