"""Reading of a store: a data set on disk, as a folder of .npy files and a manifest.

Large files are memory-mapped. ``store_writer`` writes stores; ``docs/reference/formats.md``
describes the format field by field.
"""

import json
import operator
import os
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.atomic_files import FolderReplaced, open_folder
from marginrank._utils.memory import require_memory
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import Documents, Queries, bounded_ranges, exact_sum, rank_labels
from marginrank.data.store.packed import TYPES, PackedColumns
from marginrank.data.store.stored_features import (
    NpyHeader,
    StoredFeatures,
    StoredFile,
    damaged,
    read_header,
)

Path = str | os.PathLike[str]

FORMAT = "marginrank-data"
VERSIONS = {"dense": 2, "csr": 2, "packed": 3}  # version number of the format, for each layout of X
MANIFEST = "manifest.json"
SMALL = 1 << 20  # size in bytes up to which the checksum of a file is always compared
MOST_FEATURES = 2**63 - 1
CHECKED = 1 << 20  # documents checked at a time
ATTEMPTS = 100  # attempts to open a store while another process replaces it

GIVE = "pass a folder written by RankingData.save"

FEATURES = {"dense": ("X",), "packed": ("X",), "csr": ("data", "indices", "indptr")}
GROUPING = ("offsets", "rows", "level", "n_levels", "n_pairs", "n_adjacent_pairs")
TEXTS = ("comments", "comments_offsets")
WEIGHTS = ("sample_weight", "query_weight", "cost")
OTHERS = ("y", "query_ids", *WEIGHTS, "position", "context", *GROUPING, *TEXTS)
FILES = {f"{name}.npy" for names in (*FEATURES.values(), OTHERS) for name in names} | {MANIFEST}


class DataParts(NamedTuple):
    """The attributes of a :class:`~marginrank.RankingData`, as written to and read from a store."""

    X: Any
    y: NDArray[Any]
    queries: Queries
    query_ids: NDArray[Any]
    sample_weight: Floats | None
    query_weight: Floats | None
    feature_names: list[str] | None
    comments: Sequence[str] | None
    cost: Floats | None = None
    position: Integers | None = None
    context: NDArray[Any] | None = None
    stored: StoredFeatures | None = None  # X on disk, if it comes from a store
    has_nan: bool = False


class StoredText(Sequence[str]):
    """Sequence of strings that stay in a memory-mapped file until they are accessed.

    String i is ``text[offsets[i]:offsets[i + 1]]``, decoded from UTF-8.
    """

    def __init__(self, text: NDArray[np.uint8], offsets: Integers) -> None:
        self._bytes = text
        self._offsets = offsets

    def __len__(self) -> int:
        return self._offsets.size - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"index {at} is out of range for {len(self)} strings")
        at %= len(self)
        first, last = self._offsets[at : at + 2]
        return self._bytes[first:last].tobytes().decode("utf-8", "surrogatepass")


def encode_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint8], Integers]:
    """Encode strings as the arrays `text` and `offsets` of a :class:`StoredText`."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def open_store(folder: Path, *, verify: bool = True, map_features: bool = True) -> DataParts:
    """Open a store (a folder written by `save_store`); return its data, with read-only arrays.

    Parameters
    ----------
    folder : path
        The store.
    verify : bool
        Compare the checksums of all files and validate queries, labels and weights. If False, only
        files of up to 1 MiB are checked.
    map_features : bool
        Map X into memory. If False, X is a :class:`StoredFeatures`: only the sizes of its files are
        checked here, and its checksums are compared when X is read.

    Notes
    -----
    If another process replaces the store while it is opened, all of the returned data come from the
    old store, or all from the new one.
    """
    path = os.fspath(folder)
    for _ in range(ATTEMPTS):
        try:
            with open_folder(path) as descriptor:
                return _Store(path, descriptor, verify).data(map_features)
        except FolderReplaced:
            time.sleep(0.001)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise type(error)(f"{path} is not a folder; {GIVE}.") from None
    raise ValueError(
        f"{path} was replaced by another process {ATTEMPTS} times while it was opened; open it "
        "when that process has ended, or open a copy."
    )


class _Store:
    """Reader of one open store, whose manifest has been read and has a known version."""

    def __init__(self, folder: str, descriptor: int, verify: bool) -> None:
        self._folder = folder
        self._descriptor = descriptor
        self._verify = verify
        self._threads = effective_threads(None)
        manifest = self._read_manifest()
        try:
            self._read_fields(manifest)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(MANIFEST, "a field is missing or has a wrong value") from error

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _open(self, name: str) -> IO[bytes]:
        """Open a file of the store by the folder's descriptor, which survives a renamed folder."""

        def opener(_: str, flags: int) -> int:
            return os.open(name, flags, dir_fd=self._descriptor)

        return open(self._path(name), "rb", opener=opener)

    def _damaged(self, name: str, what: str) -> ValueError:
        return damaged(self._path(name), what)

    def _read_manifest(self) -> dict[str, Any]:
        path = self._path(MANIFEST)
        try:
            with self._open(MANIFEST) as file:
                manifest = json.load(file)
        except FileNotFoundError:
            what = f"{path} is missing: {self._folder} is not a marginrank store"
            raise ValueError(f"{what}; {GIVE}.") from None
        except (ValueError, RecursionError) as error:
            raise self._damaged(MANIFEST, "it is not JSON") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError(f"{path}: the format is not {FORMAT!r}; {GIVE}.")
        version = manifest.get("version")
        if version not in VERSIONS.values():
            raise ValueError(
                f"{path} has version {version!r}, but this marginrank reads versions 2 and 3; "
                "update marginrank, or save the data again."
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
        self._packed = None
        if self._layout == "packed":
            self._packed = PackedColumns(tuple(manifest["columns"]), self._dtype)
        narrow = {name for name in TYPES if np.dtype(name).itemsize <= self._dtype.itemsize}
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
            and (self._packed is None or len(self._packed.types) == self._shape[1])
            and (self._packed is None or narrow.issuperset(self._packed.types))
        )
        if not valid:
            raise ValueError

    def data(self, map_features: bool) -> DataParts:
        """Return the data set; its X is memory-mapped if `map_features`, else not read."""
        n_documents, n_queries = self._counts["documents"], self._counts["queries"]
        indptr = None
        if self._layout == "csr":
            indptr = self._array("indptr", n_documents + 1, [np.int32, np.int64])
            if self._verify and not increases(indptr):
                raise self._damaged("indptr.npy", "its entries decrease")
        files = tuple(self._stored_file(*file) for file in self._feature_files(indptr))
        folder = os.path.abspath(self._folder)
        stored = StoredFeatures(folder, self._shape, self._dtype, files, indptr, self._packed)
        queries = self._queries(n_documents, n_queries)
        y = self._array("y", n_documents, [np.float64, np.int64, np.uint64])
        if self._verify and not np.isfinite(y).all():
            raise self._damaged("y.npy", "a label is not finite")
        comments = None
        if "comments_offsets" in self._files:
            offsets = self._array("comments_offsets", n_documents + 1, [np.int64])
            comments = StoredText(self._array("comments", int(offsets[-1]), [np.uint8]), offsets)
        data = DataParts(
            X=self._mapped_features(stored) if map_features else stored,
            y=y,
            queries=queries,
            query_ids=self._query_ids(n_queries),
            sample_weight=self._weights("sample_weight", n_documents),
            query_weight=self._weights("query_weight", n_queries),
            feature_names=self._feature_names,
            comments=comments,
            cost=self._weights("cost", n_documents),
            position=self._positions(n_documents),
            context=self._array("context", n_documents) if "context" in self._files else None,
            stored=stored,
        )
        if exact_sum(queries.n_pairs) != self._counts["pairs"]:
            raise self._damaged("n_pairs.npy", "its number of pairs differs from the manifest")
        if self._verify:
            self._check_levels(data)
        return data

    def _opened(
        self, name: str, shape: Any, dtypes: Sequence[Any]
    ) -> tuple[IO[bytes], NpyHeader, StoredFile]:
        """Return an .npy file, opened, with its header and facts, after checks of size and header.

        `shape` None allows any shape, and an empty `dtypes` any type.
        """
        if name not in self._files:
            raise self._damaged(MANIFEST, f"it does not list {name}.npy")
        file, entry = f"{name}.npy", self._files[name]
        try:
            stream = self._open(file)
        except FileNotFoundError:
            raise self._damaged(file, "it is missing") from None
        try:
            n_bytes = os.fstat(stream.fileno()).st_size
            if n_bytes != entry["bytes"]:
                raise self._damaged(file, f"it has {n_bytes} bytes instead of {entry['bytes']}")
            try:
                header = read_header(stream)
            except Exception as error:  # NumPy raises many classes of errors for a damaged header
                raise self._damaged(file, "its header cannot be read") from error
            self._check_header(file, header, shape, dtypes)
            if header.n_bytes != n_bytes:
                raise self._damaged(file, "its size does not match its header")
        except BaseException:
            stream.close()
            raise
        path = os.path.abspath(self._path(file))
        return stream, header, StoredFile(path, header.start, n_bytes, int(entry["crc32"], 16))

    def _check_header(
        self, file: str, header: NpyHeader, shape: Any, dtypes: Sequence[Any]
    ) -> None:
        shape = shape if shape is None or isinstance(shape, tuple) else (shape,)
        if shape is not None and header.shape != shape:
            raise self._damaged(file, f"its shape is {header.shape} instead of {shape}")
        if dtypes and header.dtype not in dtypes:
            wanted = " or ".join(str(np.dtype(dtype)) for dtype in dtypes)
            raise self._damaged(file, f"its type is {header.dtype} instead of {wanted}")
        if header.fortran:
            raise self._damaged(file, "it is in Fortran order")

    def _array(self, name: str, shape: Any, dtypes: Sequence[Any] = ()) -> NDArray[Any]:
        """Return the array in a .npy file; raise ValueError if its checksum is wrong.

        A large file is mapped into memory, and its checksum is compared only with `verify`.
        """
        stream, header, stored = self._opened(name, shape, dtypes)
        small = stored.n_bytes <= SMALL
        with stream:
            stream.seek(0)
            content: NDArray[np.uint8] = (
                np.frombuffer(stream.read(), dtype=np.uint8)
                if small
                else np.memmap(stream, dtype=np.uint8, mode="r")
            )
        if (small or self._verify) and zlib.crc32(content.data) != stored.crc32:
            raise self._damaged(f"{name}.npy", "its checksum differs from the manifest")
        return header.array(content)

    def _stored_file(self, name: str, shape: Any, dtypes: Sequence[Any]) -> StoredFile:
        stream, _, stored = self._opened(name, shape, dtypes)
        stream.close()
        return stored

    def _mapped_features(self, stored: StoredFeatures) -> Any:
        n_documents, n_features = self._shape
        if stored.packed is not None:
            require_memory(
                stored.memory_bytes,
                f"{self._folder}: unpacking X ({n_documents} × {n_features})",
                "call fit(path, memory_limit=…) with the path of the store",
            )
        contents = [self._array(*file) for file in self._feature_files(stored.indptr)]
        flat = [content.reshape(-1).view(np.uint8) for content in contents]
        X = stored.rows(0, n_documents, flat, threads=self._threads)
        if stored.indptr is None:
            X.flags.writeable = False
        return X

    def _feature_files(self, indptr: Integers | None) -> list[tuple[str, Any, list[Any]]]:
        if self._packed is not None:
            return [("X", (self._shape[0], self._packed.row_bytes), [np.uint8])]
        if indptr is None:
            return [("X", self._shape, [self._dtype])]
        n_entries = int(indptr[-1])
        return [("data", n_entries, [self._dtype]), ("indices", n_entries, [indptr.dtype])]

    def _weights(self, name: str, n: int) -> Floats | None:
        if name not in self._files:
            return None
        weights = self._array(name, n, [np.float64])
        if self._verify and not ((weights >= 0) & np.isfinite(weights)).all():
            raise self._damaged(f"{name}.npy", "a weight is negative or not finite")
        return weights

    def _positions(self, n_documents: int) -> Integers | None:
        if "position" not in self._files:
            return None
        position = self._array("position", n_documents, [np.int64])
        if self._verify and not (position >= 1).all():
            raise self._damaged("position.npy", "a position is below 1")
        return position

    def _queries(self, n_documents: int, n_queries: int) -> Queries:
        offsets = self._array("offsets", n_queries + 1, [np.int64])
        sizes = np.diff(offsets)
        if offsets[0] != 0 or offsets[-1] != n_documents or sizes.min() < 1:
            raise self._damaged("offsets.npy", "its queries do not cover all documents")
        n_levels = self._array("n_levels", n_queries, [np.int32])
        if n_levels.min() < 1 or (n_levels > sizes).any():
            raise self._damaged(
                "n_levels.npy", "a query has more distinct labels than documents, or none"
            )
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
                raise self._damaged("rows.npy", "a row number is out of range or repeated")
        return rows

    def _check_levels(self, data: DataParts) -> None:
        """Raise ValueError if levels and counts of pairs do not agree with the labels."""
        queries = data.queries
        for first, last, expected in ranked_ranges(data.y, queries, CHECKED, self._threads):
            names = {"level": slice(queries.offsets[first], queries.offsets[last])}
            names |= dict.fromkeys(("n_levels", "n_pairs", "n_adjacent_pairs"), slice(first, last))
            for name, where in names.items():
                if not np.array_equal(getattr(queries, name)[where], getattr(expected, name)):
                    raise self._damaged(f"{name}.npy", "it does not agree with the labels in y.npy")

    def _query_ids(self, n_queries: int) -> NDArray[Any]:
        if self._ids_kind == "array":
            return self._array("query_ids", n_queries)
        text = self._array("query_ids", None, [np.uint8])
        try:
            values = json.loads(text.tobytes())
        except (ValueError, RecursionError) as error:
            raise self._damaged("query_ids.npy", "it does not hold JSON") from error
        if not isinstance(values, list) or len(values) != n_queries:
            raise self._damaged("query_ids.npy", f"it does not hold a list of {n_queries} ids")
        ids = np.empty(n_queries, dtype=object)
        ids[:] = values
        return ids


def increases(starts: Integers) -> bool:
    """Return True if the array `starts` begins with 0 and never decreases.

    The array is checked block by block, because it may be memory-mapped and larger than memory.
    """
    blocks = (starts[at : at + CHECKED + 1] for at in range(0, starts.size, CHECKED))
    return bool(starts[0] == 0) and all((block[1:] >= block[:-1]).all() for block in blocks)


def ranked_ranges(
    y: NDArray[Any], documents: Documents, n_documents: int, threads: int
) -> Iterator[tuple[int, int, Queries]]:
    """Yield (first, last, ranked): the labels `y` ranked within the queries `first` to `last` - 1.

    `ranked` is a Queries object. To save memory, these queries have at most `n_documents` documents
    together, or are one larger query.
    """
    offsets = documents.offsets
    for first, last in bounded_ranges(offsets, n_documents):
        begin, end = int(offsets[first]), int(offsets[last])
        rows = slice(begin, end) if documents.rows is None else documents.rows[begin:end]
        some = Documents(offsets[first : last + 1] - begin, None)
        yield first, last, rank_labels(y[rows], some, threads)
