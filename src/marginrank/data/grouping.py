"""From query ids or group sizes to grouped documents."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.types import Integers
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.queries import Documents
from marginrank.data.validation import is_missing

MANY_DOCUMENTS = 2000  # a single query rarely has more


class Grouping(NamedTuple):
    """Documents by query, and the ids of the queries, in the order in which they first appear."""

    documents: Documents
    query_ids: NDArray[Any]


def group_rows(n: int, qid: ArrayLike | None, group: ArrayLike | None) -> Grouping:
    """Group n rows by `qid`, by `group` sizes, or into one query if neither is given.

    Without either, many documents raise a warning: their queries were probably forgotten.
    """
    if qid is not None and group is not None:
        raise ValueError("qid and group were both given; pass only one of them.")
    if group is not None:
        return _group_by_sizes(n, group)
    if qid is not None:
        return _group_by_id(n, qid)
    if n > MANY_DOCUMENTS:
        warn_caller(
            "Neither qid nor group was given, so all documents count as one query. Pass qid, or "
            "group=[n_documents] if they are one query."
        )
    everything = Documents(np.array([0, n], dtype=np.int64), None)
    return Grouping(everything, np.zeros(1, dtype=np.int64))


def _group_by_sizes(n: int, group: ArrayLike) -> Grouping:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise ValueError("group must be a one-dimensional list of integer sizes, one a query.")
    total = sum(int(s) for s in sizes)
    if total != n and sizes.size == n > 1:
        raise ValueError(
            f"group sums to {total} but X has {n} rows. It has one entry per document: pass query "
            "ids as qid=."
        )
    if sizes.size and sizes.min() < 1:
        at = int(np.flatnonzero(sizes < 1)[0])
        raise ValueError(f"group[{at}] is {sizes[at]}; every query needs at least one document.")
    if total != n:
        raise ValueError(f"group sums to {total} but X has {n} rows.")
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return Grouping(Documents(offsets, None), np.arange(sizes.size))


def _group_by_id(n: int, qid: ArrayLike) -> Grouping:
    ids = _check_ids(n, qid)
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1]).astype(np.int64)
    queries, query_of_run = _factorize(ids[starts])
    run_lengths = np.diff(starts, append=n)
    if queries.size == starts.size:
        return Grouping(Documents(np.append(starts, n), None), queries)
    query_of_row = np.repeat(query_of_run, run_lengths)
    sizes = np.bincount(query_of_row, minlength=queries.size)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows = np.argsort(query_of_row, kind="stable").astype(np.int64)
    return Grouping(Documents(offsets, rows), queries)


def _check_ids(n: int, qid: ArrayLike) -> NDArray[Any]:
    ids = _from_list(qid) if isinstance(qid, (list, tuple)) else np.asarray(qid)
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids.ravel()
    if ids.ndim != 1:
        raise ValueError(f"qid has shape {ids.shape} and must be one-dimensional.")
    if ids.size != n:
        sums = ids.dtype.kind in "iu" and ids.size and sum(int(s) for s in ids) == n
        hint = " It sums to the number of rows: pass group sizes as group=." if sums else ""
        raise ValueError(f"qid has {ids.size} entries but X has {n} rows.{hint}")
    missing = np.zeros(n, dtype=bool)
    if ids.dtype.kind in "fOmM":
        missing |= [is_missing(i) for i in ids.tolist()]
    if np.ma.isMA(qid):
        missing |= np.ma.getmaskarray(qid).ravel()
    if missing.any():
        raise ValueError(f"qid[{missing.argmax()}] is missing; give every document a query id.")
    return ids


def _from_list(ids: Sequence[Any]) -> NDArray[Any]:
    """Return ids as they are: NumPy would make one type of several, and drop NULs at the end."""
    types = set(map(type, ids))
    if len(types) <= 1 and tuple not in types:
        array = np.asarray(ids)
        rounded = types == {int} and array.dtype.kind == "f"
        if not rounded and not (types <= {str, bytes} and any(map(_ends_in_nul, ids))):
            return array
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


def _ends_in_nul(text: str | bytes) -> bool:
    return text[-1:] in ("\0", b"\0")


def numbered(ids: Iterable[Any], number_of: dict[Any, int]) -> Integers:
    """Return the number of each id; a new one gets the next number."""
    try:
        return np.array([number_of.setdefault(i, len(number_of)) for i in ids], dtype=np.int64)
    except TypeError as error:
        raise ValueError(f"qid must hold hashable values: {error}.") from error


def _factorize(ids: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return the distinct ids by first appearance, and the number of each id in that list."""
    if ids.dtype.kind == "O":
        number: dict[Any, int] = {}
        codes = numbered(ids.tolist(), number)
        queries = np.empty(len(number), dtype=object)
        queries[:] = list(number)
        return queries, codes
    _, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty_like(by_appearance)
    rank[by_appearance] = np.arange(by_appearance.size)
    return ids[first[by_appearance]], rank[codes]
