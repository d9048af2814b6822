"""Sessions of a click log: the documents that were shown to a user, and checks for bad rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from marginrank._utils.parameters import Mention, ParameterError

MALFORMED = "malformed lines"
BAD_POSITION = "invalid positions"
SAME_POSITION = "documents at a position that shows another one"
SHOWN_TWICE = "documents at a second position"
NOT_SHOWN = "clicks on documents that were not shown"
NO_QUERY = "events without their query"
NO_FEATURES = "documents without features"

QUOTED = 60  # most characters of a value that messages quote
MOST_POSITION = 2**31
Entry = tuple[str, list[Any]]  # session id, and the values of one entry
POSITION = re.compile(r"[0-9]{1,10}(\.0*)?")


class BadRows:
    """Handler of bad rows in a click log: raises ValueError for the first, or counts them all.

    `skip` says that bad rows are skipped and counted.
    """

    def __init__(self, skip: bool) -> None:
        self._skip = skip
        self.counts: Counter[str] = Counter()

    def add(self, kind: str, place: str, problem: str, *, count: int = 1) -> None:
        """Add `count` bad rows of a kind to the counts; raise ParameterError if not skipped.

        `place` (file and line) and `problem` are parts of the message.
        """
        if not self._skip:
            raise ParameterError(
                f"{place}: {problem}. Correct it, or skip bad rows with ",
                Mention("skip_bad", "True"),
                ".",
            )
        self.counts[kind] += count

    @property
    def skipped(self) -> str:
        """Text with the numbers of skipped rows, such as "3 malformed lines", or "nothing"."""
        return ", ".join(f"{count} {kind}" for kind, count in self.counts.items()) or "nothing"


class ShownDocument(NamedTuple):
    """A document that was shown in a session; `place` is its file and line in the log."""

    place: str
    document: str
    position: int
    click: bool


class LoggedSession(NamedTuple):
    """A session of a click log: one list of results shown to a user, with the clicks on it."""

    query: str
    shown: list[ShownDocument]

    def without(self, rows: Iterable[int]) -> LoggedSession:
        """Return the session without some of its documents, given by their indices."""
        left_out = set(rows)
        return LoggedSession(
            self.query, [one for row, one in enumerate(self.shown) if row not in left_out]
        )

    @property
    def n_clicks(self) -> int:
        """Number of clicked documents in the session."""
        return sum(one.click for one in self.shown)


def checked_session(query: str, shown: Iterable[ShownDocument], bad: BadRows) -> LoggedSession:
    """Create a session with documents sorted by position.

    A second document at the same position is a bad row; it is skipped, or raises ValueError.
    """
    by_position: dict[int, ShownDocument] = {}
    for one in shown:
        first = by_position.setdefault(one.position, one)
        if first is not one:
            bad.add(
                SAME_POSITION,
                one.place,
                f"document {quoted(one.document)} is at position {one.position}, which already "
                "shows "
                f"{quoted(first.document)} of {first.place}",
            )
    return LoggedSession(query, [by_position[position] for position in sorted(by_position)])


def whole_position(value: Any) -> int | None:
    """Return a number or text as a position, or None if it is not an integer above 0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and POSITION.fullmatch(value):
        value = int(value.partition(".")[0])
    valid = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_POSITION
    return int(value) if valid else None


def text_of_id(value: Any) -> str | None:
    """Return a query or document id as text, or None if it is empty, or not text or an integer."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None


def quoted(value: Any) -> str:
    """Return a value from a log for a message: in quotes, and truncated if it is long."""
    text = repr(value)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
