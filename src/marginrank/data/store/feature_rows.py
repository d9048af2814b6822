"""Features to be written, some rows at a time and in any order, wherever they are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Integers
from marginrank.data.queries import bounded_ranges
from marginrank.data.store.stored_features import StoredFeatures

BLOCK = 1 << 22  # bytes of rows in work at a time; their places take several times as much
BLOCK_ROWS = 1 << 18  # rows in work at a time, where they are short

Some = slice | Integers  # rows


class Entries(NamedTuple):
    """Rows of CSR, whose arrays may be maps of files."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]

    def take(self, rows: Some) -> "Entries":
        """Return some rows; of those in a slice, nothing is copied but where they begin."""
        if isinstance(rows, slice):
            begin, end = self.indptr[rows.start], self.indptr[rows.stop]
            indptr = self.indptr[rows.start : rows.stop + 1] - begin
            return Entries(self.data[begin:end], self.indices[begin:end], indptr)
        starts = self.indptr[rows].astype(np.int64)
        indptr = _cumulated(self.indptr[rows + 1] - starts)
        which = np.repeat(starts - indptr[:-1], np.diff(indptr)) + np.arange(indptr[-1])
        return Entries(self.data[which], self.indices[which], indptr)

    def dense(self, n_columns: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an array; what has no entry is 0."""
        n_rows = self.indptr.size - 1
        X = np.zeros((n_rows, n_columns), dtype=dtype)
        X[np.repeat(np.arange(n_rows), np.diff(self.indptr)), self.indices] = self.data
        return X


@dataclass(frozen=True)
class FeatureRows:
    """Features that are taken from where they are, some rows at a time.

    Attributes
    ----------
    take : callable
        Returns some rows of the source as an array or, if there is an `indptr`, as Entries.
    shape, dtype
        Of the matrix.
    indptr : ndarray or None
        Where the rows of the source begin, if they are sparse.
    index_dtype : dtype or None
        Of the indices of sparse rows, and of where these begin, when they are written.
    order : ndarray or None
        Which row of the source each row is; None if they are in order.
    """

    take: Callable[[Some], Any]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    indptr: NDArray[Any] | None = None
    index_dtype: np.dtype[Any] | None = None
    order: Integers | None = None

    @classmethod
    def of(cls, X: Any) -> "FeatureRows":
        """Return the rows of an array, of CSR or of a store, whose checksums are compared."""
        if isinstance(X, StoredFeatures):
            return _rows_of_store(X)
        if sp.issparse(X):
            entries = Entries(X.data, X.indices, X.indptr)
            return cls(entries.take, X.shape, X.dtype, X.indptr, X.indptr.dtype)
        return cls(X.__getitem__, X.shape, X.dtype)

    @classmethod
    def of_entries(
        cls, entries: Entries, shape: tuple[int, int], dtype: np.dtype[Any], *, dense: bool
    ) -> "FeatureRows":
        """Return sparse rows, or the dense ones that they stand for, converted to a type.

        Their indices have the smaller type that can count them.
        """
        few = int(entries.indptr[-1]) < 2**31
        index_dtype = np.dtype(np.int32 if few else np.int64)

        def take(rows: Some) -> Any:
            some = entries.take(rows)
            if dense:
                return some.dense(shape[1], dtype)
            return some._replace(data=some.data.astype(dtype))

        return cls(take, shape, dtype, None if dense else entries.indptr, index_dtype)

    def ordered(self, order: Integers | None) -> "FeatureRows":
        """Return the rows in another order."""
        return replace(self, order=order)

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays of all rows."""
        if self.indptr is None or self.index_dtype is None:
            return self.shape[0] * self.shape[1] * self.dtype.itemsize
        return int(self.indptr[-1]) * (self.dtype.itemsize + self.index_dtype.itemsize)

    def blocks(self) -> Iterator[Any]:
        """Yield all rows as arrays or Entries of bounded size."""
        for first, last in self._ranges():
            if self.order is None:
                yield self.take(slice(first, last))
                continue
            rows = self.order[first:last]
            ascending = np.argsort(rows)  # a disk is faster in one direction
            back = np.argsort(ascending)
            some = self.take(rows[ascending])
            yield some.take(back) if isinstance(some, Entries) else some[back]

    def _ranges(self) -> Iterator[tuple[int, int]]:
        most = BLOCK // self.dtype.itemsize  # entries
        for begin in range(0, self.shape[0], BLOCK_ROWS):
            starts = _cumulated(self._lengths(begin, min(begin + BLOCK_ROWS, self.shape[0])))
            for first, last in bounded_ranges(starts, most):
                yield begin + first, begin + last

    def _lengths(self, first: int, last: int) -> Integers:
        """Return the entries of each of some rows, in their order."""
        if self.indptr is None:
            return np.full(last - first, self.shape[1])
        if self.order is None:
            return np.diff(self.indptr[first : last + 1])
        rows = self.order[first:last]
        lengths: Integers = self.indptr[rows + 1] - self.indptr[rows]
        return lengths


def _cumulated(lengths: NDArray[Any]) -> Integers:
    ends = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _rows_of_store(stored: StoredFeatures) -> FeatureRows:
    contents = [file.mapped() for file in stored.files]
    shape, dtype, columns = stored.shape, stored.dtype, stored.packed
    if stored.indptr is not None:
        indices = contents[1].view(stored.indptr.dtype)
        entries = Entries(contents[0].view(dtype), indices, stored.indptr)
        return FeatureRows(entries.take, shape, dtype, stored.indptr, stored.indptr.dtype)
    if columns is None:
        return FeatureRows(contents[0].view(dtype).reshape(shape).__getitem__, shape, dtype)
    packed = contents[0].reshape(shape[0], columns.row_bytes)

    def take(rows: Some) -> NDArray[Any]:
        return columns.unpack(np.asarray(packed[rows]), threads=effective_threads(None))

    return FeatureRows(take, shape, dtype)
