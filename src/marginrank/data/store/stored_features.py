"""X of a store that is left on disk: where its rows are, and how its bytes become a matrix."""

import math
import os
import zlib
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.types import Integers
from marginrank.data.store.packed import PackedColumns

HEADER = 10 + (1 << 16)  # bytes of a file in which its header ends


class NpyHeader(NamedTuple):
    """Position, shape and type of the array in a file."""

    start: int
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:
        """Size of the file."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def array(self, content: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the array in the bytes of the file, read-only; it is not copied."""
        flat = content[self.start :].view(self.dtype)
        array = np.asarray(flat.reshape(self.shape, order="F" if self.fortran else "C"))
        array.flags.writeable = False
        return array


def read_header(stream: IO[bytes]) -> NpyHeader:
    """Read the header; raise ValueError for arrays of objects and other versions."""
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("another version of the format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return NpyHeader(stream.tell(), shape, fortran, dtype)


@dataclass(frozen=True)
class StoredFile:
    """A file of a store, and what it must be.

    Attributes
    ----------
    path : str
        Where it is.
    start : int
        Bytes before the array.
    n_bytes : int
        Bytes of the file.
    crc32 : int
        Its checksum.
    """

    path: str
    start: int
    n_bytes: int
    crc32: int

    def mapped(self) -> NDArray[np.uint8]:
        """Map the bytes of the array, after the checksum of the file has been compared."""
        if os.path.getsize(self.path) != self.n_bytes:
            raise damaged(self.path, f"it should have {self.n_bytes} bytes")
        content = np.asarray(np.memmap(self.path, dtype=np.uint8, mode="r"))
        if zlib.crc32(content.data) != self.crc32:
            raise damaged(self.path, "its checksum is not that of the manifest")
        return content[self.start :]


def damaged(path: str, what: str) -> ValueError:
    """Return the error to raise for a file of a store."""
    return ValueError(
        f"{path} is damaged: {what}; restore the store from a copy or save the data again."
    )


@dataclass(frozen=True)
class StoredFeatures:
    """X of a store, whose rows are read some at a time.

    Attributes
    ----------
    folder : str
        The store.
    shape : tuple of int
        Of X.
    dtype : dtype
        Of the values of X in memory, float32 or float64.
    files : tuple of StoredFile
        "X", or the "data" and the "indices" of CSR, in this order.
    indptr : ndarray or None
        Where the rows of CSR begin.
    packed : PackedColumns or None
        The types of the columns, where those of a row are packed.
    """

    folder: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    files: tuple[StoredFile, ...]
    indptr: Integers | None = None
    packed: PackedColumns | None = None

    @property
    def layout(self) -> str:
        """How the rows are stored: "dense", "packed" or "csr"."""
        if self.packed is not None:
            return "packed"
        return "dense" if self.indptr is None else "csr"

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        if self.indptr is None:
            return self.shape[0] * self.shape[1]
        return int(self.indptr[-1])

    @property
    def memory_bytes(self) -> int:
        """What all of X would take in memory."""
        size = self.dtype.itemsize
        if self.indptr is not None:
            size += self.indptr.dtype.itemsize
        return size * self.n_entries

    def memory_before(self, rows: Integers) -> Integers:
        """Return how many bytes the rows before some rows take in memory."""
        if self.indptr is None:
            return rows * (self.shape[1] * self.dtype.itemsize)
        sizes = self.dtype.itemsize + self.indptr.dtype.itemsize
        before: Integers = self.indptr[rows].astype(np.int64) * sizes
        return before

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return where the rows from `first` to `last` are, in bytes of each file's array."""
        if self.indptr is None:
            row = self._row_bytes
            return [(first * row, last * row)]
        begin, end = int(self.indptr[first]), int(self.indptr[last])
        sizes = (self.dtype.itemsize, self.indptr.dtype.itemsize)
        return [(begin * size, end * size) for size in sizes]

    @property
    def _row_bytes(self) -> int:
        if self.packed is not None:
            return self.packed.row_bytes
        return self.shape[1] * self.dtype.itemsize

    def n_bytes(self, first: int, last: int) -> int:
        """Return how many bytes some rows have on disk."""
        return sum(end - begin for begin, end in self.spans(first, last))

    def n_bytes_in_memory(self, first: int, last: int) -> int:
        """Return how many bytes some rows have once they are a matrix."""
        if self.packed is None:
            return self.n_bytes(first, last)
        return (last - first) * self.shape[1] * self.dtype.itemsize

    def rows(
        self,
        first: int,
        last: int,
        contents: list[NDArray[np.uint8]],
        *,
        out: NDArray[Any] | None = None,
        threads: int = 1,
    ) -> Any:
        """Return rows as an array or as CSR, made of the bytes of :meth:`spans`.

        Parameters
        ----------
        first, last : int
            The rows.
        contents : list of ndarray of uint8
            The bytes, for each file.
        out : ndarray of shape (last - first, n_features), optional
            Where packed rows are unpacked to; a new array by default. Rows of other layouts are
            not copied.
        threads : int, default=1
            For the unpacking.
        """
        n_rows, width = last - first, self.shape[1]
        if self.packed is not None:
            packed = contents[0].reshape(n_rows, self.packed.row_bytes)
            return self.packed.unpack(packed, out, threads)
        if self.indptr is None:
            return contents[0].view(self.dtype).reshape(n_rows, width)
        indptr = self.indptr[first : last + 1] - self.indptr[first]
        # The constructor would read all indices to choose their type.
        X = sp.csr_array((n_rows, width), dtype=self.dtype)
        X.data, X.indices = contents[0].view(self.dtype), contents[1].view(indptr.dtype)
        X.indptr = indptr
        X.has_sorted_indices = X.has_canonical_format = True  # the kernels look again
        return X
