"""Conversion of text or tables to a store (binary folder), in blocks that fit in memory."""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from marginrank import _core
from marginrank._utils.memory import gigabytes
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.frames import from_frame
from marginrank.data.queries import (
    Documents,
    Grouping,
    Queries,
    group_rows,
    numbered,
    weights_by_query,
)
from marginrank.data.store.feature_rows import Entries, FeatureRows
from marginrank.data.store.store import (
    DataParts,
    Path,
    StoredText,
    encode_texts,
    increases,
    ranked_ranges,
)
from marginrank.data.store.store_writer import new_store, write_parts
from marginrank.data.validation import check_exact_labels, check_not_empty, check_weights
from marginrank.io.chunks import parsed_blocks, query_starts
from marginrank.io.letor import (
    check_documents,
    decode_ids,
    float32_holds_all,
    ids_of_text,
    new_reader,
    smaller_layout,
    sparse_features,
)
from marginrank.io.table_files import read_batches
from marginrank.io.text_sources import Progress, Source, as_list, name_all

SPILLED = "spilled"  # temporary subfolder of the store for documents in input order
WEIGHTS = ("sample_weight", "query_weight")
AT_A_TIME = 1 << 18  # documents processed at a time
DOCUMENT_BYTES = 64  # upper bound for the bytes on disk per document, besides X


class DocumentBlock(NamedTuple):
    """Consecutive documents of a text or table; fields are named as in :class:`RankingData`.

    A query may span blocks. A field must be None in all blocks of a data set or in none, except
    `cost`.
    """

    X: Any  # array or CSR; a CSR block may lack the last columns, which are zeros then
    y: NDArray[Any]
    qid: NDArray[Any] | None = None
    sample_weight: NDArray[Any] | None = None
    query_weight: NDArray[Any] | None = None
    cost: NDArray[Any] | None = None
    position: NDArray[Any] | None = None
    comments: list[str] | None = None
    feature_names: list[str] | None = None
    # Number of entries written in the source, including zeros; None if X holds all of them.
    n_given: int | None = None


class StoreSummary(NamedTuple):
    """Result of :func:`build_store`: properties of the new store."""

    dtype: np.dtype[Any]  # type of the features in memory
    moved: bool  # whether documents were reordered to make queries contiguous


def text_blocks(
    source: Source | Sequence[Source],
    *,
    has_group: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    dtype: DTypeLike = np.float64,
    **reading: Any,
) -> Iterator[DocumentBlock]:
    """Yield blocks of documents of LETOR text, with CSR features and query ids as strings.

    `has_group` says that the caller has group sizes instead of query ids; lines with qid then raise
    ValueError. Other options are passed to the parser, as in :func:`load_letor`.
    """
    sources = as_list(source)

    def take(reader: _core.LetorReader) -> DocumentBlock:
        check_documents(reader, name_all(sources), has_group)
        labels, lengths, ids, texts = reader.documents()
        _, _, n_entries, has_qid = reader.shape()
        return DocumentBlock(
            sparse_features(reader),
            labels,
            np.repeat(np.array(decode_ids(ids), dtype=object), lengths) if has_qid else None,
            cost=reader.costs(),
            comments=[text.decode("utf-8", "replace") for text in texts],
            n_given=n_entries,
        )

    begin = partial(new_reader, dtype=dtype, comments=True, **reading)
    return parsed_blocks(sources, begin, take, 1, effective_threads(n_jobs), progress)


def table_blocks(
    path: Path, *, label: str, qid: str | None, **columns: Any
) -> Iterator[DocumentBlock]:
    """Yield the rows of a .parquet file as blocks of documents.

    `label`, `qid` and `columns` are column names, as in :meth:`RankingData.from_frame`.
    """

    def make(X: Any, y: Any, ids: Any, *, n_jobs: int | None, **others: Any) -> DocumentBlock:
        if not np.isfinite(X).all():
            raise ValueError("X is not finite.")  # from_frame replaces this by a better message
        return DocumentBlock(X, y, ids, **others)

    first_row = 0
    for table in read_batches(path):
        yield from_frame(make, table, label=label, qid=qid, first_row=first_row, **columns)
        first_row += table.num_rows


def build_store(
    blocks: Iterable[DocumentBlock],
    folder: Path,
    *,
    overwrite: bool = False,
    group: Callable[[int], Integers] | None = None,
    layout: str = "auto",
    of_text: bool = False,
    narrow: bool = False,
) -> StoreSummary:
    """Write blocks of documents to a store, grouped by query and packed if that saves space.

    Documents are first written to temporary files, then query by query to the store, so they need
    not fit in memory. Memory is needed for one block, the ids of the queries, and 12 bytes per
    document while documents are sorted by query.

    Parameters
    ----------
    blocks : iterable of DocumentBlock
        The documents.
    folder : path
        The store to write.
    overwrite : bool
        Replace an existing store.
    group : callable, optional
        Needed if blocks have no `qid`: takes the number of documents and returns the sizes of the
        queries.
    layout : {"auto", "dense", "csr"}
        Layout in the store of features that blocks hold as CSR; "auto" chooses the smaller one.
    of_text : bool
        Whether query ids were read from text, so they become integers if all are decimal integers.
    narrow : bool
        Store float64 features as float32 if no decimal digit is lost.
    """
    with _naming_full_disk(folder), new_store(folder, overwrite) as temporary:
        place = os.path.join(temporary, SPILLED)
        os.mkdir(place)
        with SpilledArrays(place) as arrays:
            spill = _Spill(arrays, narrow)
            for block in blocks:
                spill.add(block)
                del block  # free the block's memory before the next block is read
            data = spill.data(group, layout, of_text)
            _check_disk_space(data, temporary)
            write_parts(data, temporary, packed=True, grouped=True)
        shutil.rmtree(place)
    return StoreSummary(data.X.dtype, data.queries.rows is not None)


class SpilledArrays:
    """Arrays too large for memory: entries are appended to temporary files, then memory-mapped."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._files: dict[str, IO[bytes]] = {}
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._ends: dict[str, int] = {}

    def __enter__(self) -> "SpilledArrays":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()  # arrays that map the files stay valid

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def append(self, name: str, entries: NDArray[Any]) -> None:
        if name not in self._files:
            path = os.path.join(self._folder, name)
            self._files[name] = self._stack.enter_context(open(path, "xb"))  # noqa: SIM115
            self._dtypes[name] = entries.dtype
        assert entries.dtype == self._dtypes[name]
        self._files[name].write(np.ascontiguousarray(entries).reshape(-1).view(np.uint8).data)

    def append_lengths(self, name: str, lengths: Integers) -> None:
        """Append rows of the given lengths to an array of row offsets, like the `indptr` of CSR."""
        if name not in self._files:
            self.append(name, np.zeros(1, dtype=np.int64))
        ends = self._ends.get(name, 0) + np.cumsum(lengths, dtype=np.int64)
        self.append(name, ends)
        if ends.size:
            self._ends[name] = int(ends[-1])

    def array(self, name: str) -> NDArray[Any]:
        """Return an array, memory-mapped read-only, and close it for further entries."""
        self._files[name].close()
        path = os.path.join(self._folder, name)
        if os.path.getsize(path) == 0:
            return np.empty(0, dtype=self._dtypes[name])
        return np.asarray(np.memmap(path, dtype=self._dtypes[name], mode="r"))

    def kept(self, name: str, entries: NDArray[Any]) -> NDArray[Any]:
        self.append(name, entries)
        return self.array(name)


class _Spill:
    """Documents spilled to temporary files as they are read; only query ids stay in memory."""

    def __init__(self, arrays: SpilledArrays, narrow: bool) -> None:
        self._arrays = arrays
        self._narrow = narrow  # True while float32 holds all digits
        self._number_of: dict[
            Any, int
        ] = {}  # integer code of each query id, in order of first appearance
        self._ids_dtype: np.dtype[Any] = np.dtype(np.int64)
        self._feature_names: list[str] | None = None
        self._n_rows = 0
        self._n_features = 0
        self._n_given = 0
        self._dtype: np.dtype[Any] = np.dtype(np.float32)
        self._sparse = False

    def add(self, block: DocumentBlock) -> None:
        arrays = self._arrays
        self._add_costs(block)
        self._add_features(block)
        self._feature_names = block.feature_names
        arrays.append("y", block.y)
        if block.qid is not None:
            self._ids_dtype = block.qid.dtype
            starts = query_starts(block.qid)
            numbers = numbered(block.qid[starts].tolist(), self._number_of)
            arrays.append("query", np.repeat(numbers, np.diff(starts, append=block.qid.size)))
        for name in WEIGHTS:
            weights = getattr(block, name)
            if weights is not None:
                arrays.append(name, weights.astype(np.float64, copy=False))
        if block.position is not None:
            arrays.append("position", block.position)
        if block.comments is not None:
            text, offsets = encode_texts(block.comments)
            arrays.append("comments", text)
            arrays.append_lengths("comments_offsets", np.diff(offsets))

    def _add_costs(self, block: DocumentBlock) -> None:
        """Append the costs of the documents of a block: 1 for each if the block has no costs.

        Nothing is written until a block has costs. Then all earlier documents get cost 1.
        """
        if block.cost is None and "cost" not in self._arrays:
            return
        if "cost" not in self._arrays:
            for first in range(0, self._n_rows, AT_A_TIME):
                self._arrays.append("cost", np.ones(min(AT_A_TIME, self._n_rows - first)))
        self._arrays.append("cost", np.ones(len(block.y)) if block.cost is None else block.cost)

    def _add_features(self, block: DocumentBlock) -> None:
        X = block.X
        self._sparse = sp.issparse(X)
        self._dtype, self._n_features = X.dtype, max(self._n_features, X.shape[1])
        self._n_rows += X.shape[0]
        entries = X.data if self._sparse else X.reshape(-1)
        self._n_given += entries.size if block.n_given is None else block.n_given
        self._narrow = self._narrow and float32_holds_all(entries)
        self._arrays.append("X", entries)
        if self._sparse:
            self._arrays.append("indices", X.indices.astype(np.int32, copy=False))
            self._arrays.append_lengths("indptr", np.diff(X.indptr))

    def data(
        self, group: Callable[[int], Integers] | None, layout: str, of_text: bool
    ) -> DataParts:
        """Return all documents as a data set that is validated and grouped by query."""
        arrays = self._arrays
        X = self._features(layout)
        given = arrays.array("y")
        y = check_exact_labels(given, given.size)
        y = given if y.dtype == given.dtype else arrays.kept("labels", y)
        documents, query_ids = self._grouping(group, of_text)
        comments = None
        if "comments" in arrays:
            comments = StoredText(arrays.array("comments"), arrays.array("comments_offsets"))
        parts = DataParts(
            X=X,
            y=y,
            queries=self._ranked(y, documents),
            query_ids=query_ids,
            sample_weight=self._document_weights("sample_weight"),
            query_weight=None,
            feature_names=self._feature_names,
            comments=comments,
            cost=self._document_weights("cost"),
            position=arrays.array("position") if "position" in arrays else None,
        )
        if "query_weight" not in arrays:
            return parts
        weights = weights_by_query(arrays.array("query_weight"), parts.queries)
        return parts._replace(query_weight=weights)

    def _features(self, layout: str) -> FeatureRows:
        shape = (self._n_rows, self._n_features)
        check_not_empty(shape)
        dtype = np.dtype(np.float32) if self._narrow else self._dtype
        values = self._arrays.array("X")
        if not self._sparse:
            return FeatureRows.of(values.reshape(shape))
        smaller = smaller_layout(*shape, self._n_given)
        dense = (smaller if layout == "auto" else layout) == "dense"
        entries = Entries(values, self._arrays.array("indices"), self._arrays.array("indptr"))
        return FeatureRows.of_entries(entries, shape, dtype, dense=dense)

    def _document_weights(self, name: str) -> Floats | None:
        if name not in self._arrays:
            return None
        weights = self._arrays.array(name)
        return check_weights(weights, name, weights.size, "one weight per document")

    def _grouping(self, group: Callable[[int], Integers] | None, of_text: bool) -> Grouping:
        if "query" not in self._arrays:
            n = self._n_rows
            return group_rows(n, None, [n] if group is None else group(n))
        numbers = self._arrays.array("query")
        sizes = np.zeros(len(self._number_of), dtype=np.int64)
        for first in range(0, numbers.size, AT_A_TIME):
            sizes += np.bincount(numbers[first : first + AT_A_TIME], minlength=sizes.size)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = None
        if not increases(numbers):
            rows = self._arrays.kept("rows", np.argsort(numbers, kind="stable"))
        values = list(self._number_of)
        self._number_of.clear()
        if of_text:
            return Grouping(Documents(offsets, rows), ids_of_text(values))
        ids = np.empty(len(values), dtype=self._ids_dtype)
        ids[:] = values
        return Grouping(Documents(offsets, rows), ids)

    def _ranked(self, y: NDArray[Any], documents: Documents) -> Queries:
        """Rank labels y within each query, a few queries at a time to save memory."""
        by_query = []
        for _, _, ranked in ranked_ranges(y, documents, AT_A_TIME, effective_threads(None)):
            self._arrays.append("level", ranked.level)
            by_query.append((ranked.n_levels, ranked.n_pairs, ranked.n_adjacent_pairs))
        counts = map(np.concatenate, zip(*by_query, strict=True))
        return Queries(documents.offsets, documents.rows, self._arrays.array("level"), *counts)


def _check_disk_space(data: DataParts, folder: str) -> None:
    needed = data.X.n_bytes + DOCUMENT_BYTES * data.queries.n_documents
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the store needs up to {gigabytes(needed)} GB beside the temporary files, but only "
            f"{gigabytes(free)} GB are free; free disk space, or write to another disk",
        )


@contextmanager
def _naming_full_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(folder)) from error
