"""Reading of X in blocks of rows, in any order of the rows, from memory or from a store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Integers
from marginrank.data.queries import bounded_ranges
from marginrank.data.store.packed import PackedColumns
from marginrank.data.store.stored_features import StoredFeatures

BLOCK = 1 << 22  # bytes of rows in a block; the row indices take several times as much
BLOCK_ROWS = 1 << 18  # most rows in a block, even if rows are short

RowIndex = slice | Integers


class Entries(NamedTuple):
    """Rows of a CSR matrix, as three arrays that may be memory-mapped."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]

    def take(self, rows: RowIndex) -> "Entries":
        """Select rows by a slice, which copies only `indptr`, or by an array of row numbers."""
        if isinstance(rows, slice):
            begin, end = self.indptr[rows.start], self.indptr[rows.stop]
            indptr = self.indptr[rows.start : rows.stop + 1] - begin
            return Entries(self.data[begin:end], self.indices[begin:end], indptr)
        starts = self.indptr[rows].astype(np.int64)
        indptr = _cumulated(self.indptr[rows + 1] - starts)
        which = np.repeat(starts - indptr[:-1], np.diff(indptr)) + np.arange(indptr[-1])
        return Entries(self.data[which], self.indices[which], indptr)

    def dense(self, n_columns: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        n_rows = self.indptr.size - 1
        X = np.zeros((n_rows, n_columns), dtype=dtype)
        X[np.repeat(np.arange(n_rows), np.diff(self.indptr)), self.indices] = self.data
        return X


@dataclass(frozen=True)
class FeatureRows:
    """Common interface to the rows of an ndarray, a CSR matrix or the X of a store.

    :meth:`blocks` yields all rows in blocks, in the order of the row numbers `order`.
    """

    take: Callable[[RowIndex], Any]  # returns rows as an array, or Entries with `indptr`
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    indptr: NDArray[Any] | None = None  # row offsets of the source, if rows are sparse
    index_dtype: np.dtype[Any] | None = None  # type of indices and indptr in the files of a store
    order: Integers | None = None  # row numbers in the order of reading; None for 0, 1, …

    @classmethod
    def of(cls, X: Any) -> "FeatureRows":
        """Create a FeatureRows from an ndarray, a CSR matrix or a StoredFeatures (X on disk).

        If X is on disk, the checksums of its files are verified.
        """
        if isinstance(X, StoredFeatures):
            contents = [file.mapped() for file in X.files]
            if X.packed is not None:
                return _packed_rows(X.packed, contents[0], X.shape)
            X = X.rows(0, X.shape[0], contents)
        if sp.issparse(X):
            entries = Entries(X.data, X.indices, X.indptr)
            return cls(entries.take, X.shape, X.dtype, X.indptr, X.indptr.dtype)
        return cls(X.__getitem__, X.shape, X.dtype)

    @classmethod
    def of_entries(
        cls, entries: Entries, shape: tuple[int, int], dtype: np.dtype[Any], *, dense: bool
    ) -> "FeatureRows":
        """Create a FeatureRows from CSR arrays, whose values are converted to `dtype` when read.

        If `dense`, blocks are dense arrays.
        """
        few = int(entries.indptr[-1]) < 2**31
        index_dtype = np.dtype(np.int32 if few else np.int64)

        def take(rows: RowIndex) -> Any:
            some = entries.take(rows)
            if dense:
                return some.dense(shape[1], dtype)
            return some._replace(data=some.data.astype(dtype))

        return cls(take, shape, dtype, None if dense else entries.indptr, index_dtype)

    @property
    def n_bytes(self) -> int:
        """Size of X in bytes, without the `indptr` of CSR."""
        if self.indptr is None or self.index_dtype is None:
            return self.shape[0] * self.shape[1] * self.dtype.itemsize
        return int(self.indptr[-1]) * (self.dtype.itemsize + self.index_dtype.itemsize)

    def blocks(self) -> Iterator[Any]:
        """Yield all rows of X in blocks of about 4 MiB: arrays, or Entries if X is sparse."""
        for first, last in self._ranges():
            if self.order is None:
                yield self.take(slice(first, last))
                continue
            rows = self.order[first:last]
            ascending = np.argsort(rows)  # ascending order is faster on disk
            back = np.argsort(ascending)
            some = self.take(rows[ascending])
            yield some.take(back) if isinstance(some, Entries) else some[back]

    def _ranges(self) -> Iterator[tuple[int, int]]:
        most = BLOCK // self.dtype.itemsize  # most entries
        for begin in range(0, self.shape[0], BLOCK_ROWS):
            end = min(begin + BLOCK_ROWS, self.shape[0])
            lengths: NDArray[Any] = np.full(end - begin, self.shape[1])
            if self.indptr is not None:
                rows = np.arange(begin, end) if self.order is None else self.order[begin:end]
                lengths = self.indptr[rows + 1] - self.indptr[rows]
            starts = _cumulated(lengths)
            for first, last in bounded_ranges(starts, most):
                yield begin + first, begin + last


def _cumulated(lengths: NDArray[Any]) -> Integers:
    ends = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _packed_rows(
    columns: PackedColumns, content: NDArray[np.uint8], shape: tuple[int, int]
) -> FeatureRows:
    packed = content.reshape(shape[0], columns.row_bytes)

    def take(rows: RowIndex) -> NDArray[Any]:
        return columns.unpack(np.asarray(packed[rows]), threads=effective_threads(None))

    return FeatureRows(take, shape, columns.dtype)
