"""Flags, help and examples of the commands that write data."""

from typing import Annotated

from marginrank._utils.parameters import TEXT, Parameter
from marginrank.cli.flags.declaration import CommandFlags
from marginrank.cli.flags.shared import (
    DATA,
    OUTPUT,
    DataFiles,
    Reading,
    argument,
    json_flag,
    switch,
    text,
)

LOG = "Log"


class ConvertFlags(CommandFlags):
    """Convert data between text, table and store (a folder that is fast to read).

    A store can be larger than memory, and its documents are grouped by query. Text, .parquet and
    stores of any size are converted to a store in blocks.

    No digit of text is lost: a store or .parquet file has float32 features if float32 holds all
    digits, otherwise float64. Set --dtype to choose one of them.
    """

    example = """\
convert train.txt.gz train.store
convert train.store train.parquet
convert train.txt train.store --query-scale minmax"""
    first = ("to", "query_scale", "overwrite")
    defaults = (("dtype", "float32 if it holds all digits, else float64"),)

    data: DataFiles
    out: Annotated[
        str,
        argument(
            "OUT",
            "A store (name without ending, or .store), a .parquet, .csv or .tsv table, or "
            "text, optionally compressed (.gz, .bz2, .xz, .zst).",
        ),
    ]
    reading: Reading
    to: str | None = text(
        "Kind of OUT: text, store or table.", OUTPUT, unset="from the ending of OUT"
    )
    query_scale: str | None = text(
        "Scale each feature within each query: minmax (0 to 1, as LETOR's QueryLevelNorm), "
        "standard (mean 0, standard deviation 1) or rank (0 to 1).",
        OUTPUT,
        unset="not scaled",
    )
    overwrite: bool = switch("Replace OUT if it exists.")
    json: bool = json_flag()


class ClicksFlags(CommandFlags):
    """Convert a click log into a store of sessions to train on.

    Each session becomes a query. Its documents get their features from --features, and their labels
    are clicks. Positions are stored, too: train, train-sparse, train-additive, train-online and
    tune then learn the effects of positions beside the model. Sessions are dropped if no document
    or every document was clicked; their numbers are printed.

    A log is a table with one row per document shown in a session, or the queries and events of User
    Behavior Insights, one JSON object per line. It may be larger than memory.
    """

    example = """\
clicks log.csv.gz --features products.store --out sessions.store
clicks ubi_queries.ndjson ubi_events.ndjson --features f.txt --out s.store
train sessions.store --model model.json --scale standard"""
    first = ("features", "out", "skip_bad", "overwrite")
    without = ("features", "group", "label", "sample_weight", "query_weight")

    log: Annotated[
        list[str],
        argument(
            "LOG",
            "A .csv, .tsv or .parquet table, or JSON lines (.ndjson, .jsonl, .json, or - for "
            "stdin). Text may be compressed (.gz, .bz2, .xz, .zst). Several files are read as one.",
        ),
    ]
    reading: Reading
    features: str = Parameter(
        TEXT,
        "Features of each query and document: LETOR text whose comments are document ids, a table "
        "(see --qid and --comments), or a store.",
        DATA,
    ).field()
    out: str = Parameter(TEXT, "Folder of the store to write.", OUTPUT).field()
    session: str = text("Column of the sessions.", LOG, default="session")
    query: str = text("Column of the query ids.", LOG, default="query")
    document: str = text("Column of the document ids.", LOG, default="document")
    position: str = text("Column of the positions, 1 for the top.", LOG, default="position")
    click: str = text(
        "Column of clicks, 0 or 1; for JSON lines, the action_name of a click.",
        LOG,
        default="click",
    )
    skip_bad: bool = switch("Count and skip bad rows instead of stopping at the first.", LOG)
    overwrite: bool = switch("Replace the store if it exists.")
    json: bool = json_flag()
