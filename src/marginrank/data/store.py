"""A data set on disk: a folder of .npy files and a manifest, opened memory-mapped.

``docs/formats.md`` describes the folder field by field.
"""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._atomic import atomic_folder
from marginrank.data.ranking_data import Queries, RankingData

Path = str | os.PathLike[str]

FORMAT = "marginrank-data"
VERSION = 1
MANIFEST = "manifest.json"
SMALL = 1 << 20  # bytes; the checksums of such files are compared whenever a store is opened
CHUNK = 1 << 24  # bytes read at a time

FEATURES = {"dense": ("X",), "csr": ("data", "indices", "indptr")}
GROUPING = ("offsets", "rows", "level", "n_levels", "n_pairs", "n_adjacent_pairs")
TEXTS = ("comments", "comments_offsets")
OTHERS = ("y", "query_ids", "sample_weight", "query_weight", *GROUPING, *TEXTS)
FILES = {f"{name}.npy" for names in (*FEATURES.values(), OTHERS) for name in names} | {MANIFEST}

ID_KINDS = "biufSUmM"  # kinds of NumPy types that need no pickle


class StoredText(Sequence[str]):
    """A sequence of strings inside a memory map, each decoded when it is asked for.

    Parameters
    ----------
    text : ndarray of uint8
        All strings, one after the other, in UTF-8.
    offsets : ndarray of int64, shape (n + 1,)
        String i is ``text[offsets[i]:offsets[i + 1]]``.
    """

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._text = text
        self._offsets = offsets

    def __len__(self) -> int:
        """Return the number of strings."""
        return self._offsets.size - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        """Return a string, or a list of them."""
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(f"{at} is not one of the {len(self)} strings")
        first, last = self._offsets[at % len(self) :][:2]
        return self._text[first:last].tobytes().decode("utf-8", "surrogatepass")


def save_store(data: RankingData, folder: Path, *, overwrite: bool = False) -> None:
    """Write `data` to a folder that appears only when it is complete.

    Parameters
    ----------
    data : RankingData
        What to write.
    folder : str or path
        The folder to make.
    overwrite : bool, default=False
        Replace the store that is there.

    Raises
    ------
    FileExistsError
        If the folder exists and `overwrite` is False.
    ValueError
        If the folder holds something that is no store, or query ids are neither numbers nor text.
    """
    _check_target(os.fspath(folder), overwrite)
    ids, ids_kind = _encode_ids(data.query_ids)
    layout = "csr" if sp.issparse(data.X) else "dense"
    with atomic_folder(folder) as temporary:
        files = {name: _write_array(temporary, name, a) for name, a in _arrays(data, layout, ids)}
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "layout": layout,
            "shape": list(data.X.shape),
            "dtype": data.X.dtype.name,
            "counts": {
                "documents": data.n_documents,
                "queries": data.n_queries,
                "pairs": data.n_pairs,
            },
            "query_ids": ids_kind,
            "feature_names": data.feature_names,
            "files": files,
        }
        with open(os.path.join(temporary, MANIFEST), "w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.write("\n")


def _check_target(folder: str, overwrite: bool) -> None:
    """Let nothing be replaced that is not a store."""
    if not os.path.lexists(folder):
        return
    names = set(os.listdir(folder)) if os.path.isdir(folder) else None
    if names == set():
        return
    if names is None or MANIFEST not in names or not names <= FILES:
        raise ValueError(
            f"{folder} exists and is not (only) a marginrank store; choose another folder."
        )
    if not overwrite:
        raise FileExistsError(
            f"{folder} exists; choose another folder, or replace it with overwrite=True."
        )


def _arrays(data: RankingData, layout: str, ids: NDArray[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each file's name and contents."""
    if layout == "dense":
        yield "X", data.X
    else:
        n_entries = int(data.X.indptr[-1])
        yield "data", data.X.data[:n_entries]
        yield "indices", data.X.indices[:n_entries]
        yield "indptr", data.X.indptr
    yield "y", data.y
    yield "query_ids", ids
    for name in GROUPING:
        if getattr(data.queries, name) is not None:
            yield name, getattr(data.queries, name)
    for name in ("sample_weight", "query_weight"):
        if getattr(data, name) is not None:
            yield name, getattr(data, name)
    if data.comments is not None:
        yield from zip(TEXTS, _encode_texts(data.comments), strict=True)


def _encode_texts(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def _encode_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """Return what to store for query ids, and how: as "array" or, for objects, as "json"."""
    if ids.dtype.kind in ID_KINDS:
        return ids, "array"
    for one in ids:
        if not isinstance(one, (str, int, float, np.generic)):
            raise ValueError(
                f"the query id {one!r} cannot be stored, being a {type(one).__name__}; use "
                "integers or strings."
            )
    values = [one.item() if isinstance(one, np.generic) else one for one in ids]
    text = json.dumps(values)
    if json.loads(text) != values:
        raise ValueError("the query ids hold text that is not Unicode; rename them.")
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8), "json"


class _Checksummed:
    """A file that counts and sums what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.n_bytes = 0
        self.crc = 0

    def write(self, text: bytes) -> int:
        self.n_bytes += len(text)
        self.crc = zlib.crc32(text, self.crc)
        return self.file.write(text)


def _write_array(folder: str, name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Write a file; return its entry in the manifest."""
    with open(os.path.join(folder, f"{name}.npy"), "xb") as file:
        out = _Checksummed(file)
        np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": out.n_bytes,
        "crc32": f"{out.crc:08x}",
    }


def open_store(folder: Path, *, verify: bool = False) -> RankingData:
    """Open a store without reading its large files.

    Parameters
    ----------
    folder : str or path
        A folder written by :func:`save_store`.
    verify : bool, default=False
        Read every file and compare its checksum; else only those of files up to 1 MiB are.

    Returns
    -------
    RankingData
        Its arrays are read-only.

    Raises
    ------
    ValueError
        If the store is damaged, of a newer version, or no store; the message names the file.
    """
    store = _Store(os.fspath(folder), verify)
    n_documents, n_queries = store.counts["documents"], store.counts["queries"]
    data = RankingData._from_parts(
        X=store.features(),
        y=store.array("y", n_documents, np.float64),
        queries=store.queries(n_documents, n_queries),
        query_ids=store.query_ids(n_queries),
        sample_weight=store.optional("sample_weight", n_documents, np.float64),
        query_weight=store.optional("query_weight", n_queries, np.float64),
        feature_names=store.feature_names,
        comments=store.comments(n_documents),
    )
    if data.n_pairs != store.counts["pairs"]:
        raise store.damaged("n_pairs.npy", "its pairs are not as many as the manifest says")
    return data


class _Store:
    """A folder with a manifest of the known format and version."""

    def __init__(self, folder: str, verify: bool) -> None:
        self._folder = folder
        self._verify = verify
        manifest = self._read_manifest()
        try:
            self._read_fields(manifest)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self.damaged(MANIFEST, "a field is missing or has a wrong value") from error

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def damaged(self, name: str, what: str) -> ValueError:
        """Return the error to raise."""
        return ValueError(
            f"{self._path(name)} is damaged: {what}; restore the store from a copy or save the "
            "data again."
        )

    def _read_manifest(self) -> dict[str, Any]:
        if not os.path.isdir(self._folder):
            kind = NotADirectoryError if os.path.lexists(self._folder) else FileNotFoundError
            raise kind(f"{self._folder} is not a folder; give one that RankingData.save wrote.")
        path = self._path(MANIFEST)
        try:
            with open(path, "rb") as file:
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
        if manifest.get("version") != VERSION:
            raise ValueError(
                f"{path} has version {manifest.get('version')!r} and this marginrank reads version "
                f"{VERSION}; update marginrank, or save the data again with this one."
            )
        return manifest

    def _read_fields(self, manifest: dict[str, Any]) -> None:
        self._layout = str(manifest["layout"])
        self._shape = tuple(int(n) for n in manifest["shape"])
        self._dtype = np.dtype(manifest["dtype"])
        self.counts = {k: int(manifest["counts"][k]) for k in ("documents", "queries", "pairs")}
        self._ids_kind = manifest["query_ids"]
        names = manifest["feature_names"]
        self.feature_names = None if names is None else [str(name) for name in names]
        self._files = dict(manifest["files"])
        for entry in self._files.values():
            entry["dtype"], int(entry["bytes"]), int(entry["crc32"], 16)
        valid = (
            self._layout in FEATURES
            and self._dtype in (np.float32, np.float64)
            and len(self._shape) == 2
            and min(*self._shape, self.counts["queries"]) >= 1
            and self._shape[0] == self.counts["documents"]
            and self._ids_kind in ("array", "json")
            and (names is None or len(names) == self._shape[1])
        )
        if not valid:
            raise ValueError

    def array(self, name: str, shape: Any, dtype: Any) -> NDArray[Any]:
        """Return a file's array; a `shape` or `dtype` of None is not compared."""
        file = f"{name}.npy"
        if name not in self._files:
            raise self.damaged(MANIFEST, f"it does not list {file}")
        self._check_bytes(file, self._files[name])
        small = os.path.getsize(self._path(file)) <= SMALL
        try:
            array = np.load(self._path(file), mmap_mode=None if small else "r", allow_pickle=False)
            array = np.asarray(array)
        except Exception as error:  # a damaged header makes NumPy raise nearly anything
            raise self.damaged(file, "its header cannot be read") from error
        if shape is not None and array.shape != (shape if isinstance(shape, tuple) else (shape,)):
            raise self.damaged(file, f"its shape is {array.shape} and should be {shape}")
        if dtype is not None and array.dtype != dtype:
            raise self.damaged(file, f"its type is {array.dtype} and should be {np.dtype(dtype)}")
        if not array.flags.c_contiguous:
            raise self.damaged(file, "it is in Fortran order")
        array.flags.writeable = False
        return array

    def optional(self, name: str, shape: Any, dtype: Any) -> NDArray[Any] | None:
        """Return a file's array, or None where the manifest does not list it."""
        return self.array(name, shape, dtype) if name in self._files else None

    def _check_bytes(self, file: str, entry: dict[str, Any]) -> None:
        """Compare a file's size, and its checksum if it is small or all are to be verified."""
        try:
            n_bytes = os.path.getsize(self._path(file))
        except FileNotFoundError:
            raise self.damaged(file, "it is missing") from None
        if n_bytes != entry["bytes"]:
            raise self.damaged(file, f"it has {n_bytes} bytes and should have {entry['bytes']}")
        if (self._verify or n_bytes <= SMALL) and self._crc(file) != int(entry["crc32"], 16):
            raise self.damaged(file, "its checksum is not that of the manifest")

    def _crc(self, file: str) -> int:
        crc = 0
        with open(self._path(file), "rb") as stream:
            while chunk := stream.read(CHUNK):
                crc = zlib.crc32(chunk, crc)
        return crc

    def features(self) -> Any:
        """Return X, as an array or as CSR."""
        if self._layout == "dense":
            return self.array("X", self._shape, self._dtype)
        indptr = self.array("indptr", self._shape[0] + 1, None)
        if indptr.dtype not in (np.int32, np.int64):
            raise self.damaged("indptr.npy", f"its type is {indptr.dtype}")
        n_entries = int(indptr[-1])
        # The constructor would read all indices to choose their type.
        X = sp.csr_array(self._shape, dtype=self._dtype)
        X.data = self.array("data", n_entries, self._dtype)
        X.indices = self.array("indices", n_entries, indptr.dtype)
        X.indptr = indptr
        X.has_sorted_indices = X.has_canonical_format = True  # the kernels look again
        return X

    def queries(self, n_documents: int, n_queries: int) -> Queries:
        """Return the grouping, none of it computed."""
        offsets = self.array("offsets", n_queries + 1, np.int64)
        if offsets[0] != 0 or offsets[-1] != n_documents:
            raise self.damaged("offsets.npy", "its queries do not span all documents")
        return Queries(
            offsets=offsets,
            rows=self.optional("rows", n_documents, np.int64),
            level=self.array("level", n_documents, np.int32),
            n_levels=self.array("n_levels", n_queries, np.int32),
            n_pairs=self.array("n_pairs", n_queries, np.int64),
            n_adjacent_pairs=self.array("n_adjacent_pairs", n_queries, np.int64),
        )

    def query_ids(self, n_queries: int) -> NDArray[Any]:
        """Return the ids, of the type they had."""
        if self._ids_kind == "array":
            return self.array("query_ids", n_queries, None)
        text = self.array("query_ids", None, np.uint8)
        try:
            values = json.loads(text.tobytes())
        except (ValueError, RecursionError) as error:
            raise self.damaged("query_ids.npy", "it does not hold JSON") from error
        if not isinstance(values, list) or len(values) != n_queries:
            raise self.damaged("query_ids.npy", f"it does not hold {n_queries} ids")
        ids = np.empty(n_queries, dtype=object)
        ids[:] = values
        return ids

    def comments(self, n_documents: int) -> StoredText | None:
        """Return the comments, undecoded."""
        offsets = self.optional("comments_offsets", n_documents + 1, np.int64)
        if offsets is None:
            return None
        return StoredText(self.array("comments", int(offsets[-1]), np.uint8), offsets)
