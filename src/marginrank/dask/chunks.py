"""Chunks: the documents of a Dask partition, or of some queries of a store, as they come."""

import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.types import Integers
from marginrank.dask.places import in_partition
from marginrank.data.frames import from_frame
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import open_stored
from marginrank.data.validation import as_matrix, check_features, check_finite

PART_BYTES = 256 << 20  # of X that a part of a store has at most, if its queries are shorter
ROLES = ("y", "qid", "sample_weight", "query_weight", "propensity")


class Chunk(NamedTuple):
    """Documents, by row; nothing is grouped yet.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        Features; perhaps no rows.
    y, qid : array of shape (n_rows,)
        Labels and queries.
    sample_weight, query_weight, propensity : array of shape (n_rows,), or None
        Weights; that of a query is repeated for each of its documents.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None
    sample_weight: NDArray[Any] | None = None
    query_weight: NDArray[Any] | None = None
    propensity: NDArray[Any] | None = None

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return int(self.X.shape[0])

    def take(self, rows: Integers) -> "Chunk":
        """Return some documents."""
        return Chunk._make(None if column is None else column[rows] for column in self)


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """Return the documents of several chunks, in this order."""
    return Chunk._make(map(_stack, zip(*chunks, strict=True)))


def _stack(columns: Sequence[Any]) -> Any:
    if any(column is None for column in columns):
        return None
    if any(map(sp.issparse, columns)):
        return sp.vstack(columns, format="csr")
    return np.concatenate(columns)


@in_partition
def chunk_of_frame(
    number: int, frame: Any, columns: dict[str, Any], features: Sequence[Any], beside: Sequence[Any]
) -> Chunk:
    """Return the documents of a partition of a dataframe.

    Parameters
    ----------
    number : int
        Number of the partition, for messages.
    frame : pandas.DataFrame
        The partition.
    columns : dict
        Columns of the frame by role, those of `beside` included.
    features : sequence
        Columns of the features.
    beside : sequence of (name, pandas.Series)
        Columns that are not in the frame.
    """
    for name, series in beside:
        if len(series) != len(frame):
            raise ValueError(f"X has {len(frame)} rows and {name[1]} has {len(series)}.")
    frame = _with_columns(frame, beside)
    propensity = columns.get("propensity")
    chunk: Chunk = from_frame(
        _checked_chunk,
        frame,
        label=columns["y"],
        qid=columns.get("qid"),
        features=list(features),
        sample_weight=columns.get("sample_weight"),
        query_weight=columns.get("query_weight"),
    )
    if propensity is None:
        return chunk
    return chunk._replace(propensity=frame[propensity].to_numpy(dtype=np.float64))


def _with_columns(frame: Any, beside: Sequence[Any]) -> Any:
    frame = frame.copy(deep=False) if beside else frame
    for name, series in beside:
        frame[name] = getattr(
            series, "array", series
        )  # rows belong together by place, whatever the index says
    return frame


def _checked_chunk(
    X: NDArray[Any],
    y: NDArray[Any],
    qid: NDArray[Any] | None,
    sample_weight: NDArray[Any] | None,
    query_weight: NDArray[Any] | None,
    **_: Any,
) -> Chunk:
    """Make a chunk; whoever knows the names of columns says which one holds a NaN."""
    if X.shape[0]:
        checked = check_features(X)
        check_finite(checked, as_matrix(checked), 1)
    return Chunk(X, y, qid, sample_weight, query_weight)


@in_partition
def chunk_of_blocks(number: int, X: Any, blocks: dict[str, Any]) -> Chunk:
    """Return the documents of a block of rows of an array."""
    columns = {role: np.asarray(block) for role, block in blocks.items()}
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    for role, column in columns.items():
        if column.shape[:1] != X.shape[:1]:
            raise ValueError(f"X has {X.shape[0]} rows and {role} has {column.shape[0]}.")
    y = columns.pop("y", np.zeros(X.shape[0]))
    return Chunk(X, y, columns.pop("qid", None), **columns)


class StoreRange(NamedTuple):
    """Some queries of a store."""

    path: str
    first: int
    last: int


class StorePlan(NamedTuple):
    """What a store is cut into."""

    ranges: list[StoreRange]
    feature_names: list[str] | None


def plan_store(path: str, part_bytes: int = PART_BYTES) -> StorePlan:
    """Cut a store into ranges of whole queries of about the same size: the data alone says where.

    Their number is a power of two, as that of workers often is.
    """
    data = open_stored(path, verify=False)
    offsets = data.queries.offsets
    n_bytes = data.X.memory_bytes
    n_parts = 1
    while n_parts * part_bytes < n_bytes:
        n_parts *= 2
    wanted = np.linspace(0, data.n_documents, n_parts + 1)
    cuts = np.unique(np.searchsorted(offsets, wanted))
    ranges = [StoreRange(path, int(a), int(b)) for a, b in pairwise(cuts)]
    return StorePlan(ranges, data.feature_names)


@in_partition
def chunk_of_store(number: int, span: StoreRange) -> Chunk:
    """Read some queries of a store into memory."""
    data = open_stored(span.path, verify=False)
    if data.cost is not None:
        raise ValueError(f"{span.path} has costs, which do not go to a cluster; fit to it here.")
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
    """Read some rows of a store into memory; a file that ends too early is an OSError."""
    with FeatureReader(
        features, np.array([first, last]), pinned_bytes=sys.maxsize, threads=1
    ) as reader:
        _, X = next(reader.sweep([0]))
        return X
