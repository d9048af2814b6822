"""Reading of click logs that are tables, with one row per document shown in a session."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from marginrank._utils.parameters import Mention, ParameterError
from marginrank.clicks.sessions import (
    BAD_POSITION,
    MALFORMED,
    NOT_SHOWN,
    SHOWN_TWICE,
    BadRows,
    Entry,
    LoggedSession,
    ShownDocument,
    checked_session,
    quoted,
    text_of_id,
    whole_position,
)
from marginrank.io.table_files import read_batches
from marginrank.io.text_sources import Progress, numbered_lines

DELIMITERS = {".csv": ",", ".tsv": "\t"}
CLICKS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}


class LogColumns(NamedTuple):
    """Names of the columns of a click log that is a table."""

    session: str = "session"
    query: str = "query"
    document: str = "document"
    position: str = "position"
    click: str = "click"


class TableLog:
    """Reader of a click log that is a .csv, .tsv or .parquet file.

    An *entry* is a parsed row: the list [place, query, document, position, click], where `place` is
    the file and line.
    """

    def __init__(self, columns: LogColumns) -> None:
        self._columns = columns

    def entries(
        self, path: str, ending: str, bad: BadRows, progress: Progress | None
    ) -> Iterator[Entry]:
        """Yield (session id, [place, query, document, position, click]) for each row of a table.

        `place` is the file and line, for messages.
        """
        if ending == ".parquet":
            rows = self._parquet_rows(path)
        else:
            rows = self._text_rows(path, DELIMITERS[ending], bad, progress)
        for place, (session, *values) in rows:
            entry = self._entry(place, session, values, bad)
            if entry is not None:
                yield str(session), entry

    def session(self, entries: Sequence[list[Any]], bad: BadRows) -> LoggedSession:
        """Create a session from its parsed rows; repeated rows of a document count once."""
        query, shown = entries[0][1], dict[str, ShownDocument]()
        for place, own_query, document, position, click in entries:
            if own_query != query:
                what = f"the query is {quoted(own_query)}, but {quoted(query)} in {entries[0][0]}"
                bad.add(MALFORMED, place, f"{what}, which is the same session")
                continue
            first = shown.setdefault(document, ShownDocument(place, document, position, click))
            if first.position != position:
                what = f"document {quoted(document)} is at position {position}"
                bad.add(SHOWN_TWICE, place, f"{what}, but at {first.position} in {first.place}")
            elif click and not first.click:
                shown[document] = first._replace(click=True)
        return checked_session(query, shown.values(), bad)

    def _entry(
        self, place: str, session: Any, values: Sequence[Any], bad: BadRows
    ) -> list[Any] | None:
        """Parse a row to an entry (see the class); return None if the row is bad and skipped."""
        query, document, position, click = values
        ids = [text_of_id(one) for one in (session, query, document)]
        for name, found, value in zip(self._columns, ids, (session, *values), strict=False):
            if found is None:
                bad.add(MALFORMED, place, f"{name} is {quoted(value)}, which is not an id")
                return None
        at = whole_position(position)
        clicked = CLICKS.get(str(click).lower())
        if clicked is None:
            what = f"{self._columns.click} is {quoted(click)}; clicks are 0 or 1"
            bad.add(MALFORMED, place, what)
        elif at is None and clicked and position in ("", None):
            bad.add(NOT_SHOWN, place, f"document {quoted(document)} has a click but no position")
        elif at is None:
            what = f"{self._columns.position} is {quoted(position)}"
            bad.add(BAD_POSITION, place, f"{what}; positions are whole numbers, 1 for the top")
        else:
            return [place, *ids[1:], at, clicked]
        return None

    def _text_rows(
        self, path: str, delimiter: str, bad: BadRows, progress: Progress | None
    ) -> Iterator[tuple[str, list[Any]]]:
        lines = (
            f"{line.decode('utf-8', 'backslashreplace')}\n"
            for _, line in numbered_lines(path, progress)
        )
        names: list[str] | None = None
        where: list[int] = []
        for number, n_lines, row in _csv_rows(lines, delimiter):
            place = f"{path}:{number}"
            if isinstance(row, str) and names is None:
                raise ValueError(f"{place}: the header cannot be read: {row}")
            if isinstance(row, str):
                bad.add(MALFORMED, place, row, count=n_lines)
            elif names is None:
                names, where = row, self._find(path, row)
            elif len(row) == len(names):
                yield place, [row[k] for k in where]
            else:
                what = f"{len(row)} fields, but the header has {len(names)}"
                bad.add(MALFORMED, place, what, count=n_lines)
        if names is None:
            raise ValueError(f"{path} is empty; its first line must name the columns.")

    def _parquet_rows(self, path: str) -> Iterator[tuple[str, list[Any]]]:
        before = 0
        for table in read_batches(path):
            where = self._find(path, table.column_names)
            columns = [table.column(k).to_pylist() for k in where]
            for number, row in enumerate(zip(*columns, strict=True), before + 1):
                yield f"{path}: row {number}", list(row)
            before += table.num_rows

    def _find(self, path: str, names: Sequence[str]) -> list[int]:
        """Return the column number of session, query, …; raise ValueError if one is missing."""
        for role, name in self._columns._asdict().items():
            if names.count(name) != 1:
                has = "two columns" if name in names else "no column"
                raise ParameterError(
                    f"{path} has {has} {name!r}; its columns are {quoted(', '.join(names))}. ",
                    "Name one with ",
                    Mention(role),
                    ".",
                )
        return [names.index(name) for name in self._columns]


def _csv_rows(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, int, list[str] | str]]:
    """Yield (number of the first line, number of lines, fields) for each row of delimited text.

    If a row cannot be parsed, the problem is yielded as text instead of fields. A row has several
    lines if a quoted field contains line breaks, or by mistake if a quote is not closed.
    """
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        before = reader.line_num
        row: list[str] | str
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            row = str(error)
        if row:
            yield before + 1, reader.line_num - before, row
