"""A data set on disk: a folder of .npy files and a manifest, opened memory-mapped.

Here is what it consists of, and what opens it; ``store_writer`` makes it.

``docs/formats.md`` describes the folder field by field.
"""

import io
import json
import operator
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._utils.atomic_files import FolderReplaced, open_folder
from marginrank._utils.memory import require_memory
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.parts import DataParts
from marginrank.data.queries import Documents, Queries, bounded_ranges, exact_sum, rank_labels
from marginrank.data.store.packed import TYPES, PackedColumns
from marginrank.data.store.stored_features import (
    HEADER,
    NpyHeader,
    StoredFeatures,
    StoredFile,
    damaged,
    read_header,
)
from marginrank.data.store.stored_text import StoredText

Path = str | os.PathLike[str]

FORMAT = "marginrank-data"
VERSIONS = {"dense": 2, "csr": 2, "packed": 3}  # by layout
MANIFEST = "manifest.json"
SMALL = 1 << 20  # bytes; the checksums of such files are compared whenever a store is opened
MOST_FEATURES = 2**63 - 1
CHECKED = 1 << 20  # documents whose labels and levels are compared at a time
ATTEMPTS = 100  # to open a store that is replaced meanwhile

FEATURES = {"dense": ("X",), "packed": ("X",), "csr": ("data", "indices", "indptr")}
GROUPING = ("offsets", "rows", "level", "n_levels", "n_pairs", "n_adjacent_pairs")
TEXTS = ("comments", "comments_offsets")
OTHERS = ("y", "query_ids", "sample_weight", "query_weight", "cost", *GROUPING, *TEXTS)
FILES = {f"{name}.npy" for names in (*FEATURES.values(), OTHERS) for name in names} | {MANIFEST}


def open_store(folder: Path, *, verify: bool = True, map_features: bool = True) -> DataParts:
    """Open a store; what another process replaces meanwhile is the old one or the new one.

    Parameters
    ----------
    folder : str or path
        A folder written by :func:`~marginrank.data.store.store_writer.save_store`.
    verify : bool, default=True
        Compare the checksum of every file, which reads all of them, and see that queries, labels
        and weights make sense; else only files of up to 1 MiB are read.
    map_features : bool, default=True
        Map X into memory. Else X is a :class:`StoredFeatures`: the sizes of its files are compared,
        and their checksums are left to whoever reads them.

    Returns
    -------
    DataParts
        Its arrays are read-only.

    Raises
    ------
    ValueError
        If the store is damaged, of a newer version, or no store; the message names the file.
    """
    path = os.fspath(folder)
    for _ in range(ATTEMPTS):
        try:
            with open_folder(path) as descriptor:
                return _Store(path, descriptor, verify).data(map_features)
        except FolderReplaced:
            time.sleep(0.001)
        except (FileNotFoundError, NotADirectoryError) as error:
            hint = "give one that RankingData.save wrote"
            raise type(error)(f"{path} is not a folder; {hint}.") from None
    raise ValueError(
        f"{path} is replaced by another process again and again while it is opened; open it when "
        "that has ended, or a copy of it."
    )


class _Store:
    """A folder with a manifest of the known format and version."""

    def __init__(self, folder: str, descriptor: int, verify: bool) -> None:
        self._folder = folder
        self._descriptor = descriptor
        self._verify = verify
        self._threads = effective_threads(None)
        manifest = self._read_manifest()
        try:
            self._read_fields(manifest)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self.damaged(MANIFEST, "a field is missing or has a wrong value") from error

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _open(self, name: str) -> IO[bytes]:
        """Open a file of the folder, which may have another name by now."""

        def opener(_: str, flags: int) -> int:
            return os.open(name, flags, dir_fd=self._descriptor)

        return open(self._path(name), "rb", opener=opener)

    def damaged(self, name: str, what: str) -> ValueError:
        """Return the error to raise."""
        return damaged(self._path(name), what)

    def _read_manifest(self) -> dict[str, Any]:
        path = self._path(MANIFEST)
        try:
            with self._open(MANIFEST) as file:
                manifest = json.load(file)
        except FileNotFoundError:
            raise ValueError(
                f"{path} is missing: {self._folder} is no marginrank store; give a folder that "
                "RankingData.save wrote."
            ) from None
        except (ValueError, RecursionError) as error:
            raise self.damaged(MANIFEST, "it is not JSON") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError(
                f"{path} is not of a marginrank store: its format is not {FORMAT!r}; give a folder "
                "that RankingData.save wrote."
            )
        version = manifest.get("version")
        if version not in VERSIONS.values():
            raise ValueError(
                f"{path} has version {version!r} and this marginrank reads versions 2 and 3; "
                "update marginrank, or save the data again with this one."
            )
        return manifest

    def _read_fields(self, manifest: dict[str, Any]) -> None:
        self._layout = str(manifest["layout"])
        n_documents, n_features = map(operator.index, manifest["shape"])
        self._shape = n_documents, n_features
        self._dtype = np.dtype(manifest["dtype"])
        counts = ("documents", "queries", "pairs")
        self._counts = {name: operator.index(manifest["counts"][name]) for name in counts}
        self._ids_kind = manifest["query_ids"]
        names = manifest["feature_names"]
        self._feature_names = None if names is None else list(names)
        self._files = dict(manifest["files"])
        for entry in self._files.values():
            entry["dtype"], operator.index(entry["bytes"]), int(entry["crc32"], 16)
        self._packed = self._read_columns(manifest) if self._layout == "packed" else None
        valid = (
            self._layout in FEATURES
            and manifest["version"] == VERSIONS[self._layout]
            and self._dtype in (np.float32, np.float64)
            and 1 <= self._counts["queries"] <= self._counts["documents"] == self._shape[0]
            and 1 <= self._shape[1] <= MOST_FEATURES
            and self._counts["pairs"] >= 0
            and self._ids_kind in ("array", "json")
            and (names is None or len(names) == self._shape[1])
            and all(isinstance(name, str) for name in names or ())
        )
        if not valid:
            raise ValueError

    def _read_columns(self, manifest: dict[str, Any]) -> PackedColumns:
        """Return the types of packed columns, none of them wider than those in memory."""
        columns = PackedColumns(tuple(manifest["columns"]), self._dtype)
        widest = self._dtype.itemsize
        narrow = {name for name in TYPES if np.dtype(name).itemsize <= widest}
        if len(columns.types) != self._shape[1] or not narrow.issuperset(columns.types):
            raise ValueError
        return columns

    def data(self, map_features: bool) -> DataParts:
        """Return what is stored; X is left on disk unless it is to be mapped."""
        n_documents, n_queries = self._counts["documents"], self._counts["queries"]
        indptr = self._row_starts() if self._layout == "csr" else None
        X = self._mapped_features(indptr) if map_features else None
        stored = self._stored_features(indptr)
        queries = self._queries(n_documents, n_queries)
        data = DataParts(
            X=X if map_features else stored,
            y=self._labels(n_documents),
            queries=queries,
            query_ids=self._query_ids(n_queries),
            sample_weight=self._weights("sample_weight", n_documents),
            query_weight=self._weights("query_weight", n_queries),
            feature_names=self._feature_names,
            comments=self._comments(n_documents),
            cost=self._weights("cost", n_documents),
            stored=stored,
        )
        if exact_sum(queries.n_pairs) != self._counts["pairs"]:
            raise self.damaged("n_pairs.npy", "its pairs are not as many as the manifest says")
        if self._verify:
            self._check_levels(data)
        return data

    def _entry(self, name: str) -> dict[str, Any]:
        if name not in self._files:
            raise self.damaged(MANIFEST, f"it does not list {name}.npy")
        entry: dict[str, Any] = self._files[name]
        return entry

    def _array(self, name: str, shape: Any, dtypes: Sequence[Any] = ()) -> NDArray[Any]:
        """Return a file's array; a `shape` of None is not compared, nor are no `dtypes`."""
        file = f"{name}.npy"
        content = self._content(file, self._entry(name))
        try:
            header = read_header(io.BytesIO(content[:HEADER].tobytes()))
            array = header.array(content)
        except Exception as error:  # a damaged header makes NumPy raise nearly anything
            raise self.damaged(file, "its header cannot be read") from error
        self._check_header(file, header, shape, dtypes)
        return array

    def _check_header(
        self, file: str, header: NpyHeader, shape: Any, dtypes: Sequence[Any]
    ) -> None:
        shape = shape if shape is None or isinstance(shape, tuple) else (shape,)
        if shape is not None and header.shape != shape:
            should = shape[0] if len(shape) == 1 else shape
            raise self.damaged(file, f"its shape is {header.shape} and should be {should}")
        if dtypes and header.dtype not in dtypes:
            wanted = " or ".join(str(np.dtype(dtype)) for dtype in dtypes)
            raise self.damaged(file, f"its type is {header.dtype} and should be {wanted}")
        if header.fortran:
            raise self.damaged(file, "it is in Fortran order")

    def _open_whole(self, file: str, entry: dict[str, Any]) -> IO[bytes]:
        """Open a file that must have the size of its entry."""
        try:
            stream = self._open(file)
        except FileNotFoundError:
            raise self.damaged(file, "it is missing") from None
        n_bytes = os.fstat(stream.fileno()).st_size
        if n_bytes != entry["bytes"]:
            stream.close()
            should = f"should have {entry['bytes']}"
            raise self.damaged(file, f"it has {n_bytes} bytes and {should}")
        return stream

    def _content(self, file: str, entry: dict[str, Any]) -> NDArray[np.uint8]:
        """Return the bytes of a file, mapped if there are many, after comparing with its entry."""
        small = entry["bytes"] <= SMALL
        with self._open_whole(file, entry) as stream:
            content: NDArray[np.uint8] = (
                np.frombuffer(stream.read(), dtype=np.uint8)
                if small
                else np.memmap(stream, dtype=np.uint8, mode="r")
            )
        if (small or self._verify) and zlib.crc32(content.data) != int(entry["crc32"], 16):
            raise self.damaged(file, "its checksum is not that of the manifest")
        return content

    def _stored_file(self, name: str, shape: Any, dtypes: Sequence[Any]) -> StoredFile:
        """Return where a file's array is; only its header is read."""
        file, entry = f"{name}.npy", self._entry(name)
        with self._open_whole(file, entry) as stream:
            try:
                header = read_header(stream)
            except Exception as error:  # as in _array
                raise self.damaged(file, "its header cannot be read") from error
        self._check_header(file, header, shape, dtypes)
        if header.n_bytes != entry["bytes"]:
            raise self.damaged(file, "its array does not have the size that its header says")
        path = os.path.abspath(self._path(file))
        return StoredFile(path, header.start, entry["bytes"], int(entry["crc32"], 16))

    def _row_starts(self) -> Integers:
        """Return where the rows of CSR begin."""
        indptr = self._array("indptr", self._shape[0] + 1, [np.int32, np.int64])
        if self._verify and not increases(indptr):
            raise self.damaged("indptr.npy", "its rows do not begin one after the other")
        return indptr

    def _mapped_features(self, indptr: Integers | None) -> Any:
        """Return X, as an array or as CSR."""
        if self._packed is not None:
            return self._unpacked_features(self._packed)
        if indptr is None:
            return self._array("X", self._shape, [self._dtype])
        n_entries = int(indptr[-1])
        # The constructor would read all indices to choose their type.
        X = sp.csr_array(self._shape, dtype=self._dtype)
        X.data = self._array("data", n_entries, [self._dtype])
        X.indices = self._array("indices", n_entries, [indptr.dtype])
        X.indptr = indptr
        X.has_sorted_indices = X.has_canonical_format = True  # the kernels look again
        return X

    def _unpacked_features(self, columns: PackedColumns) -> NDArray[Any]:
        n_documents, n_features = self._shape
        require_memory(
            n_documents * n_features * self._dtype.itemsize,
            f"{self._folder}: X of {n_documents} × {n_features}, unpacked,",
            "fit to the store itself, fit(path, memory_limit=…), which reads it in blocks",
        )
        packed = self._array("X", (n_documents, columns.row_bytes), [np.uint8])
        X = columns.unpack(packed, threads=self._threads)
        X.flags.writeable = False
        return X

    def _stored_features(self, indptr: Integers | None) -> StoredFeatures:
        """Return where X is."""
        if self._packed is not None:
            packed_shape = (self._shape[0], self._packed.row_bytes)
            files = [self._stored_file("X", packed_shape, [np.uint8])]
        elif indptr is None:
            files = [self._stored_file("X", self._shape, [self._dtype])]
        else:
            n_entries = int(indptr[-1])
            files = [
                self._stored_file("data", n_entries, [self._dtype]),
                self._stored_file("indices", n_entries, [indptr.dtype]),
            ]
        folder = os.path.abspath(self._folder)
        return StoredFeatures(folder, self._shape, self._dtype, tuple(files), indptr, self._packed)

    def _labels(self, n_documents: int) -> NDArray[Any]:
        y = self._array("y", n_documents, [np.float64, np.int64, np.uint64])
        if self._verify and not np.isfinite(y).all():
            raise self.damaged("y.npy", "a label is not finite")
        return y

    def _weights(self, name: str, n: int) -> Floats | None:
        """Return weights, or None where the manifest does not list them."""
        if name not in self._files:
            return None
        weights = self._array(name, n, [np.float64])
        if self._verify and not ((weights >= 0) & np.isfinite(weights)).all():
            raise self.damaged(f"{name}.npy", "a weight is not a finite number of zero or more")
        return weights

    def _queries(self, n_documents: int, n_queries: int) -> Queries:
        """Return the grouping, none of it computed."""
        offsets = self._array("offsets", n_queries + 1, [np.int64])
        sizes = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != n_documents or sizes.min() < 1:
            raise self.damaged("offsets.npy", "its queries do not span all documents")
        n_levels = self._array("n_levels", n_queries, [np.int32])
        if n_levels.min() < 1 or (n_levels > sizes).any():
            raise self.damaged("n_levels.npy", "a query has more levels than documents, or none")
        return Queries(
            offsets=offsets,
            rows=self._rows(n_documents),
            level=self._array("level", n_documents, [np.int32]),
            n_levels=n_levels,
            n_pairs=self._array("n_pairs", n_queries, [np.int64]),
            n_adjacent_pairs=self._array("n_adjacent_pairs", n_queries, [np.int64]),
        )

    def _rows(self, n_documents: int) -> Integers | None:
        if "rows" not in self._files:
            return None
        rows = self._array("rows", n_documents, [np.int64])
        if self._verify:
            inside = rows.min() >= 0 and rows.max() < rows.size
            if not inside or np.bincount(rows, minlength=rows.size).max() > 1:
                raise self.damaged("rows.npy", "a row number is outside the data or there twice")
        return rows

    def _check_levels(self, data: DataParts) -> None:
        """Compare what is derived from the labels with what they say."""
        queries = data.queries
        for first, last, expected in ranked_ranges(data.y, queries, CHECKED, self._threads):
            names = {"level": slice(queries.offsets[first], queries.offsets[last])}
            names |= dict.fromkeys(("n_levels", "n_pairs", "n_adjacent_pairs"), slice(first, last))
            for name, where in names.items():
                if not np.array_equal(getattr(queries, name)[where], getattr(expected, name)):
                    raise self.damaged(f"{name}.npy", "it does not agree with the labels in y.npy")

    def _query_ids(self, n_queries: int) -> NDArray[Any]:
        """Return the ids, of the type they had."""
        if self._ids_kind == "array":
            return self._array("query_ids", n_queries)
        text = self._array("query_ids", None, [np.uint8])
        try:
            values = json.loads(text.tobytes())
        except (ValueError, RecursionError) as error:
            raise self.damaged("query_ids.npy", "it does not hold JSON") from error
        if not isinstance(values, list) or len(values) != n_queries:
            raise self.damaged("query_ids.npy", f"it does not hold {n_queries} ids")
        ids = np.empty(n_queries, dtype=object)
        ids[:] = values
        return ids

    def _comments(self, n_documents: int) -> StoredText | None:
        """Return the comments, undecoded."""
        if "comments_offsets" not in self._files:
            return None
        offsets = self._array("comments_offsets", n_documents + 1, [np.int64])
        return StoredText(self._array("comments", int(offsets[-1]), [np.uint8]), offsets)


def increases(starts: Integers) -> bool:
    """Whether these begin with 0 and never decrease; looked at some at a time."""
    blocks = (starts[at : at + CHECKED + 1] for at in range(0, starts.size, CHECKED))
    return bool(starts[0] == 0) and all((block[1:] >= block[:-1]).all() for block in blocks)


def ranked_ranges(
    y: NDArray[Any], documents: Documents, n_documents: int, threads: int
) -> Iterator[tuple[int, int, Queries]]:
    """Rank labels, which are by row, inside the queries of each of :func:`bounded_ranges`."""
    offsets = documents.offsets
    for first, last in bounded_ranges(offsets, n_documents):
        begin, end = int(offsets[first]), int(offsets[last])
        rows = slice(begin, end) if documents.rows is None else documents.rows[begin:end]
        some = Documents(offsets[first : last + 1] - begin, None)
        yield first, last, rank_labels(y[rows], some, threads)
