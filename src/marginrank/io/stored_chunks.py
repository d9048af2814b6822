"""Packed stores that do not fit in memory, in chunks of whole queries."""

from collections.abc import Iterator

from marginrank._utils.memory import available_memory
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.feature_rows import FeatureRows
from marginrank.data.store.store import Path, open_store, query_ranges
from marginrank.data.stored_data import between, open_stored


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
    for first, last in query_ranges(offsets, chunk_documents):
        yield between(data, first, last, rows.take(slice(int(offsets[first]), int(offsets[last]))))
