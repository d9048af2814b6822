"""Scaling of features within each query (query-level normalization).

A few queries and columns are scaled at a time, so the float64 copies stay small. Sparse matrices
stay sparse: if a feature of a query has zeros, all its scaled values are shifted so that zero stays
zero. A shift within a query does not change the difference of any two documents.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.parameters import check_choice
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.queries import Documents, bounded_ranges
from marginrank.data.ranking_data import RankingData

BLOCK = 2**20  # entries of X scaled at a time; a larger query is scaled as a whole
METHODS = ("minmax", "standard", "rank")


def scale_queries(data: RankingData, method: str) -> RankingData:
    """Return the same data set with each feature scaled within each query.

    `method` is "minmax", "standard" or "rank", see :func:`scale_by_query`.

    Examples
    --------
    >>> from marginrank import RankingData
    >>> from marginrank.data.query_scaling import scale_queries
    >>> data = RankingData([[1.0], [2.0], [10.0], [30.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> scale_queries(data, "minmax").X.ravel().tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    scaled = data.with_features(scale_by_query(data.X, data.queries, method))
    scaled.feature_names = data.feature_names
    return scaled


def scale_by_query(X: Any, documents: Documents, method: str) -> Any:
    """Return X with each feature scaled within each query.

    X is an array or a CSR matrix without NaN. The result is computed in float64 and has the dtype
    of X. Methods:

    - "minmax": (x − min) / (max − min), LETOR's QueryLevelNorm;
    - "standard": (x − mean) / standard deviation;
    - "rank": the rank, from 0 for the smallest to 1 for the largest value, averaged over ties.

    If all values of a feature in a query are equal, they become 0, or ½ for "rank".
    """
    check_choice("method", method, METHODS)
    if sp.issparse(X):
        return _scale_sparse(X, documents, method)
    scale = {"minmax": _minmax, "standard": _standard, "rank": _ranks}[method]
    result = np.empty(X.shape, dtype=X.dtype)
    for queries, rows in _blocks(documents, np.full(documents.n_documents, X.shape[1])):
        n_columns = max(1, BLOCK // queries.n_documents)
        for first in range(0, X.shape[1], n_columns):
            columns = slice(first, first + n_columns)
            result[rows, columns] = scale(X[rows, columns].astype(np.float64), queries)
    return result


def _blocks(documents: Documents, n_entries: Integers) -> Iterator[tuple[Documents, Any]]:
    """Yield (Documents of some consecutive queries, their rows in X).

    The rows have at most `BLOCK` entries of X, unless they belong to a single query. `n_entries`
    has the number of entries of each document.
    """
    until = np.concatenate([[0], np.cumsum(n_entries)])[documents.offsets]
    for first, last in bounded_ranges(until, BLOCK):
        begin, end = int(documents.offsets[first]), int(documents.offsets[last])
        offsets = documents.offsets[first : last + 1] - begin
        rows = slice(begin, end) if documents.rows is None else documents.rows[begin:end]
        yield Documents(offsets, None), rows


def _range(least: Floats, greatest: Floats) -> tuple[Floats, Floats]:
    with np.errstate(over="ignore"):
        width = greatest - least
    if not np.isfinite(width).all():
        raise ValueError(
            "the range of a feature of X within a query overflows float64; divide "
            "the feature by a constant."
        )
    return least, width


def _divided(values: Floats, by: Floats) -> Floats:
    """Return values / by, and 0 where `by` is 0."""
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)


def _minmax(X: Floats, queries: Documents) -> Floats:
    starts, query = queries.offsets[:-1], queries.query_of_document
    least, width = _range(np.minimum.reduceat(X, starts), np.maximum.reduceat(X, starts))
    return _divided(X - least[query], width[query])


def _standard(X: Floats, queries: Documents) -> Floats:
    # Begin with values between 0 and 1: equal values are then exactly 0, and squares are finite.
    starts, query = queries.offsets[:-1], queries.query_of_document
    X = _minmax(X, queries)
    n = queries.sizes[:, None]
    X -= (np.add.reduceat(X, starts) / n)[query]
    return _divided(X, np.sqrt(np.add.reduceat(X * X, starts) / n)[query])


def _ranks(X: Floats, queries: Documents) -> Floats:
    query = queries.query_of_document
    order = np.lexsort((X, np.broadcast_to(query[:, None], X.shape)), axis=0)
    values = np.take_along_axis(X, order, axis=0)
    begins = np.ones(X.shape, dtype=np.bool_)
    begins[1:] = (values[1:] != values[:-1]) | (query[1:] != query[:-1])[:, None]
    places = _mean_places(begins) - queries.offsets[query][:, None]
    result = np.empty_like(X)
    np.put_along_axis(result, order, _as_shares(places, queries.sizes[query][:, None]), axis=0)
    return result


def _mean_places(begins: Booleans) -> Floats:
    """Return ranks (from 0) in each sorted column, averaged over ties.

    `begins` is True where a value differs from the value before it.
    """
    n = len(begins)
    places = np.arange(n).reshape(-1, *[1] * (begins.ndim - 1))
    first = np.maximum.accumulate(np.where(begins, places, 0), axis=0)
    ends = np.ones_like(begins)
    ends[:-1] = begins[1:]
    last = np.minimum.accumulate(np.where(ends, places, n)[::-1], axis=0)[::-1]
    return (first + last) / 2.0


def _as_shares(places: Floats, sizes: Integers) -> Floats:
    """Return ranks scaled from [0, size − 1] to [0, 1]; in a query of one document, return ½."""
    result: Floats = np.where(sizes > 1, places / np.maximum(sizes - 1, 1), 0.5)
    return result


@dataclass(frozen=True, eq=False)
class _GroupedEntries:
    """Sparse entries grouped by (query, feature), sorted by value within a group."""

    values: Floats
    begins: Booleans  # whether each entry is the first of its group
    starts: Integers  # index of each group's first entry
    group: Integers  # group number of each entry
    size: Integers  # number of documents of each group's query
    n_absent: Integers  # number of documents of the query without an entry (zeros), per group

    @property
    def has_zero(self) -> Booleans:
        stored: Booleans = np.logical_or.reduceat(self.values == 0, self.starts)
        return stored | (self.n_absent > 0)

    def sum(self, values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values, self.starts))

    def range(self) -> tuple[Floats, Floats]:
        least = np.minimum.reduceat(self.values, self.starts)
        greatest = np.maximum.reduceat(self.values, self.starts)
        absent = self.n_absent > 0
        return _range(
            np.where(absent, np.minimum(least, 0.0), least),
            np.where(absent, np.maximum(greatest, 0.0), greatest),
        )


def _scale_sparse(X: Any, documents: Documents, method: str) -> Any:
    scale = {"minmax": _minmax_entries, "standard": _standard_entries, "rank": _rank_entries}
    result = X.copy()
    n_entries = np.diff(X.indptr).astype(np.int64)
    for queries, rows in _blocks(documents, documents.grouped(n_entries)):
        places = _places_of_entries(X.indptr, rows)
        if places.size:
            entries, order = _sorted_entries(X, places, queries, n_entries[rows])
            values, zero = scale[method](entries)
            values -= np.where(entries.has_zero, zero, 0.0)[entries.group]
            result.data[places[order]] = np.where(entries.values == 0, 0.0, values)
    return result


def _places_of_entries(indptr: Any, rows: Any) -> Integers:
    starts, ends = (bounds[rows].astype(np.int64) for bounds in (indptr[:-1], indptr[1:]))
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _sorted_entries(
    X: Any, places: Integers, queries: Documents, n_entries: Integers
) -> tuple[_GroupedEntries, Integers]:
    """Return sparse entries sorted by (query, feature, value), and the indices that sort them."""
    query = np.repeat(queries.query_of_document, n_entries)
    feature, values = X.indices[places], X.data[places].astype(np.float64)
    order = np.lexsort((values, feature, query))
    query, feature, values = query[order], feature[order], values[order]
    begins = np.ones(values.size, dtype=np.bool_)
    begins[1:] = (query[1:] != query[:-1]) | (feature[1:] != feature[:-1])
    starts = np.flatnonzero(begins)
    size = queries.sizes[query[starts]]
    n_stored = np.diff(starts, append=values.size)
    group = np.cumsum(begins) - 1
    return _GroupedEntries(values, begins, starts, group, size, size - n_stored), order


_Scaled = tuple[Floats, Floats]  # scaled value of each entry, and of a zero of each group


def _minmax_entries(entries: _GroupedEntries) -> _Scaled:
    (least, width), group = entries.range(), entries.group
    return _divided(entries.values - least[group], width[group]), _divided(-least, width)


def _standard_entries(entries: _GroupedEntries) -> _Scaled:
    values, zero = _minmax_entries(entries)
    n, n_absent, group = entries.size, entries.n_absent, entries.group
    mean = (entries.sum(values) + n_absent * zero) / n
    values, zero = values - mean[group], zero - mean
    deviation = np.sqrt((entries.sum(values * values) + n_absent * zero * zero) / n)
    return _divided(values, deviation[group]), _divided(zero, deviation)


def _rank_entries(entries: _GroupedEntries) -> _Scaled:
    values, group, n_absent = entries.values, entries.group, entries.n_absent
    begins = entries.begins.copy()
    begins[1:] |= values[1:] != values[:-1]
    places = _mean_places(begins) - entries.starts[group] + np.where(values > 0, n_absent[group], 0)
    n_negative = entries.sum((values < 0).astype(np.float64))
    n_zeros = n_absent + entries.sum((values == 0).astype(np.float64))
    zero = n_negative + (n_zeros - 1) / 2.0
    return _as_shares(places, entries.size[group]), _as_shares(zero, entries.size)
