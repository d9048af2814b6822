"""Data in chunks of whole queries, for what need not fit in memory."""

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from marginrank import _core
from marginrank._base.parameters import check_integer
from marginrank._base.threads import effective_threads
from marginrank._base.types import Integers
from marginrank.data.formats.letor import LetorText, assemble, feed, new_reader
from marginrank.data.formats.text_sources import (
    Path,
    Source,
    as_list,
    name_all,
    source_name,
    texts_of,
)
from marginrank.data.ranking_data import RankingData

CHUNK_DOCUMENTS = 1 << 16


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
        As in :func:`load_letor`; every line has a qid, and those of a query are adjacent.
    chunk_documents : int, default=65536
        A chunk ends with the query that makes it so long; the last one may be shorter.
    n_features : int, optional
        Number of features. By default a chunk has as many as the text that was read up to then,
        some of which may come after it: a later chunk may have more, never fewer.
    zero_based, missing, layout, dtype, n_jobs
        As in :func:`load_letor`; layout "auto" decides for all chunks by the first text read.

    Yields
    ------
    RankingData

    Raises
    ------
    ValueError
        As in :func:`load_letor`, if a line has no qid, and if a query comes again after others; the
        ids of all queries are kept in memory to find that.

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

    def begin() -> _core.LetorReader:
        return new_reader(n_features, zero_based, missing, layout, dtype, False)

    begin()  # refuses bad options before the first chunk is asked for
    blocks = _blocks(as_list(source), begin, chunk_documents, layout, threads)
    return _whole_queries(blocks, chunk_documents, n_jobs)


def _blocks(
    sources: list[Source],
    begin: Callable[[], _core.LetorReader],
    block_documents: int,
    layout: str,
    threads: int,
) -> Iterator[LetorText]:
    """Yield the documents as they come, in blocks that may cut queries."""
    name = name_all(sources)
    reader, n_blocks = begin(), 0
    for source in sources:
        reader.begin_source()
        earlier, current = 0, 0  # lines of this source, by earlier readers and by this one
        for text, first, last in texts_of(source, None):
            feed(reader, source_name(source), text, first, last, threads, earlier)
            current += text.count(b"\n", first, last)
            if reader.shape()[0] < block_documents:
                continue
            block = _block(reader, name, layout, threads)
            layout = "csr" if sp.issparse(block.X) else "dense"
            yield block
            reader, n_blocks = begin(), n_blocks + 1
            earlier, current = earlier + current, 0
    if n_blocks == 0 or reader.shape()[0] > 0:
        yield _block(reader, name, layout, threads)


def _block(reader: _core.LetorReader, name: str, layout: str, threads: int) -> LetorText:
    block = assemble(reader, name, layout, False, None, threads)
    if block.qid is None:
        raise ValueError(f"{name} has lines without qid: chunks must know where queries end.")
    return block


def _whole_queries(
    blocks: Iterator[LetorText], chunk_documents: int, n_jobs: int | None
) -> Iterator[RankingData]:
    """Cut blocks where queries end; what is left of one begins the next."""
    seen: set[str] = set()
    rest: LetorText | None = None
    for block in blocks:
        joined = block if rest is None else _join(rest, block)
        starts = _query_starts(joined.qid)
        cuts = _cuts(starts, chunk_documents)
        for first, last in pairwise(cuts):
            yield _chunk(joined, first, last, seen, n_jobs)
        rest = _rows(joined, cuts[-1], len(joined.y))
    if rest is not None:
        yield _chunk(rest, 0, len(rest.y), seen, n_jobs)


def _query_starts(qid: Any) -> Integers:
    return np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))


def _cuts(starts: Integers, chunk_documents: int) -> list[int]:
    """Return 0 and starts of queries at least `chunk_documents` apart."""
    cuts = [0]
    for start in starts.tolist():
        if start - cuts[-1] >= chunk_documents:
            cuts.append(start)
    return cuts


def _rows(text: LetorText, first: int, last: int) -> LetorText:
    assert text.qid is not None
    return LetorText(text.X[first:last], text.y[first:last], text.qid[first:last], None, None)


def _chunk(
    text: LetorText, first: int, last: int, seen: set[str], n_jobs: int | None
) -> RankingData:
    chunk = _rows(text, first, last)
    assert chunk.qid is not None
    for query in chunk.qid[_query_starts(chunk.qid)].tolist():
        if str(query) in seen:
            raise ValueError(
                f"query {query!r} comes again after other queries; sort the text by qid."
            )
        seen.add(str(query))
    return chunk.to_data(n_jobs)


def _join(above: LetorText, below: LetorText) -> LetorText:
    qids = [np.asarray(above.qid), np.asarray(below.qid)]
    if qids[0].dtype != qids[1].dtype:  # ids are integers only where all of a block's are
        qids = [np.array([str(i) for i in ids], dtype=object) for ids in qids]
    return LetorText(
        _stack(above.X, below.X),
        np.concatenate([above.y, below.y]),
        np.concatenate(qids),
        None,
        None,
    )


def _stack(above: Any, below: Any) -> Any:
    """Put one matrix on the other; the narrower one gets columns of zeros."""
    width = max(above.shape[1], below.shape[1])
    if sp.issparse(above):
        parts = [part.copy() for part in (above, below)]
        for part in parts:
            part.resize(part.shape[0], width)
        return sp.csr_array(sp.vstack(parts, format="csr"))
    parts = [np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in (above, below)]
    return np.concatenate(parts)


class ChunkSource:
    """Files to be read again and again.

    Parameters
    ----------
    source : path or list of paths
        LETOR text, or the folder of a store.
    chunk_documents : int
        Documents of a chunk of text.
    **reading
        Options of :func:`iter_letor`.
    """

    def __init__(
        self, source: Path | Sequence[Path], *, chunk_documents: int, **reading: Any
    ) -> None:
        sources = as_list(source)
        for one in sources:
            if one == "-" or not isinstance(one, (str, os.PathLike)):
                raise ValueError(
                    f"{source_name(one)} can be read only once; give files, or call partial_fit "
                    "for each chunk of iter_letor."
                )
        self._store = len(sources) == 1 and os.path.isdir(str(sources[0]))
        self._sources = sources
        self._reading = reading | {"chunk_documents": chunk_documents}
        if self._store:
            self._data = RankingData.open(sources[0])  # type: ignore[arg-type]
        else:
            iter_letor(sources, **self._reading)

    @property
    def is_text(self) -> bool:
        """Whether this is text, of which only chunks are in memory."""
        return not self._store

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features of a store that has them."""
        return self._data.feature_names if self._store else None

    def __call__(self) -> Iterator[RankingData]:
        """Read all chunks; from the second time on, they have the same features."""
        if self._store:
            yield self._data
            return
        n_features = 0
        for chunk in iter_letor(self._sources, **self._reading):
            n_features = max(n_features, chunk.n_features)
            yield chunk
        self._reading["n_features"] = n_features
