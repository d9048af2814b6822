"""Documents grouped by query, and conversion between the two orders of documents.

*Row order* is the order of the rows of X, as passed by the user. *Document order* has the documents
of each query next to each other, ordered by row within the query.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank import _core
from marginrank._utils.alignment import AlignedWhenUnpickled
from marginrank._utils.types import Floats, Integers
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.validation import check_weights, in_order, is_missing

MANY_DOCUMENTS = 2000  # more documents without qid cause a warning that they count as one query
Scalar = TypeVar("Scalar", bound=np.generic)


def exact_sum(counts: Integers) -> int:
    """Return the sum of an array of non-negative int64 as a Python int, so it cannot overflow."""
    low = int(np.sum(counts & 0xFFFFFFFF, dtype=np.int64))
    return (int(np.sum(counts >> 32, dtype=np.int64)) << 32) + low


def bounded_ranges(offsets: Integers, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) of consecutive groups with at most `most` entries per range.

    Group k has ``offsets[k + 1] - offsets[k]`` entries. A range has the groups `first` to
    `last` - 1. A group with more than `most` entries is a range of its own.
    """
    first, n = 0, offsets.size - 1
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


@dataclass(frozen=True)
class Documents(AlignedWhenUnpickled):
    """Documents grouped by query: the size of each query and the row in X of each document.

    *Document order* has the documents of each query next to each other; *row order* is that of X.
    """

    offsets: Integers  # query q has the documents offsets[q], …, offsets[q + 1] - 1
    rows: Integers | None  # row number in X of each document; None if documents are in row order

    @property
    def n_queries(self) -> int:
        return self.offsets.size - 1

    @property
    def n_documents(self) -> int:
        return int(self.offsets[-1])

    @property
    def sizes(self) -> Integers:
        return np.diff(self.offsets)

    @property
    def query_of_document(self) -> Integers:
        return np.repeat(np.arange(self.n_queries), self.sizes)

    def row(self, document: int) -> int:
        return int(document if self.rows is None else self.rows[document])

    @overload
    def grouped(self, values: NDArray[Scalar]) -> NDArray[Scalar]: ...
    @overload
    def grouped(self, values: None) -> None: ...
    def grouped(self, values: NDArray[Any] | None) -> NDArray[Any] | None:
        """Reorder an array from the order of the rows of X to document order (query by query)."""
        return values if values is None or self.rows is None else values[self.rows]

    def by_row(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Reorder an array from document order (query by query) to the order of the rows of X."""
        if self.rows is None:
            return values
        result = np.empty_like(values)
        result[self.rows] = values
        return result

    def keep(self, documents: Integers, query_of_document: Integers) -> "Documents":
        """Return the grouping of a subset of the documents, without queries that become empty.

        `documents` are ascending indices in document order, `query_of_document` their queries.
        """
        sizes = np.diff(
            np.flatnonzero(np.diff(query_of_document, prepend=-1)), append=len(documents)
        )
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Documents(offsets, documents if self.rows is None else self.rows[documents])


@dataclass(frozen=True)
class Queries(Documents):
    """Documents grouped by query, with the ranks of their labels and the numbers of pairs.

    The *level* of a document is the dense rank of its label within its query: 0, 1, ….
    """

    level: NDArray[np.int32]  # dense rank of each document's label within its query
    n_levels: NDArray[np.int32]  # number of distinct labels of each query
    n_pairs: Integers  # for each query, the number of pairs with different labels
    n_adjacent_pairs: Integers  # for each query, the number of pairs with adjacent levels

    @classmethod
    def from_labels(
        cls, labels: Floats, offsets: Integers, rows: Integers | None, threads: int
    ) -> "Queries":
        """Create a Queries object from labels that are in document order (query by query)."""
        return cls(offsets, rows, *_core.rank_labels(labels, offsets, threads))

    def between(self, first: int, last: int, first_row: int = 0) -> "Queries":
        """Return a Queries object with the queries `first` to `last` - 1 only.

        `first_row` is subtracted from the row numbers, for an X that begins with that row.
        """
        begin, end = self.offsets[first], self.offsets[last]
        documents, queries = slice(begin, end), slice(first, last)
        return Queries(
            offsets=self.offsets[first : last + 1] - begin,
            rows=None if self.rows is None else self.rows[documents] - first_row,
            level=self.level[documents],
            n_levels=self.n_levels[queries],
            n_pairs=self.n_pairs[queries],
            n_adjacent_pairs=self.n_adjacent_pairs[queries],
        )


def rank_labels(y: NDArray[Any], documents: Documents, threads: int) -> Queries:
    """Return a Queries object with the ranks of the labels `y`, which are in row order."""
    labels = documents.grouped(in_order(y))
    return Queries.from_labels(labels, documents.offsets, documents.rows, threads)


def weights_by_query(weights: ArrayLike | None, queries: Documents) -> Floats | None:
    """Return one weight per query, given weights of queries or of documents.

    Raise ValueError if weights of documents differ within a query.
    """
    if weights is None:
        return None
    per_document = np.size(weights) == queries.n_documents != queries.n_queries
    n = queries.n_documents if per_document else queries.n_queries
    weights = check_weights(weights, "query_weight", n, "one weight per query")
    if not per_document:
        return weights
    repeated = queries.grouped(weights)
    starts = queries.offsets[:-1]
    per_query = repeated[starts]
    least, most = (f.reduceat(repeated, starts) for f in (np.minimum, np.maximum))
    if not np.array_equal(least, most):
        differs = np.flatnonzero(repeated != np.repeat(per_query, queries.sizes))
        raise ValueError(
            f"query_weight[{queries.row(differs[0])}] differs from the weight of another document "
            "of the same query; pass one weight per query, or equal weights within a query."
        )
    return per_query


class Grouping(NamedTuple):
    """Documents grouped by query, and the query ids in order of first appearance."""

    documents: Documents
    query_ids: NDArray[Any]


def group_rows(n: int, qid: ArrayLike | None, group: ArrayLike | None) -> Grouping:
    """Group n documents by query ids `qid`, or by `group`, the sizes of contiguous queries.

    If neither is given, all documents are one query. This warns if there are many documents,
    because qid was probably forgotten.
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
        raise ValueError("group must be a one-dimensional list of integer sizes, one per query.")
    total = sum(int(s) for s in sizes)
    if total != n and sizes.size == n > 1:
        raise ValueError(
            f"group sums to {total} instead of {n} and has one entry per document. Pass query ids "
            "as qid=, not as group=."
        )
    if sizes.size and sizes.min() < 1:
        at = int(np.flatnonzero(sizes < 1)[0])
        raise ValueError(f"group[{at}] is {sizes[at]}; every query needs at least one document.")
    if total != n:
        raise ValueError(f"group sums to {total} but X has {n} rows; pass one size per query.")
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
    if ids.dtype.kind in "fOmM" and set(map(type, values := ids.tolist())) != {str}:
        missing |= [is_missing(i) for i in values]
    if np.ma.isMA(qid):
        missing |= np.ma.getmaskarray(qid).ravel()
    if missing.any():
        raise ValueError(f"qid[{missing.argmax()}] is missing; every document needs a query id.")
    return ids


def _from_list(ids: Sequence[Any]) -> NDArray[Any]:
    """Return ids as an array, with dtype object if NumPy would change their values."""
    types = set(map(type, ids))
    if len(types) <= 1 and tuple not in types:
        array = np.asarray(ids)
        # NumPy rounds large integers, and drops NULs at the end of text.
        rounded = types == {int} and array.dtype.kind == "f"
        cut = types <= {str, bytes} and any(text[-1:] in ("\0", b"\0") for text in ids)
        if not rounded and not cut:
            return array
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


def numbered(ids: Iterable[Any], number_of: dict[Any, int]) -> Integers:
    """Return the number of each query id in the dict `number_of`, to which new ids are added."""
    try:
        return np.array([number_of.setdefault(i, len(number_of)) for i in ids], dtype=np.int64)
    except TypeError as error:
        raise ValueError(f"qid must hold hashable values: {error}.") from error


def _factorize(ids: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return the distinct ids in order of first appearance, and the code of each id."""
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
