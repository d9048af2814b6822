"""Reading of click logs in the schema of OpenSearch's User Behavior Insights (UBI).

A log has one JSON object per line: a query with its text and the ids of its results, or an event
(impression or click) on a result. All records with the same query_id are a session. If a session
has impressions, only the results with an impression were shown; otherwise all results of the query
were. Lines of the bulk API and exports with _source are read, too. The schemas are at
https://github.com/o19s/ubi; versions 1.0 to 1.3 agree on these fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from marginrank.clicks.sessions import (
    BAD_POSITION,
    MALFORMED,
    NO_QUERY,
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
from marginrank.io.text_sources import Progress, numbered_lines, source_name

IMPRESSION = "impression"
BULK_ACTIONS = {"index", "create"}  # action lines of the bulk API, each before a record
QUERY, EVENT = 0, 1  # codes of the two kinds of entries


class UbiLog:
    """Reader of a click log in the schema of User Behavior Insights (UBI).

    Queries and events may be in any order, in one file or several. An *entry* is a parsed record:
    [QUERY, place, text, ids of the results] for a query, or [EVENT, place, whether it is a click,
    document, position or None] for an event. `place` is the file and line.
    """

    def __init__(self, click: str) -> None:
        self._click = click

    def entries(
        self, path: str, _: str, bad: BadRows, progress: Progress | None
    ) -> Iterator[Entry]:
        """Yield (query_id, entry) for each query, click and impression in a UBI file.

        Entries are described in the class docstring.
        """
        name = source_name(path)
        for number, line in numbered_lines(path, progress):
            if not line.strip():
                continue
            place = f"{name}:{number}"
            record = _json_object(line)
            found: Entry | str | None = "neither a query nor an event of UBI"
            if record is None:
                found = "not a JSON object"
            elif record and record.keys() <= BULK_ACTIONS:
                found = None
            elif "action_name" in record:
                found = self._event(record, place, bad)
            elif "query_id" in record:
                found = _query(record, place)
            if isinstance(found, str):
                bad.add(MALFORMED, place, found)
            elif found is not None:
                yield found

    def session(self, entries: Sequence[list[Any]], bad: BadRows) -> LoggedSession | None:
        """Return the session with the entries of a query_id, or None if the query is missing."""
        queries = [entry[1:] for entry in entries if entry[0] == QUERY]
        events = [entry[1:] for entry in entries if entry[0] == EVENT]
        if not queries:
            for place, *_ in events:
                bad.add(NO_QUERY, place, "no record of a query has the query_id of this event")
            return None
        text, results = _one_query(queries, bad)
        impressions = [event for event in events if not event[1]]
        shown: dict[str, ShownDocument] = {}
        for place, _, document, position in impressions:
            self._show(shown, results, (place, document, position), bad)
        if not impressions:
            shown = dict(results)
        for place, is_click, document, _ in events:
            if not is_click:
                continue
            one = shown.get(document) or results.get(document)
            if one is None:
                what = f"the click is on document {quoted(document)}"
                bad.add(NOT_SHOWN, place, f"{what}, which query {quoted(text)} did not show")
            else:
                shown[document] = one._replace(click=True)
        return checked_session(text, shown.values(), bad)

    def _event(self, record: dict[str, Any], place: str, bad: BadRows) -> Entry | None:
        """Return (query_id, entry) for an event, or None if it is not a click or impression.

        An event with an invalid position is added to `bad`, and None is returned.
        """
        action = record["action_name"]
        session = text_of_id(record.get("query_id"))
        document = text_of_id(_inside(record, "event_attributes", "object", "object_id"))
        if action not in (self._click, IMPRESSION) or session is None or document is None:
            return None
        ordinal = _inside(record, "event_attributes", "position", "ordinal")
        position = whole_position(ordinal)
        if ordinal is not None and position is None:
            what = f"position.ordinal is {quoted(ordinal)}"
            bad.add(BAD_POSITION, place, f"{what}; positions are whole numbers, 1 for the top")
            return None
        return session, [EVENT, place, action == self._click, document, position]

    def _show(
        self,
        shown: dict[str, ShownDocument],
        results: dict[str, ShownDocument],
        impression: tuple[str, str, int | None],
        bad: BadRows,
    ) -> None:
        """Add the document of an impression to `shown`.

        If the impression has no position, the document's position in the results is used.
        """
        place, document, position = impression
        if position is None and document in results:
            position = results[document].position
        if position is None:
            what = f"the impression of document {quoted(document)} has no position.ordinal"
            bad.add(BAD_POSITION, place, what)
            return
        first = shown.setdefault(document, ShownDocument(place, document, position, False))
        if first.position != position:
            what = f"document {quoted(document)} is at position {position}"
            bad.add(SHOWN_TWICE, place, f"{what}, but at {first.position} in {first.place}")


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    source = record.get("_source") if isinstance(record, dict) else None
    record = record if source is None else source
    return record if isinstance(record, dict) else None


def _query(record: dict[str, Any], place: str) -> Entry | str:
    """Return (query_id, entry) for a query record, or the problem as text if it is invalid."""
    session, text = text_of_id(record["query_id"]), record.get("user_query")
    results = record.get("query_response_hit_ids") or []
    if session is None:
        return f"query_id is {quoted(record['query_id'])}, which is not an id"
    if not isinstance(text, str):
        return f"user_query is {quoted(text)}, which is not text"
    ids = [text_of_id(one) for one in results] if isinstance(results, list) else [None]
    if None in ids:
        return "query_response_hit_ids is not a list of ids"
    return session, [QUERY, place, text, ids]


def _one_query(queries: Sequence[list[Any]], bad: BadRows) -> tuple[str, dict[str, ShownDocument]]:
    """Return the text and the results of a query, merged from all query records of its query_id.

    Records that disagree with the first one are added to `bad`.
    """
    place, text, ids = queries[0]
    for other_place, other_text, other_ids in queries[1:]:
        if other_text != text or (ids and other_ids not in ([], ids)):
            bad.add(MALFORMED, other_place, f"the query_id belongs to another query in {place}")
        else:
            ids = ids or other_ids  # clients may write a second record, without results
    results: dict[str, ShownDocument] = {}
    for position, document in enumerate(ids, 1):
        one = ShownDocument(place, document, position, False)
        if results.setdefault(document, one) is not one:
            what = f"document {quoted(document)} is at position {position}"
            bad.add(SHOWN_TWICE, place, f"{what}, but also at {results[document].position}")
    return text, results


def _inside(record: dict[str, Any], *names: str) -> Any:
    """Return record[name1][name2]… for nested fields, or None if one is missing."""
    value: Any = record
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
