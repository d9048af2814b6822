"""X of a fit: in memory, on a device, or left on disk within a limit of memory."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from marginrank._utils.memory import available_memory, parse_bytes, private_memory, readable
from marginrank._utils.optional import require
from marginrank._utils.parameters import Mention, Message, ParameterError, given
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import left_on_disk, open_stored
from marginrank.models.fit_report import StreamFacts
from marginrank.objective.objective import MANY_FEATURES
from marginrank.objective.protocols import Matrix
from marginrank.operators.native import native_matrix
from marginrank.operators.parts.matrix import FitMemory, OnRead, StreamedMatrix
from marginrank.solvers.smooth.preconditioner import HESSIAN_FEATURES, MOST_DOCUMENTS_IF_HARD

STATE_BYTES = 112  # that any solver keeps of each document
SHARE_OF_FREE = 0.8  # of the memory that is free, for a fit that was given no limit
# Launching the operations of a product takes a GPU about a millisecond, in which the native
# kernels read about this much of X.
SMALL_BYTES = 16 << 20
SCRATCH_BYTES = 256  # for each document of a query that a thread has in work
VECTORS = 24  # with an entry a feature
BLOCKS = 64  # of documents, that have a sum a feature each
HESSIANS = 4  # a Hessian, and what is made of it
DOCUMENT_SPACE = 3  # matrices with a row and a column for each document


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


class Place(NamedTuple):
    """Where a fit is to compute.

    Attributes
    ----------
    device : str or None
        The parameter of that name.
    tensor : Tensor or None
        X, if it was given as a tensor.
    """

    device: str | None = None
    tensor: Any = None

    @property
    def name(self) -> str | None:
        """The device to compute on; None for the native kernels.

        A tensor on a GPU is used where it is, unless it is so small that the host is faster.
        """
        if self.device is not None:
            return self.device
        if self.tensor is None or self.tensor.device.type == "cpu":
            return None
        is_small = self.tensor.numel() * self.tensor.element_size() < SMALL_BYTES
        return None if is_small else str(self.tensor.device)


HERE = Place()  # the native kernels


def matrix_at(data: RankingData, place: Place) -> Matrix:
    """Return X of some data as the kernels of a place hold it."""
    if place.name is None:
        return native_matrix(data)
    torch = require("torch", "torch")
    from marginrank.operators.torch.matrix import TorchMatrix, bytes_needed

    device = _existing(torch, place.name)
    _check_device(device, place)
    needed = bytes_needed(data, has_features=place.tensor is not None)
    free = free_bytes(torch, device)
    if free is not None and needed > free:
        raise ValueError(
            f"the data need {readable(needed)} on {device}, where {readable(free)} are free; fit "
            "them on the host with device=None, or on several GPUs with marginrank.dask."
        )
    return TorchMatrix.of(data, device, place.tensor)


def check_no_memory_limit(place: Place) -> None:
    """Refuse to leave X on disk and to bring it to a device."""
    if place.device is not None:
        raise ParameterError(
            given("device", place.device),
            " needs all of X there, and with a ",
            Mention("memory_limit"),
            " it stays on disk; leave one of them out.",
        )


def free_bytes(torch: Any, device: Any) -> int | None:
    """Return the memory that is free on a GPU; None on the host."""
    if device.type != "cuda":
        return None
    free: int = torch.cuda.mem_get_info(device)[0]
    return free


def _existing(torch: Any, name: str) -> Any:
    """Return a device that there is."""
    device = torch.device(name)
    if device.type == "cpu":
        return device
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = device.index or 0
    if number >= count:
        found = "no GPU" if count == 0 else f"{count} GPU(s), from cuda:0 on"
        raise ParameterError(
            given("device", name), f" does not exist: PyTorch finds {found}; use another, or None."
        )
    return torch.device("cuda", number)


def _check_device(device: Any, place: Place) -> None:
    """Raise ValueError if a tensor is on another device than the one to compute on."""
    tensor = place.tensor
    if tensor is not None and tensor.device.type != "cpu" and tensor.device != device:
        raise ParameterError(
            f"X is on {tensor.device} and ",
            given("device", place.device),
            "; bring X there, or leave the device out.",
        )


class Keeping(Protocol):
    """Parameters of a fit, that know what its solver keeps."""

    @property
    def state_bytes(self) -> int:
        """What the solver keeps of each document."""


def fit_memory(data: RankingData, parameters: Keeping, threads: int) -> FitMemory:
    """Return what a fit to data that are left on disk needs beside X."""
    longest = int(np.sum(np.sort(data.queries.sizes)[-threads:]))
    return FitMemory(
        state=parameters.state_bytes * data.n_documents,
        scratch=SCRATCH_BYTES * longest,
        features=_bytes_of_features(data),
    )


def _bytes_of_features(data: RankingData) -> int:
    n, m = data.n_features, data.n_documents
    numbers = VECTORS * n
    if n <= MANY_FEATURES:
        numbers += BLOCKS * n
    if n <= HESSIAN_FEATURES:
        numbers += HESSIANS * n * n
    elif m <= MOST_DOCUMENTS_IF_HARD:  # X comes into memory, and products of its rows
        return 8 * (numbers + DOCUMENT_SPACE * m * m) + int(data.X.memory_bytes)
    return 8 * numbers


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
