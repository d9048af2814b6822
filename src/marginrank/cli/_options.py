"""Flags that several commands share."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="LETOR text (plain, .gz, .bz2, .xz, .zst, or - for stdin; several files are read as "
        "one), .parquet, .csv or .tsv, or the folder of a store.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Model file: JSON, LIBLINEAR-ranksvm, SVM^rank, LightGBM, XGBoost, or scikit-learn's "
        "by skops.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Metrics = Annotated[
    str | None,
    typer.Option(
        help="Names from marginrank.metrics, with commas, such as ndcg@10,average_precision."
    ),
]
Gain = Annotated[
    str | None, typer.Option(help="Gain of ndcg and dcg: exponential (the default) or linear.")
]
Discount = Annotated[
    str | None, typer.Option(help="Discount of ndcg and dcg: standard (the default) or letor.")
]

# Columns of a table that convert writes, and that are read as such where no flag says otherwise.
COLUMNS = {"sample_weight": "sample_weight", "query_weight": "query_weight", "comments": "comment"}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read data; each field is a flag of every command that does."""

    label: Annotated[str, typer.Option(help="Label column of a table.")] = "label"
    qid: Annotated[
        str, typer.Option(help='Query column of a table; "" if all rows are one query.')
    ] = "qid"
    features: Annotated[
        str | None, typer.Option(help="Feature columns of a table, with commas; all by default.")
    ] = None
    sample_weight: Annotated[
        str | None,
        typer.Option(help='Column of document weights of a table; "sample_weight" if it has one.'),
    ] = None
    query_weight: Annotated[
        str | None,
        typer.Option(help='Column of query weights of a table; "query_weight" if it has one.'),
    ] = None
    comments: Annotated[
        str | None, typer.Option(help='Comment column of a table; "comment" if it has one.')
    ] = None
    group: Annotated[
        str | None, typer.Option(help="File of query sizes, one a line, for text without qid.")
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option(
            help="Number of features of text; by default the model's, or as many as appear."
        ),
    ] = None
    zero_based: Annotated[
        bool, typer.Option("--zero-based", help="Feature indices of text start at 0, not 1.")
    ] = False
    missing: Annotated[
        str, typer.Option(help='Number to put for NULL and nan in text, or "error".')
    ] = "error"
    layout: Annotated[
        str, typer.Option(help='Features of text in memory: "auto", "dense" or "csr".')
    ] = "auto"
    dtype: Annotated[
        str, typer.Option(help='Features of text in memory: "float32" or "float64".')
    ] = "float32"
    n_jobs: Annotated[int | None, typer.Option(help="Number of threads; all by default.")] = None


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the flags of `Reading` instead of its parameter ``reading``."""
    flags = inspect.signature(Reading).parameters
    own = inspect.signature(command).parameters

    @wraps(command)
    def with_flags(**arguments: Any) -> None:
        reading = Reading(**{name: arguments.pop(name) for name in flags})
        command(**arguments, reading=reading)

    shown = [p for p in own.values() if p.name != "reading"]
    shown = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*shown, *flags.values())]
    with_flags.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    with_flags.__annotations__ = {p.name: p.annotation for p in shown}
    return with_flags
