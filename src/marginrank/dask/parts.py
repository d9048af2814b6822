"""Documents on a Dask worker, checked and grouped by query."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof
from numpy.typing import NDArray

from marginrank._utils.types import Floats
from marginrank.dask.chunks import Chunk, in_partition
from marginrank.data.queries import weights_by_query
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import check_propensity


@dataclass
class Part:
    """The documents of one partition; `data` is None if the partition has no documents."""

    number: int
    data: RankingData | None
    propensity: Floats | None = None


class PartFacts(NamedTuple):
    """Counts and data types of one partition, which the client compares with other partitions."""

    number: int
    n_documents: int
    n_queries: int
    n_features: int
    n_entries: int  # stored values of X
    n_bytes: int  # memory of X
    features: str
    ids: str


@in_partition
def make_part(number: int, chunk: Chunk) -> Part:
    """Dask task: check the documents of a partition and group them by query."""
    if chunk.n_rows == 0:
        return Part(number, None)
    data = RankingData(chunk.X, chunk.y, chunk.qid, sample_weight=chunk.sample_weight, n_jobs=1)
    weights = chunk.query_weight
    if weights is not None:
        # If there is one document per query, weights_by_query would read weights of documents in
        # row order as weights of queries, so they must be in the order of the queries.
        if data.n_documents == data.n_queries:
            weights = data.queries.grouped(np.asarray(weights))
        data.query_weight = weights_by_query(weights, data.queries)
    return Part(number, data, check_propensity(chunk.propensity, data.n_documents))


def facts_of(part: Part) -> PartFacts:
    """Dask task: return the counts and the data types of a partition."""
    data = part.data
    if data is None:
        return PartFacts(part.number, 0, 0, 0, 0, 0, "", "")
    layout = "sparse" if sp.issparse(data.X) else "dense"
    return PartFacts(
        part.number,
        data.n_documents,
        data.n_queries,
        data.n_features,
        data.matrix.n_entries,
        sum(array.nbytes for array in _arrays_of(data.X)),
        f"{layout} {data.X.dtype} features",
        _kind_of_ids(data.query_ids),
    )


def _kind_of_ids(ids: NDArray[Any]) -> str:
    if ids.dtype.kind in "biuf":  # floats and integers are one kind, because 1 and 1.0 are equal
        return "numbers"
    if ids.dtype.kind != "O":
        return "strings" if ids.dtype.kind == "U" else str(ids.dtype)
    kinds = {type(value) for value in ids.tolist()}
    if kinds <= {int, float, bool}:
        return "numbers"
    return "strings" if kinds == {str} else "objects"


def check_alike(facts: list[PartFacts]) -> list[PartFacts]:
    """Raise ValueError if the partitions of a Dask collection differ in their data types.

    Compared are the number and type of features and the type of query ids. Return the facts of the
    non-empty partitions.
    """
    filled = [fact for fact in facts if fact.n_documents]
    if not filled:
        raise ValueError(f"X has no documents: all {len(facts)} partitions are empty.")
    first = filled[0]
    for fact in filled[1:]:
        where = f"partition {fact.number} has {{}} and partition {first.number} has {{}}"
        if fact.n_features != first.n_features:
            counts = where.format(f"{fact.n_features} features", first.n_features)
            raise ValueError(f"{counts}; use the same features in all partitions.")
        if fact.features != first.features:
            kinds = where.format(fact.features, first.features)
            raise ValueError(f"{kinds}; convert all to one type, such as float32.")
        if fact.ids != first.ids:
            kinds = where.format(f"query ids that are {fact.ids}", first.ids)
            raise ValueError(f"{kinds}; convert all to one type.")
    return filled


def size_of_data(data: RankingData) -> int:
    """Return the bytes of memory that a RankingData uses, for Dask's memory management."""
    queries = data.queries
    own = [data.y, queries.rows, queries.level, queries.offsets, data.sample_weight]
    return sum(array.nbytes for array in [*_arrays_of(data.X), *own] if array is not None)


def _arrays_of(X: Any) -> list[NDArray[Any]]:
    return [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]


sizeof.register(Part, lambda part: 0 if part.data is None else size_of_data(part.data))
