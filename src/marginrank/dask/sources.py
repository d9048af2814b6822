"""What a fit is given, as futures of chunks: a dataframe, an array, or stores."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dask import delayed
from dask.base import is_dask_collection
from distributed import Client, Future

from marginrank.dask.chunks import (
    ROLES,
    chunk_of_blocks,
    chunk_of_frame,
    chunk_of_store,
    plan_store,
)
from marginrank.dask.clusters import fetch, map_tasks


@dataclass(frozen=True)
class Source:
    """Documents on a cluster.

    Attributes
    ----------
    chunks : list of Future
        A :class:`~marginrank.dask.chunks.Chunk` for each partition, or range of a store.
    feature_names : list of str or None
        Names of the features.
    """

    chunks: list[Future]
    feature_names: list[str] | None


def open_source(client: Client, X: Any, **columns: Any) -> Source:
    """Return the documents of X, with columns by role (y, qid, …), as futures of chunks."""
    given = {role: columns[role] for role in ROLES if columns.get(role) is not None}
    if is_frame(X):
        return _of_frame(client, X, given)
    if is_array(X):
        return _of_array(client, X, given)
    paths = store_paths(X)
    if paths is None:
        raise TypeError(
            f"X is a {type(X).__name__} and must be a Dask dataframe, a Dask array or a list of "
            "store paths; data in memory are for RankSVM, or dask.array.from_array."
        )
    for role in given:
        raise ValueError(f"{role} was given beside stores, which bring their own; drop it.")
    return _of_stores(client, paths)


def is_frame(X: Any) -> bool:
    """Tell whether X is a Dask dataframe."""
    return is_dask_collection(X) and hasattr(X, "map_partitions") and hasattr(X, "columns")


def is_array(X: Any) -> bool:
    """Tell whether X is a Dask array."""
    return is_dask_collection(X) and hasattr(X, "map_blocks")


def store_paths(X: Any) -> list[str] | None:
    """Return the paths of stores, or None if X is something else."""
    paths = [X] if isinstance(X, (str, os.PathLike)) else X
    if not isinstance(paths, (list, tuple)) or not paths:
        return None
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        return None
    # Workers may have another working directory.
    return [os.path.abspath(path) for path in paths]


def _of_frame(client: Client, X: Any, given: dict[str, Any]) -> Source:
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
    return Source(client.compute(chunks), [str(name) for name in features] if named else None)


def _of_array(client: Client, X: Any, given: dict[str, Any]) -> Source:
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s) and needs 2 (documents × features).")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    n = X.numblocks[0]
    blocks = {role: _blocks(column, role, X) for role, column in given.items()}
    _require_labels(blocks, n)
    read = delayed(chunk_of_blocks)
    chunks = [
        read(k, X_block, {role: parts[k] for role, parts in blocks.items()})
        for k, X_block in enumerate(X.to_delayed().ravel())
    ]
    return Source(client.compute(chunks), None)


def _of_stores(client: Client, paths: Sequence[str]) -> Source:
    plans = fetch(client, map_tasks(client, plan_store, paths))
    names = plans[0].feature_names
    for path, plan in zip(paths, plans, strict=True):
        if plan.feature_names != names:
            raise ValueError(
                f"{path} has other feature names than {paths[0]}; give stores of the same features."
            )
    ranges = [span for plan in plans for span in plan.ranges]
    return Source(map_tasks(client, chunk_of_store, range(len(ranges)), ranges), names)


def _require_labels(given: dict[str, Any], n_partitions: int) -> None:
    if "y" not in given:
        raise ValueError("y is None; give labels, as a column of X or as a Dask collection.")
    if "qid" not in given and n_partitions > 1:
        raise ValueError(
            f"qid is None: all {n_partitions} partitions would be one query, and a query must not "
            "be cut; give qid."
        )


def _partitions(collection: Any, name: str, n: int) -> list[Any]:
    """Return a delayed object for each partition of a dataframe or series."""
    partitions = list(
        collection.to_delayed().ravel() if is_array(collection) else collection.to_delayed()
    )
    if len(partitions) != n:
        raise ValueError(f"{name} has {len(partitions)} partitions and X has {n}; give as many.")
    return partitions


def _blocks(column: Any, name: str, X: Any) -> list[Any]:
    """Return a delayed object for each block of a column that belongs to X."""
    if not is_dask_collection(column):
        raise TypeError(
            f"{name} is a {type(column).__name__} and X a Dask array; give a Dask array, such as "
            f"dask.array.from_array({name}, chunks=X.chunks[0])."
        )
    if is_array(column) and column.ndim == 1 and column.chunks[0] != X.chunks[0]:
        known = column.shape == X.shape[:1]  # unknown sizes are nan, which equals nothing
        column = column.rechunk((X.chunks[0],)) if known else column
    return _partitions(column, name, X.numblocks[0])
