"""Reading of data larger than memory, in chunks of whole queries."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from marginrank import _core
from marginrank._utils.parameters import check_integer
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Integers
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import open_if_it_fits, whole_queries
from marginrank.io.letor import LetorText, assemble, feed, new_reader
from marginrank.io.text_sources import (
    Path,
    Progress,
    Source,
    as_list,
    name_all,
    source_name,
    texts_of,
)

CHUNK_DOCUMENTS = 1 << 16

Parsed = TypeVar("Parsed")


def iter_letor(
    source: Source | Sequence[Source],
    *,
    chunk_documents: int = CHUNK_DOCUMENTS,
    n_features: int | None = None,
    zero_based: bool = False,
    missing: float | str = "error",
    layout: str = "auto",
    dtype: DTypeLike = np.float32,
    n_jobs: int | None = None,
) -> Iterator[RankingData]:
    r"""Read LETOR text in chunks of whole queries, so that it need not fit in memory.

    Parameters
    ----------
    source : path, binary file object, or a list of them
        As in :func:`load_letor`. Every line needs a qid, and lines of a query must be adjacent.
    chunk_documents : int, default=65536
        A chunk ends with the query that reaches this number of documents.
    n_features : int, optional
        Number of features. By default, a chunk has as many features as were seen so far, so later
        chunks may have more.
    zero_based, missing, layout, dtype, n_jobs
        As in :func:`load_letor`. With ``layout="auto"``, all chunks have the layout of the first.

    Yields
    ------
    RankingData
        The next queries.

    Raises
    ------
    ValueError
        As in :func:`load_letor`, if a line has no qid, or if the lines of a query are not adjacent.

    Examples
    --------
    >>> import io
    >>> from marginrank import iter_letor
    >>> text = io.BytesIO(b"1 qid:a 1:2\n0 qid:a 1:1\n1 qid:b 1:4\n0 qid:b 1:3\n")
    >>> [chunk.n_documents for chunk in iter_letor(text, chunk_documents=1)]
    [2, 2]
    """
    check_integer("chunk_documents", chunk_documents, at_least=1)
    threads = effective_threads(n_jobs)
    begin = partial(
        new_reader,
        n_features=n_features,
        zero_based=zero_based,
        missing=missing,
        layout=layout,
        dtype=dtype,
    )
    begin()  # raise errors for bad options now, not when the first chunk is requested
    sources = as_list(source)
    take = _chunk_taker(name_all(sources), layout, threads)
    blocks = parsed_blocks(sources, begin, take, chunk_documents, threads)
    return _whole_queries(blocks, chunk_documents, n_jobs)


def parsed_blocks(
    sources: list[Source],
    begin: Callable[[], _core.LetorReader],
    take: Callable[[_core.LetorReader], Parsed],
    block_documents: int,
    threads: int,
    progress: Progress | None = None,
) -> Iterator[Parsed]:
    """Parse LETOR text in blocks of documents; yield ``take(parser)`` for each block.

    `begin` creates a parser of the C++ core, and `take` converts the documents that the parser has
    read since the last block. A block has at least `block_documents` documents and may end within
    a query.
    """
    reader, n_blocks = begin(), 0
    has_qid: bool | None = None  # whether lines of earlier blocks have a qid
    for source in sources:
        reader.begin_source()
        earlier, current = 0, 0  # lines of this source in earlier blocks, and in the current block
        for text, first, last in texts_of(source, progress):
            feed(reader, source_name(source), text, first, last, threads, earlier)
            n_documents, _, _, with_qid = reader.shape()
            if has_qid not in (None, with_qid) and n_documents > 0:
                line = earlier + current + _line_of_document(text, first)
                what = "a qid:, but others have none" if with_qid else "no qid:, but others have"
                raise ValueError(
                    f"{source_name(source)}:{line}:1: this line has {what}; "
                    "write qid: on all lines or none."
                )
            current += text.count(b"\n", first, last)
            if n_documents < block_documents:
                continue
            block = take(reader)
            has_qid = with_qid
            reader, n_blocks = begin(), n_blocks + 1
            earlier, current = earlier + current, 0
            yield block
            del block  # free the block's memory before the next block is parsed
    if n_blocks == 0 or reader.shape()[0] > 0:
        yield take(reader)


def _line_of_document(text: bytes, first: int) -> int:
    """Return the number (from 1) of the first line of text[first:] that holds a document."""
    lines = enumerate(io.BytesIO(text[first:]), 1)
    return next(k for k, line in lines if line.strip() and not line.lstrip().startswith(b"#"))


def _chunk_taker(name: str, layout: str, threads: int) -> Callable[[_core.LetorReader], LetorText]:
    """Return a function that converts parsed documents to LetorText.

    If `layout` is "auto", its first call chooses the layout of X for all later calls.
    """

    def take(reader: _core.LetorReader) -> LetorText:
        nonlocal layout
        block = assemble(reader, name, layout, False, None, threads)
        if block.qid is None:
            raise ValueError(f"{name} has lines without qid; add qid: to every line.")
        layout = "csr" if sp.issparse(block.X) else "dense"
        return block

    return take


def _whole_queries(
    blocks: Iterator[LetorText], chunk_documents: int, n_jobs: int | None
) -> Iterator[RankingData]:
    """Yield chunks of whole queries, each a RankingData, cut from blocks of parsed text.

    The last query of a block may be incomplete, so it moves to the next chunk.
    """
    seen: set[str] = set()
    rest: LetorText | None = None
    for block in blocks:
        joined = block if rest is None else _join(rest, block)
        cuts = [0]
        for start in query_starts(np.asarray(joined.qid)).tolist():
            if start - cuts[-1] >= chunk_documents:
                cuts.append(start)
        for first, last in pairwise(cuts):
            yield _chunk(joined, first, last, seen, n_jobs)
        rest = _rows(joined, cuts[-1], len(joined.y))
    if rest is not None:
        yield _chunk(rest, 0, len(rest.y), seen, n_jobs)


def query_starts(qid: NDArray[Any]) -> Integers:
    """Return the indices of the rows at which a new query begins, given the query of each row."""
    return np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]])[: qid.size])


def _rows(text: LetorText, first: int, last: int) -> LetorText:
    assert text.qid is not None
    cost = None if text.cost is None else text.cost[first:last]
    X, y, qid = (part[first:last] for part in (text.X, text.y, text.qid))
    return LetorText(X, y, qid, None, None, cost)


def _chunk(
    text: LetorText, first: int, last: int, seen: set[str], n_jobs: int | None
) -> RankingData:
    chunk = _rows(text, first, last)
    qid = np.asarray(chunk.qid)
    for query in qid[query_starts(qid)].tolist():
        if str(query) in seen:
            raise ValueError(
                f"query {query!r} appears again after other queries; sort the text by qid."
            )
        seen.add(str(query))
    return chunk.to_data(n_jobs)


def _join(above: LetorText, below: LetorText) -> LetorText:
    both = (above, below)
    qids = [np.asarray(text.qid) for text in both]
    if qids[0].dtype != qids[1].dtype:  # a block has integer ids only if all its ids are integers
        qids = [np.array([str(i) for i in ids], dtype=object) for ids in qids]
    cost = None
    if above.cost is not None or below.cost is not None:  # documents without a cost have cost 1
        cost = np.concatenate([np.ones(t.y.size) if t.cost is None else t.cost for t in both])
    y = np.concatenate([above.y, below.y])
    return LetorText(_stack(above.X, below.X), y, np.concatenate(qids), None, None, cost)


def _stack(above: Any, below: Any) -> Any:
    """Return two matrices stacked vertically; the narrower one is padded with zero columns."""
    width = max(above.shape[1], below.shape[1])
    if sp.issparse(above):
        parts = [part.copy() for part in (above, below)]
        for part in parts:
            part.resize(part.shape[0], width)
        return sp.csr_array(sp.vstack(parts, format="csr"))
    parts = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (above, below)]
    return np.concatenate(parts)


class ChunkSource:
    """LETOR text or a store that can be read several times in chunks of whole queries.

    Each call starts a new pass over the data and yields its chunks. Keyword arguments are passed to
    :func:`iter_letor`.
    """

    def __init__(
        self, source: Path | Sequence[Path], *, chunk_documents: int, **reading: Any
    ) -> None:
        sources = as_list(source)
        for one in sources:
            if one == "-" or not isinstance(one, (str, os.PathLike)):
                raise ValueError(
                    f"{source_name(one)} can be read only once; pass files, or call partial_fit "
                    "for each chunk of iter_letor."
                )
        self._sources = sources
        self._reading = reading | {"chunk_documents": chunk_documents}
        self.is_text = len(sources) > 1 or not os.path.isdir(str(sources[0]))
        self.feature_names: list[str] | None = None
        if self.is_text:
            iter_letor(sources, **self._reading)  # validates the options
        else:
            self._data = open_if_it_fits(sources[0])  # type: ignore[arg-type]
            self.feature_names = self._data.feature_names

    def __call__(self) -> Iterator[RankingData]:
        """Yield all chunks of the data, each a RankingData; every call is a new pass.

        In the first pass over text, later chunks may have more features than earlier ones.
        """
        if not self.is_text:
            if isinstance(self._data.X, StoredFeatures):
                yield from whole_queries(self._data, self._reading["chunk_documents"])
            else:
                yield self._data
            return
        n_features = 0
        for chunk in iter_letor(self._sources, **self._reading):
            n_features = max(n_features, chunk.n_features)
            yield chunk
        self._reading["n_features"] = n_features
