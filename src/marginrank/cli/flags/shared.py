"""Declarations of flags that several commands share, such as the flags for reading data."""

import re
from typing import Annotated, Any

import typer

from marginrank._utils.memory import parse_bytes
from marginrank._utils.parameters import (
    FLAG,
    TEXT,
    Constraint,
    Parameter,
    ParameterError,
    choice,
    given,
    integer,
    or_none,
)
from marginrank.cli.flags.declaration import Flags
from marginrank.models.parameters import N_JOBS, RANDOM_STATE

DATA = "Data"
EVALUATION = "Evaluation"
OUTPUT = "Output"
RESOURCES = "Computing resources"
TABLES = "Columns of tables (.csv, .tsv, .parquet)"
LETOR = "How LETOR text is read"
OF_MODEL = ("n_features", "as in the model")  # (name, default text in the help)


def argument(metavar: str, help: str) -> Any:
    """Return the typer declaration of a positional argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


DataFiles = Annotated[
    list[str],
    argument(
        "DATA",
        'LETOR text (lines like "2 qid:1 1:0.5 2:0.1": label, query, features), a .csv, .tsv or '
        ".parquet table, or a store (folder written by marginrank convert). Text may be compressed "
        "(.gz, .bz2, .xz, .zst) or come from stdin (-); several text files are read as one.",
    ),
]
ModelFile = Annotated[
    str,
    argument(
        "MODEL",
        "Model file, or - for stdin: .json (written by marginrank), .npz (KernelRankSVM), or a "
        "linear model of LIBLINEAR-ranksvm, SVM^rank, RankLib, Solr or Elasticsearch.",
    ),
]

# Columns that convert writes to tables, and the default columns for reading.
COLUMNS = {"sample_weight": "sample_weight", "query_weight": "query_weight", "comments": "comment"}

# The kind of data that a flag describes. A flag that is not listed applies to every kind.
KIND_OF_FLAG = {
    **dict.fromkeys(("label", "qid", "features", *COLUMNS), "table"),
    **dict.fromkeys(
        ("group", "n_features", "zero_based", "missing", "layout", "dtype", "chunk_documents"),
        "text",
    ),
}

LOCAL = re.compile(r"local\[(\d{1,4})\]", re.ASCII)
ADDRESS = re.compile(r"(\w+://)?[^/\s]+:\d{1,5}", re.ASCII)


def local_workers(where: str) -> int | None:
    """Return N if the value of --dask is "local[N]", and None if it is an address.

    N is the number of workers to start on this machine.
    """
    local = LOCAL.fullmatch(where)
    return None if local is None else int(local[1])


def _check_cluster(name: str, where: str) -> None:
    if local_workers(where) == 0 or not (LOCAL.fullmatch(where) or ADDRESS.fullmatch(where)):
        raise ParameterError(
            given(name, where),
            " must be the address of a scheduler, such as tcp://host:8786, or local[N] for N "
            "workers on this machine.",
        )


def text(
    help: str,
    panel: str = DATA,
    default: str | None = None,
    *,
    unset: str | None = None,
    metavar: str = "FILE",
) -> Any:
    """Return a dataclass field for an optional flag that takes text, such as a file name.

    The arguments are described in `Parameter`.
    """
    return Parameter(or_none(TEXT), help, panel, unset=unset, metavar=metavar).field(default)


def column(help: str, default: str | None = None, *, unset: str | None = None) -> Any:
    """Return a dataclass field for a flag that takes the name of a column of a table."""
    return text(help, TABLES, default, unset=unset, metavar="COLUMN")


def count(
    help: str, panel: str, default: int | None = None, *, unset: str | None = None, **bounds: Any
) -> Any:
    """Return a dataclass field for a flag that takes an integer.

    The integer must be at least 1, unless `bounds` (at_least, at_most) are given.
    """
    constraint = integer(**{"at_least": 1, **bounds})
    if default is None:
        constraint = or_none(constraint)
    return Parameter(constraint, help, panel, unset=unset).field(default)


def switch(help: str, panel: str = OUTPUT) -> Any:
    """Return a dataclass field for a flag without a value, which is off by default."""
    return Parameter(FLAG, help, panel).field(False)


def sizes_of(name: str) -> Any:
    """Return the dataclass field of --valid-group or --test-group, a file with query sizes."""
    return text(
        f"File with the number of documents of each query in --{name}, for text without qid.",
        LETOR,
        unset="all documents are one query",
    )


def json_flag() -> Any:
    """Return the dataclass field of the flag --json."""
    return switch("Print the result as one JSON object.")


class Reading(Flags):
    """Flags for reading data, which all commands that read data share.

    `given` is not a flag. It has the names of all flags that the user has written, so that a flag
    that does not apply can be rejected even if its value is the default.
    """

    given: frozenset[str] = frozenset()

    label: str = column("Label column.", "label")
    qid: str = column('Column of query ids; "" if all rows belong to one query.', "qid")
    features: str | None = text(
        "Feature columns, separated by commas.",
        TABLES,
        unset="all other columns",
        metavar="COLUMNS",
    )
    sample_weight: str | None = column(
        "Column of document weights.", unset="sample_weight, if it exists"
    )
    query_weight: str | None = column(
        "Column of query weights.", unset="query_weight, if it exists"
    )
    comments: str | None = column(
        "Column of document ids (or other comments).", unset="comment, if it exists"
    )
    group: str | None = text(
        "File with the number of documents of each query in DATA, one per line, for text without "
        "qid.",
        LETOR,
        unset="all documents are one query",
    )
    n_features: int | None = count(
        "Number of features.", LETOR, unset="largest feature index in the text"
    )
    zero_based: bool = switch("Feature indices start at 0 instead of 1.", LETOR)
    missing: str = text(
        'Number that replaces NULL and nan; "error": stop at the first of them.',
        LETOR,
        default="error",
        metavar="NUMBER",
    )
    layout: str = Parameter(
        choice(("auto", "dense", "csr")),
        "Feature matrix in memory: dense, csr (sparse), or auto (the smaller of both).",
        LETOR,
    ).field("auto")
    dtype: str = Parameter(
        choice(("float32", "float64")), "Precision of features: float32 or float64.", LETOR
    ).field("float32")
    n_jobs: int | None = N_JOBS._replace(panel=RESOURCES, has_flag=True).field(None)


class Resources(Flags):
    """Flags for training on data larger than memory: from disk or on a cluster."""

    memory_limit: str | None = Parameter(
        or_none(Constraint(str, parse_bytes)),
        "Use at most this much memory, such as 2GB: a store is read from disk in every pass over "
        "the data.",
        RESOURCES,
        unset="read a store from disk only if it does not fit in free memory",
        metavar="SIZE",
    ).field(None)
    dask: str | None = Parameter(
        or_none(Constraint(str, _check_cluster)),
        "Train on a Dask cluster: the address of its scheduler (tcp://host:8786), or local[N] to "
        "start N workers on this machine. DATA must be stores that every worker can read.",
        RESOURCES,
        unset="no cluster",
        metavar="ADDRESS",
    ).field(None)


class MetricOptions(Flags):
    """Flags for the options of NDCG and DCG: gain and discount."""

    gain: str | None = text(
        "Gain of a document in ndcg and dcg: exponential (2^label - 1) or linear (label).",
        EVALUATION,
        unset="exponential",
        metavar="NAME",
    )
    discount: str | None = text(
        "Discount at rank r in ndcg and dcg: standard, 1 / log2(r + 1); or letor (LETOR's "
        "evaluation scripts), 1 at ranks 1 and 2, then 1 / log2(r).",
        EVALUATION,
        unset="standard",
        metavar="NAME",
    )


class OneMetric(MetricOptions):
    """Flags that select one metric and its options."""

    metric: str = text(
        "Metric, such as ndcg@5, average_precision or pairwise_accuracy.",
        EVALUATION,
        default="ndcg@10",
        metavar="METRIC",
    )


class Metrics(MetricOptions):
    """Flags that select several metrics and their options."""

    metrics: str | None = text(
        "Metrics to print, separated by commas, such as ndcg@20,recall@100.",
        EVALUATION,
        unset="ndcg@1, ndcg@5, ndcg@10, average_precision, reciprocal_rank, pairwise_accuracy",
        metavar="METRICS",
    )


class ValidationFlags(Metrics):
    """Flags of training commands for validation data, and for metrics on them."""

    valid: str | None = text(
        "Validation data: print the metrics of the model on them.", EVALUATION, unset="no metrics"
    )
    valid_group: str | None = sizes_of("valid")


class Training(Flags):
    """Flags of all training commands, except those for data and for parameters of the estimator."""

    random_state: int = RANDOM_STATE.field(0)
    model: str = Parameter(TEXT, "File to write the model to.", OUTPUT, metavar="FILE").field()
    verbose: bool = switch("Print one line per iteration.")
    json: bool = json_flag()
