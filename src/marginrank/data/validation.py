"""Checks of user input: a failure is one sentence that names the argument, the place, the fix."""

import datetime
import os
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from marginrank import _core
from marginrank._utils.types import Floats

DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)
EXACT_INTEGERS = 2**53  # larger integers do not all have a float64


def check_features(X: Any, *, missing: bool = False) -> Any:
    """Return X as something the kernels read, without a copy where it already is.

    Dense: float32 or float64 with contiguous rows. Sparse: CSR with sorted, unique indices. NaN is
    for the caller to judge. With `missing`, so is what else stands for a missing value, such as
    None, pandas.NA or a masked entry: it becomes NaN. Without, it is refused.
    """
    if sp.issparse(X):
        return _check_sparse(X)
    check_not_path(X)
    check_not_lazy(X, "X")
    _check_no_dates(X)
    # The type of errors is what scikit-learn's checks want.
    X = real_array(X, "X", wrong_type=TypeError, missing=missing)
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension(s) and needs 2 (documents × features). Reshape your data: "
            "X.reshape(-1, 1) if it has a single feature, X.reshape(1, -1) if a single document."
        )
    check_not_empty(X.shape)
    if X.dtype not in (np.float32, np.float64):
        check_exact(X.ravel(), lambda at: _place("X", divmod(at, X.shape[1])))
        X = X.astype(np.float64)
    if X.strides[1] != X.itemsize or not _is_plain(X):
        X = _plain(X)
    return X


def check_not_path(X: Any) -> None:
    """Raise TypeError if X is the name of a file."""
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(
            f"X={os.fspath(X)!r} is a path; give its content: RankingData.open of a store, or "
            "load_letor of text."
        )


def check_not_lazy(values: Any, name: str) -> None:
    """Raise TypeError if these are a query of polars that was not run."""
    if hasattr(values, "collect_schema") and hasattr(values, "collect"):
        raise TypeError(
            f"{name} is a {type(values).__name__}, which holds no values yet; pass "
            f"{name}.collect()."
        )


def _check_no_dates(X: Any) -> None:
    """Raise ValueError if a column of a frame holds dates, of which polars makes numbers."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)():
            raise ValueError(
                f"X must hold real numbers, but the column {name!r} holds dates or durations "
                f"({dtype}); convert it to numbers, such as days since a date."
            )


def real_array(
    values: Any, name: str, wrong_type: type[Exception] = ValueError, *, missing: bool = False
) -> NDArray[Any]:
    """Return an array of real numbers of any type, perhaps Python's.

    A value that is missing and no NaN is refused, or becomes one with `missing`.
    """
    if missing and np.ma.is_masked(values):
        values = _unmasked(values)
    try:
        array = np.asarray(values)
        kind = array.dtype.kind
        if kind == "c":
            raise ValueError("Complex data not supported, pass real numbers")
        if kind in "mM":
            raise ValueError(f"it holds {array.dtype}; convert dates and durations to numbers")
        if kind in "OUSV":
            array = _with_nan(array) if missing and kind == "O" else array
            _check_objects(array, name, getattr(values, "columns", None))
            array.astype(np.float64)
    except TypeError as error:
        raise wrong_type(f"{name} must hold real numbers: {error}.") from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold real numbers: {error}.") from error
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        at = np.argwhere(np.ma.getmaskarray(values))[0]
        raise ValueError(f"{_place(name, at)} is masked; drop it or fill it in.")
    return array


def _unmasked(values: Any) -> NDArray[Any]:
    """Return an array with NaN in the place of masked entries; integers stay what they are."""
    array = np.ma.getdata(values)
    array = array.astype(array.dtype if array.dtype.kind == "f" else object)
    array[np.ma.getmaskarray(values)] = np.nan
    return array


def _with_nan(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of objects with NaN in the place of None, pandas.NA and the like."""
    gone = [
        not isinstance(value, (Real, str, bytes)) and is_missing(value)
        for value in array.ravel().tolist()
    ]
    return np.where(np.array(gone, dtype=bool).reshape(array.shape), np.nan, array)


def _check_objects(array: NDArray[Any], name: str, columns: Any) -> None:
    for at, value in enumerate(array.ravel().tolist()):
        if isinstance(value, (str, bytes)):
            raise ValueError(_string_found(value, at, array.shape, columns))
        if array.ndim > 0 and not isinstance(value, Real) and is_missing(value):
            place = _place(name, np.unravel_index(at, array.shape))
            raise ValueError(f"{place} is missing ({value!r}); replace or impute such values")
        if isinstance(value, DATES):
            where = _column_of(at, array.shape, columns)
            raise ValueError(f"{value!s} is a date or a duration{where}; convert it to a number")


def _string_found(value: str | bytes, at: int, shape: tuple[int, ...], columns: Any) -> str:
    """Return what to do about a string, and the column of a matrix or data frame it is in."""
    if len(shape) != 2:
        return f"{value!r} is a string; convert the strings to numbers"
    return (
        f"{value!r} is a string{_column_of(at, shape, columns)}; convert the strings to numbers, "
        "and number names of categories, as OrdinalEncoder of scikit-learn does"
    )


def _column_of(at: int, shape: tuple[int, ...], columns: Any) -> str:
    """Return the column of an entry of a matrix or data frame as part of a message."""
    if len(shape) != 2:
        return ""
    column = at % shape[1]
    return f", in column {column}" if columns is None else f", in the column {columns[column]!r}"


def is_missing(value: Any) -> bool:
    """Whether this is None, NaN, NaT or another value that does not equal itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither
        return True


def _place(name: str, index: Iterable[Any]) -> str:
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def check_exact(entries: NDArray[Any], place: Callable[[int], str]) -> None:
    """Raise ValueError for integers that float64 would round, which mostly are ids."""
    if entries.dtype.kind == "O":
        entries = np.array([v if isinstance(v, Integral) else 0 for v in entries], dtype=object)
    elif entries.dtype.kind not in "iu" or entries.size == 0:
        return
    if max(-int(entries.min()), int(entries.max())) > EXACT_INTEGERS:
        large = (entries > EXACT_INTEGERS) | (entries < -EXACT_INTEGERS)
        at = int(large.argmax())
        raise ValueError(
            f"{place(at)} is {entries[at]}, an integer too large for a feature, which is a "
            "float64; if it is an id, drop the column, else cast it."
        )


def _is_plain(array: NDArray[Any]) -> bool:
    """Whether the kernels can read the numbers where they are."""
    return bool(array.dtype.isnative and array.flags.aligned)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers where the kernels can read them; ascontiguousarray keeps odd addresses."""
    return np.require(array, array.dtype.newbyteorder("="), ["C_CONTIGUOUS", "ALIGNED"])


def _check_sparse(X: Any) -> Any:
    if X.dtype.kind not in "biuf":
        what = "Complex data not supported" if X.dtype.kind == "c" else f"it holds {X.dtype}"
        raise ValueError(f"X must hold real numbers: {what}.")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s) and needs 2 (documents × features).")
    check_indices(X, "X")
    original, X = X, X.tocsr()
    check_not_empty(X.shape)
    if X.dtype not in (np.float32, np.float64):
        check_exact(X.data[: X.indptr[-1]], lambda at: _place("X", _index_of_entry(X, at)))
        X = X.astype(np.float64)
    if X.indices.dtype != X.indptr.dtype or X.indices.dtype not in (np.int32, np.int64):
        X = X.copy() if X is original else X
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    if not _is_canonical(X):
        X = X.copy() if X is original else X
        X.has_sorted_indices = X.has_canonical_format = False  # whatever its flags say
        X.sum_duplicates()
    return _with_plain_parts(X)


def _is_canonical(X: Any) -> bool:
    """Whether the indices of a CSR matrix are sorted and unique; its flags may be wrong."""
    unmarked = sp.csr_array(X.shape, dtype=X.dtype)
    unmarked.data, unmarked.indices, unmarked.indptr = X.data, X.indices, X.indptr
    return bool(unmarked.has_canonical_format)


def _with_plain_parts(X: Any) -> Any:
    """Return a CSR matrix whose three arrays the kernels can read."""
    names = ("data", "indices", "indptr")
    parts = {name: getattr(X, name) for name in names}
    if all(part.flags.c_contiguous and _is_plain(part) for part in parts.values()):
        return X
    plain = sp.csr_array(X.shape, dtype=X.dtype)
    for name, part in parts.items():
        setattr(plain, name, _plain(part))
    plain.has_sorted_indices = plain.has_canonical_format = True
    return plain


def check_indices(X: Any, name: str) -> None:
    """Raise ValueError if indices are outside the matrix, on which scipy itself would crash."""
    try:
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        if hasattr(X, "coords"):
            for axis, coordinates in enumerate(X.coords):
                if (
                    coordinates.size
                    and not 0 <= coordinates.min() <= coordinates.max() < X.shape[axis]
                ):
                    raise ValueError(f"a coordinate of axis {axis} lies outside the matrix")
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}; rebuild it.") from error


def check_not_empty(shape: tuple[int, ...]) -> None:
    """Raise ValueError if features have no rows or columns."""
    for axis, name in enumerate(("sample", "feature")):
        if shape[axis] == 0:
            raise ValueError(f"X has 0 {name}(s) (shape={shape}) while a minimum of 1 is required.")


def as_matrix(X: Any) -> _core.Matrix:
    """Wrap checked features for the kernels."""
    if sp.issparse(X):
        return _core.Matrix.csr(X.data, X.indices, X.indptr, X.shape[1])
    return _core.Matrix.dense(X)


def check_finite(X: Any, matrix: _core.Matrix, threads: int, *, allow_nan: bool = False) -> bool:
    """Raise if X has a NaN or an infinity; one sweep if it has not.

    With `allow_nan`, only an infinity is an error. Return True if X has a NaN.
    """
    # The magnitudes of the features are kept for the fit. Where there are more features than
    # entries, they could take any amount of memory.
    wide = sp.issparse(X) and matrix.n_columns > matrix.n_entries
    if np.isfinite(X.data[: X.indptr[-1]] if wide else matrix.magnitudes(threads)).all():
        return False
    found = find_bad(X, np.isinf if allow_nan else not_finite)
    if found is None:
        return True
    row, column, value = found
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    raise ValueError(f"X[{row}, {column}] is {what}; replace or impute such values before the fit.")


def not_finite(values: NDArray[Any]) -> Any:
    """Return where values are NaN or infinite."""
    return ~np.isfinite(values)


def find_bad(X: Any, is_bad: Callable[[NDArray[Any]], Any]) -> tuple[int, int, float] | None:
    """Return row, column and value of the first bad entry, or None."""
    if sp.issparse(X):
        bad = np.flatnonzero(is_bad(X.data[: X.indptr[-1]]))
        return (*_index_of_entry(X, int(bad[0])), float(X.data[bad[0]])) if bad.size else None
    step = max(1, 2**20 // X.shape[1])
    for first in range(0, X.shape[0], step):
        places = np.argwhere(is_bad(X[first : first + step]))
        if places.size:
            row, column = first + int(places[0, 0]), int(places[0, 1])
            return row, column, float(X[row, column])
    return None


def _index_of_entry(X: Any, at: int) -> tuple[int, int]:
    """Return row and column of an entry of a CSR matrix."""
    return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])


def check_vector(values: ArrayLike, name: str, n: int, meaning: str) -> Floats:
    """Return `values` as n finite float64."""
    array = _one_dimensional(real_array(values, name), name, n, meaning)
    array = array.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        what = "NaN" if np.isnan(array[bad[0]]) else "infinity (inf)"
        raise ValueError(f"{name}[{bad[0]}] is {what}; drop or replace it, {meaning}.")
    return array if array.flags.c_contiguous and _is_plain(array) else _plain(array)


def _one_dimensional(array: NDArray[Any], name: str, n: int, meaning: str) -> NDArray[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape} and must be one-dimensional.")
    if array.shape[0] != n:
        raise ValueError(
            f"{name} has {array.shape[0]} entries and needs {n}, {meaning}; make the lengths agree."
        )
    return array


def check_weights(values: ArrayLike, name: str, n: int, meaning: str) -> Floats:
    """Return `values` as n finite, non-negative float64."""
    weights = check_vector(values, name, n, meaning)
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        raise ValueError(
            f"{name}[{negative[0]}] is {weights[negative[0]]:g}; weights must be zero or more."
        )
    return weights


def check_exact_labels(y: Any, n: int) -> NDArray[Any]:
    """Return n finite labels: float64, or integers where float64 cannot tell them apart."""
    if y is None:
        raise ValueError("y is None: data requires y to be passed, but the target y is None.")
    labels = real_array(y, "y")
    if isinstance(y, (list, tuple)) and labels.dtype.kind == "f":
        labels = _unrounded(y, labels)
    labels = _one_dimensional(labels, "y", n, "one label a document")
    if _has_inexact_integers(labels):
        return _as_integers(labels)
    return check_vector(labels, "y", n, "one label a document")


def _unrounded(values: Sequence[Any], rounded: NDArray[Any]) -> NDArray[Any]:
    """Return a list of integers of which NumPy has made floats, as no type of its own holds all."""
    if not (rounded.ndim == 1 and all(isinstance(value, Integral) for value in values)):
        return rounded
    return np.array([*values, None], dtype=object)[:-1]


def _has_inexact_integers(values: NDArray[Any]) -> bool:
    """Whether these are integers that float64 cannot tell apart."""
    kind = values.dtype.kind
    integers = kind in "iu" or (kind == "O" and all(isinstance(v, Integral) for v in values))
    return bool(
        integers and values.size and max(-int(values.min()), int(values.max())) > EXACT_INTEGERS
    )


def _as_integers(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers of 64 bits, or Python's where these do not hold all."""
    for dtype in (np.int64, np.uint64):
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        if least <= int(values.min()) and int(values.max()) <= most:
            return np.ascontiguousarray(values.astype(dtype))
    return values


def in_order(labels: NDArray[Any]) -> Floats:
    """Return checked labels as float64 of the same order."""
    if labels.dtype == np.float64:
        return labels
    return np.unique(labels, return_inverse=True)[1].astype(np.float64)


def check_label_width(labels: NDArray[Any], path: str) -> None:
    """Raise ValueError if labels are integers that no type of NumPy holds."""
    if labels.dtype.kind == "O":
        raise ValueError(f"{path}: labels beyond 64 bits cannot be written; use their ranks.")


def check_labels(y: ArrayLike, n: int) -> Floats:
    """Return labels as n finite float64; large integers are replaced by their ranks, in order."""
    return in_order(check_exact_labels(y, n))
