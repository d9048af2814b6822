"""Lossless compression of a dense X by smaller types, such as uint8 for a column of 0 and 1.

Each column has the smallest type that holds all its values exactly. In a *packed* row, columns are
sorted by type and their values are concatenated as bytes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Integers

TYPES = ("float64", "float32", "float16", "uint16", "uint8")  # order of the types in a packed row
NARROW = ("uint8", "uint16", "float16", "float32")  # candidate types, the preferred one first
WORTHWHILE = 0.9  # rows are packed if this reduces their bytes to at most this share


@dataclass(frozen=True)
class PackedColumns:
    """Codec for a compressed dense X: the type in which each column is stored, and conversions.

    A packed row holds the values of all float64 columns, then of all float32 columns, and so on, as
    bytes.
    """

    types: tuple[str, ...]  # type of each column, from TYPES
    dtype: np.dtype[Any]  # type in memory, float32 or float64

    @cached_property
    def columns(self) -> dict[str, Integers]:
        """{type: numbers of the columns that are stored in it}."""
        types = np.array(self.types)
        return {name: np.flatnonzero(types == name) for name in TYPES}

    @cached_property
    def _position(self) -> Integers:
        order = np.concatenate(list(self.columns.values()))
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        return position

    @cached_property
    def row_bytes(self) -> int:
        return sum(np.dtype(name).itemsize for name in self.types)

    @property
    def worthwhile(self) -> bool:
        """Whether compression of X saves at least 10 % of the bytes."""
        return self.row_bytes <= WORTHWHILE * len(self.types) * self.dtype.itemsize

    def pack(self, X: NDArray[Any]) -> NDArray[np.uint8]:
        """Return rows of X compressed to bytes.

        The values of each column must be representable in the column's type.
        """
        packed = np.empty((X.shape[0], self.row_bytes), dtype=np.uint8)
        first = 0
        for name, columns in self.columns.items():
            last = first + columns.size * np.dtype(name).itemsize
            if columns.size:
                numbers = np.ascontiguousarray(X[:, columns]).astype(name)
                packed[:, first:last] = numbers.view(np.uint8)
            first = last
        return packed

    def unpack(
        self, packed: NDArray[np.uint8], out: NDArray[Any] | None = None, threads: int = 1
    ) -> NDArray[Any]:
        """Return rows of X, decompressed from bytes; they are written to `out` if given."""
        if out is None:
            out = np.empty((packed.shape[0], len(self.types)), dtype=self.dtype)
        counts = [self.columns[name].size for name in TYPES]
        _core.unpack_rows(packed, counts, self._position, out, threads)
        return out


def smallest_types(blocks: Iterable[NDArray[Any]], n_columns: int, dtype: Any) -> PackedColumns:
    """Return the PackedColumns that store each column of X in the smallest lossless type.

    X has type `dtype` and is given in blocks of rows.
    """
    dtype = np.dtype(dtype)
    narrow = [name for name in NARROW if np.dtype(name).itemsize < dtype.itemsize]
    holds = {name: np.ones(n_columns, dtype=bool) for name in narrow}
    for block in blocks:
        for name, still in holds.items():
            columns = np.flatnonzero(still)
            if columns.size:
                some = block if columns.size == n_columns else block[:, columns]
                still[columns] = _held(some, np.dtype(name))
    types = np.full(n_columns, dtype.name, dtype=object)
    for name in reversed(holds):
        types[holds[name]] = name
    return PackedColumns(tuple(types.tolist()), dtype)


def _held(X: NDArray[Any], narrow: np.dtype[Any]) -> Booleans:
    """Return a mask of the columns whose values the type `narrow` holds exactly.

    An integer type cannot hold −0.0.
    """
    if narrow.kind == "u":
        inside = (X.min(axis=0) >= 0) & (X.max(axis=0) <= np.iinfo(narrow).max)
        integers = np.where(inside, X, 0).astype(narrow)
        exact: Booleans = inside & ((integers == X) & ~np.signbit(X)).all(axis=0)
        return exact
    with np.errstate(over="ignore", under="ignore"):
        exact = (X.astype(narrow) == X).all(axis=0)
    return exact
