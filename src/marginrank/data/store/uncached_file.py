"""Reading a file of a store that is larger than memory, without leaving it in the page cache."""

import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from marginrank.data.store.stored_features import StoredFile, damaged

PIECE = 1 << 23  # bytes read at a time
# The cache is kept in folios that may reach to both sides of what was read, and one of which only a
# part is named stays: so the bytes before are named again.
LARGEST_FOLIO = 1 << 25  # bytes
FIX = "restore the store from a copy, or convert the data again"


class UncachedFile:
    """A file whose bytes are read and forgotten by the system.

    They are dropped from the page cache after each piece, with what the system has read ahead of a
    piece that was not asked for. Reads with RWF_DONTCACHE were slower: they drop a folio that two
    pieces share after the first one, and the second waits for the disk.

    Parameters
    ----------
    stored : StoredFile
        The file.

    Raises
    ------
    OSError
        If the file cannot be opened; the message names it.
    ValueError
        If it has not as many bytes as it should.
    """

    def __init__(self, stored: StoredFile) -> None:
        self._stored = stored
        self._end = 0  # of what was read last
        try:
            self._file = open(stored.path, "rb", buffering=0)  # noqa: SIM115
        except OSError as error:
            what = f"{stored.path} cannot be opened: {error.strerror}"
            raise type(error)(f"{what}; {FIX}.") from error
        n_bytes = os.fstat(self._file.fileno()).st_size
        if n_bytes != stored.n_bytes:
            self._file.close()
            should = f"should have {stored.n_bytes}"
            raise damaged(stored.path, f"it has {n_bytes} bytes and {should}")
        self.drop()

    def read(self, position: int, content: NDArray[np.uint8]) -> Iterator[memoryview]:
        """Fill `content` with the bytes from `position` on; yield each piece when it is there.

        The system reads on while the caller is busy with a piece.

        Raises
        ------
        OSError
            If there is less, or it cannot be read; the message names the file.
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
                raise self._ended(position)
            position += n_bytes
            self._drop_up_to(position)
            yield view[:n_bytes]
            view = view[n_bytes:]

    def _ended(self, position: int) -> OSError:
        end = min(os.fstat(self._file.fileno()).st_size, position)
        what = f"{self._stored.path} ended at byte {end} of {self._stored.n_bytes}"
        return OSError(f"{what} while it was read; {FIX}.")

    def _drop_up_to(self, end: int) -> None:
        """Drop what was read, and what was read ahead of a place that was skipped."""
        begin = max(self._end - LARGEST_FOLIO, 0)
        _drop(self._file.fileno(), begin, end - begin)
        self._end = end

    def header(self) -> bytes:
        """Return the bytes before the array."""
        content = np.empty(self._stored.start, dtype=np.uint8)
        return b"".join(self.read(0, content))

    def drop(self) -> None:
        """Drop the file from the page cache, where the system can."""
        _drop(self._file.fileno(), 0, 0)
        self._end = 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _drop(descriptor: int, begin: int, n_bytes: int) -> None:
    if hasattr(os, "posix_fadvise"):  # not on macOS
        os.posix_fadvise(descriptor, begin, n_bytes, os.POSIX_FADV_DONTNEED)
