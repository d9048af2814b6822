"""Data sets whose X stays on disk, in a store, and is read in chunks of consecutive queries."""

from collections.abc import Iterator
from typing import Any

from marginrank._utils.memory import available_memory
from marginrank.data.queries import bounded_ranges
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.feature_rows import FeatureRows
from marginrank.data.store.store import Path, open_store


def open_stored(folder: Path, *, verify: bool = True) -> RankingData:
    """Open a store as a RankingData whose X stays on disk, as a :class:`StoredFeatures`.

    With `verify`, the checksums of all files except X are compared, and queries, labels and weights
    are validated.
    """
    return RankingData._from_parts(open_store(folder, verify=verify, map_features=False))


def left_on_disk(data: RankingData) -> RankingData:
    """Return a data set that was opened from a store with X on disk instead of in memory."""
    return RankingData._from_parts(data._parts()._replace(X=data.stored))


def between(data: RankingData, first: int, last: int, X: Any) -> RankingData:
    """Return the queries `first` to `last` - 1 of a data set as a RankingData.

    X holds the features of these queries. The rows of each query must be contiguous.
    """
    queries, rows = slice(first, last), slice(*data.queries.offsets[[first, last]])

    def part(values: Any, where: slice) -> Any:
        return None if values is None else values[where]

    parts = data._parts()._replace(
        X=X,
        y=data.y[rows],
        queries=data.queries.between(first, last),
        query_ids=data.query_ids[queries],
        sample_weight=part(data.sample_weight, rows),
        query_weight=part(data.query_weight, queries),
        comments=part(data.comments, rows),
        cost=part(data.cost, rows),
        position=part(data.position, rows),
        context=part(data.context, rows),
        stored=None,
    )
    return RankingData._from_parts(parts)


def open_if_it_fits(folder: Path) -> RankingData:
    """Open a store; X stays on disk if it is compressed and larger than the free memory.

    An X that is not compressed (packed) is memory-mapped, whatever its size. A compressed X must
    fit in memory, unless its rows are in the order of the queries.
    """
    found = open_store(folder, verify=False, map_features=False)
    stored = found.stored
    assert stored is not None
    in_chunks = stored.packed is not None and found.queries.rows is None
    if in_chunks and stored.n_bytes_in_memory(0, stored.shape[0]) > available_memory():
        return open_stored(folder)
    return RankingData.open(folder)


def whole_queries(data: RankingData, chunk_documents: int) -> Iterator[RankingData]:
    """Yield a data set whose X is on disk in chunks of whole queries, each with X in memory.

    A chunk has at most `chunk_documents` documents, unless it is a single larger query.
    """
    rows = FeatureRows.of(data.X)
    offsets = data.queries.offsets
    for first, last in bounded_ranges(offsets, chunk_documents):
        yield between(data, first, last, rows.take(slice(int(offsets[first]), int(offsets[last]))))
