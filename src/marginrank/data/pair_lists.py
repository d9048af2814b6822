"""Explicit lists of preference pairs: a preferred document and another document."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.types import Floats, Integers
from marginrank.data.validation import check_indices, check_weights


@dataclass(frozen=True)
class PairList:
    """Preference pairs with weights and margins; a pair is two row numbers, the preferred first."""

    pairs: Integers  # n_pairs × 2 row numbers, the preferred document first
    weight: Floats | None = None  # weight of each pair; None if all are 1
    source: str | None = None  # the file that the pairs were read from, one pair per line
    margin: Floats | None = None  # margin of each pair; None for the default margin of the loss

    def __len__(self) -> int:
        return len(self.pairs)

    def place(self, k: int) -> str:
        """Return the location of pair k for error messages: "pairs[k]", or file and line."""
        return f"pairs[{k}]" if self.source is None else f"{self.source}:{k + 1}"


def check_pairs(
    pairs: Any,
    pair_weight: ArrayLike | None,
    n_documents: int,
    pair_margin: ArrayLike | None = None,
) -> PairList:
    """Validate preference pairs, given as an array, sparse matrix or PairList; return a PairList.

    A C-contiguous int64 array is not copied.
    """
    source = None
    if isinstance(pairs, PairList):
        pair_weight = _given_once("pair_weight", pair_weight, pairs.weight)
        pair_margin = _given_once("pair_margin", pair_margin, pairs.margin)
        pairs, source = pairs.pairs, pairs.source
    table = _from_pair_matrix(pairs, n_documents) if sp.issparse(pairs) else _from_array(pairs)
    _check_rows(PairList(table, source=source), n_documents)
    rows = np.ascontiguousarray(table, dtype=np.int64)
    weight, margin = (
        None if values is None else check_weights(values, name, len(rows), f"one {what} per pair")
        for values, name, what in (
            (pair_weight, "pair_weight", "weight"),
            (pair_margin, "pair_margin", "margin"),
        )
    )
    return PairList(rows, weight, source, margin)


def _given_once(name: str, value: ArrayLike | None, of_list: Floats | None) -> ArrayLike | None:
    if value is not None and of_list is not None:
        raise ValueError(f"{name} was given, but pairs already contains it; drop {name}.")
    return of_list if value is None else value


def _from_array(pairs: Any) -> NDArray[Any]:
    try:
        table = np.asarray(pairs)
    except ValueError as error:
        raise ValueError(f"pairs must have shape (n_pairs, 2): {error}.") from error
    if table.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if table.ndim != 2 or table.shape[1] != 2:
        hint = "; transpose it" if table.ndim == 2 and table.shape[0] == 2 else ""
        raise ValueError(
            f"pairs has shape {table.shape} instead of (n_pairs, 2), the preferred row first{hint}."
        )
    if table.dtype.kind not in "iufO":
        raise ValueError(f"pairs has dtype {table.dtype}; pass integers, the numbers of rows of X.")
    if table.dtype.kind in "iu":
        return table
    if table.dtype.kind == "f":
        whole = np.isfinite(table) & (np.floor(table) == table)
    else:
        whole = np.array([[_is_whole(value) for value in row] for row in table])
    bad = np.flatnonzero(~whole.all(axis=1))
    if bad.size:
        row = ", ".join(str(value) for value in table[bad[0]])
        raise ValueError(f"pairs[{bad[0]}] is ({row}); row numbers must be integers.")
    return table


def _is_whole(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value // 1


def _from_pair_matrix(matrix: Any, n_documents: int) -> Integers:
    """Return the pairs in a sparse matrix, one row per pair, as an array of row numbers of X.

    In each row, the column of +1 is the preferred document, and the column of −1 the other one.
    """
    if matrix.ndim != 2 or matrix.shape[1] != n_documents:
        raise ValueError(
            f"pairs is a sparse matrix of shape {matrix.shape}; it needs {n_documents} columns, "
            "one per row of X."
        )
    check_indices(matrix, "pairs")
    entries = sp.coo_array(matrix, copy=True)
    entries.sum_duplicates()
    used = np.flatnonzero(entries.data)
    row, column, sign = entries.coords[0][used], entries.coords[1][used], entries.data[used]
    pairs = np.full((matrix.shape[0], 2), -1, dtype=np.int64)
    pairs[row[sign == 1], 0] = column[sign == 1]
    pairs[row[sign == -1], 1] = column[sign == -1]
    fine = (np.bincount(row, minlength=len(pairs)) == 2) & (pairs >= 0).all(axis=1)
    bad = np.flatnonzero(~fine)
    if bad.size:
        raise ValueError(
            f"pairs[{bad[0]}] (a row of a sparse matrix) must have one 1, for the preferred "
            "document, and one -1."
        )
    return pairs


def _check_rows(listed: PairList, n_documents: int) -> None:
    pairs = listed.pairs
    if len(pairs) == 0:
        raise ValueError("pairs is empty; pass at least one pair.")
    if pairs.min() < 0 or pairs.max() >= n_documents:
        outside = (pairs < 0) | (pairs >= n_documents)
        k = int(np.argmax(outside.any(axis=1)))
        row = int(pairs[k][outside[k]][0])
        raise ValueError(
            f"{listed.place(k)} has row {row}, but rows are numbered from 0 to {n_documents - 1}."
        )
    same = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if same.size:
        row = pairs[same[0], 0]
        raise ValueError(f"{listed.place(same[0])} pairs row {row} with itself; drop it.")
