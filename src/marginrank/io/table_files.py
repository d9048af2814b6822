"""Reading and writing of tables: Parquet, Feather, JSON lines, .csv and .tsv, with pyarrow."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.feature_names import names_of_all
from marginrank._utils.memory import require_memory
from marginrank._utils.optional import require
from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import check_label_width

Path = str | os.PathLike[str]

ROW_GROUP = 1 << 24  # entries of X written at a time
BATCH = 1 << 21  # entries read at a time
BUFFER = 1 << 16  # bytes of a column that are read from a file at a time
COLUMN_BYTES = 1000  # lower bound of pyarrow's memory per column, besides the values
DELIMITERS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".parquet", *DELIMITERS)
ONLY_READ = (".feather", ".jsonl")
COMPRESSED = (".gz", ".bz2", ".zst")


def read_frame(path: Path, *, texts: Sequence[str] = ()) -> Any:
    """Read a .parquet, .feather, .jsonl, .csv or .tsv file as a pyarrow Table.

    A .csv or .tsv file may be compressed (.gz, .bz2, .zst); columns named in `texts` are read as
    text even if they hold only numbers.
    """
    path = os.fspath(path)
    ending = _ending(path, (*ENDINGS, *ONLY_READ))
    with open(path, "rb"):
        pass  # open raises a shorter FileNotFoundError than pyarrow
    arrow = require("pyarrow", "frames")
    try:
        if ending in (".parquet", ".feather"):
            return require(f"pyarrow{ending}", "frames").read_table(path)
        if ending == ".jsonl":
            return require("pyarrow.json", "frames").read_json(path)
        csv = require("pyarrow.csv", "frames")
        parse = csv.ParseOptions(delimiter=DELIMITERS[ending])
        convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, arrow.string()))
        return csv.read_csv(path, parse_options=parse, convert_options=convert)
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: {error}") from error


def parquet_columns(path: Path) -> list[str]:
    """Return the column names of a .parquet file."""
    with _open_parquet(path) as file:
        return list(file.schema_arrow.names)


def read_batches(path: Path) -> Iterator[Any]:
    """Yield the rows of a .parquet file in pyarrow Tables of about two million entries.

    An empty file yields one Table without rows.
    """
    arrow = require("pyarrow", "frames")
    with _open_parquet(path) as file:
        schema = file.schema_arrow
        empty = True
        n_rows = max(BATCH // max(len(schema.names), 1), 1)
        for batch in file.iter_batches(
            n_rows, use_threads=False
        ):  # more threads would take more memory
            empty = False
            yield arrow.Table.from_batches([batch])
        if empty:
            yield schema.empty_table()


@contextmanager
def _open_parquet(path: Path) -> Iterator[Any]:
    path = os.fspath(path)
    with open(path, "rb"):
        pass  # open raises a shorter FileNotFoundError than pyarrow
    arrow = require("pyarrow", "frames")
    parquet = require("pyarrow.parquet", "frames")
    try:
        with parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False) as file:
            yield file
    except (arrow.ArrowException, OSError) as error:
        raise ValueError(f"{path}: {error}") from error


def _ending(path: str, known: Sequence[str], compressed: Sequence[str] = COMPRESSED) -> str:
    stem, ending = os.path.splitext(path.lower())
    if ending in compressed:
        ending = os.path.splitext(stem)[1]
        ending = ending if ending in DELIMITERS else ""
    if ending not in known:
        raise ValueError(f"{path}: the name of a table must end in {', '.join(known)}.")
    return ending


def write_frame(
    data: RankingData,
    path: Path,
    *,
    label: str = "label",
    qid: str | None = "qid",
    comments: str | None = None,
) -> None:
    """Write a data set to a .parquet, .csv or .tsv file, which appears only when it is complete.

    The table has one row per document. Features without names are called f1, f2, …. Weights, if
    any, are in the columns sample_weight and query_weight. `label`, `qid` and `comments` are the
    names of the other columns; None omits a column. A .parquet file keeps every number and type; in
    the other formats, float32 is read back as float64.
    """
    path = os.fspath(path)
    ending = _ending(path, ENDINGS, compressed=())
    check_label_width(data.y, path)
    if data.cost is not None:
        raise ValueError(
            f"{path}: a table cannot hold costs of documents (cost); write a store or LETOR text."
        )
    if data.position is not None:
        raise ValueError(
            f"{path}: a table cannot hold the positions at which documents were shown (position); "
            "write a store."
        )
    require_memory(
        COLUMN_BYTES * data.n_features,
        f"{path}: a table of {data.n_features} columns",
        "write a store or LETOR text",
    )
    names = names_of_all(data.feature_names, data.n_features)
    comments = None if data.comments is None else comments
    columns = [name for name in (label, qid, comments, *_weights(data), *names) if name is not None]
    for name, count in Counter(columns).items():
        if count > 1:
            raise ValueError(
                f"Two columns of the table would be called {name!r}; rename one of them."
            )
    tables = _tables(data, names, label=label, qid=qid, comments=comments)
    first = next(tables)  # raise errors before the file is created
    with atomic_write(path) as file, _writer(ending, file, first.schema, names) as writer:
        for table in chain([first], tables):
            writer.write(table)


def _weights(data: RankingData) -> dict[str, Floats]:
    columns = {}
    if data.sample_weight is not None:
        columns["sample_weight"] = data.sample_weight
    if data.query_weight is not None:
        columns["query_weight"] = data.query_weight[data.qid]
    return columns


def _writer(ending: str, file: IO[bytes], schema: Any, features: list[str]) -> Any:
    if ending == ".parquet":
        # Dictionary encoding is slow for features, and takes more bytes than their values.
        repeated = [name for name in schema.names if name not in set(features)]
        parquet = require("pyarrow.parquet", "frames")
        return parquet.ParquetWriter(file, schema, use_dictionary=repeated)
    csv = require("pyarrow.csv", "frames")
    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(delimiter=DELIMITERS[ending]))


def _tables(
    data: RankingData, names: list[str], *, label: str, qid: str | None, comments: str | None
) -> Iterator[Any]:
    arrow = require("pyarrow", "frames")
    try:
        ids = arrow.array(data.query_ids)
    except arrow.ArrowException as error:
        raise ValueError(
            f"Query ids have several types; convert them to one type ({error})."
        ) from error
    number_of_query = data.qid
    weights = _weights(data)
    step = max(ROW_GROUP // data.n_features, 1)
    for first in range(0, data.n_documents, step):
        rows = slice(first, first + step)
        columns = {label: data.y[rows]}
        if qid is not None:
            columns[qid] = ids.take(arrow.array(number_of_query[rows]))
        if comments is not None and data.comments is not None:
            columns[comments] = arrow.array(data.comments[rows], arrow.string())
        columns |= {name: weight[rows] for name, weight in weights.items()}
        X = data.X[rows].toarray() if sp.issparse(data.X) else data.X[rows]
        columns |= zip(names, np.ascontiguousarray(X.T), strict=True)
        yield arrow.table(columns)
