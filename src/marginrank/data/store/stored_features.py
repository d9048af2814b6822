"""The feature matrix X of a store on disk: positions of rows in its files, and their decoding."""

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
    """The header of a .npy file: byte at which the array starts, its shape, order and type."""

    start: int
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def n_bytes(self) -> int:  # size of the file, header included
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def array(self, content: NDArray[np.uint8]) -> NDArray[Any]:
        """Return the array as a read-only view of `content`, the bytes of the file."""
        flat = content[self.start :].view(self.dtype)
        array = np.asarray(flat.reshape(self.shape, order="F" if self.fortran else "C"))
        array.flags.writeable = False
        return array


def read_header(stream: IO[bytes]) -> NpyHeader:
    """Read the header of a .npy file; raise ValueError for object arrays and unknown versions."""
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("another version of the format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    return NpyHeader(stream.tell(), shape, fortran, dtype)


@dataclass(frozen=True)
class StoredFile:
    """A .npy file of a store: its path, size and checksum."""

    path: str
    start: int  # byte offset of the array in the file
    n_bytes: int
    crc32: int

    def mapped(self) -> NDArray[np.uint8]:
        """Return the bytes of the array, memory-mapped; raise ValueError if they are damaged."""
        n_bytes = os.path.getsize(self.path)
        if n_bytes != self.n_bytes:
            raise damaged(self.path, f"it has {n_bytes} bytes instead of {self.n_bytes}")
        content = np.asarray(np.memmap(self.path, dtype=np.uint8, mode="r"))
        if zlib.crc32(content.data) != self.crc32:
            raise damaged(self.path, "its checksum differs from the manifest")
        return content[self.start :]


def damaged(path: str, what: str) -> ValueError:
    """Return a ValueError that says how a file of a store is damaged and what to do."""
    return ValueError(
        f"{path} is damaged: {what}; restore the store from a copy or save the data again."
    )


@dataclass(frozen=True)
class StoredFeatures:
    """The feature matrix X of a store, on disk: its files, shape and type.

    It does not read files itself: :meth:`spans` says which bytes to read for some rows, and
    :meth:`rows` converts them to a matrix.
    """

    folder: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]  # type of the values in memory, float32 or float64
    files: tuple[StoredFile, ...]  # "X", or "data" and "indices" of CSR
    indptr: Integers | None = None  # row offsets of CSR
    packed: PackedColumns | None = None  # types of the columns, if rows are packed

    @property
    def layout(self) -> str:
        """Layout of X: "dense", "packed" (dense in smaller types) or "csr"."""
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
        """Number of bytes that X takes in memory, without the `indptr` of CSR."""
        return int(self.memory_before(np.array([self.shape[0]]))[0])

    def memory_before(self, rows: Integers) -> Integers:
        """Return, for each row number in `rows`, the bytes in memory of all rows before it."""
        if self.indptr is None:
            return rows * (self.shape[1] * self.dtype.itemsize)
        sizes = self.dtype.itemsize + self.indptr.dtype.itemsize
        before: Integers = self.indptr[rows].astype(np.int64) * sizes
        return before

    def spans(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the bytes (start, end) of the rows `first` to `last` - 1 in each file of X."""
        if self.indptr is None:
            row = self.packed.row_bytes if self.packed else self.shape[1] * self.dtype.itemsize
            return [(first * row, last * row)]
        begin, end = int(self.indptr[first]), int(self.indptr[last])
        sizes = (self.dtype.itemsize, self.indptr.dtype.itemsize)
        return [(begin * size, end * size) for size in sizes]

    def n_bytes(self, first: int, last: int) -> int:
        """Return the number of bytes that the rows `first` to `last` - 1 of X take on disk."""
        return sum(end - begin for begin, end in self.spans(first, last))

    def n_bytes_in_memory(self, first: int, last: int) -> int:
        """Return the number of bytes that the rows `first` to `last` - 1 of X take in memory."""
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
        """Return the rows `first` to `last` - 1 of X, decoded from their bytes, as ndarray or CSR.

        `contents` has the bytes that :meth:`spans` refers to, one array per file. Packed rows are
        unpacked into `out`, by default a new array; other rows are views of the bytes.
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
