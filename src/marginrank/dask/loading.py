"""Loading of Dask dataframes, Dask arrays and stores on the workers of a cluster."""

import os
from dataclasses import dataclass
from typing import Any

from dask import delayed
from dask.base import is_dask_collection
from distributed import Client, Future

from marginrank._utils.parameters import check_choice
from marginrank.dask.chunks import chunk_of_blocks, chunk_of_frame, chunk_of_store, plan_store
from marginrank.dask.clusters import fetch, map_tasks
from marginrank.dask.cuts import bring_queries_together, check_whole_queries
from marginrank.dask.parts import PartFacts, check_alike, facts_of, make_part

PARTITIONS = ("as_is", "by_query")
ROLES = ("y", "qid", "sample_weight", "query_weight", "propensity")
WRONG_X = (
    "X is a {} and must be a Dask dataframe, a Dask array or a list of store paths; for data in "
    "memory use {}."
)

Names = list[str] | None


@dataclass(frozen=True)
class LoadedParts:
    """Documents on the workers of a Dask cluster, as futures of parts with whole queries.

    `facts` has the counts of each part. Empty parts are left out.
    """

    parts: list[Future]
    facts: list[PartFacts]
    feature_names: Names

    def release(self) -> None:
        """Drop the futures, so workers can free the memory of the documents; `facts` remains."""
        self.parts.clear()

    @property
    def n_documents(self) -> int:
        return sum(fact.n_documents for fact in self.facts)

    @property
    def n_queries(self) -> int:
        return sum(fact.n_queries for fact in self.facts)

    @property
    def n_features(self) -> int:
        return self.facts[0].n_features

    @property
    def n_bytes(self) -> int:
        return sum(fact.n_bytes for fact in self.facts)


def load_parts(client: Client, X: Any, partitions: str = "as_is", **columns: Any) -> LoadedParts:
    """Load documents on the workers of a Dask cluster, check them and group them by query.

    `columns` are the arguments of a fit by name: y, qid and so on. With ``partitions="as_is"``, a
    query in two partitions raises ValueError; with "by_query", documents are shuffled by query
    first.
    """
    chunks, names = _open(client, X, columns)
    check_choice("partitions", partitions, PARTITIONS)
    loaded = _make_parts(client, chunks, names)
    if partitions == "as_is":
        check_whole_queries(client, loaded.parts, loaded.facts)
        return loaded
    return _make_parts(client, bring_queries_together(client, chunks), names)


def _make_parts(client: Client, chunks: list[Future], names: Names) -> LoadedParts:
    parts = map_tasks(client, make_part, range(len(chunks)), chunks)
    facts = fetch(client, map_tasks(client, facts_of, parts))
    filled = check_alike(facts)
    return LoadedParts([parts[fact.number] for fact in filled], filled, names)


def _open(client: Client, X: Any, columns: dict[str, Any]) -> tuple[list[Future], Names]:
    """Return the documents as futures, one per partition or store range, and feature names."""
    given = {role: columns[role] for role in ROLES if columns.get(role) is not None}
    if is_frame(X):
        return _open_frame(client, X, given)
    if is_array(X):
        return _open_array(client, X, given), None
    paths = store_paths(X)
    if paths is None:
        instead = "RankSVM, or dask.array.from_array"
        raise TypeError(WRONG_X.format(type(X).__name__, instead))
    for role in given:
        raise ValueError(
            f"{role} cannot be passed with stores, because they already contain it; drop {role}."
        )
    return _open_stores(client, paths)


def is_frame(X: Any) -> bool:
    """Return True if X is a Dask dataframe."""
    return is_dask_collection(X) and hasattr(X, "map_partitions") and hasattr(X, "columns")


def is_array(X: Any) -> bool:
    """Return True if X is a Dask array."""
    return is_dask_collection(X) and hasattr(X, "map_blocks")


def store_paths(X: Any) -> list[str] | None:
    """Return absolute paths of stores if X is a path or a list of paths, else None."""
    paths = [X] if isinstance(X, (str, os.PathLike)) else X
    if not isinstance(paths, (list, tuple)) or not paths:
        return None
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return None
    # Workers may have another working directory.
    return [os.path.abspath(path) for path in paths]


def _open_frame(client: Client, X: Any, given: dict[str, Any]) -> tuple[list[Future], Names]:
    columns: dict[str, Any] = {}
    beside: list[tuple[Any, Any]] = []
    for role, column in given.items():
        if is_dask_collection(column):
            columns[role] = ("beside", role)
            beside.append((columns[role], _partitions(column, role, X.npartitions)))
        elif column in list(X.columns):
            columns[role] = column
        else:
            raise ValueError(
                f"{role} must be a column of X or a Dask series; X has no column {column!r}."
            )
    _require_labels(columns, X.npartitions)
    features = [name for name in X.columns if name not in columns.values()]
    if not features:
        raise ValueError("X has no column left for the features.")
    read = delayed(chunk_of_frame)
    chunks = [
        read(k, frame, columns, features, [(name, parts[k]) for name, parts in beside])
        for k, frame in enumerate(_partitions(X, "X", X.npartitions))
    ]
    named = all(isinstance(name, str) for name in features)
    return client.compute(chunks), [str(name) for name in features] if named else None


def _open_array(client: Client, X: Any, given: dict[str, Any]) -> list[Future]:
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions (documents × features), got {X.ndim}.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    blocks = {role: _blocks(column, role, X) for role, column in given.items()}
    _require_labels(blocks, X.numblocks[0])
    read = delayed(chunk_of_blocks)
    chunks = [
        read(k, X_block, {role: parts[k] for role, parts in blocks.items()})
        for k, X_block in enumerate(X.to_delayed().ravel())
    ]
    futures: list[Future] = client.compute(chunks)
    return futures


def _open_stores(client: Client, paths: list[str]) -> tuple[list[Future], Names]:
    plans = fetch(client, map_tasks(client, plan_store, paths))
    names = plans[0].feature_names
    for path, plan in zip(paths, plans, strict=True):
        if plan.feature_names != names:
            raise ValueError(
                f"Feature names of {path} and {paths[0]} differ; use stores of the same features."
            )
    ranges = [span for plan in plans for span in plan.ranges]
    return map_tasks(client, chunk_of_store, range(len(ranges)), ranges), names


def _require_labels(given: dict[str, Any], n_partitions: int) -> None:
    if "y" not in given:
        raise ValueError("y is None; pass labels, as a column of X or as a Dask collection.")
    if "qid" not in given and n_partitions > 1:
        raise ValueError(
            f"qid is None, but one query cannot span all {n_partitions} partitions; pass qid."
        )


def _partitions(collection: Any, name: str, n: int) -> list[Any]:
    """Return one delayed object per partition of a Dask collection that must have n partitions."""
    found = collection.to_delayed()
    partitions = list(found.ravel() if is_array(collection) else found)
    if len(partitions) != n:
        raise ValueError(f"{name} has {len(partitions)} partitions and X has {n}; repartition it.")
    return partitions


def _blocks(column: Any, name: str, X: Any) -> list[Any]:
    """Return a delayed object per block of `column`, a Dask array with one entry per row of X."""
    if not is_dask_collection(column):
        raise TypeError(
            f"{name} is a {type(column).__name__} and X a Dask array; pass a Dask array, such as "
            f"dask.array.from_array({name}, chunks=X.chunks[0])."
        )
    if is_array(column) and column.ndim == 1 and column.chunks[0] != X.chunks[0]:
        known = column.shape == X.shape[:1]  # unknown sizes are nan, which is not equal to itself
        column = column.rechunk((X.chunks[0],)) if known else column
    return _partitions(column, name, X.numblocks[0])
