"""SQL: a SELECT statement that adds a score to the documents of a table, in float64.

Columns are qualified: SQLite takes a quoted name that is no column for a string, which counts as 0.
Numbers have exponents: without one they would be decimals to some databases.
"""

from typing import Any

import numpy as np

from marginrank._base.optional import require
from marginrank.export.curve_sum import CurveSum
from marginrank.export.names import (
    NOT_PLAIN,
    check_distinct,
    check_longest,
    refuse,
    refuse_reordering,
    sql_quoted,
    unused,
)
from marginrank.export.numbers import scientific, sum_of
from marginrank.export.targets._text import WRITTEN_BY
from marginrank.export.weighted_sum import Sum, WeightedSum
from marginrank.models.additive_model import Curve

TABLE = "documents"
NEXT = "\n    "  # between the cases of a curve


def write_sqlite(model: WeightedSum) -> dict[str, bytes]:
    """Return a statement of SQLite, to which names in another case are the same."""
    check_distinct(model.features, str.lower, "SQLite")
    return _file(_select(model, "REAL"))


def write_duckdb(model: WeightedSum) -> dict[str, bytes]:
    """Return a statement of DuckDB, to which names in another case are the same."""
    check_distinct(model.features, str.lower, "DuckDB")
    return _file(_select(model, "DOUBLE"))


def write_postgresql(model: WeightedSum) -> dict[str, bytes]:
    """Return a statement of PostgreSQL, which would cut long names without a word."""
    check_longest((term.name for term in model.terms), 63, "PostgreSQL")
    return _file(_select(model, "DOUBLE PRECISION"))


def write_sqlite_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a statement of SQLite, which has no NaN."""
    check_distinct(model.features, str.lower, "SQLite")
    return _file(_select_curves(model, "REAL"))


def write_duckdb_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a statement of DuckDB, to which NaN is a number."""
    check_distinct(model.features, str.lower, "DuckDB")
    return _file(_select_curves(model, "DOUBLE", has_nan=True))


def write_postgresql_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a statement of PostgreSQL, to which NaN is a number."""
    check_longest((term.name for term in model.terms), 63, "PostgreSQL")
    return _file(_select_curves(model, "DOUBLE PRECISION", has_nan=True))


def write_dialect(model: WeightedSum) -> dict[str, bytes]:
    """Return a statement of another dialect.

    Dialects differ in what ends a quoted name, so that plain names are all they are trusted with.
    """
    sqlglot = require("sqlglot", "sql")
    refuse(
        (term.name for term in model.terms),
        NOT_PLAIN,
        "names for sqlglot's dialects are letters, digits, '_', '-' and spaces",
    )
    check_distinct(model.features, str.lower, "some dialect of SQL")
    try:
        (text,) = sqlglot.transpile(
            _select(model, "DOUBLE"), read="duckdb", write=model.dialect, pretty=True
        )
    except ValueError as error:
        told = str(error).rstrip(".")
        raise ValueError(f"sqlglot has no SQL for {model.dialect!r}: {told}.") from error
    return _file(text)


def _file(statement: str) -> dict[str, bytes]:
    return {"": f"-- {WRITTEN_BY}\n{statement};\n".encode()}


def _select(model: WeightedSum, number: str) -> str:
    terms = [
        f"COALESCE(CAST(d.{sql_quoted(term.name)} AS {number}), 0e0) * {scientific(term.weight)}"
        for term in model.terms
    ]
    return _adding(terms, model)


def _select_curves(model: CurveSum, number: str, has_nan: bool = False) -> str:
    terms = []
    for term in model.terms:
        column = f"CAST(d.{sql_quoted(term.name)} AS {number})"
        value = f"NULLIF({column}, CAST('NaN' AS {number}))" if has_nan else column
        terms.append(f"CAST({_case(term.curve, column, value)} AS {number})")
    return _adding(terms, model)


def _case(curve: Curve, column: str, value: str) -> str:
    """Return what a curve adds; `value` is NULL where the column is missing."""
    missing = scientific(curve.missing)
    if curve.categorical:
        pairs = zip(curve.knots, curve.values, strict=True)
        whens = [f"WHEN {scientific(at)} THEN {scientific(v)}" for at, v in pairs]
        return f"CASE {column}\n    {NEXT.join(whens)}\n    ELSE {missing} END"
    pieces = _pieces(curve, column)
    inner = zip(curve.knots[1:-1], pieces, strict=False)
    whens = [
        f"WHEN {value} IS NULL THEN {missing}",
        *(f"WHEN {column} < {scientific(knot)} THEN {piece}" for knot, piece in inner),
    ]
    return f"CASE {NEXT.join(whens)}\n    ELSE {pieces[-1]} END"


def _pieces(curve: Curve, column: str) -> list[str]:
    """Return the straight lines between knots, with the operations of `predict`."""
    if curve.knots.size == 1:
        return [scientific(curve.values[0])]
    return [
        f"{scientific(v)} + ({column} - ({scientific(at)})) / {scientific(width)}"
        f" * ({scientific(rise)})"
        for at, v, width, rise in zip(
            curve.knots, curve.values, np.diff(curve.knots), np.diff(curve.values), strict=False
        )
    ]


def _adding(terms: list[str], model: Sum[Any]) -> str:
    refuse_reordering(term.name for term in model.terms)
    if model.offset:
        terms = [*terms, scientific(model.offset)]
    total = sum_of(terms, empty="0e0")
    score = unused("score", {name.casefold() for name in model.features})
    return f'SELECT d.*, {total} AS "{score}"\nFROM "{TABLE}" AS d'
