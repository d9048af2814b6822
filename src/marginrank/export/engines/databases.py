"""Databases: the statement runs on a table of the documents, with NULL for missing features."""

import sqlite3
from contextlib import closing
from typing import Any

import numpy as np

from marginrank._utils.optional import require
from marginrank._utils.types import Floats
from marginrank.export.engines.run import EngineDocuments, EngineRun, Files
from marginrank.export.names import check_distinct, sql_quoted

TABLE = "documents"
FLOAT_IS_DOUBLE = {"tsql", "fabric"}  # dialects whose FLOAT has 64 bits; sqlglot reads 32


def sqlite(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the statement in SQLite."""
    columns = [sql_quoted(documents.names[place]) for place in documents.used]
    rows = documents.X[:, documents.used].tolist()  # SQLite stores NaN as NULL
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f'CREATE TABLE "{TABLE}" ({", ".join(columns)})')
        marks = ", ".join("?" * len(columns))
        database.executemany(f'INSERT INTO "{TABLE}" VALUES ({marks})', rows)
        found = database.execute(files[""].decode()).fetchall()
    return EngineRun(f"SQLite {sqlite3.sqlite_version}", _last_column(found))


def duckdb(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the statement in DuckDB."""
    return _in_duckdb(files[""].decode(), documents)


def postgresql(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the statement in DuckDB, which reads this part of PostgreSQL's language."""
    return _in_duckdb(files[""].decode(), documents, instead_of="PostgreSQL")


def dialect(files: Files, documents: EngineDocuments) -> EngineRun:
    """Run the statement in DuckDB, translated by sqlglot."""
    sqlglot = require("sqlglot", "sql")
    written_for = files["dialect"].decode()
    tree = sqlglot.parse_one(files[""].decode(), read=written_for)
    if written_for in FLOAT_IS_DOUBLE:
        for kind in tree.find_all(sqlglot.exp.DataType):
            kind.replace(sqlglot.exp.DataType.build("DOUBLE"))
    return _in_duckdb(tree.sql("duckdb"), documents, instead_of=written_for)


def _in_duckdb(
    statement: str, documents: EngineDocuments, instead_of: str | None = None
) -> EngineRun:
    duckdb = require("duckdb", "verify")
    label = f"DuckDB {duckdb.__version__}"
    if instead_of is not None:
        label = f"{label} in place of {instead_of}"
        check_distinct(documents.names, str.lower, label)
    columns = {documents.names[place]: documents.X[:, place].copy() for place in documents.used}
    with duckdb.connect() as database:
        database.register("columns", columns)
        database.execute(f'CREATE TABLE "{TABLE}" AS SELECT * FROM columns')  # NaN becomes NULL
        database.execute(statement)
        return EngineRun(label, _last_column(database.fetchall()))


def _last_column(rows: list[Any]) -> Floats:
    return np.array([row[-1] for row in rows], dtype=np.float64)
