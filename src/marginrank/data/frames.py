"""Conversion of data frames to arrays of features, labels, query ids and weights.

Data frames of pandas, polars and pyarrow are recognized without importing these libraries.
"""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.parameters import Mention, ParameterError, given
from marginrank._utils.types import Booleans
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.validation import check_exact, find_bad, not_finite

INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")  # pandas' names of indices in files
BLOCK = 1 << 20  # entries copied at a time, which fit in the cache

Data = TypeVar("Data")


class Table:
    """Common interface to data frames of pandas, polars and pyarrow; columns are numbered from 0.

    Each library has a subclass.
    """

    def __init__(self, names: Sequence[Any], columns: Sequence[Any], n_rows: int) -> None:
        self.names = list(names)
        self.columns = columns
        self.n_rows = n_rows
        self.first_row = 0  # row number of the first row in the whole table
        self.positions: dict[Any, list[int]] = {}
        for at, name in enumerate(self.names):
            self.positions.setdefault(name, []).append(at)

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:
        """Return column `at`, rows `first` to `last` - 1, as an array with the column's dtype."""
        raise NotImplementedError

    def is_null(self, at: int) -> Booleans | None:
        """Return a mask of the nulls of column `at`; None if it has no nulls other than NaN."""
        raise NotImplementedError

    def type_name(self, at: int) -> str:
        """Return the name of a column's type in its library, for error messages."""
        return str(self.columns[at].dtype)

    def block(self, first: int, last: int) -> NDArray[Any] | None:
        """Return columns `first` to `last` - 1 as an array without a copy, or None.

        None means that the frame does not store these columns as one C-contiguous array.
        """
        return None

    def dtype(self, at: int) -> np.dtype[Any] | None:
        """Return the NumPy dtype of column `at`, or None if it is not numeric."""
        try:
            empty = self.rows(at, 0, 0)
        except Exception:  # NumPy has no such type; the class of the error depends on the library
            return None
        return empty.dtype if empty.ndim == 1 and empty.dtype.kind in "biuf" else None


class PandasTable(Table):
    """Interface to a pandas DataFrame."""

    def __init__(self, frame: Any) -> None:
        columns = [frame.iloc[:, at] for at in range(frame.shape[1])]
        super().__init__(frame.columns, columns, frame.shape[0])
        self._frame = frame
        self._arrays: dict[int, NDArray[Any]] = {
            at: column.to_numpy()
            for at, column in enumerate(columns)
            if isinstance(column.dtype, np.dtype)
        }

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:
        if at in self._arrays:
            return self._arrays[at][first:last]
        rows: NDArray[Any] = self.columns[at].iloc[first:last].to_numpy()
        return rows

    def is_null(self, at: int) -> Booleans | None:
        has_nan = at in self._arrays and self._arrays[at].dtype.kind in "biuf"
        return None if has_nan else self.columns[at].isna().to_numpy()

    def block(self, first: int, last: int) -> NDArray[Any] | None:
        if not all(at in self._arrays for at in range(first, last)):
            return None
        sample = self._frame.iloc[:2, first:last].to_numpy()
        if sample.dtype not in (np.float32, np.float64) or sample.strides[1] != sample.itemsize:
            return None
        # The block is a view if it shares memory with the first and the last column.
        inside = (np.shares_memory(sample, self.rows(at, 0, 2)) for at in (first, last - 1))
        if not all(inside):
            return None
        block: NDArray[Any] = self._frame.iloc[:, first:last].to_numpy()
        return block


class PolarsTable(Table):
    """Interface to a polars DataFrame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame.columns, frame.get_columns(), frame.height)

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:
        rows: NDArray[Any] = self.columns[at].slice(first, last - first).to_numpy()
        return rows

    def is_null(self, at: int) -> Booleans | None:
        column = self.columns[at]
        return column.is_null().to_numpy() if column.null_count() else None


class ArrowTable(Table):
    """Interface to a pyarrow Table or RecordBatch."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame.column_names, frame.columns, frame.num_rows)

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:
        column = self.columns[at].slice(first, last - first)
        rows: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return rows

    def is_null(self, at: int) -> Booleans | None:
        column = self.columns[at]
        return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None

    def type_name(self, at: int) -> str:
        return str(self.columns[at].type)


def as_table(frame: Any) -> Table:
    """Wrap a data frame of pandas, polars or pyarrow in the common interface `Table`."""
    if hasattr(frame, "collect_schema") and hasattr(frame, "collect"):
        frame = frame.collect()
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):
        return PandasTable(frame)
    if hasattr(frame, "get_columns") and hasattr(frame, "height"):
        return PolarsTable(frame)
    if hasattr(frame, "column_names") and hasattr(frame, "num_rows"):
        return ArrowTable(frame)
    raise TypeError(
        f"frame is a {type(frame).__name__}; pass a pandas or polars DataFrame or a pyarrow Table."
    )


def from_frame(
    make: Callable[..., Data],
    frame: Any,
    *,
    features: Sequence[Any] | None = None,
    allow_nan: bool = False,
    n_jobs: int | None = None,
    first_row: int = 0,
    **roles: Any,
) -> Data:
    """Return ``make(X, y, qid, …)`` with arrays taken from the columns of a data frame.

    `make` is a constructor such as :class:`marginrank.RankingData`. `roles` maps label, qid,
    sample_weight, query_weight and comments to column names or None. `first_row` is added to the
    row numbers in error messages, for a frame that is one part of a larger table.
    """
    table = as_table(frame)
    table.first_row = first_row
    used = {role: _find(table, name, role) for role, name in roles.items() if name is not None}
    if "label" not in used:
        raise ParameterError(
            given("label", None), " is not a column; pass the name of the label column."
        )
    chosen = _choose_features(table, features, used)
    X = _feature_matrix(table, chosen, allow_nan)
    try:
        return make(
            X,
            _numbers(table, used["label"]),
            _ids(table, used["qid"]) if "qid" in used else None,
            sample_weight=_numbers(table, used.get("sample_weight")),
            query_weight=_numbers(table, used.get("query_weight")),
            comments=[*map(str, _objects(table, used["comments"]))] if "comments" in used else None,
            feature_names=[str(table.names[at]) for at in chosen],
            n_jobs=n_jobs,
        )
    except ValueError:
        found = find_bad(X, np.isinf if allow_nan else not_finite)
        if found is not None:  # raise an error that names the column
            row, k, value = found
            raise _bad_value(table, chosen[k], row, _non_finite(value)) from None
        raise


def split_columns(frame: Any, names: Mapping[str, str]) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return a data frame's features, and a dict of arrays such as y, qid and sample_weight.

    `names` maps the keys of the returned dict (y, qid, …) to column names. These columns are
    removed from the features.
    """
    table = as_table(frame)
    at = {role: _find(table, name, role) for role, name in names.items()}
    values: dict[str, Any] = {
        role: _ids(table, k) if role == "qid" else _numbers(table, k) for role, k in at.items()
    }
    return without_columns(frame, set(names.values())), values


def without_columns(frame: Any, names: Collection[str]) -> Any:
    """Return a data frame without the named columns; names of absent columns are ignored."""
    there = [name for name in getattr(frame, "column_names", frame.columns) if name in names]
    if not there:
        return frame
    if hasattr(frame, "drop_columns"):  # pyarrow
        return frame.drop_columns(there)
    return frame.drop(columns=there) if hasattr(frame, "iloc") else frame.drop(there)


def _find(table: Table, name: Any, role: str) -> int:
    matches = table.positions.get(name, [])
    if len(matches) > 1:
        raise ValueError(f"The frame has {len(matches)} columns {name!r}; rename all but one.")
    if not matches:
        one_query = (" or pass ", given("qid", None), " if all rows are one query")
        raise ParameterError(
            f"The frame has no column {name!r} for {role}; {_nearest(table, name)}; set ",
            Mention(role, ""),
            " to the right name",
            *(one_query if role == "qid" else ()),
            ".",
        )
    return matches[0]


def _nearest(table: Table, name: Any) -> str:
    names = {str(other).lower(): other for other in reversed(table.names)}
    near = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.5)
    if near:
        return "similar columns are " + ", ".join(repr(names[key]) for key in near)
    some = ", ".join(map(repr, table.names[:5])) or "none"
    return f"its columns are {some}" + (", …" if len(table.names) > 5 else "")


def _choose_features(table: Table, features: Any, used: dict[str, int]) -> list[int]:
    if isinstance(features, str):
        raise ParameterError(given("features", features), " must be a list of column names.")
    features = _usual_features(table, used) if features is None else list(features)
    chosen = [_find(table, name, "features") for name in features]
    if not chosen:
        raise ParameterError(
            "The frame has no column left for the features; list them in ",
            Mention("features", ""),
            ".",
        )
    for role, at in used.items():
        if at in chosen:
            raise ValueError(f"column {table.names[at]!r} is the {role}; drop it from features.")
    if len(set(chosen)) < len(chosen):
        twice = next(name for name in features if features.count(name) > 1)
        raise ValueError(f"features lists {twice!r} twice; list each column once.")
    return chosen


def _usual_features(table: Table, used: dict[str, int]) -> list[Any]:
    """Return the default feature columns: all except labels, queries, weights and index columns."""
    names = [name for at, name in enumerate(table.names) if at not in used.values()]
    index = [name for name in names if name in INDEX_COLUMNS]
    if index and table.first_row == 0:
        listed = ", ".join(map(repr, index))
        warn_caller(
            f"The column {listed} looks like the index of a pandas frame and is not used as a "
            "feature. List the features explicitly to use it, or write the file with index=False."
        )
    return [name for name in names if name not in INDEX_COLUMNS]


def _feature_matrix(table: Table, chosen: list[int], allow_nan: bool) -> NDArray[Any]:
    dtype = np.result_type(*(_feature_dtype(table, at) for at in chosen))
    null = {at: table.is_null(at) for at in chosen} if allow_nan else {}
    if not allow_nan:
        for at in chosen:
            _check_no_nulls(table, at)
    if chosen == list(range(chosen[0], chosen[-1] + 1)):
        block = table.block(chosen[0], chosen[-1] + 1)
        if block is not None:
            return block
    X = np.empty((table.n_rows, len(chosen)), dtype=dtype)
    step = max(BLOCK // len(chosen), 256)
    for first in range(0, table.n_rows, step):
        rows = X[first : first + step]
        for k, at in enumerate(chosen):
            values = table.rows(at, first, first + len(rows))
            gone = null.get(at)
            if gone is not None and (gone := gone[first : first + len(rows)]).any():
                present = values[~gone]
                values = np.full(len(rows), np.nan)
                values[~gone] = present
            check_exact(values, partial(_place, table, at, first))
            rows[:, k] = values
    return X


def _feature_dtype(table: Table, at: int) -> Any:
    """Return the dtype of a feature column in X: float32 if it holds the column's type exactly.

    Otherwise, return float64.
    """
    dtype = table.dtype(at)
    if dtype is None:
        raise ParameterError(
            f"column {table.names[at]!r} holds {table.type_name(at)}, not numbers; convert it, or "
            "list the columns to use in ",
            Mention("features", ""),
            ".",
        )
    return np.float32 if np.can_cast(dtype, np.float32) else np.float64


def _check_no_nulls(table: Table, at: int) -> None:
    null = table.is_null(at)
    if null is not None and null.any():
        raise _bad_value(table, at, int(null.argmax()), "null")


def _place(table: Table, at: int, first: int, row: int) -> str:
    return f"column {table.names[at]!r}, row {table.first_row + first + row}"


def _bad_value(table: Table, at: int, row: int, what: str) -> ValueError:
    return ValueError(f"{_place(table, at, 0, row)} is {what}; drop the row or replace the value.")


def _non_finite(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity (inf)"


def _numbers(table: Table, at: int | None) -> NDArray[Any] | None:
    """Return column `at` as an array (None if `at` is None); raise ValueError if not finite."""
    if at is None:
        return None
    _check_no_nulls(table, at)
    if table.dtype(at) is None:
        raise ValueError(
            f"column {table.names[at]!r} holds {table.type_name(at)}, not numbers; convert it."
        )
    values = table.rows(at, 0, table.n_rows)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise _bad_value(table, at, int(bad[0]), _non_finite(values[bad[0]]))
    return values


def _ids(table: Table, at: int) -> NDArray[Any] | None:
    return _numbers(table, at) if table.dtype(at) is not None else _objects(table, at)


def _objects(table: Table, at: int) -> NDArray[Any]:
    _check_no_nulls(table, at)
    return table.rows(at, 0, table.n_rows)
