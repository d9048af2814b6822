"""Checks of user input: a failure is one sentence that names the argument, the place, the fix."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from marginrank import _core

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def check_features(X: Any) -> Any:
    """Return X as something the kernels read, without a copy where it already is.

    Dense: float32 or float64 with contiguous rows. Sparse: CSR with sorted, unique indices.
    """
    if sp.issparse(X):
        return _check_sparse(X)
    try:
        X = np.asarray(X)
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported, pass real numbers")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"X must hold real numbers: {error}.") from error
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimension(s) and needs 2 (documents × features). Reshape your data: "
            "X.reshape(-1, 1) if it has a single feature, X.reshape(1, -1) if a single document."
        )
    _check_not_empty(X)
    if X.strides[1] != X.itemsize or not X.dtype.isnative or not X.flags.aligned:
        X = np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))
    return X


def _check_sparse(X: Any) -> Any:
    if np.iscomplexobj(X):
        raise ValueError("X must hold real numbers: Complex data not supported.")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s) and needs 2 (documents × features).")
    check_indices(X, "X")
    original, X = X, X.tocsr()
    _check_not_empty(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if X.indices.dtype != X.indptr.dtype or X.indices.dtype not in (np.int32, np.int64):
        X = X.copy() if X is original else X
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    if not X.has_canonical_format:
        X = X.copy() if X is original else X
        X.sum_duplicates()
    return X


def check_indices(X: Any, name: str) -> None:
    """Refuse index arrays that point outside the matrix, on which scipy itself would crash."""
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


def _check_not_empty(X: Any) -> None:
    for axis, name in enumerate(("sample", "feature")):
        if X.shape[axis] == 0:
            raise ValueError(
                f"X has 0 {name}(s) (shape={X.shape}) while a minimum of 1 is required."
            )


def as_matrix(X: Any) -> _core.Matrix:
    """Wrap checked features for the kernels."""
    if sp.issparse(X):
        return _core.Matrix.csr(X.data, X.indices, X.indptr, X.shape[1])
    return _core.Matrix.dense(X)


def check_finite(X: Any, matrix: _core.Matrix, threads: int) -> None:
    """Raise if X has a NaN or an infinity; one sweep if it has not."""
    if np.isfinite(matrix.magnitudes(threads)).all():
        return
    row, column, value = _find_non_finite(X)
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    raise ValueError(f"X[{row}, {column}] is {what}; replace or impute such values before the fit.")


def _find_non_finite(X: Any) -> tuple[int, int, float]:
    """Return row, column and value of the first entry that is not finite."""
    if sp.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data[: X.indptr[-1]]))
        row = int(np.searchsorted(X.indptr, bad[0], side="right")) - 1
        return row, int(X.indices[bad[0]]), float(X.data[bad[0]])
    step = max(1, 2**20 // X.shape[1])
    for first in range(0, X.shape[0], step):
        places = np.argwhere(~np.isfinite(X[first : first + step]))
        if places.size:
            row, column = first + int(places[0, 0]), int(places[0, 1])
            return row, column, float(X[row, column])
    raise AssertionError("X changed while it was read")


def check_vector(values: ArrayLike, name: str, n: int, meaning: str) -> Floats:
    """Return `values` as n finite float64."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "OUS":
            for value in array.ravel():
                if isinstance(value, (str, bytes)):
                    raise ValueError(f"{value!r} is a string; convert the strings to numbers")
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers ({meaning}): {error}.") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape} and must be one-dimensional.")
    if array.shape[0] != n:
        raise ValueError(
            f"{name} has {array.shape[0]} entries and needs {n}, {meaning}; make the lengths agree."
        )
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        what = "NaN" if np.isnan(array[bad[0]]) else "infinity (inf)"
        raise ValueError(f"{name}[{bad[0]}] is {what}; drop or replace it, {meaning}.")
    return np.ascontiguousarray(array)


def check_weights(values: ArrayLike, name: str, n: int, meaning: str) -> Floats:
    """Return `values` as n finite, non-negative float64."""
    weights = check_vector(values, name, n, meaning)
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        raise ValueError(
            f"{name}[{negative[0]}] is {weights[negative[0]]:g}; weights must be zero or more."
        )
    return weights


def _has_inexact_integers(values: NDArray[Any]) -> bool:
    """Whether these are integers that float64 cannot tell apart."""
    kind = values.dtype.kind
    integers = kind in "iu" or (kind == "O" and all(isinstance(v, Integral) for v in values))
    return bool(integers and values.size and max(-int(values.min()), int(values.max())) > 2**53)


def check_labels(y: ArrayLike, n: int) -> Floats:
    """Return labels as n finite float64; large integers are replaced by their ranks, in order."""
    if y is None:
        raise ValueError("y is None: RankSVM requires y to be passed, but the target y is None.")
    labels = np.asarray(y)
    if labels.dtype.kind == "c":
        raise ValueError("y holds complex numbers; Complex data not supported: pass real labels.")
    if labels.ndim == 1 and _has_inexact_integers(labels):
        labels = np.unique(labels, return_inverse=True)[1]
    return check_vector(labels, "y", n, "one label a document")
