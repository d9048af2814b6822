"""Flags that several commands share."""

from dataclasses import dataclass
from typing import Annotated

import typer

from marginrank._utils.memory import parse_bytes
from marginrank._utils.parameters import (
    FLAG,
    TEXT,
    Constraint,
    Parameter,
    check_parameters,
    choice,
    integer,
    or_none,
)
from marginrank.cli.support.dask_client import check_cluster
from marginrank.models.parameters import N_JOBS, RANDOM_STATE

DATA = "Data"
EVALUATION = "Evaluation"
OUTPUT = "Output"

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
        help="Model file, or - for stdin: JSON, .npz (KernelRankSVM), LIBLINEAR-ranksvm, SVM^rank, "
        "RankLib (Coordinate Ascent), or Solr or Elasticsearch (linear).",
        show_default=False,
    ),
]
JSON = Parameter(FLAG, "Print one JSON object instead of a table.", OUTPUT)
Json = Annotated[bool, typer.Option("--json", help=JSON.help)]

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


def _text(help: str, panel: str = DATA) -> Parameter:
    """Return a parameter that is text, or left out."""
    return Parameter(or_none(TEXT), help, panel)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reading:
    """How to read data; each field but `given` is a flag of every command that does.

    `given` names all flags on the command line, the command's own too: a flag that has no meaning
    there is refused, even at its default.
    """

    given: frozenset[str] = frozenset()

    label: str = _text("Label column of a table.").field("label")
    qid: str = _text('Query column of a table; "" if all rows are one query.').field("qid")
    features: str | None = _text("Feature columns of a table, with commas; all by default.").field(
        None
    )
    sample_weight: str | None = _text(
        'Column of document weights of a table; "sample_weight" if it has one.'
    ).field(None)
    query_weight: str | None = _text(
        'Column of query weights of a table; "query_weight" if it has one.'
    ).field(None)
    comments: str | None = _text('Comment column of a table; "comment" if it has one.').field(None)
    group: str | None = _text("File of query sizes, one a line, for text without qid.").field(None)
    n_features: int | None = Parameter(
        or_none(integer(at_least=1)),
        "Number of features of text; by default the model's, or as many as appear.",
        DATA,
    ).field(None)
    zero_based: bool = Parameter(FLAG, "Feature indices of text start at 0, not 1.", DATA).field(
        False
    )
    missing: str = _text('Number to put for NULL and nan in text, or "error".').field("error")
    layout: str = Parameter(
        choice(("auto", "dense", "csr")),
        'Features of text in memory: "auto", "dense" or "csr".',
        DATA,
    ).field("auto")
    dtype: str = Parameter(
        choice(("float32", "float64")),
        'Features of text in memory, rounded: "float32" or "float64".',
        DATA,
    ).field("float32")
    n_jobs: int | None = N_JOBS._replace(panel=DATA, has_flag=True).field(None)

    def __post_init__(self) -> None:
        """Raise ValueError for wrong values before anything is read."""
        check_parameters(self)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Room:
    """What room there is for data that are larger."""

    memory_limit: str | None = Parameter(
        or_none(Constraint(str, parse_bytes)),
        "Memory that the process may have, such as 2GB, for a store that is larger: X is read from "
        "disk in every sweep. By default so if it does not fit in free memory.",
        DATA,
    ).field(None)
    dask: str | None = Parameter(
        or_none(Constraint(str, check_cluster)),
        "Dask cluster to learn on, with its extra: the address of a scheduler, or local[N] for N "
        "workers here; DATA are stores that every worker can read.",
        DATA,
    ).field(None)

    def __post_init__(self) -> None:
        """Raise ValueError for a size or a cluster that is not one."""
        check_parameters(self)


NAMES = _text(
    "Names from marginrank.metrics, with commas, such as ndcg@10,average_precision.", EVALUATION
)
GAIN = _text("Gain of ndcg and dcg: exponential (the default) or linear.", EVALUATION)
DISCOUNT = _text("Discount of ndcg and dcg: standard (the default) or letor.", EVALUATION)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OneMetric:
    """The metric to judge by, and options of it."""

    metric: str = _text("What to judge by: a name from marginrank.metrics.", EVALUATION).field(
        "ndcg@10"
    )
    gain: str | None = GAIN.field(None)
    discount: str | None = DISCOUNT.field(None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Metrics:
    """The metrics to judge by, and options of those that have them."""

    metrics: str | None = NAMES.field(None)
    gain: str | None = GAIN.field(None)
    discount: str | None = DISCOUNT.field(None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ValidationFlags:
    """Data that a model is judged on when it is made, and the metrics."""

    valid: str | None = _text("Data to evaluate the model on.", EVALUATION).field(None)
    valid_group: str | None = _text(
        "File of query sizes for --valid, as --group for DATA.", EVALUATION
    ).field(None)
    metrics: str | None = NAMES.field(None)
    gain: str | None = GAIN.field(None)
    discount: str | None = DISCOUNT.field(None)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Training:
    """What every command that learns takes beside data and the parameters of the learner."""

    random_state: int = RANDOM_STATE.field(0)
    model: str = Parameter(TEXT, "File to write the model to.", OUTPUT).field()
    verbose: bool = Parameter(FLAG, "Print each iteration.", OUTPUT).field(False)
    json: bool = JSON.field(False)

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid seed."""
        check_parameters(self)
