"""Text and tables as blocks of documents, of which a store is built."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from marginrank import _core
from marginrank._utils.threads import effective_threads
from marginrank.data.frames import from_frame
from marginrank.io.chunks import parsed_blocks
from marginrank.io.letor import (
    decode_comments,
    decode_ids,
    new_reader,
    no_documents,
    sparse_features,
    two_groupings,
)
from marginrank.io.store_builder import DocumentBlock
from marginrank.io.table_files import read_batches
from marginrank.io.text_sources import Path, Progress, Source, as_list, name_all


def text_blocks(
    source: Source | Sequence[Source],
    *,
    has_group: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    dtype: DTypeLike = np.float64,
    **reading: Any,
) -> Iterator[DocumentBlock]:
    """Read LETOR text in blocks, with features in CSR and query ids as strings.

    Parameters
    ----------
    source, n_jobs, progress
        As in :func:`load_letor`.
    has_group : bool, default=False
        Sizes of queries are known, so that lines must have no qid.
    dtype, **reading
        Options of :func:`~marginrank.io.letor.new_reader`.
    """
    sources = as_list(source)
    threads = effective_threads(n_jobs)

    begin = partial(new_reader, dtype=dtype, comments=True, **reading)

    def take(reader: _core.LetorReader) -> DocumentBlock:
        labels, lengths, ids, texts = reader.documents()
        n_rows, _, n_entries, has_qid = reader.shape()
        if n_rows == 0:
            raise no_documents(name_all(sources))
        if has_qid and has_group:
            raise two_groupings()
        qid = np.repeat(np.array(decode_ids(ids), dtype=object), lengths) if has_qid else None
        comments = decode_comments(texts)
        X = sparse_features(reader)
        cost = reader.costs()
        return DocumentBlock(X, labels, qid, cost=cost, comments=comments, n_given=n_entries)

    return parsed_blocks(sources, begin, take, 1, threads, progress)


def table_blocks(
    path: Path, *, label: str, qid: str | None, **columns: Any
) -> Iterator[DocumentBlock]:
    """Read a .parquet file in blocks, of columns named as in :meth:`RankingData.from_frame`."""
    first_row = 0
    for table in read_batches(path):
        yield from_frame(_block, table, label=label, qid=qid, first_row=first_row, **columns)
        first_row += table.num_rows


def _block(
    X: NDArray[Any],
    y: NDArray[Any],
    qid: NDArray[Any] | None,
    *,
    n_jobs: int | None,
    **others: Any,
) -> DocumentBlock:
    if not np.isfinite(X).all():
        raise ValueError("X has a number that is not finite; replace it.")  # from_frame says where
    return DocumentBlock(X, y, qid, **others)
