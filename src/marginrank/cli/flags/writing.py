"""Flags, help and examples of the commands that write data."""

from typing import Annotated, Any

from marginrank._utils.parameters import TEXT, Parameter
from marginrank.cli.flags.declaration import CommandFlags
from marginrank.cli.flags.shared import (
    OUTPUT,
    DataFiles,
    Reading,
    argument,
    json_flag,
    switch,
    text,
)

LOG = "Columns of the log"


class ConvertFlags(CommandFlags):
    """Convert data between LETOR text, tables and stores.

    A store is a folder of binary files. It is fast to read, and training can read it from disk, so
    it may be larger than memory. The text, .parquet file or store to convert may be, too.
    """

    example = """\
# To a store (a name without ending, or with .store)
convert train.txt.gz train.store
# To a table
convert train.store train.parquet
# Scale each feature to [0, 1] within each query
convert train.txt train.store --query-scale minmax"""
    first = ("to", "query_scale", "dtype", "overwrite")
    defaults = (("dtype", "float32 if it holds every digit of the text, else float64"),)

    data: DataFiles
    out: Annotated[
        str,
        argument(
            "OUT",
            "File or folder to write. Its ending sets the kind: .store or no ending (a store), "
            ".parquet, .csv or .tsv (a table), .txt (LETOR text). .csv, .tsv and text may be "
            "compressed: .gz, .bz2, .xz, .zst.",
        ),
    ]
    reading: Reading
    to: str | None = text(
        "Kind of OUT: text, store or table.",
        OUTPUT,
        unset="from the ending of OUT",
        metavar="KIND",
    )
    query_scale: str | None = text(
        "Scale each feature within each query: minmax (0 to 1, as LETOR's QueryLevelNorm), "
        "standard (mean 0, standard deviation 1) or rank (ranks, from 0 to 1).",
        OUTPUT,
        unset="not scaled",
        metavar="NAME",
    )
    overwrite: bool = switch("Replace OUT if it exists.")
    json: bool = json_flag()


def _of_log(help: str, default: str) -> Any:
    return text(help, LOG, default, metavar="COLUMN")


class ClicksFlags(CommandFlags):
    """Turn a click log into training data: a store with one query per session.

    The log has one row per document shown in a session. A document gets its label from the log (1
    if it was clicked, else 0) and its features from --features. Its position is stored, too, and
    training commands correct for position bias. Sessions in which nothing or everything was clicked
    teach nothing and are dropped.
    """

    example = """\
# log.csv has the columns session, query, document, position and click
clicks log.csv --features products.store --out sessions.store
train sessions.store --model model.json --scale standard
# Logs in the format of User Behavior Insights (UBI)
clicks queries.ndjson events.ndjson --features f.txt --out s.store"""
    first = ("features", "out", "skip_bad", "overwrite")
    without = ("features", "group", "label", "sample_weight", "query_weight")

    log: Annotated[
        list[str],
        argument(
            "LOG",
            "Click log: a .csv, .tsv or .parquet table, or UBI queries and events as JSON lines "
            "(.ndjson, .jsonl, .json, or - for stdin). All but .parquet may be compressed (.gz, "
            ".bz2, .xz, .zst). The log may be larger than memory; several files are read as one.",
        ),
    ]
    reading: Reading
    features: str = Parameter(
        TEXT,
        "Features of the documents for each query: LETOR text with document ids as comments "
        "(# id), a table with columns of query and document ids (--qid, --comments), or a store.",
        LOG,
        metavar="FILE",
    ).field()
    out: str = Parameter(TEXT, "Store (folder) to write.", OUTPUT, metavar="FOLDER").field()
    session: str = _of_log("Column of session ids.", "session")
    query: str = _of_log("Column of query ids.", "query")
    document: str = _of_log("Column of document ids.", "document")
    position: str = _of_log("Column of positions; 1 is the top.", "position")
    click: str = _of_log("Column of clicks, 0 or 1; for UBI, the action_name of a click.", "click")
    skip_bad: bool = switch(
        "Skip and count bad rows of the log instead of stopping at the first.", LOG
    )
    overwrite: bool = switch("Replace the store if it exists.")
    json: bool = json_flag()
