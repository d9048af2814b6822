"""RankingData whose X stays on disk in a store, and consecutive parts of it."""

from collections.abc import Iterator
from typing import Any

from marginrank._utils.memory import available_memory
from marginrank.data.queries import bounded_ranges
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.feature_rows import FeatureRows
from marginrank.data.store.store import Path, open_store


def open_stored(folder: Path, *, verify: bool = True) -> RankingData:
    """Return the data of a store with X on disk, as :class:`StoredFeatures`.

    With `verify`, the checksums of all files except X are compared, and queries, labels and weights
    are checked.
    """
    return RankingData._from_parts(open_store(folder, verify=verify, map_features=False))


def left_on_disk(data: RankingData) -> RankingData:
    """Return the RankingData of an opened store, with X on disk."""
    return RankingData._from_parts(data._parts()._replace(X=data.stored))


def between(data: RankingData, first: int, last: int, X: Any) -> RankingData:
    """Return the data of the queries from `first` to `last`; X holds their features.

    The rows of each query must be contiguous.
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
    """Return the data of a store; X stays on disk if it is packed and does not fit in memory."""
    found = open_store(folder, verify=False, map_features=False)
    stored = found.stored
    assert stored is not None
    in_chunks = stored.packed is not None and found.queries.rows is None
    if in_chunks and stored.n_bytes_in_memory(0, stored.shape[0]) > available_memory():
        return open_stored(folder)
    return RankingData.open(folder)


def whole_queries(data: RankingData, chunk_documents: int) -> Iterator[RankingData]:
    """Yield the chunks of whole queries of data with X on disk.

    A chunk has up to `chunk_documents` documents, or is one larger query.
    """
    rows = FeatureRows.of(data.X)
    offsets = data.queries.offsets
    for first, last in bounded_ranges(offsets, chunk_documents):
        yield between(data, first, last, rows.take(slice(int(offsets[first]), int(offsets[last]))))
