"""Flags that several commands share."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from marginrank._base.parameters import check_choice

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
        help="Model file, or - for stdin: JSON, LIBLINEAR-ranksvm, SVM^rank, LightGBM, XGBoost, or "
        "scikit-learn's by skops.",
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

# The kind of data that a flag is about; one that is not here goes with every kind.
KIND_OF_FLAG = {
    "label": "table",
    "qid": "table",
    "features": "table",
    "sample_weight": "table",
    "query_weight": "table",
    "comments": "table",
    "group": "text",
    "n_features": "text",
    "zero_based": "text",
    "missing": "text",
    "layout": "text",
    "dtype": "text",
    "chunk_documents": "text",
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read data; each field but `given` is a flag of every command that does.

    `given` names all flags on the command line, the command's own too: a flag that has no meaning
    there is refused, even at its default.
    """

    given: frozenset[str] = frozenset()

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
        str,
        typer.Option(help='Features of text in memory, rounded: "float32" or "float64".'),
    ] = "float32"
    n_jobs: Annotated[int | None, typer.Option(help="Number of threads; all by default.")] = None

    def __post_init__(self) -> None:
        """Refuse types and layouts that there are not."""
        check_choice("dtype", self.dtype, ("float32", "float64"))
        check_choice("layout", self.layout, ("auto", "dense", "csr"))


def flag(name: str) -> str:
    """Return how a parameter is spelled on the command line."""
    return f"--{name.replace('_', '-')}"


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command` the flags of `Reading` instead of its parameter ``reading``."""
    flags = [p for p in inspect.signature(Reading).parameters.values() if p.name != "given"]
    own = [p for p in inspect.signature(command).parameters.values() if p.name != "reading"]

    @wraps(command)
    def with_flags(context: typer.Context, **arguments: Any) -> None:
        given = frozenset(name for name in arguments if _is_given(context, name))
        reading = Reading(given=given, **{p.name: arguments.pop(p.name) for p in flags})
        command(**arguments, reading=reading)

    asked = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shown = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (asked, *own, *flags)]
    with_flags.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    with_flags.__annotations__ = {p.name: p.annotation for p in shown}
    return with_flags


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
