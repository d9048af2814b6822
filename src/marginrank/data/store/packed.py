"""Dense features in the smallest types that hold them exactly, columns side by side in a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Integers

TYPES = ("float64", "float32", "float16", "uint16", "uint8")  # in the order of a row's bytes
NARROW = ("uint8", "uint16", "float16", "float32")  # in the order in which they are preferred
WORTHWHILE = 0.9  # of the bytes of a plain row; with more, what is mapped as it is serves better


@dataclass(frozen=True)
class PackedColumns:
    """How the columns of a row are packed.

    Attributes
    ----------
    types : tuple of str
        Of each column, from :data:`TYPES`.
    dtype : dtype
        Of the numbers in memory, float32 or float64.
    """

    types: tuple[str, ...]
    dtype: np.dtype[Any]

    @cached_property
    def columns(self) -> dict[str, Integers]:
        """Return the columns of each type, in the order in which they lie in a row."""
        types = np.array(self.types)
        return {name: np.flatnonzero(types == name) for name in TYPES}

    @cached_property
    def _position(self) -> Integers:
        """Return the place of each column among the numbers of a packed row."""
        order = np.concatenate(list(self.columns.values()))
        position = np.empty_like(order)
        position[order] = np.arange(order.size)
        return position

    @cached_property
    def row_bytes(self) -> int:
        """Return the bytes of a packed row."""
        return sum(np.dtype(name).itemsize for name in self.types)

    @property
    def worthwhile(self) -> bool:
        """Whether rows are a good deal smaller than those of an array."""
        return self.row_bytes <= WORTHWHILE * len(self.types) * self.dtype.itemsize

    def pack(self, X: NDArray[Any]) -> NDArray[np.uint8]:
        """Return rows as bytes; their numbers are those of the types."""
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
        """Return the numbers of packed rows, in `out` if that is given."""
        if out is None:
            out = np.empty((packed.shape[0], len(self.types)), dtype=self.dtype)
        counts = [self.columns[name].size for name in TYPES]
        _core.unpack_rows(packed, counts, self._position, out, threads)
        return out


def smallest_types(blocks: Iterable[NDArray[Any]], n_columns: int, dtype: Any) -> PackedColumns:
    """Return the smallest types that hold every column of these rows exactly.

    That is, numbers come back bit by bit: −0.0 is no integer.
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
    return PackedColumns(_first_that_holds(holds, n_columns, dtype), dtype)


def _first_that_holds(
    holds: dict[str, Booleans], n_columns: int, dtype: np.dtype[Any]
) -> tuple[str, ...]:
    types: Sequence[str] = [dtype.name] * n_columns
    chosen = np.array(types, dtype=object)
    for name in reversed(holds):
        chosen[holds[name]] = name
    return tuple(chosen.tolist())


def _held(X: NDArray[Any], narrow: np.dtype[Any]) -> Booleans:
    """Return which columns a type holds exactly."""
    if narrow.kind == "u":
        inside = (X.min(axis=0) >= 0) & (X.max(axis=0) <= np.iinfo(narrow).max)
        integers = np.where(inside, X, 0).astype(narrow)
        exact: Booleans = inside & ((integers == X) & ~np.signbit(X)).all(axis=0)
        return exact
    with np.errstate(over="ignore", under="ignore"):
        exact = (X.astype(narrow) == X).all(axis=0)
    return exact
