"""Reading of the feature matrix X of a store, block by block, with bounded memory."""

import errno
import mmap
import os
import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Integers
from marginrank.data.store.stored_features import StoredFeatures, StoredFile, damaged

Bytes = NDArray[np.uint8]
Rows = tuple[int, int]  # first row of a block, and the row after its last

BUFFERS = 4  # number of buffers: one in use, one being read, two spare for uneven reading speed
ALIGNMENT = 64  # alignment of each array in a buffer, in bytes
PIECE = 1 << 23  # bytes per read from a file
FIX = "restore the store from a copy, or convert the data again"


class PinnedBlocks(NamedTuple):
    """Number and sizes of the blocks of rows that stay in memory (pinned) between passes over X."""

    n_blocks: int  # the first n_blocks blocks are pinned
    n_bytes: int  # memory of the pinned blocks
    unpinned_bytes: int  # bytes on disk of the blocks that every pass reads


class FeatureReader:
    """Reader of an X on disk that yields blocks of rows, in several passes, and reads ahead.

    A thread reads the next blocks into a few buffers while the caller computes. As many of the
    first blocks as fit in `pinned_bytes` are *pinned*: they stay in memory after they have been
    read once. Nothing is left in the page cache of the system. After the first pass over all
    blocks, their checksums are compared.

    Parameters
    ----------
    features : StoredFeatures
        The files of X.
    bounds : ndarray of int64
        Block b has the rows from ``bounds[b]`` to ``bounds[b + 1] - 1``.
    pinned_bytes : int
        Memory for pinned blocks.
    threads : int
        Number of threads that unpack rows.
    on_read : callable, optional
        Called after each block with its number of rows, and the number of bytes that were read
        from disk for it (0 if it was in memory).

    Attributes
    ----------
    bytes_read : int
        Bytes of X read from disk so far.
    buffer_bytes : int
        Memory of the buffers.
    pinned : PinnedBlocks
        Number and sizes of the pinned blocks.
    """

    def __init__(
        self,
        features: StoredFeatures,
        bounds: Integers,
        *,
        pinned_bytes: int,
        threads: int,
        on_read: Callable[[int, int], None] | None = None,
    ) -> None:
        self._features = features
        self._blocks = _blocks(bounds)
        self._threads = threads
        self._on_read = on_read
        self.bytes_read = 0
        self._rows: dict[int, Any] = {}  # rows of the pinned blocks that are in memory already
        self._thread: _ReaderThread | None = None  # reader thread of the current pass
        # The next block to add to the checksums; None if no checksum can be computed, because the
        # blocks do not cover all rows.
        rows = (self._blocks[0][0], self._blocks[-1][1]) if self._blocks else None
        self._summed: int | None = 0 if rows == (0, features.shape[0]) else None
        self._pin(pinned_bytes)
        self._files: list[UncachedFile] = []
        try:
            for stored in features.files:
                self._files.append(UncachedFile(stored))
            self._checksums = [zlib.crc32(file.header()) for file in self._files]
        except BaseException:
            self.close()
            raise

    @staticmethod
    def memory_needed(features: StoredFeatures, bounds: Integers) -> int:
        """Return the most bytes that a reader of X allocates if it keeps no blocks in memory."""
        return _buffer_bytes(features, _block_sizes(features, _blocks(bounds)), n_pinned=0)

    def _pin(self, pinned_bytes: int) -> None:
        """Select blocks to pin, up to `pinned_bytes` in total, and allocate all memory."""
        features, blocks = self._features, self._blocks
        sizes = _block_sizes(features, blocks)
        totals = list(accumulate(size.in_memory + size.indptr for size in sizes))
        n_pinned = bisect_right(totals, pinned_bytes)
        self.pinned = PinnedBlocks(
            n_blocks=n_pinned,
            n_bytes=totals[n_pinned - 1] if n_pinned else 0,
            unpinned_bytes=sum(features.n_bytes(*rows) for rows in blocks[n_pinned:]),
        )
        self.buffer_bytes = _buffer_bytes(features, sizes, n_pinned)
        ends = list(accumulate(size.in_memory for size in sizes[:n_pinned]))
        self._places = np.split(_allocate(ends[-1] if ends else 0), ends)[:n_pinned]
        buffered = _buffered(features, sizes, n_pinned)
        length = max((size.on_disk for size in buffered), default=0)
        self._buffers = [_allocate(length) for _ in buffered[:BUFFERS]]
        unpacked = sizes[n_pinned:] if features.packed else []
        self._unpacked = _allocate(max((size.in_memory for size in unpacked), default=0))

    def sweep(self, blocks: Iterable[int]) -> Iterator[tuple[int, Any]]:
        """Make one pass (sweep) over X: yield (block number, rows) for the given block numbers.

        Rows are an ndarray or a csr_array. They are read-only, and valid until the next block is
        requested, because their memory is then reused. Block numbers may be in any order. A new
        pass ends the previous one.
        """
        numbers = range(len(self._blocks))
        order = [numbers[block] for block in blocks]
        self._end_sweep()
        if not self._files:
            raise ValueError("The reader of X is closed; create a new one.")
        self._thread = thread = _ReaderThread()
        missing = deque(self._missing(order))
        free = list(self._buffers)
        pending: deque[Future[tuple[list[Bytes], Bytes | None]]] = deque()
        try:
            for block in order:
                thread.check()
                while missing and (free or self._stays(missing[0])):
                    buffer = None if self._stays(missing[0]) else free.pop()
                    pending.append(thread.submit(self._read, missing.popleft(), buffer, thread))
                first, last = self._blocks[block]
                n_bytes = 0
                if block in self._rows:
                    yield block, self._rows[block]
                else:
                    contents, used = pending.popleft().result()
                    n_bytes = self._features.n_bytes(first, last)
                    yield block, self._matrix(block, contents)
                    if used is not None:
                        free.append(used)
                if self._on_read is not None:
                    self._on_read(last - first, n_bytes)
        finally:
            thread.stop()
            if self._thread is thread:
                self._end_sweep()

    def _stays(self, block: int) -> bool:
        """Return True if a block is read directly into its pinned memory, without a buffer."""
        return block < self.pinned.n_blocks and self._features.packed is None

    def _missing(self, order: list[int]) -> list[int]:
        """Return the blocks that a pass reads from disk: all that are not in memory yet."""
        known = set(self._rows)
        missing = []
        for block in order:
            if block not in known:
                missing.append(block)
            if block < self.pinned.n_blocks:
                known.add(block)
        return missing

    def _matrix(self, block: int, contents: list[Bytes]) -> Any:
        """Return the rows of a block that was just read; keep them in memory if it is pinned."""
        features, pinned = self._features, block < self.pinned.n_blocks
        first, last = self._blocks[block]
        out = None
        if features.packed is not None:
            place = self._places[block] if pinned else self._unpacked
            numbers = place[: features.n_bytes_in_memory(first, last)].view(features.dtype)
            out = numbers.reshape(last - first, features.shape[1])
        X = features.rows(first, last, contents, out=out, threads=self._threads)
        if out is not None:
            X.flags.writeable = False
        if pinned:
            self._rows[block] = X
        return X

    def _read(
        self, block: int, buffer: Bytes | None, thread: "_ReaderThread"
    ) -> tuple[list[Bytes], Bytes | None]:
        """Read a block into `buffer`, or into the block's pinned memory if `buffer` is None.

        This runs in the reader thread. Return the bytes of the block in each file, and `buffer`.
        """
        place = self._places[block] if buffer is None else buffer
        contents, checksums = [], list(self._checksums)
        at = 0
        for k, (begin, end) in enumerate(self._features.spans(*self._blocks[block])):
            content = place[at : at + end - begin]
            at += _aligned(content.size)
            for piece in self._files[k].read(self._features.files[k].start + begin, content):
                self.bytes_read += len(piece)
                thread.check()
                if block == self._summed:
                    checksums[k] = zlib.crc32(piece, checksums[k])
            content.flags.writeable = False
            contents.append(content)
        if block == self._summed:
            self._check_sums(checksums)
        return contents, buffer

    def _check_sums(self, checksums: list[int]) -> None:
        """Store the checksums of the blocks so far; raise ValueError if they end up wrong."""
        assert self._summed is not None
        if self._summed == len(self._blocks) - 1:
            for stored, checksum in zip(self._features.files, checksums, strict=True):
                if checksum != stored.crc32:
                    raise damaged(stored.path, "its checksum differs from the manifest")
        self._checksums = checksums
        self._summed += 1

    def _end_sweep(self) -> None:
        if self._thread is not None:
            self._thread.stop()
            self._thread = None
            for file in self._files:
                file.drop()

    def close(self) -> None:
        """End the current pass over X and release memory, except for rows still referenced."""
        self._end_sweep()
        for file in self._files:
            file.close()
        self._files = []
        self._rows = {}
        self._places = []
        self._buffers = []
        self._unpacked = _allocate(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _ReaderThread:
    """The thread that reads the blocks of X during one pass over X."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="marginrank-reader")
        self._process = os.getpid()
        self._stopped = False
        self.submit = self._executor.submit

    def check(self) -> None:
        """Raise RuntimeError if this thread was stopped, or if the process is a fork without it."""
        if self._process != os.getpid():  # a forked process does not inherit the reader thread
            raise RuntimeError("Cannot continue reading after fork; start a new pass in the child.")
        if self._stopped:
            raise RuntimeError(
                "Cannot continue reading: the reader was closed or started a new pass; start again."
            )

    def stop(self) -> None:
        """Cancel all pending reads of blocks and end the thread."""
        self._stopped = True
        if self._process == os.getpid():
            self._executor.shutdown(cancel_futures=True)


class UncachedFile:
    """A file of X that is read without filling the page cache of the system.

    Each chunk is dropped from the page cache as soon as it was read, because a data set larger than
    memory would displace the files of all other programs.
    """

    def __init__(self, stored: StoredFile) -> None:
        self._stored = stored
        self._end = 0  # position after the last read
        try:
            self._file = open(stored.path, "rb", buffering=0)  # noqa: SIM115
        except OSError as error:
            what = f"{stored.path} cannot be opened: {error.strerror}"
            raise type(error)(f"{what}; {FIX}.") from error
        n_bytes = os.fstat(self._file.fileno()).st_size
        if n_bytes != stored.n_bytes:
            self._file.close()
            raise damaged(stored.path, f"it has {n_bytes} bytes instead of {stored.n_bytes}")
        self.drop()

    def read(self, position: int, content: Bytes) -> Iterator[memoryview]:
        """Read bytes of the file from `position` on into `content`; yield each chunk when read."""
        if position < self._end:
            self.drop()
        view = content.data
        while view:
            try:
                n_bytes = os.preadv(self._file.fileno(), [view[:PIECE]], position)
            except OSError as error:
                what = f"{self._stored.path} cannot be read at byte {position}: {error.strerror}"
                raise OSError(f"{what}; {FIX}.") from error
            if n_bytes == 0:
                end = min(os.fstat(self._file.fileno()).st_size, position)
                what = f"{self._stored.path} ended at byte {end} of {self._stored.n_bytes}"
                raise OSError(f"{what} while it was read; {FIX}.")
            position += n_bytes
            self.drop(position)
            yield view[:n_bytes]
            view = view[n_bytes:]

    def header(self) -> bytes:
        return b"".join(self.read(0, np.empty(self._stored.start, dtype=np.uint8)))

    def drop(self, end: int = 0) -> None:
        """Drop the first `end` bytes of the file (all if 0) from the page cache of the system."""
        if hasattr(os, "posix_fadvise"):  # not on macOS
            os.posix_fadvise(self._file.fileno(), 0, end, os.POSIX_FADV_DONTNEED)
        self._end = end

    def close(self) -> None:
        self._file.close()


def _blocks(bounds: Integers) -> list[Rows]:
    return list(pairwise(int(row) for row in bounds))


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


class _BlockSize(NamedTuple):
    """Bytes that a block of rows takes on disk and in memory, with alignment."""

    on_disk: int
    in_memory: int  # unpacked
    indptr: int  # row offsets of CSR, in every block


def _block_sizes(features: StoredFeatures, blocks: list[Rows]) -> list[_BlockSize]:
    sizes = []
    for first, last in blocks:
        on_disk = in_memory = sum(_aligned(end - at) for at, end in features.spans(first, last))
        if features.packed is not None:
            in_memory = _aligned(features.n_bytes_in_memory(first, last))
        indptr = 0 if features.indptr is None else features.indptr.itemsize * (last - first + 1)
        sizes.append(_BlockSize(on_disk, in_memory, _aligned(indptr)))
    return sizes


def _buffered(features: StoredFeatures, sizes: list[_BlockSize], n_pinned: int) -> list[_BlockSize]:
    """Return the sizes of the blocks that are read into a buffer: unpinned or packed blocks."""
    return sizes[n_pinned:] if features.packed is None else sizes


def _buffer_bytes(features: StoredFeatures, sizes: list[_BlockSize], n_pinned: int) -> int:
    """Return the bytes of all buffers, including the one for an unpacked block of packed data."""
    buffered = _buffered(features, sizes, n_pinned)
    largest = max((size.on_disk + size.indptr for size in buffered), default=0)
    n_bytes = min(BUFFERS, len(buffered)) * largest
    if features.packed is not None:
        n_bytes += max((size.in_memory for size in sizes[n_pinned:]), default=0)
    return n_bytes


def _allocate(n_bytes: int) -> Bytes:
    """Allocate bytes with mmap, so that the memory returns to the system once they are deleted."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        return np.frombuffer(mmap.mmap(-1, max(n_bytes, 1), flags=private), dtype=np.uint8)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        what = f"Cannot allocate {n_bytes} bytes for blocks of X"
        raise MemoryError(f"{what}; set a lower memory_limit, or free memory.") from error
