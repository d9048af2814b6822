"""Parts: documents of whole queries, checked and grouped on the worker that holds them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof
from numpy.typing import NDArray

from marginrank._utils.types import Floats
from marginrank.dask.chunks import Chunk
from marginrank.dask.places import in_partition
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import check_propensity


@dataclass
class Part:
    """Documents on a worker.

    Attributes
    ----------
    number : int
        Number of the partition that they came from.
    data : RankingData or None
        The documents; None where there are none.
    propensity : ndarray of shape (n_documents,), or None
        Probabilities that documents were examined.
    """

    number: int
    data: RankingData | None
    propensity: Floats | None = None


class PartFacts(NamedTuple):
    """What the client learns of a part.

    Attributes
    ----------
    number : int
        Number of the partition.
    n_documents, n_queries, n_features, n_entries : int
        Counts; of the entries that X has.
    n_bytes : int
        What X takes in memory.
    features, ids : str
        What X and the query ids are made of.
    """

    number: int
    n_documents: int
    n_queries: int
    n_features: int
    n_entries: int
    n_bytes: int
    features: str
    ids: str


@in_partition
def make_part(number: int, chunk: Chunk) -> Part:
    """Check and group the documents of a partition."""
    if chunk.n_rows == 0:
        return Part(number, None)
    data = RankingData(
        chunk.X,
        chunk.y,
        chunk.qid,
        sample_weight=chunk.sample_weight,
        n_jobs=1,
    )
    if chunk.query_weight is not None:
        data.query_weight = _weight_by_query(data, chunk.query_weight)
    return Part(number, data, check_propensity(chunk.propensity, data.n_documents))


def _weight_by_query(data: RankingData, weights: NDArray[Any]) -> Floats | None:
    """Return the weights of the queries, which are repeated for each document.

    A RankingData would take a weight a document for one a query, where these are as many.
    """
    if data.n_documents != data.n_queries:
        return data._by_query(weights)
    return data._by_query(data.queries.grouped(np.asarray(weights)))


def facts_of(part: Part) -> PartFacts:
    """Return what the client has to know."""
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
    """Return what query ids are, in words; floats and integers may be equal."""
    if ids.dtype.kind in "biuf":
        return "numbers"
    if ids.dtype.kind != "O":
        return "strings" if ids.dtype.kind == "U" else str(ids.dtype)
    kinds = {type(value) for value in ids.tolist()}
    if kinds <= {int, float, bool}:
        return "numbers"
    return "strings" if kinds == {str} else "objects"


def check_alike(facts: list[PartFacts]) -> list[PartFacts]:
    """Return the facts of parts that have documents, after comparing them with each other."""
    filled = [fact for fact in facts if fact.n_documents]
    if not filled:
        raise ValueError(
            f"X has no documents: all {len(facts)} partitions are empty; give documents."
        )
    first = filled[0]
    for fact in filled[1:]:
        where = f"partition {fact.number} has {{}} and partition {first.number} has {{}}"
        if fact.n_features != first.n_features:
            counts = (f"{fact.n_features} features", str(first.n_features))
            raise ValueError(f"{where.format(*counts)}; give all the same features.")
        if fact.features != first.features:
            kinds = where.format(fact.features, first.features)
            raise ValueError(f"{kinds}; convert all to one type, such as float32.")
        if fact.ids != first.ids:
            kinds = where.format(f"query ids that are {fact.ids}", first.ids)
            raise ValueError(f"{kinds}; convert all to one type.")
    return filled


def _size_of_part(part: Part) -> int:
    """Return the bytes that Dask would have to move."""
    return 0 if part.data is None else size_of_data(part.data)


def size_of_data(data: RankingData) -> int:
    """Return the bytes of some documents."""
    X, queries = data.X, data.queries
    arrays = [
        *_arrays_of(X),
        data.y,
        queries.rows,
        queries.level,
        queries.offsets,
        data.sample_weight,
    ]
    return sum(array.nbytes for array in arrays if array is not None)


def _arrays_of(X: Any) -> list[NDArray[Any]]:
    return [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]


sizeof.register(Part, _size_of_part)
