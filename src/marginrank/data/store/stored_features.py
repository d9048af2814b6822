"""X of a store on disk: byte ranges of its rows, and conversion of bytes to a matrix."""

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


class NpyHeader(NamedTuple):
    """Position, shape and type of the array in a .npy file."""

    start: int
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:  # size of the file
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def array(self, content: NDArray[np.uint8]) -> NDArray[Any]:
        """Return a read-only view of the array in the bytes of the file."""
        flat = content[self.start :].view(self.dtype)
        array = np.asarray(flat.reshape(self.shape, order="F" if self.fortran else "C"))
        array.flags.writeable = False
        return array


def read_header(stream: IO[bytes]) -> NpyHeader:
    """Read the header; raise ValueError for arrays of objects and other format versions."""
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("another version of the format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return NpyHeader(stream.tell(), shape, fortran, dtype)


@dataclass(frozen=True)
class StoredFile:
    """A .npy file of a store, with its size and checksum."""

    path: str
    start: int  # byte offset of the array in the file
    n_bytes: int
    crc32: int

    def mapped(self) -> NDArray[np.uint8]:
        """Map the bytes of the array; raise ValueError if the file is damaged."""
        n_bytes = os.path.getsize(self.path)
        if n_bytes != self.n_bytes:
            raise damaged(self.path, f"it has {n_bytes} bytes instead of {self.n_bytes}")
        content = np.asarray(np.memmap(self.path, dtype=np.uint8, mode="r"))
        if zlib.crc32(content.data) != self.crc32:
            raise damaged(self.path, "its checksum differs from the manifest")
        return content[self.start :]


def damaged(path: str, what: str) -> ValueError:
    """Return the error for a damaged file of a store."""
    return ValueError(
        f"{path} is damaged: {what}; restore the store from a copy or save the data again."
    )


@dataclass(frozen=True)
class StoredFeatures:
    """X of a store on disk: its files, shape and type; rows are read in blocks."""

    folder: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]  # type of the values in memory, float32 or float64
    files: tuple[StoredFile, ...]  # "X", or "data" and "indices" of CSR
    indptr: Integers | None = None  # row offsets of CSR
    packed: PackedColumns | None = None  # types of the columns, if rows are packed

    @property
    def layout(self) -> str:
        """Layout of the rows: "dense", "packed" or "csr"."""
        if self.packed is not None:
            return "packed"
        return "dense" if self.indptr is None else "csr"

    @property
    def n_entries(self) -> int:
        if self.indptr is None:
            return self.shape[0] * self.shape[1]
        return int(self.indptr[-1])

    @property
    def memory_bytes(self) -> int:
        """Bytes of X in memory, without `indptr`."""
        return int(self.memory_before(np.array([self.shape[0]]))[0])

    def memory_before(self, rows: Integers) -> Integers:
        """Return, for each row number, the bytes of memory that all earlier rows take."""
        if self.indptr is None:
            return rows * (self.shape[1] * self.dtype.itemsize)
        sizes = self.dtype.itemsize + self.indptr.dtype.itemsize
        before: Integers = self.indptr[rows].astype(np.int64) * sizes
        return before

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the byte ranges of the rows from `first` to `last`, one range for each file."""
        if self.indptr is None:
            row = self.packed.row_bytes if self.packed else self.shape[1] * self.dtype.itemsize
            return [(first * row, last * row)]
        begin, end = int(self.indptr[first]), int(self.indptr[last])
        sizes = (self.dtype.itemsize, self.indptr.dtype.itemsize)
        return [(begin * size, end * size) for size in sizes]

    def n_bytes(self, first: int, last: int) -> int:
        """Return the number of bytes on disk of the rows from `first` to `last`."""
        return sum(end - begin for begin, end in self.spans(first, last))

    def n_bytes_in_memory(self, first: int, last: int) -> int:
        """Return the number of bytes in memory of the rows from `first` to `last`."""
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
        """Convert the bytes of :meth:`spans` to rows, as an array or as CSR.

        Packed rows are unpacked into `out`, a new array by default; others are not copied.
        """
        n_rows, width = last - first, self.shape[1]
        if self.packed is not None:
            packed = contents[0].reshape(n_rows, self.packed.row_bytes)
            return self.packed.unpack(packed, out, threads)
        if self.indptr is None:
            return contents[0].view(self.dtype).reshape(n_rows, width)
        indptr = self.indptr[first : last + 1]
        # Do not subtract 0: that would copy a memory map into memory.
        indptr = indptr - indptr[0] if first > 0 else indptr
        # The constructor of csr_array would read all indices to choose their type.
        X = sp.csr_array((n_rows, width), dtype=self.dtype)
        X.data, X.indices = contents[0].view(self.dtype), contents[1].view(indptr.dtype)
        X.indptr = indptr
        X.has_sorted_indices = X.has_canonical_format = True  # the kernels check it
        return X
