"""Sweeps over the rows of a store's X, block by block, in memory that is known in advance."""

import errno
import mmap
import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, pairwise
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Integers
from marginrank.data.store.read_ahead import ReadAhead
from marginrank.data.store.stored_features import StoredFeatures, StoredFile, damaged

Bytes = NDArray[np.uint8]
Rows = tuple[int, int]  # the first one of a block, and the one after its last

BUFFERS = 4  # one is computed on, one is read, two make up for uneven speed
ALIGNMENT = 64  # bytes; of each array in a buffer
PIECE = 1 << 23  # bytes read at a time
FIX = "restore the store from a copy, or convert the data again"


class Pinned(NamedTuple):
    """The blocks that stay in memory.

    Attributes
    ----------
    n_blocks : int
        How many, from the first one on.
    n_bytes : int
        Memory they take.
    unpinned_bytes : int
        Bytes on disk of the other blocks: what every sweep over all blocks reads.
    """

    n_blocks: int
    n_bytes: int
    unpinned_bytes: int


class _Filled(NamedTuple):
    """A block that was read: the bytes of each file, and the buffer unless they are to stay."""

    contents: list[Bytes]
    buffer: Bytes | None


class FeatureReader:
    """Reads blocks of rows of X, again and again, ahead of whoever computes on them.

    A thread reads into a few buffers while the consumer is busy. The first blocks, as many as fit
    in `pinned_bytes`, stay in memory: they are read by the first sweep that passes them. Nothing is
    left in the page cache. The checksums of the files are compared as soon as every block was read
    once in order.

    Parameters
    ----------
    features : StoredFeatures
        X.
    bounds : ndarray of shape (n_blocks + 1,)
        Block b has the rows from ``bounds[b]`` to ``bounds[b + 1]``.
    pinned_bytes : int
        Memory for blocks that stay, beside that of :meth:`memory_needed`.
    threads : int
        For unpacking; reading has one of its own.
    on_read : callable or None, default=None
        Called by the consumer's thread when it has done with a block: with the rows of the block,
        and the bytes that were read for it, 0 if it was in memory.

    Attributes
    ----------
    bytes_read : int
        Bytes of X read so far.
    pinned : Pinned
        What stays in memory.
    buffer_bytes : int
        Memory taken by buffers: less than :meth:`memory_needed` if large blocks are pinned.

    Raises
    ------
    OSError
        If a file of X cannot be opened or read, or ends before its time; the message names it.
    ValueError
        If a file has not the size or the checksum it should have.
    MemoryError
        If the system does not give the memory.
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
        self._rows: dict[int, Any] = {}  # of the pinned blocks that were read
        self._ahead: ReadAhead[Bytes, _Filled] | None = None
        # The block up to which the checksums are known; None if blocks do not have all rows.
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
        """Return the most bytes of memory that a reader takes beside those of pinned blocks."""
        return _buffer_bytes(features, _blocks(bounds), n_pinned=0)

    def _pin(self, pinned_bytes: int) -> None:
        """Choose the blocks that stay, and take all memory there will ever be."""
        features, blocks = self._features, self._blocks
        sizes = list(accumulate(_size(features, *rows) for rows in blocks))
        n_pinned = bisect_right(sizes, pinned_bytes)
        others = blocks[n_pinned:]
        self.pinned = Pinned(
            n_blocks=n_pinned,
            n_bytes=sizes[n_pinned - 1] if n_pinned else 0,
            unpinned_bytes=sum(features.n_bytes(*rows) for rows in others),
        )
        self.buffer_bytes = _buffer_bytes(features, blocks, n_pinned)
        ends = list(accumulate(_unpacked_length(features, *rows) for rows in blocks[:n_pinned]))
        self._places = np.split(_memory(ends[-1] if ends else 0), ends)[:n_pinned]
        buffered = _buffered(features, blocks, n_pinned)
        length = max((_length(features, *rows) for rows in buffered), default=0)
        self._buffers = [_memory(length) for _ in buffered[:BUFFERS]]
        unpacked = others if features.packed else []
        self._unpacked = _memory(max((_unpacked_length(features, *r) for r in unpacked), default=0))

    def sweep(self, blocks: Iterable[int]) -> Iterator[tuple[int, Any]]:
        """Read blocks, in this order; any may be left out or come again.

        A reader has one sweep at a time: the next one ends the one before.

        Parameters
        ----------
        blocks : iterable of int
            Numbers of blocks.

        Yields
        ------
        block : int
            The number.
        X : ndarray or csr_array
            Its rows, read-only. They are valid until the next block is asked for: then their memory
            may be filled with other rows.
        """
        numbers = range(len(self._blocks))
        order = [numbers[block] for block in blocks]
        self._end_sweep()
        if not self._files:
            raise ValueError("the reader of X is closed; make another one.")
        ahead = ReadAhead(self._read, self._missing(order), self._buffers)
        self._ahead = ahead
        try:
            ahead.start()
            for block in order:
                first, last = self._blocks[block]
                filled = None if block in self._rows else ahead.following()
                yield block, self._matrix(block, filled)
                n_bytes = 0
                if filled is not None:
                    n_bytes = self._features.n_bytes(first, last)
                    if filled.buffer is not None:
                        ahead.give_back(filled.buffer)
                if self._on_read is not None:
                    self._on_read(last - first, n_bytes)
        finally:
            ahead.stop()
            if self._ahead is ahead:
                self._end_sweep()

    def _missing(self, order: list[int]) -> list[int]:
        """Return the blocks that a sweep has to read."""
        known = set(self._rows)
        missing = []
        for block in order:
            if block not in known:
                missing.append(block)
            if block < self.pinned.n_blocks:
                known.add(block)
        return missing

    def _matrix(self, block: int, filled: _Filled | None) -> Any:
        """Return the rows of a block, either read just now or pinned."""
        if filled is None:
            return self._rows[block]
        pinned = block < self.pinned.n_blocks
        first, last = self._blocks[block]
        out = None
        if self._features.packed is not None:
            place = self._places[block] if pinned else self._unpacked
            n_bytes = self._features.n_bytes_in_memory(first, last)
            out = (
                place[:n_bytes]
                .view(self._features.dtype)
                .reshape(last - first, self._features.shape[1])
            )
        X = self._features.rows(first, last, filled.contents, out=out, threads=self._threads)
        if out is not None:
            X.flags.writeable = False
        if pinned:
            self._rows[block] = X
        return X

    def _read(self, block: int, ahead: ReadAhead[Bytes, _Filled]) -> _Filled:
        """Read a block into its place or into a buffer: what the thread does."""
        stays = block < self.pinned.n_blocks and self._features.packed is None
        buffer = None if stays else ahead.take()
        place = self._places[block] if buffer is None else buffer
        contents, checksums = [], list(self._checksums)
        at = 0
        for k, (begin, end) in enumerate(self._features.spans(*self._blocks[block])):
            content = place[at : at + end - begin]
            at += _aligned(content.size)
            for piece in self._files[k].read(self._features.files[k].start + begin, content):
                self.bytes_read += len(piece)
                ahead.check()
                if block == self._summed:
                    checksums[k] = zlib.crc32(piece, checksums[k])
            content.flags.writeable = False
            contents.append(content)
        if block == self._summed:
            self._check_sums(checksums)
        return _Filled(contents, buffer)

    def _check_sums(self, checksums: list[int]) -> None:
        """Keep the checksums up to a block; raise if it is the last one and a file is damaged."""
        assert self._summed is not None
        if self._summed == len(self._blocks) - 1:
            for stored, checksum in zip(self._features.files, checksums, strict=True):
                if checksum != stored.crc32:
                    raise damaged(stored.path, "its checksum is not that of the manifest")
        self._checksums = checksums
        self._summed += 1

    def _end_sweep(self) -> None:
        """End the sweep under way, if there is one."""
        if self._ahead is not None:
            self._ahead.stop()
            self._ahead = None
            for file in self._files:
                file.drop()

    def close(self) -> None:
        """End the sweep under way, and give back memory; rows that are still held keep theirs."""
        self._end_sweep()
        for file in self._files:
            file.close()
        self._files = []
        self._rows = {}
        self._places = []
        self._buffers = []
        self._unpacked = _memory(0)

    def __enter__(self) -> "FeatureReader":
        """Return the reader."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the reader."""
        self.close()


class UncachedFile:
    """A file of X, of which no more than a piece stays in the page cache.

    Raises
    ------
    OSError
        If the file cannot be opened; the message names it.
    ValueError
        If it has not as many bytes as it should.
    """

    def __init__(self, stored: StoredFile) -> None:
        self._stored = stored
        self._end = 0  # of the last read
        try:
            self._file = open(stored.path, "rb", buffering=0)  # noqa: SIM115
        except OSError as error:
            what = f"{stored.path} cannot be opened: {error.strerror}"
            raise type(error)(f"{what}; {FIX}.") from error
        n_bytes = os.fstat(self._file.fileno()).st_size
        if n_bytes != stored.n_bytes:
            self._file.close()
            raise damaged(stored.path, f"it has {n_bytes} bytes and should have {stored.n_bytes}")
        self.drop()

    def read(self, position: int, content: Bytes) -> Iterator[memoryview]:
        """Fill `content` with the bytes from `position` on; yield each piece when it is there.

        The system reads on while the caller is busy with a piece.
        """
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
        """Return the bytes before the array."""
        return b"".join(self.read(0, np.empty(self._stored.start, dtype=np.uint8)))

    def drop(self, end: int = 0) -> None:
        """Drop the file up to `end`, 0 for all of it, from the page cache."""
        if hasattr(os, "posix_fadvise"):  # not on macOS
            os.posix_fadvise(self._file.fileno(), 0, end, os.POSIX_FADV_DONTNEED)
        self._end = end

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _blocks(bounds: Integers) -> list[Rows]:
    """Return the first row of each block and the one after its last."""
    return list(pairwise(int(row) for row in bounds))


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def _length(features: StoredFeatures, first: int, last: int) -> int:
    """Return how long a buffer for some rows is."""
    return sum(_aligned(end - begin) for begin, end in features.spans(first, last))


def _unpacked_length(features: StoredFeatures, first: int, last: int) -> int:
    """Return how long memory for some rows is, in the form in which they are computed on."""
    if features.packed is None:
        return _length(features, first, last)
    return _aligned(features.n_bytes_in_memory(first, last))


def _indptr_bytes(features: StoredFeatures, first: int, last: int) -> int:
    """Return the bytes of the row bounds of CSR, which are made anew for each block."""
    if features.indptr is None:
        return 0
    return _aligned((last - first + 1) * features.indptr.itemsize)


def _size(features: StoredFeatures, first: int, last: int) -> int:
    """Return the memory of some rows that stay."""
    return _unpacked_length(features, first, last) + _indptr_bytes(features, first, last)


def _buffered(features: StoredFeatures, blocks: list[Rows], n_pinned: int) -> list[Rows]:
    """Return the blocks that are read into buffers: if they are packed, also those that stay."""
    return blocks[n_pinned:] if features.packed is None else blocks


def _buffer_bytes(features: StoredFeatures, blocks: list[Rows], n_pinned: int) -> int:
    """Return the memory of all buffers, and of the rows of one block unpacked."""
    buffered = _buffered(features, blocks, n_pinned)
    sizes = (_length(features, *rows) + _indptr_bytes(features, *rows) for rows in buffered)
    n_bytes = min(BUFFERS, len(buffered)) * max(sizes, default=0)
    if features.packed is not None:
        others = blocks[n_pinned:]
        n_bytes += max((_unpacked_length(features, *rows) for rows in others), default=0)
    return n_bytes


def _memory(n_bytes: int) -> Bytes:
    """Return memory that goes back to the system with the last array that uses it."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        return np.frombuffer(mmap.mmap(-1, max(n_bytes, 1), flags=private), dtype=np.uint8)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        what = f"blocks of X need {n_bytes} bytes of memory, which the system does not give"
        raise MemoryError(f"{what}; set a lower memory_limit, or free memory.") from error
