"""Which columns of a data frame are what."""

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.parameters import Mention, ParameterError, given
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.tables import Table, as_table
from marginrank.data.validation import check_exact, find_bad, not_finite

INDEX_COLUMNS = ("", "Unnamed: 0", "__index_level_0__")  # as pandas and pyarrow call an index
BLOCK = 1 << 20  # entries copied at a time: columns become rows while they are in cache

Data = TypeVar("Data")


def from_frame(
    make: Callable[..., Data],
    frame: Any,
    *,
    label: Any = "label",
    qid: Any = "qid",
    features: Sequence[Any] | None = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    comments: Any = None,
    allow_nan: bool = False,
    n_jobs: int | None = None,
    first_row: int = 0,
) -> Data:
    """Call `make` with the columns of a data frame, in the order of the rows.

    See :meth:`marginrank.RankingData.from_frame`, which is the `make` that this is for. Rows that
    are part of more are numbered from `first_row`.
    """
    table = as_table(frame)
    table.first_row = first_row
    roles = {
        "label": label,
        "qid": qid,
        "sample_weight": sample_weight,
        "query_weight": query_weight,
        "comments": comments,
    }
    used = {role: _find(table, name, role) for role, name in roles.items() if name is not None}
    if "label" not in used:
        raise ParameterError(given("label", None), ": name the column of the labels.")
    chosen = _choose_features(table, features, used)
    X = _feature_matrix(table, chosen, allow_nan)
    try:
        return make(
            X,
            _numbers(table, used["label"]),
            _ids(table, used["qid"]) if "qid" in used else None,
            sample_weight=_optional_numbers(table, used.get("sample_weight")),
            query_weight=_optional_numbers(table, used.get("query_weight")),
            comments=_texts(table, used["comments"]) if "comments" in used else None,
            feature_names=[str(table.names[at]) for at in chosen],
            n_jobs=n_jobs,
        )
    except ValueError:
        _name_bad_feature(table, chosen, X, allow_nan)
        raise


def split_columns(frame: Any, names: Mapping[str, str]) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return a frame without the named columns, and these columns as arrays, by role.

    Parameters
    ----------
    frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
        One row per document.
    names : dict of str to str
        Column of each role: y, qid, and so on.
    """
    table = as_table(frame)
    at = {role: _find(table, name, role) for role, name in names.items()}
    values = {
        role: _ids(table, k) if role == "qid" else _numbers(table, k) for role, k in at.items()
    }
    return without_columns(frame, set(names.values())), values


def without_columns(frame: Any, names: Collection[str]) -> Any:
    """Return a frame of any library without the columns of these names that it has."""
    there = [name for name in getattr(frame, "column_names", frame.columns) if name in names]
    if not there:
        return frame
    if hasattr(frame, "drop_columns"):  # pyarrow
        return frame.drop_columns(there)
    return frame.drop(columns=there) if hasattr(frame, "iloc") else frame.drop(there)


def _find(table: Table, name: Any, role: str) -> int:
    """Return the position of a column."""
    matches = table.positions.get(name, [])
    if len(matches) > 1:
        raise ValueError(f"the frame has {len(matches)} columns {name!r}; rename all but one.")
    if not matches:
        one_query = (" or give ", given("qid", None), " if all rows are one query")
        raise ParameterError(
            f"the frame has no column {name!r} for {role}; {_nearest(table, name)}; set ",
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
        return "the nearest are " + ", ".join(repr(names[key]) for key in near)
    some = ", ".join(map(repr, table.names[:5])) or "none"
    return f"its columns are {some}" + (", …" if len(table.names) > 5 else "")


def _choose_features(table: Table, features: Any, used: dict[str, int]) -> list[int]:
    """Return the positions of the features."""
    if isinstance(features, str):
        raise ParameterError(given("features", features), " must be a list of column names.")
    features = _usual_features(table, used) if features is None else list(features)
    chosen = [_find(table, name, "features") for name in features]
    if not chosen:
        raise ParameterError(
            "the frame has no column left for the features; name some in ",
            Mention("features", ""),
            ".",
        )
    for role, at in used.items():
        if at in chosen:
            raise ValueError(f"column {table.names[at]!r} is the {role}; drop it from features.")
    if len(set(chosen)) < len(chosen):
        twice = next(name for name in features if features.count(name) > 1)
        raise ValueError(f"features has {twice!r} twice; name each column once.")
    return chosen


def _usual_features(table: Table, used: dict[str, int]) -> list[Any]:
    """Return the columns without another use; the index of a pandas frame is left out."""
    names = [name for at, name in enumerate(table.names) if at not in used.values()]
    index = [name for name in names if name in INDEX_COLUMNS]
    if index and table.first_row == 0:
        listed = ", ".join(map(repr, index))
        warn_caller(
            f"The column {listed} looks like the index of a pandas frame and is not used as a "
            "feature. Name the columns to use as features if it is one, or write the file without "
            "it (index=False)."
        )
    return [name for name in names if name not in INDEX_COLUMNS]


def _feature_matrix(table: Table, chosen: list[int], allow_nan: bool) -> NDArray[Any]:
    """Return documents × features, the frame's own memory where that is possible."""
    dtype = np.result_type(*(_feature_dtype(table, at) for at in chosen))
    null = {at: table.is_null(at) for at in chosen} if allow_nan else {}
    for at in chosen if not allow_nan else ():
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
            if gone is not None:
                values = _with_nan(values, gone[first : first + len(rows)])
            check_exact(values, partial(_place, table, at, first))
            rows[:, k] = values
    return X


def _with_nan(values: NDArray[Any], null: NDArray[Any]) -> NDArray[Any]:
    """Return numbers with NaN where they are null; without nulls, as they are."""
    if not null.any():
        return values
    filled = np.full(len(values), np.nan)
    filled[~null] = values[~null]
    return filled


def _feature_dtype(table: Table, at: int) -> Any:
    """Return the smaller of float32 and float64 that holds all values of a column's type."""
    dtype = table.dtype(at)
    if dtype is None:
        raise ParameterError(
            f"column {table.names[at]!r} holds {table.type_name(at)}, not numbers; convert it, or "
            "name the columns to use in ",
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


def _name_bad_feature(table: Table, chosen: list[int], X: NDArray[Any], allow_nan: bool) -> None:
    """Raise ValueError if X has a NaN that is not allowed, or an infinity."""
    found = find_bad(X, np.isinf if allow_nan else not_finite)
    if found is not None:
        row, k, value = found
        raise _bad_value(table, chosen[k], row, _non_finite(value)) from None


def _non_finite(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity (inf)"


def _numbers(table: Table, at: int) -> NDArray[Any]:
    """Return a column of finite numbers."""
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


def _optional_numbers(table: Table, at: int | None) -> NDArray[Any] | None:
    return None if at is None else _numbers(table, at)


def _ids(table: Table, at: int) -> NDArray[Any]:
    """Return a column of query ids of any type."""
    return _numbers(table, at) if table.dtype(at) is not None else _objects(table, at)


def _texts(table: Table, at: int) -> list[str]:
    return [str(text) for text in _objects(table, at)]


def _objects(table: Table, at: int) -> NDArray[Any]:
    _check_no_nulls(table, at)
    return table.rows(at, 0, table.n_rows)
