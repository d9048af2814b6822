"""Makes a store of documents as they come, of which only some are in memory at a time."""

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.memory import gigabytes
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.parts import DataParts
from marginrank.data.queries import Documents, Grouping, Queries, group_rows, numbered
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.feature_rows import Entries, FeatureRows
from marginrank.data.store.store import Path, increases, ranked_ranges
from marginrank.data.store.store_writer import new_store, write_parts
from marginrank.data.store.stored_text import StoredText, encode_texts
from marginrank.data.validation import check_exact_labels, check_not_empty, check_weights
from marginrank.io.chunks import query_starts
from marginrank.io.letor import ids_of_text, smaller_layout
from marginrank.io.precision import float32_holds_all

SPILLED = "spilled"  # the folder, inside that of the store, of what is read and not yet in order
WEIGHTS = ("sample_weight", "query_weight")
AT_A_TIME = 1 << 18  # documents that are counted and ranked at a time
DOCUMENT_BYTES = 64  # at most, of labels, levels and offsets, beside features and comments


class DocumentBlock(NamedTuple):
    """Some documents; a query may go on in another block.

    All blocks of a data set have the same type of X, and the same of the others or None; only
    costs may be missing in some of them.

    Attributes
    ----------
    X : ndarray or csr_array
        The features; columns that a block of CSR lacks are zeros.
    y, qid, sample_weight, query_weight, cost, comments
        As in :class:`RankingData`, with an entry for each document.
    feature_names : list of str or None
        Names of the features.
    n_given : int or None
        Entries that the source had, zeros included; by default as many as X stores.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None = None
    sample_weight: NDArray[Any] | None = None
    query_weight: NDArray[Any] | None = None
    cost: NDArray[Any] | None = None
    comments: list[str] | None = None
    feature_names: list[str] | None = None
    n_given: int | None = None


class StoreSummary(NamedTuple):
    """What became of documents.

    Attributes
    ----------
    dtype : dtype
        Type of the features, as they are in memory.
    moved : bool
        Whether documents have moved, so that those of a query are together.
    """

    dtype: np.dtype[Any]
    moved: bool


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
    """Write a store with the documents grouped by query, packed if that is worthwhile.

    All that there is of a document is kept on disk beside the store until all are there, then
    written in its order. What is in memory grows with the queries, whose ids are, and by 12 bytes a
    document while those that do not come query by query are sorted.

    Parameters
    ----------
    blocks : iterable of DocumentBlock
        The documents in any order.
    folder : str or path
        The folder to make.
    overwrite : bool, default=False
        Replace the store that is there.
    group : callable, optional
        Returns the sizes of the queries of so many documents, which have no `qid`.
    layout : {"auto", "dense", "csr"}, default="auto"
        Of features that come as CSR; "auto" takes the smaller.
    of_text : bool, default=False
        The query ids are strings, and become integers if all are written as such.
    narrow : bool, default=False
        The features are float64 that were decimals, and become float32 if that loses no digit.

    Returns
    -------
    StoreSummary
        What became of the documents.
    """
    with _naming_full_disk(folder), new_store(folder, overwrite) as temporary:
        place = os.path.join(temporary, SPILLED)
        os.mkdir(place)
        with SpilledArrays(place) as arrays:
            spill = _Spill(arrays, narrow)
            for block in blocks:
                spill.add(block)
                del block  # before the next is made
            data = spill.data(group, layout, of_text)
            _require_disk(data, temporary)
            write_parts(data, temporary, packed=True, grouped=True)
        shutil.rmtree(place)
    return StoreSummary(data.X.dtype, data.queries.rows is not None)


class SpilledArrays:
    """Arrays that are written to files some entries at a time, and mapped when all are there.

    Parameters
    ----------
    folder : str
        An empty folder for the files.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._files: dict[str, IO[bytes]] = {}
        self._dtypes: dict[str, np.dtype[Any]] = {}
        self._ends: dict[str, int] = {}

    def __enter__(self) -> "SpilledArrays":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files; maps of them stay."""
        self._stack.close()

    def __contains__(self, name: str) -> bool:
        """Whether there is an array of that name."""
        return name in self._files

    def append(self, name: str, entries: NDArray[Any]) -> None:
        """Write the next entries of an array, all of which have one type."""
        if name not in self._files:
            path = os.path.join(self._folder, name)
            self._files[name] = self._stack.enter_context(open(path, "xb"))  # noqa: SIM115
            self._dtypes[name] = entries.dtype
        assert entries.dtype == self._dtypes[name]
        self._files[name].write(np.ascontiguousarray(entries).reshape(-1).view(np.uint8).data)

    def append_lengths(self, name: str, lengths: Integers) -> None:
        """Write to an array of int64, which begins with 0, where more rows of some lengths end."""
        if name not in self._files:
            self.append(name, np.zeros(1, dtype=np.int64))
        ends = self._ends.get(name, 0) + np.cumsum(lengths, dtype=np.int64)
        self.append(name, ends)
        if ends.size:
            self._ends[name] = int(ends[-1])

    def array(self, name: str) -> NDArray[Any]:
        """Return an array, mapped read-only; nothing can be appended any more."""
        self._files[name].close()
        path = os.path.join(self._folder, name)
        if os.path.getsize(path) == 0:
            return np.empty(0, dtype=self._dtypes[name])
        return np.asarray(np.memmap(path, dtype=self._dtypes[name], mode="r"))

    def kept(self, name: str, entries: NDArray[Any]) -> NDArray[Any]:
        """Return an array that is on disk instead of in memory."""
        self.append(name, entries)
        return self.array(name)


class _Spill:
    """Documents that are on disk, but for the ids of their queries."""

    def __init__(self, arrays: SpilledArrays, narrow: bool) -> None:
        self._arrays = arrays
        self._narrow = narrow  # as long as float32 holds every digit
        self._number_of: dict[Any, int] = {}  # of each query id, by first appearance
        self._ids_dtype: np.dtype[Any] = np.dtype(np.int64)
        self._feature_names: list[str] | None = None
        self._n_rows = 0
        self._n_features = 0
        self._n_given = 0
        self._dtype: np.dtype[Any] = np.dtype(np.float32)
        self._sparse = False

    def add(self, block: DocumentBlock) -> None:
        """Take some documents."""
        arrays = self._arrays
        self._add_costs(block)
        self._add_features(block)
        self._feature_names = block.feature_names
        arrays.append("y", block.y)
        if block.qid is not None:
            arrays.append("query", self._numbered(block.qid))
        for name in WEIGHTS:
            weights = getattr(block, name)
            if weights is not None:
                arrays.append(name, weights.astype(np.float64, copy=False))
        if block.comments is not None:
            text, offsets = encode_texts(block.comments)
            arrays.append("comments", text)
            arrays.append_lengths("comments_offsets", np.diff(offsets))

    def _add_costs(self, block: DocumentBlock) -> None:
        """Take costs from the first block on that has any; they are 1 where there are none."""
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

    def _numbered(self, qid: NDArray[Any]) -> Integers:
        """Return the number of each document's query."""
        self._ids_dtype = qid.dtype
        starts = query_starts(qid)
        numbers = numbered(qid[starts].tolist(), self._number_of)
        return np.repeat(numbers, np.diff(starts, append=qid.size))

    def data(
        self, group: Callable[[int], Integers] | None, layout: str, of_text: bool
    ) -> DataParts:
        """Return all documents, checked and grouped."""
        X = self._features(layout)
        y = self._labels()
        documents, query_ids = self._grouping(group, of_text)
        parts = DataParts(
            X=X,
            y=y,
            queries=self._ranked(y, documents),
            query_ids=query_ids,
            sample_weight=self._document_weights("sample_weight"),
            query_weight=None,
            feature_names=self._feature_names,
            comments=self._comments(),
            cost=self._document_weights("cost"),
        )
        if "query_weight" not in self._arrays:
            return parts
        weights = RankingData._from_parts(parts)._by_query(self._arrays.array("query_weight"))
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

    def _labels(self) -> NDArray[Any]:
        """Return the labels, of a type that a store has."""
        given = self._arrays.array("y")
        labels = check_exact_labels(given, given.size)
        return given if labels.dtype == given.dtype else self._arrays.kept("labels", labels)

    def _document_weights(self, name: str) -> Floats | None:
        if name not in self._arrays:
            return None
        weights = self._arrays.array(name)
        return check_weights(weights, name, weights.size, "one weight a document")

    def _comments(self) -> StoredText | None:
        if "comments" not in self._arrays:
            return None
        return StoredText(self._arrays.array("comments"), self._arrays.array("comments_offsets"))

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
        return Grouping(Documents(offsets, rows), self._query_ids(of_text))

    def _query_ids(self, of_text: bool) -> NDArray[Any]:
        """Return the ids by first appearance, of the type that they had."""
        values = list(self._number_of)
        self._number_of.clear()
        if of_text:
            return ids_of_text(values)
        ids = np.empty(len(values), dtype=self._ids_dtype)
        ids[:] = values
        return ids

    def _ranked(self, y: NDArray[Any], documents: Documents) -> Queries:
        """Rank the labels inside queries, some queries at a time."""
        by_query = []
        for _, _, ranked in ranked_ranges(y, documents, AT_A_TIME, effective_threads(None)):
            self._arrays.append("level", ranked.level)
            by_query.append((ranked.n_levels, ranked.n_pairs, ranked.n_adjacent_pairs))
        counts = map(np.concatenate, zip(*by_query, strict=True))
        return Queries(documents.offsets, documents.rows, self._arrays.array("level"), *counts)


def _require_disk(data: DataParts, folder: str) -> None:
    """Refuse a store that may not fit on the disk."""
    needed = data.X.n_bytes + DOCUMENT_BYTES * data.queries.n_documents
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the store needs up to {gigabytes(needed)} GB beside the temporary files, and "
            f"{gigabytes(free)} GB are free on this disk; make room, or write it to another",
        )


@contextmanager
def _naming_full_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(folder)) from error
