"""A data set on disk: a folder of .npy files and a manifest, opened memory-mapped.

Here is what it consists of, and what opens it; ``store_writer`` makes it.

``docs/formats.md`` describes the folder field by field.
"""

import io
import json
import operator
import os
import time
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._base.atomic_files import FolderReplaced, hidden_folder, open_folder
from marginrank._base.threads import effective_threads
from marginrank._base.types import Floats, Integers
from marginrank.data.formats.checksums import crc32
from marginrank.data.formats.stored_text import StoredText
from marginrank.data.parts import DataParts
from marginrank.data.queries import Queries, exact_sum, rank_labels

Path = str | os.PathLike[str]

FORMAT = "marginrank-data"
VERSION = 2
GROUPED_WEIGHTS = 1  # the version in which sample_weight is in grouped order, not by row
MANIFEST = "manifest.json"
SMALL = 1 << 20  # bytes; the checksums of such files are compared whenever a store is opened
MOST_FEATURES = 2**63 - 1
HEADER = 10 + (1 << 16)  # bytes of a .npy file in which its header ends
ATTEMPTS = 100  # to open a store that is replaced meanwhile

FEATURES = {"dense": ("X",), "csr": ("data", "indices", "indptr")}
GROUPING = ("offsets", "rows", "level", "n_levels", "n_pairs", "n_adjacent_pairs")
TEXTS = ("comments", "comments_offsets")
OTHERS = ("y", "query_ids", "sample_weight", "query_weight", *GROUPING, *TEXTS)
FILES = {f"{name}.npy" for names in (*FEATURES.values(), OTHERS) for name in names} | {MANIFEST}


def open_store(folder: Path, *, verify: bool = True) -> DataParts:
    """Open a store; what another process replaces meanwhile is the old one or the new one.

    Parameters
    ----------
    folder : str or path
        A folder written by :func:`~marginrank.data.formats.store_writer.save_store`.
    verify : bool, default=True
        Compare the checksum of every file, which reads all of them, and see that queries, labels
        and weights make sense; else only files of up to 1 MiB are read.

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
                return _Store(path, descriptor, verify).data()
        except FolderReplaced:
            time.sleep(0.001)
        except (FileNotFoundError, NotADirectoryError) as error:
            hidden = hidden_folder(path)
            hint = "give one that RankingData.save wrote"
            if hidden is not None:
                hint = f"a save that was interrupted has left it as {hidden}: rename that"
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
        return ValueError(
            f"{self._path(name)} is damaged: {what}; restore the store from a copy or save the "
            "data again."
        )

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
        self._version = manifest.get("version")
        if self._version not in (GROUPED_WEIGHTS, VERSION):
            raise ValueError(
                f"{path} has version {self._version!r} and this marginrank reads versions up to "
                f"{VERSION}; update marginrank, or save the data again with this one."
            )
        return manifest

    def _read_fields(self, manifest: dict[str, Any]) -> None:
        self._layout = str(manifest["layout"])
        self._shape = tuple(map(operator.index, manifest["shape"]))
        self._dtype = np.dtype(manifest["dtype"])
        counts = ("documents", "queries", "pairs")
        self._counts = {name: operator.index(manifest["counts"][name]) for name in counts}
        self._ids_kind = manifest["query_ids"]
        names = manifest["feature_names"]
        self._feature_names = None if names is None else list(names)
        self._files = dict(manifest["files"])
        for entry in self._files.values():
            entry["dtype"], operator.index(entry["bytes"]), int(entry["crc32"], 16)
        valid = (
            self._layout in FEATURES
            and self._dtype in (np.float32, np.float64)
            and len(self._shape) == 2
            and 1 <= self._counts["queries"] <= self._counts["documents"] == self._shape[0]
            and 1 <= self._shape[1] <= MOST_FEATURES
            and self._counts["pairs"] >= 0
            and self._ids_kind in ("array", "json")
            and (names is None or len(names) == self._shape[1])
            and all(isinstance(name, str) for name in names or ())
        )
        if not valid:
            raise ValueError

    def data(self) -> DataParts:
        """Return what is stored."""
        n_documents, n_queries = self._counts["documents"], self._counts["queries"]
        X = self._features()
        y = self._labels(n_documents)
        queries = self._queries(n_documents, n_queries)
        data = DataParts(
            X=X,
            y=y,
            queries=queries,
            query_ids=self._query_ids(n_queries),
            sample_weight=self._document_weights(queries),
            query_weight=self._weights("query_weight", n_queries),
            feature_names=self._feature_names,
            comments=self._comments(n_documents),
        )
        if exact_sum(queries.n_pairs) != self._counts["pairs"]:
            raise self.damaged("n_pairs.npy", "its pairs are not as many as the manifest says")
        if self._verify:
            self._check_levels(data)
        return data

    def _array(self, name: str, shape: Any, dtypes: Sequence[Any] = ()) -> NDArray[Any]:
        """Return a file's array; a `shape` of None is not compared, nor are no `dtypes`."""
        file = f"{name}.npy"
        if name not in self._files:
            raise self.damaged(MANIFEST, f"it does not list {file}")
        content = self._content(file, self._files[name])
        try:
            array = _parse_array(content)
        except Exception as error:  # a damaged header makes NumPy raise nearly anything
            raise self.damaged(file, "its header cannot be read") from error
        if shape is not None and array.shape != (shape if isinstance(shape, tuple) else (shape,)):
            raise self.damaged(file, f"its shape is {array.shape} and should be {shape}")
        if dtypes and array.dtype not in dtypes:
            wanted = " or ".join(str(np.dtype(dtype)) for dtype in dtypes)
            raise self.damaged(file, f"its type is {array.dtype} and should be {wanted}")
        if not array.flags.c_contiguous:
            raise self.damaged(file, "it is in Fortran order")
        return array

    def _content(self, file: str, entry: dict[str, Any]) -> NDArray[np.uint8]:
        """Return the bytes of a file, mapped if there are many, after comparing with its entry."""
        try:
            with self._open(file) as stream:
                n_bytes = os.fstat(stream.fileno()).st_size
                if n_bytes != entry["bytes"]:
                    should = f"should have {entry['bytes']}"
                    raise self.damaged(file, f"it has {n_bytes} bytes and {should}")
                small = n_bytes <= SMALL
                content: NDArray[np.uint8] = (
                    np.frombuffer(stream.read(), dtype=np.uint8)
                    if small
                    else np.memmap(stream, dtype=np.uint8, mode="r")
                )
        except FileNotFoundError:
            raise self.damaged(file, "it is missing") from None
        if (small or self._verify) and crc32(content, self._threads) != int(entry["crc32"], 16):
            raise self.damaged(file, "its checksum is not that of the manifest")
        return content

    def _features(self) -> Any:
        """Return X, as an array or as CSR."""
        if self._layout == "dense":
            return self._array("X", self._shape, [self._dtype])
        indptr = self._array("indptr", self._shape[0] + 1, [np.int32, np.int64])
        n_entries = int(indptr[-1])
        # The constructor would read all indices to choose their type.
        X = sp.csr_array(self._shape, dtype=self._dtype)
        X.data = self._array("data", n_entries, [self._dtype])
        X.indices = self._array("indices", n_entries, [indptr.dtype])
        X.indptr = indptr
        X.has_sorted_indices = X.has_canonical_format = True  # the kernels look again
        return X

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

    def _document_weights(self, queries: Queries) -> Floats | None:
        """Return the weights of the documents by row."""
        weights = self._weights("sample_weight", queries.n_documents)
        if weights is None or queries.rows is None or self._version != GROUPED_WEIGHTS:
            return weights
        self._check_rows(queries.rows)
        weights = queries.by_row(weights)
        weights.flags.writeable = False
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
            self._check_rows(rows)
        return rows

    def _check_rows(self, rows: Integers) -> None:
        inside = rows.min() >= 0 and rows.max() < rows.size
        if not inside or np.bincount(rows, minlength=rows.size).max() > 1:
            raise self.damaged("rows.npy", "a row number is outside the data or there twice")

    def _check_levels(self, data: DataParts) -> None:
        """Compare what is derived from the labels with what they say."""
        queries = data.queries
        expected = rank_labels(data.y, queries, self._threads)
        for name in ("level", "n_levels", "n_pairs", "n_adjacent_pairs"):
            if not np.array_equal(getattr(queries, name), getattr(expected, name)):
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


def _parse_array(content: NDArray[np.uint8]) -> NDArray[Any]:
    """Return the array in the bytes of a .npy file, read-only; it is not copied."""
    header = io.BytesIO(content[:HEADER].tobytes())
    if np.lib.format.read_magic(header) != (1, 0):
        raise ValueError("another version of the format")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(header)
    if dtype.hasobject:
        raise ValueError("an array of objects")
    array = content[header.tell() :].view(dtype).reshape(shape, order="F" if fortran else "C")
    array = np.asarray(array)
    array.flags.writeable = False
    return array
