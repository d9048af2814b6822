"""Data frames of pandas, polars and pyarrow, none of which is imported to tell them apart."""

import difflib
import os
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._base.atomic_files import atomic_write
from marginrank._base.memory import require_memory
from marginrank._base.optional import require
from marginrank._base.parameters import Mention, ParameterError, given
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import EXACT_INTEGERS, refuse_wide_labels

Path = str | os.PathLike[str]

BLOCK = 1 << 20  # entries copied at a time: columns become rows while they are in cache
ROW_GROUP = 1 << 24  # entries of X written at a time
COLUMN_BYTES = 1000  # that a column takes beside its values, at least
DELIMITERS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".parquet", *DELIMITERS)
COMPRESSED = (".gz", ".bz2", ".zst")


class Table:
    """The columns of a frame by position; the subclasses know how each library spells it."""

    def __init__(self, names: Sequence[Any], columns: Sequence[Any], n_rows: int) -> None:
        self.names = list(names)
        self.columns = columns
        self.n_rows = n_rows
        self.positions: dict[Any, list[int]] = {}
        for at, name in enumerate(self.names):
            self.positions.setdefault(name, []).append(at)

    def rows(self, at: int, first: int, last: int) -> NDArray[Any]:
        """Return some rows of a column, as they are."""
        raise NotImplementedError

    def is_null(self, at: int) -> NDArray[np.bool_] | None:
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

    def is_null(self, at: int) -> NDArray[np.bool_] | None:  # noqa: D102
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

    def is_null(self, at: int) -> NDArray[np.bool_] | None:  # noqa: D102
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

    def is_null(self, at: int) -> NDArray[np.bool_] | None:  # noqa: D102
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


def from_frame(
    frame: Any,
    *,
    label: Any = "label",
    qid: Any = "qid",
    features: Sequence[Any] | None = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    comments: Any = None,
    n_jobs: int | None = None,
) -> RankingData:
    """Take the columns of a data frame; see :meth:`marginrank.RankingData.from_frame`."""
    table = as_table(frame)
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
    X = _feature_matrix(table, chosen)
    try:
        return RankingData(
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
        _name_bad_feature(table, chosen, X)
        raise


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
    if features is not None:
        features = list(features)
    else:
        features = [name for at, name in enumerate(table.names) if at not in used.values()]
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


def _feature_matrix(table: Table, chosen: list[int]) -> NDArray[Any]:
    """Return documents × features, the frame's own memory where that is possible."""
    dtype = np.result_type(*(_feature_dtype(table, at) for at in chosen))
    for at in chosen:
        _refuse_nulls(table, at)
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
            _refuse_inexact(table, at, first, values)
            rows[:, k] = values
    return X


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


def _refuse_nulls(table: Table, at: int) -> None:
    null = table.is_null(at)
    if null is not None and null.any():
        raise _bad_value(table, at, int(null.argmax()), "null")


def _refuse_inexact(table: Table, at: int, first: int, values: NDArray[Any]) -> None:
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return
    if values.max() > EXACT_INTEGERS or values.min() < -EXACT_INTEGERS:
        large = (values > EXACT_INTEGERS) | (values < -EXACT_INTEGERS)
        row = first + int(large.argmax())
        raise ValueError(
            f"column {table.names[at]!r}, row {row} is {values[row - first]}, an integer too large "
            "for a feature, which is a float64; if it is an id, drop the column, else cast it."
        )


def _bad_value(table: Table, at: int, row: int, what: str) -> ValueError:
    return ValueError(
        f"column {table.names[at]!r}, row {row} is {what}; drop the row or replace the value."
    )


def _name_bad_feature(table: Table, chosen: list[int], X: NDArray[Any]) -> None:
    """Raise if X has a NaN or an infinity."""
    step = max(BLOCK // X.shape[1], 1)
    for first in range(0, X.shape[0], step):
        bad = np.argwhere(~np.isfinite(X[first : first + step]))
        if bad.size:
            row, k = first + int(bad[0, 0]), int(bad[0, 1])
            raise _bad_value(table, chosen[k], row, _non_finite(X[row, k])) from None


def _non_finite(value: float) -> str:
    return "NaN" if np.isnan(value) else "infinity (inf)"


def _numbers(table: Table, at: int) -> NDArray[Any]:
    """Return a column of finite numbers."""
    _refuse_nulls(table, at)
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
    _refuse_nulls(table, at)
    return table.rows(at, 0, table.n_rows)


def read_frame(path: Path, *, texts: Sequence[str] = ()) -> Any:
    """Read a .parquet, .csv or .tsv file, the latter two also compressed (.gz, .bz2, .zst).

    Needs pyarrow: ``pip install 'marginrank[frames]'``.

    Parameters
    ----------
    path : str or path
        The file.
    texts : sequence of str
        Columns of .csv and .tsv to read as text even if all they hold is numbers.

    Returns
    -------
    pyarrow.Table
        For :meth:`marginrank.RankingData.from_frame`.
    """
    path = os.fspath(path)
    ending = _ending(path)
    with open(path, "rb"):
        pass  # pyarrow's own message for a missing file is long
    arrow = require("pyarrow", "frames")
    try:
        if ending == ".parquet":
            return require("pyarrow.parquet", "frames").read_table(path)
        csv = require("pyarrow.csv", "frames")
        parse = csv.ParseOptions(delimiter=DELIMITERS[ending])
        convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, arrow.string()))
        return csv.read_csv(path, parse_options=parse, convert_options=convert)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: {error}") from error


def _ending(path: str, compressed: Sequence[str] = COMPRESSED) -> str:
    stem, ending = os.path.splitext(path.lower())
    if ending in compressed:
        ending = os.path.splitext(stem)[1]
        ending = "" if ending == ".parquet" else ending
    if ending not in ENDINGS:
        raise ValueError(f"{path}: the name of a table must end in {', '.join(ENDINGS)}.")
    return ending


def write_frame(
    data: RankingData,
    path: Path,
    *,
    label: str = "label",
    qid: str | None = "qid",
    comments: str | None = None,
) -> None:
    """Write labels, query ids, weights and features as a .parquet, .csv or .tsv file.

    Needs pyarrow: ``pip install 'marginrank[frames]'``. The file appears only when it is complete.
    Features without names are called f1, f2, … and weights, where there are any, sample_weight and
    query_weight, the latter repeated for each document. Parquet keeps every number and type; the
    other two have no types, so that float32 is read back as float64.

    Parameters
    ----------
    data : RankingData
        What to write.
    path : str or path
        The file.
    label, qid, comments : str
        Names of the columns; None leaves one out, and so do data without comments.
    """
    path = os.fspath(path)
    ending = _ending(path, compressed=())
    refuse_wide_labels(data.y, path)
    require_memory(
        COLUMN_BYTES * data.n_features,
        f"{path}: a table of {data.n_features} columns",
        "write a store or LETOR text",
    )
    names = data.feature_names or [f"f{k + 1}" for k in range(data.n_features)]
    comments = None if data.comments is None else comments
    _refuse_twice([label, qid, comments, *_weights(data), *names])
    tables = _tables(data, names, label=label, qid=qid, comments=comments)
    first = next(tables)  # raises before there is a file
    with atomic_write(path) as file, _writer(ending, file, first.schema, names) as writer:
        for table in chain([first], tables):
            writer.write(table)


def _refuse_twice(names: list[str | None]) -> None:
    seen = set()
    for name in names:
        if name is not None and name in seen:
            raise ValueError(f"two columns would be called {name!r}; rename one of them.")
        seen.add(name)


def _weights(data: RankingData) -> dict[str, NDArray[np.float64]]:
    """Return the columns of the weights that there are, in the order of the rows."""
    columns = {}
    if data.sample_weight is not None:
        columns["sample_weight"] = np.empty(data.n_documents)
        rows = slice(None) if data.queries.rows is None else data.queries.rows
        columns["sample_weight"][rows] = data.sample_weight
    if data.query_weight is not None:
        columns["query_weight"] = data.query_weight[data.qid]
    return columns


def _writer(ending: str, file: IO[bytes], schema: Any, features: list[str]) -> Any:
    if ending == ".parquet":
        # A dictionary of a feature's values is slow to make and longer than the values.
        repeated = [name for name in schema.names if name not in set(features)]
        parquet = require("pyarrow.parquet", "frames")
        return parquet.ParquetWriter(file, schema, use_dictionary=repeated)
    csv = require("pyarrow.csv", "frames")
    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(delimiter=DELIMITERS[ending]))


def _tables(
    data: RankingData, names: list[str], *, label: str, qid: str | None, comments: str | None
) -> Iterator[Any]:
    """Yield the rows as pyarrow Tables of bounded size."""
    arrow = require("pyarrow", "frames")
    try:
        ids = arrow.array(data.query_ids)
    except arrow.ArrowException as error:
        raise ValueError(f"the query ids are not all of one type: {error}") from error
    number_of_query = data.qid
    weights = _weights(data)
    step = max(ROW_GROUP // data.n_features, 1)
    for first in range(0, data.n_documents, step):
        rows = slice(first, first + step)
        columns = {label: data.y[rows]}
        if qid is not None:
            columns[qid] = ids.take(arrow.array(number_of_query[rows]))
        if comments is not None and data.comments is not None:
            columns[comments] = arrow.array(data.comments[rows], arrow.string())
        columns |= {name: weight[rows] for name, weight in weights.items()}
        X = data.X[rows].toarray() if sp.issparse(data.X) else data.X[rows]
        columns |= zip(names, np.ascontiguousarray(X.T), strict=True)
        yield arrow.table(columns)
