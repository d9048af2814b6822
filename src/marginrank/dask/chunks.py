"""Chunks: the documents of a partition of a Dask collection (or a part of a store) as arrays."""

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.types import Integers
from marginrank.data.frames import from_frame
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import open_stored
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.fit.positions import check_no_positions

PART_BYTES = 256 << 20  # most bytes of X in a part of a store, unless a query is larger

Result = TypeVar("Result")


def in_partition(task: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a Dask task so that its error messages begin with the number of the partition.

    The task's first argument is the partition number.
    """

    @wraps(task)
    def named(number: int, *rest: Any, **options: Any) -> Result:
        try:
            return task(number, *rest, **options)
        except (ValueError, TypeError, OSError) as error:
            kind = next(k for k in (TypeError, OSError, ValueError) if isinstance(error, k))
            raise kind(f"partition {number}: {error}") from error

    return named


class Chunk(NamedTuple):
    """Documents as arrays with one entry per document: X, labels, query ids and weights.

    The weight of a query is repeated for each of its documents.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None
    sample_weight: NDArray[Any] | None = None
    query_weight: NDArray[Any] | None = None
    propensity: NDArray[Any] | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def take(self, rows: Integers) -> "Chunk":
        return Chunk._make(None if column is None else column[rows] for column in self)


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """Return the documents of several chunks as one chunk."""

    def stack(columns: Sequence[Any]) -> Any:
        if any(column is None for column in columns):
            return None
        if any(map(sp.issparse, columns)):
            return sp.vstack(columns, format="csr")
        return np.concatenate(columns)

    return Chunk._make(map(stack, zip(*chunks, strict=True)))


@in_partition
def chunk_of_frame(
    number: int, frame: Any, columns: dict[str, Any], features: Sequence[Any], beside: Sequence[Any]
) -> Chunk:
    """Dask task: convert a partition of a Dask dataframe to a chunk of documents.

    `columns` maps roles (such as "qid") to column names. `beside` lists columns that are not in the
    dataframe, as pairs (name, series).
    """
    frame = frame.copy(deep=False) if beside else frame
    for name, series in beside:
        if len(series) != len(frame):
            raise ValueError(
                f"X has {len(frame)} rows but {name[1]} has {len(series)}; make the lengths agree."
            )
        frame[name] = getattr(series, "array", series)  # by position, not by index
    chunk: Chunk = from_frame(
        _checked_chunk,
        frame,
        label=columns["y"],
        qid=columns.get("qid"),
        features=list(features),
        sample_weight=columns.get("sample_weight"),
        query_weight=columns.get("query_weight"),
    )
    if "propensity" not in columns:
        return chunk
    return chunk._replace(propensity=frame[columns["propensity"]].to_numpy(dtype=np.float64))


def _checked_chunk(
    X: NDArray[Any],
    y: NDArray[Any],
    qid: NDArray[Any] | None,
    sample_weight: NDArray[Any] | None,
    query_weight: NDArray[Any] | None,
    **_: Any,
) -> Chunk:
    """Return a chunk of documents; raise ValueError if X has NaN or infinity.

    The caller `from_frame` adds column names to the message.
    """
    if X.shape[0]:
        checked = check_features(X)
        check_finite(checked, as_matrix(checked), 1)
    return Chunk(X, y, qid, sample_weight, query_weight)


@in_partition
def chunk_of_blocks(number: int, X: Any, blocks: dict[str, Any]) -> Chunk:
    """Dask task: convert one block of rows of a Dask array X to a chunk of documents.

    `blocks` maps roles, such as "y" and "qid", to the blocks of other arrays with the same rows.
    """
    columns = {role: np.asarray(block) for role, block in blocks.items()}
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    for role, column in columns.items():
        if column.shape[:1] != X.shape[:1]:
            raise ValueError(
                f"X has {X.shape[0]} rows but {role} has {column.shape[0]}; make the lengths agree."
            )
    y = columns.pop("y", np.zeros(X.shape[0]))
    return Chunk(X, y, columns.pop("qid", None), **columns)


class StoreRange(NamedTuple):
    """A range of whole queries, `first` to `last` − 1, of the on-disk store at `path`."""

    path: str
    first: int
    last: int


class StorePlan(NamedTuple):
    """The division of an on-disk store into ranges of whole queries, and its feature names."""

    ranges: list[StoreRange]
    feature_names: list[str] | None


def plan_store(path: str, part_bytes: int = PART_BYTES) -> StorePlan:
    """Divide an on-disk store into ranges of whole queries with similar numbers of documents.

    The ranges depend on the data only, so results of fits are bitwise equal on any cluster.
    """
    data = open_stored(path, verify=False)
    n_parts = 1
    while n_parts * part_bytes < data.X.memory_bytes:
        n_parts *= 2  # a power of two, like the usual number of workers
    wanted = np.linspace(0, data.n_documents, n_parts + 1)
    cuts = np.unique(np.searchsorted(data.queries.offsets, wanted))
    ranges = [StoreRange(path, int(a), int(b)) for a, b in pairwise(cuts)]
    return StorePlan(ranges, data.feature_names)


@in_partition
def chunk_of_store(number: int, span: StoreRange) -> Chunk:
    """Dask task: read a range of queries of an on-disk store into memory."""
    data = open_stored(span.path, verify=False)
    if data.cost is not None:
        raise ValueError(
            f"{span.path} has a cost for each document, such as the inverse propensity of a click, "
            "which is not supported on a Dask cluster; train without a cluster."
        )
    check_no_positions(data, "A cluster")
    queries = data.queries
    first, last = int(queries.offsets[span.first]), int(queries.offsets[span.last])
    rows: Any = slice(first, last) if queries.rows is None else queries.rows[first:last]
    sizes = np.diff(queries.offsets[span.first : span.last + 1])

    def by_query(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else np.repeat(values[span.first : span.last], sizes)

    def by_row(values: NDArray[Any] | None) -> NDArray[Any] | None:
        return None if values is None else np.array(values[rows])

    if queries.rows is None:
        X = read_rows(data.X, first, last)
    else:
        X = RankingData.open(span.path, verify=False).X[rows]
    return Chunk(
        X,
        np.array(data.y[rows]),
        by_query(data.query_ids),
        by_row(data.sample_weight),
        by_query(data.query_weight),
    )


def read_rows(features: StoredFeatures, first: int, last: int) -> Any:
    """Return rows `first` to `last` − 1 of the X of an on-disk store, read into memory."""
    bounds = np.array([first, last])
    with FeatureReader(features, bounds, pinned_bytes=sys.maxsize, threads=1) as reader:
        _, X = next(reader.sweep([0]))
        return X
