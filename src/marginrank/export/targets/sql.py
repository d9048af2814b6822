"""Export to SQL: a SELECT statement that adds a score column to a table of documents."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from marginrank._utils.optional import require
from marginrank._utils.types import Floats
from marginrank.export.names import (
    NOT_PLAIN,
    check_distinct,
    check_longest,
    check_no_reordering,
    check_not_found,
    sql_quoted,
    unused,
)
from marginrank.export.sums import CurveSum, GridTerm, WeightedSum
from marginrank.export.text import WRITTEN_BY, scientific, sum_of
from marginrank.models.additive_model import Curve

TABLE = "documents"
NEXT = "\n    "  # separator of the WHEN clauses of a CASE expression


class Column(NamedTuple):
    """Two SQL expressions for a feature: its value, and its value with NULL instead of NaN."""

    number: str
    or_null: str


def write_sqlite(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return an SQL statement for SQLite that computes the scores.

    Raise ParameterError if feature names differ only in case, which SQLite ignores.
    """
    check_distinct(model.features, str.lower, "SQLite")
    return _file(_select(model, "REAL", has_nan=False))


def write_duckdb(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return an SQL statement for DuckDB that computes the scores.

    Raise ParameterError if feature names differ only in case, which DuckDB ignores.
    """
    check_distinct(model.features, str.lower, "DuckDB")
    return _file(_select(model, "DOUBLE"))


def write_postgresql(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return an SQL statement for PostgreSQL that computes the scores.

    Raise ParameterError for long feature names, which PostgreSQL would silently truncate.
    """
    check_longest(model.used, 63, "PostgreSQL")
    return _file(_select(model, "DOUBLE PRECISION"))


def write_dialect(model: WeightedSum) -> dict[str, bytes]:
    """Return an SQL statement that computes the scores, translated to a dialect by sqlglot."""
    sqlglot = require("sqlglot", "sql")
    # Dialects differ in which characters end a quoted name, so only plain names are safe.
    check_not_found(
        model.used,
        NOT_PLAIN,
        "names of features in sql dialects may have letters, digits, '_', '-' and spaces only",
    )
    check_distinct(model.features, str.lower, "some dialect of SQL")
    try:
        (text,) = sqlglot.transpile(
            _select(model, "DOUBLE"), read="duckdb", write=model.dialect, pretty=True
        )
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"sqlglot cannot write {model.dialect!r}: {reason}.") from error
    return _file(text)


def _file(statement: str) -> dict[str, bytes]:
    return {"": f"-- {WRITTEN_BY}\n{statement};\n".encode()}


def _select(model: WeightedSum | CurveSum, number: str, has_nan: bool = True) -> str:
    # Columns are qualified (d."name"), because SQLite reads a quoted name that is not a column as a
    # string, which counts as 0. Numbers have exponents, because some databases read numbers without
    # an exponent as decimals.
    check_no_reordering(model.used)
    columns = {name: _column(name, number, has_nan) for name in model.used}
    if isinstance(model, CurveSum):
        terms = [
            *(_curve(term.curve, columns[term.name]) for term in model.terms),
            *(_grid(term, *(columns[axis.name] for axis in term.axes)) for term in model.grids),
        ]
        terms = [f"CAST({term} AS {number})" for term in terms]
    else:
        terms = [
            f"COALESCE({columns[term.name].number}, 0e0) * {scientific(term.weight)}"
            for term in model.terms
        ]
    if model.offset:
        terms.append(scientific(model.offset))
    total = sum_of(terms, empty="0e0")
    score = unused("score", {name.casefold() for name in model.features})
    return f'SELECT d.*, {total} AS "{score}"\nFROM "{TABLE}" AS d'


def _column(name: str, number: str, has_nan: bool) -> Column:
    column = f"CAST(d.{sql_quoted(name)} AS {number})"
    return Column(column, f"NULLIF({column}, CAST('NaN' AS {number}))" if has_nan else column)


def _curve(curve: Curve, column: Column, goes_on: bool = True) -> str:
    at_nodes = [scientific(value) for value in (curve.missing, *curve.values)]
    if curve.categorical:
        return _categories(curve.knots, column, at_nodes)
    between = [  # the same operations as in `predict`
        f"{value} + {share} * ({scientific(rise)})"
        for value, share, rise in zip(
            at_nodes[1:], _shares(curve.knots, column), np.diff(curve.values), strict=False
        )
    ]
    if not goes_on:
        return _flat_beyond(curve.knots, column, at_nodes, between)
    pieces = between or at_nodes[1:]
    inner = zip(curve.knots[1:-1], pieces, strict=False)
    return _case(column, at_nodes[0], inner, pieces[-1])


def _grid(term: GridTerm, first: Column, second: Column) -> str:
    knots, categorical = term.axes[0].knots, term.axes[0].categorical
    rows = [f"({_curve(row, second, goes_on=False)})" for row in term.rows]
    if categorical:
        return _categories(knots, first, rows)
    shares = _shares(knots, first)
    # Unlike above + share * (below - above), this form contains the long text of each row only
    # once.
    between = [
        f"(1e0 - {share}) * {above}\n    + {share} * {below}"
        for share, above, below in zip(shares, rows[1:], rows[2:], strict=False)
    ]
    return _flat_beyond(knots, first, rows, between)


def _flat_beyond(knots: Floats, column: Column, at_nodes: list[str], between: list[str]) -> str:
    """Return the CASE expression of a curve that is constant beyond its outer knots."""
    below = zip(knots, [at_nodes[1], *between], strict=True)
    return _case(column, at_nodes[0], below if between else (), at_nodes[-1])


def _case(column: Column, missing: str, below: Iterable[tuple[float, str]], other: str) -> str:
    whens = [
        f"WHEN {column.or_null} IS NULL THEN {missing}",
        *(f"WHEN {column.number} < {scientific(knot)} THEN {piece}" for knot, piece in below),
    ]
    return f"CASE {NEXT.join(whens)}\n    ELSE {other} END"


def _categories(knots: Floats, column: Column, at_nodes: list[str]) -> str:
    missing, *known = at_nodes
    pairs = zip(knots, known, strict=True)
    whens = [f"WHEN {scientific(knot)} THEN {added}" for knot, added in pairs]
    return f"CASE {column.number}\n    {NEXT.join(whens)}\n    ELSE {missing} END"


def _shares(knots: Floats, column: Column) -> list[str]:
    return [
        f"({column.number} - ({scientific(knot)})) / {scientific(width)}"
        for knot, width in zip(knots, np.diff(knots), strict=False)
    ]
