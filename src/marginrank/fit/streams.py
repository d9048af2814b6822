"""Fits to a store that is larger than memory: when, and within what."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from marginrank._utils.memory import available_memory, parse_bytes, private_memory, readable
from marginrank._utils.parameters import Mention, Message, ParameterError
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import left_on_disk, open_stored
from marginrank.fit.devices import HERE, Place, check_no_memory_limit, matrix_at
from marginrank.fit.fit_memory import Keeping, fit_memory
from marginrank.models.fit_report import StreamFacts
from marginrank.objective.protocols import Matrix
from marginrank.operators.parts.streamed import StreamedMatrix

STATE_BYTES = 112  # that any solver keeps of each document
SHARE_OF_FREE = 0.8  # of the memory that is free, for a fit that was given no limit

OnRead = Callable[[int, int], None]


class Opened(NamedTuple):
    """Documents to fit to, and how much memory a fit may have if X is left on disk.

    Attributes
    ----------
    data : RankingData
        Its X is in memory, mapped, or left on disk.
    memory_limit : int or None
        Bytes that the process may have; None if X is not left on disk.
    message : Message or None
        What to say of it, if nobody asked for it.
    """

    data: RankingData
    memory_limit: int | None = None
    message: Message | None = None


def is_path(source: Any) -> bool:
    """Tell whether something names a store."""
    return isinstance(source, (str, os.PathLike))


def open_documents(source: Any, memory_limit: int | float | str | None = None) -> Opened:
    """Open a store for a fit, or take data that are open.

    With a limit, X stays on disk. Without one it does where memory is too small for it.

    Parameters
    ----------
    source : str, path or RankingData
        The folder of a store, or data.
    memory_limit : int, float or str, optional
        Bytes that the process may have, or a size such as "2GB".
    """
    limit = None if memory_limit is None else parse_bytes("memory_limit", memory_limit)
    data: RankingData = open_stored(source) if is_path(source) else source
    stored = data.stored
    if stored is None:
        if limit is None:
            return Opened(data)
        raise ParameterError(
            Mention("memory_limit"),
            " is for data that stay on disk, and these are in memory; save them as a store, and "
            "give its path.",
        )
    if limit is not None:
        _check_contiguous(data)
        return Opened(left_on_disk(data), limit)
    needed, free = _still_needed(data, stored), available_memory()
    if needed <= free or data.queries.rows is not None:  # rows that are apart can only be mapped
        is_open = not isinstance(data.X, StoredFeatures)
        return Opened(data if is_open else RankingData.open(stored.folder))
    limit = private_memory() + int(SHARE_OF_FREE * free)
    return Opened(left_on_disk(data), limit, _streams_by_itself(stored, needed, free, limit))


def _still_needed(data: RankingData, stored: StoredFeatures) -> int:
    """Return what memory a fit needs with X in it, beside what it has already."""
    is_unpacked = stored.packed is not None and not isinstance(data.X, StoredFeatures)
    return STATE_BYTES * data.n_documents + (0 if is_unpacked else stored.memory_bytes)


def _streams_by_itself(stored: StoredFeatures, needed: int, free: int, limit: int) -> Message:
    return Message(
        f"{stored.folder} needs {readable(needed)} in memory and {readable(free)} are free, so "
        "that it is read from disk in every sweep, within ",
        Mention("memory_limit", readable(limit)),
        ".",
    )


def _check_contiguous(data: RankingData) -> None:
    if data.queries.rows is None:
        return
    folder = "the store" if data.stored is None else data.stored.folder
    raise ValueError(
        f"{folder} has the rows of its queries apart from each other, so that it cannot be read in "
        "parts; write it anew with the rows together: marginrank convert OLD NEW."
    )


def facts_of(matrix: Matrix) -> StreamFacts | None:
    """Return what was read of X so far, if it was left on disk."""
    if not isinstance(matrix, StreamedMatrix):
        return None
    reader = matrix.reader
    return StreamFacts(matrix.plan.n_parts, reader.bytes_read, reader.pinned.n_bytes)


@contextmanager
def matrix_for(
    data: RankingData,
    parameters: Keeping,
    threads: int,
    memory_limit: int | None = None,
    on_read: OnRead | None = None,
    place: Place = HERE,
) -> Iterator[Matrix]:
    """Yield X of the data for a fit: in memory, on a device, or read from disk again and again."""
    if memory_limit is None:
        yield matrix_at(data, place)
        return
    check_no_memory_limit(place)
    matrix = StreamedMatrix(
        data.X,
        data.queries.offsets,
        memory_limit=memory_limit,
        fit_memory=fit_memory(data, parameters, threads),
        threads=threads,
        on_read=on_read,
    )
    try:
        yield matrix
    finally:
        matrix.close()
