"""The command ``marginrank convert``: convert data between text, store and table."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from marginrank._utils.parameters import check_choice
from marginrank.cli.flags.shared import COLUMNS
from marginrank.cli.flags.writing import ConvertFlags
from marginrank.cli.support import data as _data
from marginrank.cli.support.checks import check_files, check_flags, check_writable
from marginrank.cli.support.files import naming
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data.query_scaling import METHODS, scale_queries
from marginrank.data.store.feature_rows import FeatureRows
from marginrank.data.store.store import DataParts, open_store
from marginrank.data.store.store_writer import save_store
from marginrank.data.stored_data import open_stored
from marginrank.io.letor import dump_letor, read_all_sizes
from marginrank.io.store_builder import (
    DocumentBlock,
    StoreSummary,
    build_store,
    table_blocks,
    text_blocks,
)
from marginrank.io.table_files import parquet_columns, write_frame
from marginrank.io.text_sources import name_all

# Flags that describe the output, for each kind of output.
WRITES = {"table": ("label", "qid", "comments"), "text": ("zero_based",), "store": ()}


def run(flags: ConvertFlags, phases: Phases) -> None:
    """Convert data between text, store and table."""
    data, out, reading = flags.data, flags.out, flags.reading
    kind = _target_kind(out, flags.to)
    check_flags(reading.given, data, writes=WRITES[kind])
    check_writable(out, folder=kind == "store")
    check_files([*data, reading.group], [out])
    if Path(out).exists() and not flags.overwrite:
        raise ValueError(f"{out} exists; replace it with --overwrite.")
    if flags.query_scale is not None:
        check_choice("query_scale", flags.query_scale, METHODS)
    result: dict[str, Any]
    # .csv and .tsv cannot be read in blocks: the types of columns are known only at the end.
    in_blocks = _data.kind_of_all(data) != "table" or data[0].lower().endswith(".parquet")
    if kind == "store" and flags.query_scale is None and in_blocks:
        result = _write_store(flags, phases)
    else:
        result = _convert_in_memory(flags, phases, kind)
    result |= {"out": out, "kind": kind}
    if flags.query_scale is not None:
        result["query_scale"] = flags.query_scale
    if flags.json:
        print_json({**result, "seconds": phases.seconds})
    else:
        print_line(f"Wrote {out} ({kind})")
        print_line("")
        print_table("Converted", [row for row in result.items() if row[0] not in ("out", "kind")])


def _target_kind(out: str, to: str | None) -> str:
    if to is not None:
        if to not in _data.KINDS:
            raise ValueError(f"--to {to} must be one of {', '.join(_data.KINDS)}.")
        return to
    if _data.kind_of(out) == "table":
        return "table"
    return "store" if Path(out).suffix in ("", ".store") else "text"


def _convert_in_memory(flags: ConvertFlags, phases: Phases, kind: str) -> dict[str, Any]:
    out, reading = flags.out, flags.reading
    # Text and .csv do not store the dtype of features, so they are written with all digits of
    # float64; the other formats store float32 if it holds all digits.
    typed = kind == "store" or out.lower().endswith(".parquet")
    request = _data.DataRequest(comments=True, text_dtype="smallest" if typed else "widest")
    data = _data.open_data(flags.data, reading, phases, request)
    if flags.query_scale is not None:
        with phases.phase("scale"):
            data = scale_queries(data, flags.query_scale)
    with phases.phase("write", out), naming(out):
        if kind == "store":
            return _save_grouped(data._parts(), out, flags.overwrite)
        if kind == "text":
            dump_letor(data, out, zero_based=reading.zero_based)
        else:
            name = reading.comments or COLUMNS["comments"]
            comments = name if any(data.comments or ()) else None
            qid = reading.qid or None
            write_frame(data, out, label=reading.label, qid=qid, comments=comments)
    return {**_data.data_summary(data), "dtype": str(data.X.dtype)}


def _write_store(flags: ConvertFlags, phases: Phases) -> dict[str, Any]:
    data, out = flags.data, flags.out
    kind, what = _data.kind_of_all(data), _data.name_of_all(data)
    if kind == "store":
        with phases.reading(what):
            source = open_store(data[0], map_features=False)
            # FeatureRows compares the checksums of X before it is mapped.
            source = source._replace(X=FeatureRows.of(source.X))
        with phases.phase("write", out), naming(out):
            return _save_grouped(source, out, flags.overwrite)
    start = time.perf_counter()
    with naming(what):
        build = _build_from_table if kind == "table" else _build_from_text
        built = build(flags, phases)
    phases.add("write", time.perf_counter() - start - phases.seconds["read"], out)
    return _summary(out, built.moved)


def _save_grouped(data: DataParts, out: str, overwrite: bool) -> dict[str, Any]:
    save_store(data, out, overwrite=overwrite, packed=True, grouped=True)
    return _summary(out, data.queries.rows is not None)


def _summary(out: str, moved: bool) -> dict[str, Any]:
    data = open_stored(out, verify=False)
    return {
        **_data.data_summary(data),
        "dtype": str(data.X.dtype),
        "layout": data.X.layout,
        "rows": "reordered, so that each query is in one block"
        if moved
        else "in their original order",
    }


def _build_from_table(flags: ConvertFlags, phases: Phases) -> StoreSummary:
    path, reading = flags.data[0], flags.reading
    names = parquet_columns(path)
    features = None if reading.features is None else reading.features.split(",")
    qid = reading.qid or None
    extra = _data.extra_columns(names, reading, features or ())

    def blocks() -> Iterator[DocumentBlock]:
        with phases.reading(path):
            yield from table_blocks(path, label=reading.label, qid=qid, features=features, **extra)

    built = build_store(blocks(), flags.out, overwrite=flags.overwrite)
    if features is None:
        _data.warn_of_roles(path, names, {reading.label, qid, *extra.values()})
    return built


def _build_from_text(flags: ConvertFlags, phases: Phases) -> StoreSummary:
    files, reading = flags.data, flags.reading
    has_dtype = "dtype" in reading.given

    def blocks() -> Iterator[DocumentBlock]:
        with phases.reading(_data.name_of_all(files)) as progress:
            yield from text_blocks(
                list(files),
                n_features=reading.n_features,
                zero_based=reading.zero_based,
                missing=_data.missing_policy(reading.missing),
                layout=reading.layout,
                dtype=reading.dtype if has_dtype else "float64",
                has_group=reading.group is not None,
                n_jobs=reading.n_jobs,
                progress=progress,
            )

    sizes = None
    if reading.group is not None:
        sizes = partial(read_all_sizes, reading.group, name_all(files))
    built = build_store(
        _warning_of_one_query(blocks(), flags),
        flags.out,
        overwrite=flags.overwrite,
        group=sizes,
        layout=reading.layout,
        of_text=True,
        narrow=not has_dtype,
    )
    if not has_dtype and built.dtype == "float64":
        _data.warn_of_digits(files[0])
    return built


def _warning_of_one_query(
    blocks: Iterator[DocumentBlock], flags: ConvertFlags
) -> Iterator[DocumentBlock]:
    first = next(blocks)
    if first.qid is None and flags.reading.group is None:
        _data.warn_of_one_query(_data.name_of_all(flags.data))
    yield first
    del first  # frees its memory before the next block is made
    yield from blocks
