"""Flags that several commands share."""

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
OF_MODEL = ("n_features", "as in the model")  # (name, default text in the help)


def argument(metavar: str, help: str) -> Any:
    """Return the declaration of a positional argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


DataFiles = Annotated[
    list[str],
    argument(
        "DATA",
        "LETOR text (plain, .gz, .bz2, .xz, .zst, or - for stdin; several files are read as "
        "one), a .parquet, .csv or .tsv table, or the folder of a store (made by convert).",
    ),
]
ModelFile = Annotated[
    str,
    argument(
        "MODEL",
        "Model file, or - for stdin: JSON, .npz (KernelRankSVM), LIBLINEAR-ranksvm, SVM^rank, "
        "RankLib (Coordinate Ascent), or Solr or Elasticsearch (linear).",
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
    """Return the number of workers to start on this machine, or None if `where` is an address."""
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
    help: str, panel: str = DATA, default: str | None = None, *, unset: str | None = None
) -> Any:
    """Return a field for an optional flag that takes text; `unset` is as in Parameter."""
    return Parameter(or_none(TEXT), help, panel, unset=unset).field(default)


def count(
    help: str, panel: str, default: int | None = None, *, unset: str | None = None, **bounds: Any
) -> Any:
    """Return a field for a flag that takes an integer, from 1 on unless `bounds` differ."""
    constraint = integer(**{"at_least": 1, **bounds})
    if default is None:
        constraint = or_none(constraint)
    return Parameter(constraint, help, panel, unset=unset).field(default)


def switch(help: str, panel: str = OUTPUT) -> Any:
    """Return a field for a flag without a value."""
    return Parameter(FLAG, help, panel).field(False)


def json_flag() -> Any:
    """Return the field of --json."""
    return switch("Print one JSON object instead of text.")


class Reading(Flags):
    """Flags for reading data; each field but `given` is a flag of every command that reads data.

    `given` names all flags on the command line, including those that the command does not share,
    so that flags that do not apply are rejected even at their default.
    """

    given: frozenset[str] = frozenset()

    label: str = text("Label column of a table.", default="label")
    qid: str = text('Query column of a table; "" if all rows are one query.', default="qid")
    features: str | None = text(
        "Feature columns of a table, separated by commas.", unset="all other columns"
    )
    sample_weight: str | None = text(
        "Column of document weights in a table.", unset="sample_weight, if it exists"
    )
    query_weight: str | None = text(
        "Column of query weights in a table.", unset="query_weight, if it exists"
    )
    comments: str | None = text(
        "Column of comments, such as document ids, in a table.", unset="comment, if it exists"
    )
    group: str | None = text(
        "File of query sizes, one per line, for LETOR text without qid.", unset="one query"
    )
    n_features: int | None = count(
        "Number of features in LETOR text.", DATA, unset="the largest index"
    )
    zero_based: bool = switch("Feature indices in LETOR text start at 0 instead of 1.", DATA)
    missing: str = text(
        'Number that replaces NULL and nan in LETOR text, or "error" to stop at the first.',
        default="error",
    )
    layout: str = Parameter(
        choice(("auto", "dense", "csr")),
        "Matrix type for LETOR text: dense, csr (sparse), or auto (whichever takes less memory).",
        DATA,
    ).field("auto")
    dtype: str = Parameter(
        choice(("float32", "float64")),
        "Precision of features in LETOR text: float32 or float64.",
        DATA,
    ).field("float32")
    n_jobs: int | None = N_JOBS._replace(panel=DATA, has_flag=True).field(None)


class Resources(Flags):
    """Where to fit data that are larger than memory."""

    memory_limit: str | None = Parameter(
        or_none(Constraint(str, parse_bytes)),
        "Memory that the process may use, such as 2GB. With it, a store is read from disk in every "
        "pass over the data.",
        DATA,
        unset="read from disk if the free memory is too small",
    ).field(None)
    dask: str | None = Parameter(
        or_none(Constraint(str, _check_cluster)),
        "Dask cluster to train on: the address of a scheduler, or local[N] for N local workers. "
        "DATA must be stores that every worker can read.",
        DATA,
        unset="train in this process",
    ).field(None)


class MetricOptions(Flags):
    """Options of ndcg and dcg."""

    gain: str | None = text(
        "Gain of ndcg and dcg: exponential (2^label - 1) or linear (label).",
        EVALUATION,
        unset="exponential",
    )
    discount: str | None = text(
        "Discount of ndcg and dcg at rank r: standard, 1 / log2(r + 1); or letor, 1 at ranks 1 "
        "and 2, then 1 / log2(r).",
        EVALUATION,
        unset="standard",
    )


class OneMetric(MetricOptions):
    """One metric and its options."""

    metric: str = text(
        "Metric, such as ndcg@10, average_precision or pairwise_accuracy.",
        EVALUATION,
        default="ndcg@10",
    )


class Metrics(MetricOptions):
    """Several metrics and their options."""

    metrics: str | None = text(
        "Metrics, separated by commas, such as ndcg@10,average_precision.",
        EVALUATION,
        unset="ndcg@1, ndcg@5, ndcg@10, average_precision, reciprocal_rank, pairwise_accuracy",
    )


class ValidationFlags(Metrics):
    """Validation data and metrics."""

    valid: str | None = text(
        "Validation data to evaluate the model on.", EVALUATION, unset="no validation"
    )
    valid_group: str | None = text(
        "File of query sizes for --valid, in the format of --group.", EVALUATION, unset="one query"
    )


class Training(Flags):
    """Flags of every training command, besides data and parameters of the learner."""

    random_state: int = RANDOM_STATE.field(0)
    model: str = Parameter(TEXT, "File to write the model to.", OUTPUT).field()
    verbose: bool = switch("Print each iteration.")
    json: bool = json_flag()
