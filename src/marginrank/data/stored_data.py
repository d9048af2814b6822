"""Data whose features stay on disk, and parts of them."""

import os
from typing import Any

from marginrank.data.ranking_data import RankingData
from marginrank.data.store.store import open_store


def open_stored(folder: str | os.PathLike[str], *, verify: bool = True) -> RankingData:
    """Open a store and leave X on disk: it is a StoredFeatures, whose rows are read in blocks.

    Parameters
    ----------
    folder : str or path
        A folder that :meth:`RankingData.save` or ``marginrank convert`` wrote.
    verify : bool, default=True
        Compare the checksums of all other files, and see that queries, labels and weights make
        sense. Those of X are for those who read it.
    """
    return RankingData._from_parts(open_store(folder, verify=verify, map_features=False))


def left_on_disk(data: RankingData) -> RankingData:
    """Return data of a store with X left on disk."""
    return RankingData._from_parts(data._parts()._replace(X=data.stored))


def between(data: RankingData, first: int, last: int, X: Any) -> RankingData:
    """Return neighbouring queries alone, whose rows are X.

    The rows of each query are next to each other in the data.
    """
    queries, rows = slice(first, last), slice(*data.queries.offsets[[first, last]])
    sample_weight, query_weight, cost = data.sample_weight, data.query_weight, data.cost
    comments = data.comments
    parts = data._parts()._replace(
        X=X,
        y=data.y[rows],
        queries=data.queries.between(first, last),
        query_ids=data.query_ids[queries],
        sample_weight=None if sample_weight is None else sample_weight[rows],
        query_weight=None if query_weight is None else query_weight[queries],
        comments=None if comments is None else comments[rows],
        cost=None if cost is None else cost[rows],
        stored=None,
    )
    return RankingData._from_parts(parts)
