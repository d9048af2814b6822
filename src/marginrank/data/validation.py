"""Validation of X, labels, weights and other arrays passed by the user.

Error messages name the argument, the index of the bad entry, and what to do.
"""

import datetime
import os
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from marginrank import _core
from marginrank._utils.parameters import ParameterError, given
from marginrank._utils.types import Floats

DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)
EXACT_INTEGERS = 2**53  # largest integer up to which float64 represents all integers


def columns_of(X: Any) -> list[str] | None:
    """Return the column names of a data frame if all are strings, else None."""
    names = list(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


def check_features(X: Any, *, missing: bool = False) -> Any:
    """Return X, validated, in the layout of the C++ kernels, if possible without a copy.

    The layout is an array of float32 or float64 with contiguous rows, or CSR with sorted, unique
    indices. None, pandas.NA and masked entries become NaN if `missing`, else they raise ValueError.
    NaN itself is kept: the caller checks for it.
    """
    if sp.issparse(X):
        return _check_sparse(X)
    check_not_path(X)
    check_not_lazy(X, "X")
    _check_no_dates(X)
    # Estimator checks of scikit-learn expect a TypeError for a wrong type.
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
    if X.strides[1] == X.itemsize and X.dtype.isnative and X.flags.aligned:
        return X
    return _plain(X)


def check_not_path(X: Any) -> None:
    """Raise TypeError if X is a path instead of a matrix."""
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(
            f"X={os.fspath(X)!r} is a path; open it with RankingData.open (a store) or load_letor "
            "(text)."
        )


def check_not_lazy(values: Any, name: str) -> None:
    """Raise TypeError if `values` is a polars LazyFrame."""
    if hasattr(values, "collect_schema") and hasattr(values, "collect"):
        raise TypeError(
            f"{name} is a {type(values).__name__}, which holds no values yet; pass "
            f"{name}.collect()."
        )


def _check_no_dates(X: Any) -> None:
    """Raise ValueError if a column holds dates, which polars would silently convert to numbers."""
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)():
            raise ValueError(
                f"X must hold real numbers, but the column {name!r} holds dates or durations "
                f"({dtype}); convert it to numbers, such as days since a date."
            )


def from_device(values: Any) -> Any:
    """Return a CUDA tensor as a NumPy array, and any other value unchanged."""
    return values.cpu().numpy() if getattr(values, "is_cuda", False) else values


def real_array(
    values: Any, name: str, wrong_type: type[Exception] = ValueError, *, missing: bool = False
) -> NDArray[Any]:
    """Convert `values` to an array of real numbers, which may have dtype object.

    None, pandas.NA and masked entries become NaN if `missing`, else they raise ValueError. `name`
    is the argument in messages; `wrong_type` is raised instead of TypeError.
    """
    values = from_device(values)
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
    """Return an array with masked entries replaced by NaN; integers become an object array."""
    array = np.ma.getdata(values)
    array = array.astype(array.dtype if array.dtype.kind == "f" else object)
    array[np.ma.getmaskarray(values)] = np.nan
    return array


def _with_nan(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of an object array with NaN instead of None, pandas.NA or NaT."""
    gone = [
        not isinstance(value, (Real, str, bytes)) and is_missing(value)
        for value in array.ravel().tolist()
    ]
    return np.where(np.array(gone, dtype=bool).reshape(array.shape), np.nan, array)


def _check_objects(array: NDArray[Any], name: str, columns: Any) -> None:
    for at, value in enumerate(array.ravel().tolist()):
        if isinstance(value, (str, bytes)):
            where = _column_of(at, array.shape, columns)
            advice = ", for example with OrdinalEncoder of scikit-learn" if where else ""
            raise ValueError(f"{value!r} is a string{where}; convert strings to numbers{advice}")
        if array.ndim > 0 and not isinstance(value, Real) and is_missing(value):
            place = _place(name, np.unravel_index(at, array.shape))
            raise ValueError(f"{place} is missing ({value!r}); replace or impute such values")
        if isinstance(value, DATES):
            where = _column_of(at, array.shape, columns)
            raise ValueError(f"{value!s} is a date or a duration{where}; convert it to a number")


def _column_of(at: int, shape: tuple[int, ...], columns: Any) -> str:
    """Return the text ", in column …" for an error message, if the array is a matrix.

    `at` is the index of the entry in the flattened array.
    """
    if len(shape) != 2:
        return ""
    column = at % shape[1]
    return f", in column {column}" if columns is None else f", in the column {columns[column]!r}"


def is_missing(value: Any) -> bool:
    """Return True if a value is missing: None, NaN, NaT, pandas.NA, …."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def _place(name: str, index: Iterable[Any]) -> str:
    return f"{name}[{', '.join(str(int(i)) for i in index)}]"


def check_exact(entries: NDArray[Any], place: Callable[[int], str]) -> None:
    """Raise ValueError for integers that float64 cannot represent exactly, most likely ids.

    `place` returns the name of an entry by its flat index, such as "X[2, 5]".
    """
    if entries.dtype.kind == "O":
        entries = np.array([v if isinstance(v, Integral) else 0 for v in entries], dtype=object)
    elif entries.dtype.kind not in "iu" or entries.size == 0:
        return
    if max(-int(entries.min()), int(entries.max())) > EXACT_INTEGERS:
        large = (entries > EXACT_INTEGERS) | (entries < -EXACT_INTEGERS)
        at = int(large.argmax())
        raise ValueError(
            f"{place(at)} is {entries[at]}, an integer too large for float64; if it is an id, drop "
            "the column, else cast it."
        )


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    if array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative:
        return array
    # np.ascontiguousarray does not copy arrays at unaligned addresses, which the kernels reject.
    return np.require(array, array.dtype.newbyteorder("="), ["C_CONTIGUOUS", "ALIGNED"])


def _check_sparse(X: Any) -> Any:
    if X.dtype.kind not in "biuf":
        what = "Complex data not supported" if X.dtype.kind == "c" else f"it holds {X.dtype}"
        raise ValueError(f"X must hold real numbers: {what}.")
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension(s) and needs 2 (documents × features); reshape it."
        )
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
        # Clear the flags, which may be wrong: sum_duplicates does nothing if they are set.
        X.has_sorted_indices = X.has_canonical_format = False
        X.sum_duplicates()
    return _with_plain_parts(X)


def _is_canonical(X: Any) -> bool:
    """Return True if CSR indices are sorted and unique, even if the flags of X say otherwise."""
    unmarked = sp.csr_array(X.shape, dtype=X.dtype)
    unmarked.data, unmarked.indices, unmarked.indptr = X.data, X.indices, X.indptr
    return bool(unmarked.has_canonical_format)


def _with_plain_parts(X: Any) -> Any:
    names = ("data", "indices", "indptr")
    parts = {name: _plain(getattr(X, name)) for name in names}
    if all(parts[name] is getattr(X, name) for name in names):
        return X
    plain = sp.csr_array(X.shape, dtype=X.dtype)
    for name, part in parts.items():
        setattr(plain, name, part)
    plain.has_sorted_indices = plain.has_canonical_format = True
    return plain


def check_indices(X: Any, name: str) -> None:
    """Raise ValueError if a sparse matrix has indices out of range, on which scipy would crash."""
    try:
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        if hasattr(X, "coords"):
            for axis, coordinates in enumerate(X.coords):
                if (
                    coordinates.size
                    and not 0 <= coordinates.min() <= coordinates.max() < X.shape[axis]
                ):
                    raise ValueError(f"a coordinate of axis {axis} is out of range")
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix: {error}; rebuild it.") from error


def check_not_empty(shape: tuple[int, ...]) -> None:
    """Raise ValueError if X has no rows or no columns."""
    for axis, name in enumerate(("sample", "feature")):
        if shape[axis] == 0:
            raise ValueError(f"X has 0 {name}(s) (shape={shape}) while a minimum of 1 is required.")


def as_matrix(X: Any) -> _core.Matrix:
    """Wrap validated X, dense or CSR, in the matrix class of the C++ kernels."""
    if sp.issparse(X):
        return _core.Matrix.csr(X.data, X.indices, X.indptr, X.shape[1])
    return _core.Matrix.dense(X)


def check_finite(X: Any, matrix: _core.Matrix, threads: int, *, allow_nan: bool = False) -> bool:
    """Return True if X has NaN; raise ValueError for infinity, and for NaN unless `allow_nan`."""
    # `matrix.magnitudes`, the largest magnitude of each feature, is cached and used again by the
    # fit. If features outnumber entries, the cache could be much larger than X.
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
    """Return a mask of the values that are NaN or infinite."""
    return ~np.isfinite(values)


def find_bad(X: Any, is_bad: Callable[[NDArray[Any]], Any]) -> tuple[int, int, float] | None:
    """Return (row, column, value) of the first entry of X for which `is_bad` is True, or None."""
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
    return int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])


def check_vector(values: ArrayLike, name: str, n: int, meaning: str) -> Floats:
    """Convert `values` to an array of n float64; raise ValueError if one is not finite.

    Error messages contain `name`, the argument, and `meaning`, such as "one score per document".
    """
    array = _one_dimensional(real_array(values, name), name, n, meaning)
    array = array.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        what = "NaN" if np.isnan(array[bad[0]]) else "infinity (inf)"
        raise ValueError(f"{name}[{bad[0]}] is {what}; drop or replace it.")
    return _plain(array)


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
    """Convert weights to an array of n float64; raise ValueError if one is negative or not finite.

    Error messages contain `name`, the argument, and `meaning`, such as "one weight per query".
    """
    weights = check_vector(values, name, n, meaning)
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        raise ValueError(
            f"{name}[{negative[0]}] is {weights[negative[0]]:g}; it must be zero or more."
        )
    return weights


def check_exact_labels(y: Any, n: int) -> NDArray[Any]:
    """Validate the labels of n documents; return float64, or integers if float64 would round them.

    The integers are int64 or uint64, or an object array if these types are too small.
    """
    if y is None:
        raise ValueError("y is None: data requires y to be passed, but the target y is None.")
    labels = real_array(y, "y")
    is_list = isinstance(y, (list, tuple)) and labels.dtype.kind == "f" and labels.ndim == 1
    if is_list and all(isinstance(value, Integral) for value in y):  # NumPy made floats of them
        labels = np.array([*y, None], dtype=object)[:-1]
    labels = _one_dimensional(labels, "y", n, "one label per document")
    kind = labels.dtype.kind
    integers = kind in "iu" or (kind == "O" and all(isinstance(v, Integral) for v in labels))
    if not integers or not labels.size:
        return check_vector(labels, "y", n, "one label per document")
    least, most = int(labels.min()), int(labels.max())
    if max(-least, most) <= EXACT_INTEGERS:
        return check_vector(labels, "y", n, "one label per document")
    for dtype in (np.int64, np.uint64):
        if np.iinfo(dtype).min <= least and most <= np.iinfo(dtype).max:
            return np.ascontiguousarray(labels.astype(dtype))
    return labels


def in_order(labels: NDArray[Any]) -> Floats:
    """Return validated labels as float64; integers too large for float64 become their ranks.

    Ranks are sufficient, because only the order of the labels matters for pairs.
    """
    if labels.dtype == np.float64:
        return labels
    return np.unique(labels, return_inverse=True)[1].astype(np.float64)


def check_float_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the parameter `dtype` as float32 or float64; raise ParameterError for other types."""
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = np.dtype(object)
    if result not in (np.float32, np.float64):
        raise ParameterError(given("dtype", dtype), " must be float32 or float64.")
    return result


def check_label_width(labels: NDArray[Any], path: str) -> None:
    """Raise ValueError if labels are integers of more than 64 bits, which no file format holds."""
    if labels.dtype.kind == "O":
        raise ValueError(f"{path}: labels do not fit into 64 bits; write their ranks instead.")


def check_labels(y: ArrayLike, n: int) -> Floats:
    """Return the validated labels of n documents as float64.

    Integers too large for float64 become their ranks.
    """
    return in_order(check_exact_labels(y, n))


def check_texts(values: Sequence[str] | None, name: str, n: int, meaning: str) -> list[str] | None:
    """Convert `values` to a list of n strings; None stays None.

    Error messages contain `name`, the argument, and `meaning`, such as "one comment per document".
    """
    if values is None:
        return None
    if isinstance(values, str) or not hasattr(values, "__getitem__"):
        raise ValueError(f"{name}={values!r} must be a list of strings, {meaning}.")
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries and needs {n}, {meaning}.")
    if set(map(type, values)) == {str}:
        return list(values)
    for k, value in enumerate(values):
        if not isinstance(value, str):
            raise ValueError(f"{name}[{k}] is {value!r}, not a string; convert it with str.")
    return [str(value) for value in values]  # converts numpy.str_ to str
