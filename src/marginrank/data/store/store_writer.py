"""Writing of a data set to a store, a folder of .npy files with a manifest."""

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.atomic_files import atomic_folder
from marginrank._utils.types import Integers
from marginrank.data.queries import exact_sum
from marginrank.data.store.feature_rows import FeatureRows
from marginrank.data.store.packed import PackedColumns, smallest_types
from marginrank.data.store.store import (
    FILES,
    FORMAT,
    GROUPING,
    MANIFEST,
    TEXTS,
    VERSIONS,
    WEIGHTS,
    DataParts,
    Path,
    encode_texts,
)
from marginrank.data.validation import check_label_width

TEXTS_AT_A_TIME = 1 << 16
ENTRIES_AT_A_TIME = 1 << 18  # labels or weights reordered at a time
ID_KINDS = "biufSUmM"  # NumPy kinds of dtypes that .npy files store without pickle


def save_store(
    data: DataParts,
    folder: Path,
    *,
    overwrite: bool = False,
    packed: bool = False,
    grouped: bool = False,
) -> None:
    """Write a data set to a store; the folder appears only when it is complete.

    X may also be a :class:`StoredFeatures` or :class:`FeatureRows`. With `packed`, each dense
    column is stored in the smallest type that holds it exactly, if that saves space. With
    `grouped`, rows are written query by query.
    """
    with new_store(folder, overwrite) as temporary:
        check_label_width(data.y, os.fspath(folder))
        write_parts(data, temporary, packed=packed, grouped=grouped)


def new_store(folder: Path, overwrite: bool) -> AbstractContextManager[str]:
    """Return a context manager for a temporary folder, which is renamed to `folder` on exit.

    Raise an error if `folder` exists, unless it is empty, or it is a store and `overwrite` is True.
    """
    _check_target(os.fspath(folder), overwrite)
    return atomic_folder(folder)


def write_parts(data: DataParts, folder: str, *, packed: bool, grouped: bool) -> None:
    """Write the files of a store into an existing folder; see :func:`save_store`."""
    order = data.queries.rows if grouped else None
    rows = data.X if isinstance(data.X, FeatureRows) else FeatureRows.of(data.X)
    rows = replace(rows, order=order)
    ids, ids_kind = _encode_ids(data.query_ids)
    columns = None
    if packed and rows.indptr is None:  # choose types in the source order, which is faster to read
        blocks = replace(rows, order=None).blocks()
        columns = smallest_types(blocks, rows.shape[1], rows.dtype)
        columns = columns if columns.worthwhile else None
    files = _write_features(rows, columns, folder)
    files["y"] = _write_array(folder, "y", data.y, order)
    files["query_ids"] = _write_array(folder, "query_ids", ids)
    for name in GROUPING:
        array = getattr(data.queries, name)
        if array is not None and not (grouped and name == "rows"):
            files[name] = _write_array(folder, name, array)
    for name in (*WEIGHTS, "position", "context"):
        values = getattr(data, name)
        if values is not None:
            by = None if name == "query_weight" else order
            files[name] = _write_array(folder, name, values, by)
    if data.comments is not None:
        files |= _write_texts(data.comments, order, folder)
    layout = "packed" if columns else "csr" if rows.indptr is not None else "dense"
    manifest = {
        "format": FORMAT,
        "version": VERSIONS[layout],
        "layout": layout,
        "shape": list(rows.shape),
        "dtype": rows.dtype.name,
        "counts": {
            "documents": data.queries.n_documents,
            "queries": data.queries.n_queries,
            "pairs": exact_sum(data.queries.n_pairs),
        },
        "query_ids": ids_kind,
        "feature_names": data.feature_names,
        **({} if columns is None else {"columns": columns.types}),
        "files": files,
    }
    with open(os.path.join(folder, MANIFEST), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.write("\n")


def _write_features(
    rows: FeatureRows, columns: PackedColumns | None, folder: str
) -> dict[str, dict[str, Any]]:
    """Write the files of X, and return their entries for the manifest, by file name."""
    index_dtype, n_rows = rows.index_dtype, rows.shape[0]
    if rows.indptr is None or index_dtype is None:
        blocks = rows.blocks()
        if columns is None:
            return {"X": _write_blocks(folder, "X", rows.dtype, rows.shape, blocks)}
        shape = (n_rows, columns.row_bytes)
        return {"X": _write_blocks(folder, "X", np.uint8, shape, map(columns.pack, blocks))}
    n_entries, written = int(rows.indptr[-1]), 0
    with (
        ArrayWriter(folder, "data", rows.dtype, (n_entries,)) as data,
        ArrayWriter(folder, "indices", index_dtype, (n_entries,)) as indices,
        ArrayWriter(folder, "indptr", index_dtype, (n_rows + 1,)) as indptr,
    ):
        indptr.append(np.zeros(1, dtype=index_dtype))
        for block in rows.blocks():
            data.append(block.data)
            indices.append(block.indices.astype(index_dtype, copy=False))
            indptr.append((written + block.indptr[1:]).astype(index_dtype, copy=False))
            written += block.data.size
    return {"data": data.entry(), "indices": indices.entry(), "indptr": indptr.entry()}


def _write_texts(
    texts: Sequence[str], order: Integers | None, folder: str
) -> dict[str, dict[str, Any]]:
    """Write strings in the given order, and return the manifest entries of their files, by name."""

    def encoded() -> Iterator[tuple[NDArray[np.uint8], Integers]]:
        for first in range(0, len(texts), TEXTS_AT_A_TIME):
            some = slice(first, first + TEXTS_AT_A_TIME)
            rows = texts[some] if order is None else [texts[row] for row in order[some].tolist()]
            yield encode_texts(rows)

    n_bytes = 0
    with ArrayWriter(folder, TEXTS[1], np.int64, (len(texts) + 1,)) as offsets:
        offsets.append(np.zeros(1, dtype=np.int64))
        for _, ends in encoded():
            offsets.append(n_bytes + ends[1:])
            n_bytes += int(ends[-1])
    text = (content for content, _ in encoded())
    files = [_write_blocks(folder, TEXTS[0], np.uint8, (n_bytes,), text), offsets.entry()]
    return dict(zip(TEXTS, files, strict=True))


def _check_target(folder: str, overwrite: bool) -> None:
    """Raise an error if `folder` exists and is not a store, or must not be overwritten."""
    if not os.path.lexists(folder):
        return
    names = set(os.listdir(folder)) if os.path.isdir(folder) else None
    if names == set():
        return
    if names is None or MANIFEST not in names or not names <= FILES:
        raise ValueError(
            f"{folder} exists and is not a marginrank store, or has other files; choose another "
            "folder."
        )
    if not overwrite:
        raise FileExistsError(f"{folder} exists; choose another folder, or pass overwrite=True.")


def _encode_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """Return query ids as an array for a .npy file, and its encoding: "array" or "json".

    Ids that .npy files cannot hold without pickle are stored as the bytes of a JSON list.
    """
    if ids.dtype.kind in ID_KINDS:
        return ids, "array"
    for one in ids:
        if not isinstance(one, (str, int, float, np.generic)):
            raise ValueError(
                f"Query id {one!r} has type {type(one).__name__}, which cannot be stored; use "
                "integers or strings."
            )
    values = [one.item() if isinstance(one, np.generic) else one for one in ids]
    text = json.dumps(values)
    if json.loads(text) != values:
        raise ValueError("Query ids contain text that is not Unicode; rename them.")
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8), "json"


def _write_blocks(
    folder: str, name: str, dtype: Any, shape: tuple[int, ...], blocks: Iterable[NDArray[Any]]
) -> dict[str, Any]:
    """Write an array, given in blocks of rows, to a .npy file; return its manifest entry."""
    with ArrayWriter(folder, name, dtype, shape) as file:
        for block in blocks:
            file.append(block)
    return file.entry()


def _write_array(
    folder: str, name: str, array: NDArray[Any], order: Integers | None = None
) -> dict[str, Any]:
    blocks: Iterable[NDArray[Any]] = [array]
    if order is not None:
        firsts = range(0, order.size, ENTRIES_AT_A_TIME)
        blocks = (array[order[first : first + ENTRIES_AT_A_TIME]] for first in firsts)
    return _write_blocks(folder, name, array.dtype, array.shape, blocks)


class ArrayWriter:
    """Writer of a new file ``{name}.npy``, to which rows of an array are appended."""

    def __init__(self, folder: str, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
        self._dtype, self._shape = np.dtype(dtype), shape
        self._file = open(os.path.join(folder, f"{name}.npy"), "xb")  # noqa: SIM115
        self._n_bytes = self._crc = 0
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": shape,
        }
        np.lib.format.write_array_header_1_0(self, header)

    def write(self, content: bytes | memoryview) -> int:
        """Append bytes to the file, and update its size and checksum."""
        self._n_bytes += len(content)
        self._crc = zlib.crc32(content, self._crc)
        return self._file.write(content)

    def append(self, rows: NDArray[Any]) -> None:
        assert rows.dtype == self._dtype
        self.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)

    def entry(self) -> dict[str, Any]:
        return {
            "dtype": self._dtype.str,
            "shape": list(self._shape),
            "bytes": self._n_bytes,
            "crc32": f"{self._crc:08x}",
        }

    def __enter__(self) -> "ArrayWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
