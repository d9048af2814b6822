"""Joining of a click log with features, which are looked up by query and document id."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from marginrank._utils.types import Integers
from marginrank.clicks.sessions import NO_FEATURES, BadRows, LoggedSession, quoted
from marginrank.data.ranking_data import RankingData
from marginrank.io.store_builder import DocumentBlock

BLOCK = 1 << 22  # feature values in memory at a time
BLOCK_DOCUMENTS = 1 << 16


class FeatureIndex:
    """Index from (query id, document id) to the row of a data set.

    The comments of the data set must be the document ids.
    """

    def __init__(self, data: RankingData) -> None:
        if data.comments is None or not any(data.comments):
            raise ValueError(
                "the data has no comments; the comment of each document must be its id."
            )
        self.data = data
        names = [str(query) for query in data.query_ids.tolist()]
        queries = (names[number] for number in data.qid.tolist())
        self._rows: dict[tuple[str, str], int] = {}
        for row, key in enumerate(zip(queries, data.comments[:], strict=True)):
            if self._rows.setdefault(key, row) != row:
                query, document = map(quoted, key)
                raise ValueError(
                    f"two documents of query {query} have the comment {document}; comments must be "
                    "document ids."
                )

    def find(self, query: str, document: str) -> int | None:
        """Return the row with this query id and document id, or None if there is none."""
        return self._rows.get((query, document))

    def without_features(self, query: str, document: str) -> str:
        """Return the message that a document has no features, with ids of a document that has."""
        known_query, known = map(quoted, next(iter(self._rows)))
        return (
            f"document {quoted(document)} of query {quoted(query)} has no features (there are "
            f"features of, for example, document {known} of query {known_query})"
        )


@dataclass
class SessionCounts:
    """Counts of the sessions of a click log, updated while the log is read.

    Only a session with a clicked and an unclicked document has pairs to learn from.
    """

    without_clicks: int = 0
    all_clicked: int = 0
    clicks: int = 0
    # Number of documents in each session that has a clicked and an unclicked document.
    sizes: array[int] = field(default_factory=lambda: array("q"))
    # Highest and lowest position of each row of the features in these sessions, 1 for the top.
    highest: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    lowest: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def has_pairs(self, session: LoggedSession) -> bool:
        """Add a session to the counts; return True if it has clicked and unclicked documents."""
        n_clicks = session.n_clicks
        if n_clicks == 0:
            self.without_clicks += 1
        elif n_clicks == len(session.shown):
            self.all_clicked += 1
        else:
            self.sizes.append(len(session.shown))
            self.clicks += n_clicks
            return True
        return False

    def add_positions(self, rows: Integers, position: Integers, n_rows: int) -> None:
        """Record the positions at which some rows of the features, out of `n_rows`, were shown."""
        if not self.lowest.size:
            self.highest = np.full(n_rows, np.iinfo(np.int64).max)
            self.lowest = np.zeros(n_rows, dtype=np.int64)
        np.minimum.at(self.highest, rows, position)
        np.maximum.at(self.lowest, rows, position)

    @property
    def n_moved(self) -> int:
        """Number of documents that were shown at more than one position."""
        return int(np.count_nonzero(self.lowest > self.highest))

    @property
    def total(self) -> int:
        """Number of sessions counted so far."""
        return self.without_clicks + self.all_clicked + len(self.sizes)


def session_blocks(
    sessions: Iterable[LoggedSession], index: FeatureIndex, bad: BadRows, counts: SessionCounts
) -> Iterator[DocumentBlock]:
    """Yield the documents of sessions with their features, in blocks, with clicks as labels.

    Sessions without clicks, or with a click on every document, are dropped, because they have no
    pairs to learn from. All sessions are added to `counts`.
    """
    n_documents = max(min(BLOCK // index.data.n_features, BLOCK_DOCUMENTS), 1)
    waiting: list[LoggedSession] = []
    n_waiting = 0
    for one in sessions:
        session = _with_features(one, index, bad)
        if counts.has_pairs(session):
            waiting.append(session)
            n_waiting += len(session.shown)
        if n_waiting >= n_documents:
            yield _block(waiting, index, counts)
            waiting, n_waiting = [], 0
    if waiting:
        yield _block(waiting, index, counts)


def _with_features(session: LoggedSession, index: FeatureIndex, bad: BadRows) -> LoggedSession:
    """Return the session without documents that have no features, which are added to `bad`."""
    missing = []
    for row, one in enumerate(session.shown):
        if index.find(session.query, one.document) is None:
            bad.add(NO_FEATURES, one.place, index.without_features(session.query, one.document))
            missing.append(row)
    return session.without(missing) if missing else session


def _block(
    sessions: list[LoggedSession], index: FeatureIndex, counts: SessionCounts
) -> DocumentBlock:
    found = [index.find(one.query, shown.document) for one in sessions for shown in one.shown]
    rows = np.array(found, dtype=np.int64)
    documents = list(chain.from_iterable(one.shown for one in sessions))
    position = np.array([shown.position for shown in documents], dtype=np.int64)
    counts.add_positions(rows, position, index.data.n_documents)
    X: Any = index.data.X
    return DocumentBlock(
        X[rows],
        np.array([shown.click for shown in documents], dtype=np.float64),
        position=position,
        comments=[shown.document for shown in documents],
        feature_names=index.data.feature_names,
    )
