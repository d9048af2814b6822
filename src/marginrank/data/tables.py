"""Frames of pandas, polars and pyarrow as columns; none is imported to tell them apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Booleans


class Table:
    """The columns of a frame by position; the subclasses know how each library spells it."""

    def __init__(self, names: Sequence[Any], columns: Sequence[Any], n_rows: int) -> None:
        self.names = list(names)
        self.columns = columns
        self.n_rows = n_rows
        self.first_row = 0  # in the data that this is a part of
        self.positions: dict[Any, list[int]] = {}
        for at, name in enumerate(self.names):
            self.positions.setdefault(name, []).append(at)

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:
        """Return some rows of a column, as they are."""
        raise NotImplementedError

    def is_null(self, at: int) -> Booleans | None:
        """Return which rows of a column are null; None if none is, or if nulls are NaN."""
        raise NotImplementedError

    def type_name(self, at: int) -> str:
        """Return the library's name for the type of a column."""
        return str(self.columns[at].dtype)

    def block(self, first: int, last: int) -> NDArray[Any] | None:
        """Return columns `first` … `last` if they already are rows of a matrix."""
        return None

    def dtype(self, at: int) -> np.dtype[Any] | None:
        """Return the NumPy type of a column of numbers, else None."""
        try:
            empty = self.rows(at, 0, 0)
        except Exception:  # a type that NumPy does not have; each library has its own error
            return None
        return empty.dtype if empty.ndim == 1 and empty.dtype.kind in "biuf" else None


class PandasTable(Table):
    """A pandas DataFrame."""

    def __init__(self, frame: Any) -> None:
        columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
        super().__init__(frame.columns, columns, frame.shape[0])
        self._frame = frame
        self._arrays: dict[int, NDArray[Any]] = {
            at: column.to_numpy()
            for at, column in enumerate(columns)
            if isinstance(column.dtype, np.dtype)
        }

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:  # noqa: D102
        if at in self._arrays:
            return self._arrays[at][first:last]
        rows: NDArray[Any] = self.columns[at].iloc[first:last].to_numpy()
        return rows

    def is_null(self, at: int) -> Booleans | None:  # noqa: D102
        has_nan = at in self._arrays and self._arrays[at].dtype.kind in "biuf"
        return None if has_nan else self.columns[at].isna().to_numpy()

    def block(self, first: int, last: int) -> NDArray[Any] | None:  # noqa: D102
        if not all(at in self._arrays for at in range(first, last)):
            return None
        sample = self._frame.iloc[:2, first:last].to_numpy()
        if sample.dtype not in (np.float32, np.float64) or sample.strides[1] != sample.itemsize:
            return None
        # The first and the last column lie in it, so all of them do: it is no copy.
        inside = (np.shares_memory(sample, self.rows(at, 0, 2)) for at in (first, last - 1))
        if not all(inside):
            return None
        block: NDArray[Any] = self._frame.iloc[:, first:last].to_numpy()
        return block


class PolarsTable(Table):
    """A polars DataFrame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame.columns, frame.get_columns(), frame.height)

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:  # noqa: D102
        rows: NDArray[Any] = self.columns[at].slice(first, last - first).to_numpy()
        return rows

    def is_null(self, at: int) -> Booleans | None:  # noqa: D102
        column = self.columns[at]
        return column.is_null().to_numpy() if column.null_count() else None


class ArrowTable(Table):
    """A pyarrow Table or RecordBatch."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame.column_names, frame.columns, frame.num_rows)

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:  # noqa: D102
        column = self.columns[at].slice(first, last - first)
        rows: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return rows

    def is_null(self, at: int) -> Booleans | None:  # noqa: D102
        column = self.columns[at]
        return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None

    def type_name(self, at: int) -> str:  # noqa: D102
        return str(self.columns[at].type)


def as_table(frame: Any) -> Table:
    """Return the columns of a frame of any of the libraries."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        frame = frame.collect()
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        return PandasTable(frame)
    if hasattr(frame, "get_columns") and hasattr(frame, "height"):
        return PolarsTable(frame)
    if hasattr(frame, "column_names") and hasattr(frame, "num_rows"):
        return ArrowTable(frame)
    raise TypeError(
        f"frame is a {type(frame).__name__}; give a pandas or polars DataFrame or a pyarrow Table."
    )
