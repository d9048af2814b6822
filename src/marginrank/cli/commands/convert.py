"""marginrank convert."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank._utils.parameters import check_choice
from marginrank.cli.support.checks import check_files, check_flags_of_data, check_writable
from marginrank.cli.support.data import KINDS, Wanted, data_summary, kind_of, open_data
from marginrank.cli.support.files import naming
from marginrank.cli.support.options import COLUMNS, DataFiles, Json, Reading
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.stores import can_stream, save_grouped, write_store

if TYPE_CHECKING:
    from marginrank import RankingData

EXAMPLE = """\
convert train.txt.gz train.store
convert train.store train.parquet
convert train.parquet train.txt
convert train.txt train.store --query-scale minmax"""

# Flags that say how the result is written, by its kind.
WRITES = {"table": ("label", "qid", "comments"), "text": ("zero_based",), "store": ()}


def convert(
    data: DataFiles,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="A store (name without ending, or .store), a .parquet, .csv or .tsv table, or "
            "text, also compressed (.gz, .bz2, .xz, .zst).",
            show_default=False,
        ),
    ],
    reading: Reading,
    to: Annotated[
        str | None, typer.Option(help="text, store or table; by the ending of OUT by default.")
    ] = None,
    query_scale: Annotated[
        str | None,
        typer.Option(
            help="Scale each feature inside each query: minmax, from 0 to 1, as LETOR's "
            "QueryLevelNorm; standard, mean 0 and deviation 1; or rank, from 0 to 1."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT.")] = False,
    json: Json = False,
) -> None:
    """Convert data between text, store and table.

    No digit of text is lost: a store or .parquet has float32 where that holds all of them, else
    float64. Give --dtype to have one of them anyway.

    A store has its documents grouped by query. Text, .parquet or another store of any size become
    one with only some of it in memory at a time.
    """
    kind = _target_kind(out, to)
    check_flags_of_data(reading.given, data, writes=WRITES[kind])
    check_writable(out, folder=kind == "store")
    check_files([*data, reading.group], [out])
    if Path(out).exists() and not overwrite:
        raise ValueError(f"{out} exists; replace it with --overwrite.")
    _check_scale(query_scale)
    phases = Phases()
    result: dict[str, Any]
    if kind == "store" and query_scale is None and can_stream(data):
        result = write_store(data, reading, phases, out, overwrite)
    else:
        result = _convert_in_memory(data, reading, phases, out, kind, query_scale, overwrite)
    result |= {"out": out, "kind": kind}
    if query_scale is not None:
        result["query_scale"] = query_scale
    if json:
        print_json({**result, "seconds": phases.seconds})
    else:
        print_table("Converted", result.items())


def _convert_in_memory(
    data: list[str],
    reading: Reading,
    phases: Phases,
    out: str,
    kind: str,
    query_scale: str | None,
    overwrite: bool,
) -> dict[str, Any]:
    documents = open_data(data, reading, phases, _wanted(out, kind))
    if query_scale is not None:
        with phases.phase("scale"):
            documents = _scaled(documents, query_scale)
    with phases.phase("write", out), naming(out):
        if kind == "store":
            return save_grouped(documents._parts(), out, overwrite)
        _write(documents, out, kind, reading)
    return {**data_summary(documents), "dtype": str(documents.X.dtype)}


def _wanted(out: str, kind: str) -> Wanted:
    """Return what keeps every digit; digits that are written again are those of float64."""
    typed = kind == "store" or out.lower().endswith(".parquet")
    return Wanted(comments=True, text_dtype="smallest" if typed else "widest")


def _check_scale(method: str | None) -> None:
    if method is None:
        return
    from marginrank.data.query_scaling import METHODS

    check_choice("query_scale", method, METHODS)


def _scaled(data: "RankingData", method: str) -> "RankingData":
    from marginrank.data.query_scaling import scale_queries

    return scale_queries(data, method)


def _target_kind(out: str, to: str | None) -> str:
    if to is not None:
        if to not in KINDS:
            raise ValueError(f"--to {to} must be one of {', '.join(KINDS)}.")
        return to
    if kind_of(out) == "table":
        return "table"
    return "store" if Path(out).suffix in ("", ".store") else "text"


def _write(data: "RankingData", out: str, kind: str, reading: Reading) -> None:
    if kind == "text":
        from marginrank import dump_letor

        dump_letor(data, out, zero_based=reading.zero_based)
    else:
        from marginrank.io.table_files import write_frame

        comments = reading.comments or COLUMNS["comments"]
        write_frame(
            data,
            out,
            label=reading.label,
            qid=reading.qid or None,
            comments=comments if any(data.comments or ()) else None,
        )
