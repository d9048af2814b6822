"""Queries split over several Dask partitions: a check that finds them, a shuffle that joins them.

Query ids are not collected on the client. Instead, workers exchange hashes of the ids in buckets;
equal hashes are in the same bucket.
"""

import operator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from marginrank._utils.parameters import ParameterError, Wording
from marginrank._utils.types import Integers
from marginrank.dask.chunks import Chunk, concatenate
from marginrank.dask.clusters import bundle_parts, fetch, map_tasks
from marginrank.dask.parts import Part, PartFacts
from marginrank.data.queries import group_rows

BUCKET = 1 << 20  # approximate number of hashes that one task compares
SHOWN = 100  # most shared hashes per bucket whose ids are compared
MOST_PARTITIONS = 512  # limit for a shuffle, whose number of tasks is quadratic

Hashes = NDArray[np.uint64]


class SharedHash(NamedTuple):
    """A hash of query ids that occurs in two partitions, and the indices of both partitions."""

    hash: int
    first: int
    second: int


def hash_ids(ids: NDArray[Any]) -> Hashes:
    """Return a hash for each query id; ids that are equal, such as 1 and 1.0, have equal hashes."""
    from pandas.util import hash_array

    if ids.dtype.kind == "O":
        values = ids.tolist()
        is_number = all(isinstance(value, (bool, int, float)) for value in values)
        ids = np.asarray(values) if is_number else ids.astype(str)
    if ids.dtype.kind not in "biuf":
        ids = ids.astype(object)
    elif ids.dtype.kind != "f" or np.array_equal(ids, np.trunc(ids)):
        ids = ids.astype(np.int64)
    hashes: Hashes = hash_array(ids)
    return hashes


def check_whole_queries(client: Client, parts: list[Future], facts: list[PartFacts]) -> None:
    """Raise ValueError if a query has documents in two partitions of the Dask collection."""
    if len(parts) < 2:
        return
    n_buckets = -(-sum(fact.n_queries for fact in facts) // BUCKET)
    members = bundle_parts(client, parts, [fact.n_documents for fact in facts]).members
    bundles = [[parts[k] for k in bundle] for bundle in members]
    split = map_tasks(client, _hash_buckets, bundles, members, n_buckets=n_buckets)
    shared = map_tasks(client, _shared, _transposed(client, split, n_buckets))
    for found in chain.from_iterable(fetch(client, shared)):
        pair = [found.first, found.second]
        ids = map_tasks(client, _ids_with, [parts[k] for k in pair], hash_=found.hash)
        first, second = fetch(client, ids)
        cut = [query for query in first if query in second]
        if cut:
            where = " and ".join(str(facts[k].number) for k in pair)
            raise ParameterError(
                f"query {cut[0]!r} is in the partitions {where}, but queries must not be split; ",
                Wording('set partitions="by_query" to shuffle, or '),
                "write stores of whole queries.",
            )


class HashedQueries(NamedTuple):
    """Hashes of query ids, each with the index of the partition that the id comes from."""

    hashes: Hashes
    parts: Integers


def _hash_buckets(parts: list[Part], numbers: list[int], n_buckets: int) -> list[HashedQueries]:
    """Dask task: hash the query ids of several parts of X, and divide the hashes into buckets."""
    found = [np.unique(hash_ids(part.data.query_ids)) for part in parts if part.data is not None]
    hashes = np.concatenate(found)
    part = np.repeat(numbers, [some.size for some in found])
    bucket = hashes % np.uint64(n_buckets)
    return [HashedQueries(hashes[bucket == k], part[bucket == k]) for k in range(n_buckets)]


def _shared(queries: list[HashedQueries]) -> list[SharedHash]:
    """Dask task: return up to SHOWN hashes of a bucket that occur in two parts of X."""
    hashes = np.concatenate([some.hashes for some in queries])
    part = np.concatenate([some.parts for some in queries])
    order = np.lexsort((part, hashes))
    hashes, part = hashes[order], part[order]
    twice = np.flatnonzero(hashes[1:] == hashes[:-1])
    twice = twice[np.argsort(part[twice], kind="stable")][:SHOWN]
    return [SharedHash(int(hashes[k]), int(part[k]), int(part[k + 1])) for k in twice]


def _ids_with(part: Part, hash_: int) -> list[Any]:
    assert part.data is not None
    ids = part.data.query_ids
    found: list[Any] = ids[hash_ids(ids) == np.uint64(hash_)].tolist()
    return found


def bring_queries_together(client: Client, chunks: list[Future]) -> list[Future]:
    """Shuffle documents on a Dask cluster so that no query is split over two partitions.

    The documents of a query keep their order.
    """
    n = len(chunks)
    if n > MOST_PARTITIONS:
        raise ValueError(
            f'partitions="by_query" supports at most {MOST_PARTITIONS} partitions, got {n}; '
            "repartition X, or write stores of whole queries."
        )
    if n == 1:
        return chunks
    split = map_tasks(client, _split_chunk, chunks, n=n)
    return map_tasks(client, _join_chunks, _transposed(client, split, n))


def _split_chunk(chunk: Chunk, n: int) -> list[Chunk]:
    assert chunk.qid is not None
    target = hash_ids(np.asarray(chunk.qid)) % np.uint64(n)
    return [chunk.take(np.flatnonzero(target == k)) for k in range(n)]


def _join_chunks(chunks: list[Chunk]) -> Chunk:
    filled = [chunk for chunk in chunks if chunk.n_rows]
    if not filled:
        return chunks[0]
    chunk = concatenate(filled)
    rows = group_rows(chunk.n_rows, chunk.qid, None).documents.rows
    return chunk if rows is None else chunk.take(rows)


def _transposed(client: Client, split: list[Future], n: int) -> list[list[Future]]:
    """Return n lists of futures, given futures of lists: list k has item k of each of them."""
    lists = [items for _ in range(n) for items in split]
    items = map_tasks(client, operator.getitem, lists, np.repeat(np.arange(n), len(split)).tolist())
    return [items[first : first + len(split)] for first in range(0, len(items), len(split))]
