"""Data that becomes a store, grouped by query, with only some of it in memory at a time."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from marginrank.cli.support.data import (
    data_summary,
    extra_columns,
    kind_of_all,
    missing_policy,
    name_of_all,
    warn_of_digits,
    warn_of_one_query,
    warn_of_roles,
)
from marginrank.cli.support.files import naming
from marginrank.cli.support.options import Reading
from marginrank.cli.support.progress import Phases

if TYPE_CHECKING:
    from marginrank.data.store.store import DataParts
    from marginrank.io.store_builder import DocumentBlock, StoreSummary


def can_stream(files: Sequence[str]) -> bool:
    """Whether the data can be read some at a time: all but .csv and .tsv, whose types come last."""
    return kind_of_all(files) != "table" or files[0].lower().endswith(".parquet")


def write_store(
    files: Sequence[str], reading: Reading, phases: Phases, out: str, overwrite: bool
) -> dict[str, Any]:
    """Make a store of text, of a .parquet file or of another store; return what to show of it."""
    kind, what = kind_of_all(files), name_of_all(files)
    if kind == "store":
        with phases.reading(what):
            data = _open_source(files[0])
        with phases.phase("write", out), naming(out):
            return save_grouped(data, out, overwrite)
    start = time.perf_counter()
    with naming(what):
        if kind == "table":
            built = _build_of_table(files[0], reading, phases, out, overwrite)
        else:
            built = _build_of_text(files, reading, phases, out, overwrite)
    phases.add("write", time.perf_counter() - start - phases.seconds["read"], out)
    return _summary(out, built.moved)


def save_grouped(data: "DataParts", out: str, overwrite: bool) -> dict[str, Any]:
    """Make a store of data in memory or mapped; return what to show of it."""
    from marginrank.data.store.store_writer import save_store

    save_store(data, out, overwrite=overwrite, packed=True, grouped=True)
    return _summary(out, data.queries.rows is not None)


def _summary(out: str, moved: bool) -> dict[str, Any]:
    from marginrank.data.stored_data import open_stored

    data = open_stored(out, verify=False)
    return {
        **data_summary(data),
        "dtype": str(data.X.dtype),
        "layout": data.X.layout,
        "rows": "moved, so that queries are together" if moved else "in their order",
    }


def _open_source(path: str) -> "DataParts":
    """Return a store; the files of X are mapped when their checksums have been compared."""
    from marginrank.data.store.feature_rows import FeatureRows
    from marginrank.data.store.store import open_store

    data = open_store(path, map_features=False)
    return data._replace(X=FeatureRows.of(data.X))


def _build_of_table(
    path: str, reading: Reading, phases: Phases, out: str, overwrite: bool
) -> "StoreSummary":
    from marginrank.io.store_builder import build_store, table_blocks
    from marginrank.io.table_files import parquet_columns

    names = parquet_columns(path)
    features = None if reading.features is None else reading.features.split(",")
    qid = reading.qid or None
    extra = extra_columns(names, reading, features or ())

    def blocks() -> Iterator["DocumentBlock"]:
        with phases.reading(path):
            yield from table_blocks(path, label=reading.label, qid=qid, features=features, **extra)

    built = build_store(blocks(), out, overwrite=overwrite)
    if features is None:
        warn_of_roles(path, names, {reading.label, qid, *extra.values()})
    return built


def _build_of_text(
    files: Sequence[str], reading: Reading, phases: Phases, out: str, overwrite: bool
) -> "StoreSummary":
    from marginrank.io.letor import read_all_sizes
    from marginrank.io.store_builder import build_store, text_blocks
    from marginrank.io.text_sources import name_all

    told = "dtype" in reading.given

    def blocks() -> Iterator["DocumentBlock"]:
        with phases.reading(name_of_all(files)) as progress:
            yield from text_blocks(
                list(files),
                n_features=reading.n_features,
                zero_based=reading.zero_based,
                missing=missing_policy(reading.missing),
                layout=reading.layout,
                dtype=reading.dtype if told else "float64",
                has_group=reading.group is not None,
                n_jobs=reading.n_jobs,
                progress=progress,
            )

    sizes = None
    if reading.group is not None:
        sizes = partial(read_all_sizes, reading.group, name_all(files))
    built = build_store(
        _warning_of_one_query(blocks(), files, reading),
        out,
        overwrite=overwrite,
        group=sizes,
        layout=reading.layout,
        of_text=True,
        narrow=not told,
    )
    if not told and built.dtype == "float64":
        warn_of_digits(files[0])
    return built


def _warning_of_one_query(
    blocks: Iterator["DocumentBlock"], files: Sequence[str], reading: Reading
) -> Iterator["DocumentBlock"]:
    first = next(blocks)
    if first.qid is None and reading.group is None:
        warn_of_one_query(name_of_all(files))
    yield first
    del first  # before the next is made
    yield from blocks
