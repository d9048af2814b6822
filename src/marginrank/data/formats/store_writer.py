"""Writes a data set to disk, as ``store`` describes it."""

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank._base.atomic_files import atomic_folder, restore_folder
from marginrank.data.formats.checksums import Checksummed
from marginrank.data.formats.store import FILES, FORMAT, GROUPING, MANIFEST, TEXTS, VERSION, Path
from marginrank.data.formats.stored_text import encode_texts
from marginrank.data.parts import DataParts
from marginrank.data.queries import exact_sum
from marginrank.data.validation import refuse_wide_labels

ID_KINDS = "biufSUmM"  # kinds of NumPy types that need no pickle


def save_store(data: DataParts, folder: Path, *, overwrite: bool = False) -> None:
    """Write `data` to a folder that appears only when it is complete.

    Parameters
    ----------
    data : DataParts
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
    restore_folder(folder)
    _check_target(os.fspath(folder), overwrite)
    refuse_wide_labels(data.y, os.fspath(folder))
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
                "documents": data.queries.n_documents,
                "queries": data.queries.n_queries,
                "pairs": exact_sum(data.queries.n_pairs),
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


def _arrays(data: DataParts, layout: str, ids: NDArray[Any]) -> Iterator[tuple[str, Any]]:
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
        yield from zip(TEXTS, encode_texts(data.comments), strict=True)


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


def _write_array(folder: str, name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Write a file; return its entry in the manifest."""
    with open(os.path.join(folder, f"{name}.npy"), "xb") as file:
        out = Checksummed(file)
        np.lib.format.write_array(out, np.asarray(array), allow_pickle=False)
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": out.n_bytes,
        "crc32": f"{out.crc:08x}",
    }
