"""Data whose features stay on disk, and parts of them."""

from collections.abc import Iterator
from typing import Any

from marginrank._utils.memory import available_memory
from marginrank.data.queries import bounded_ranges
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.feature_rows import FeatureRows
from marginrank.data.store.store import Path, open_store


def open_stored(folder: Path, *, verify: bool = True) -> RankingData:
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


def open_if_it_fits(folder: Path) -> RankingData:
    """Open a store; X is left on disk if it has to be unpacked and that does not fit in memory."""
    found = open_store(folder, verify=False, map_features=False)
    stored = found.stored
    assert stored is not None
    in_chunks = stored.packed is not None and found.queries.rows is None
    if in_chunks and stored.n_bytes_in_memory(0, stored.shape[0]) > available_memory():
        return open_stored(folder)
    return RankingData.open(folder)


def whole_queries(data: RankingData, chunk_documents: int) -> Iterator[RankingData]:
    """Yield data whose X is on disk in chunks of so many documents, or of one larger query."""
    rows = FeatureRows.of(data.X)
    offsets = data.queries.offsets
    for first, last in bounded_ranges(offsets, chunk_documents):
        yield between(data, first, last, rows.take(slice(int(offsets[first]), int(offsets[last]))))
