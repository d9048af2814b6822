"""Reading of click logs (tables or JSON), which may be larger than memory."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from marginrank._utils.user_warnings import warn_caller
from marginrank.clicks.log import ClickLog
from marginrank.clicks.sessions import BadRows, Entry, LoggedSession
from marginrank.clicks.table_log import LogColumns, TableLog
from marginrank.clicks.ubi_log import UbiLog
from marginrank.io.text_sources import Path, Progress

TABLES = (".csv", ".tsv", ".parquet")
JSON_LINES = (".ndjson", ".jsonl", ".json")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")

# A large log is divided into parts, temporary files that have all entries of some sessions.
PART_BYTES = 1 << 25  # bytes of the log per part; Python lists take several times as much memory
RATIO = 10  # assumed compression ratio of compressed logs
PIPED_BYTES = 1 << 32  # assumed size of standard input
MOST_PARTS = 1024
BUFFERED = 1 << 24  # bytes of lines that are buffered before they are written

Sources = Path | Sequence[Path]


def load_clicks(
    source: Sources,
    *,
    session: str = "session",
    query: str = "query",
    document: str = "document",
    position: str = "position",
    click: str = "click",
    skip_bad: bool = False,
) -> ClickLog:
    r"""Read a click log: a table, or queries and events of User Behavior Insights (UBI).

    Parameters
    ----------
    source : path, or list of paths
        A table (.csv, .tsv or .parquet) with one row per document that was shown in a session, or
        UBI records, one JSON object per line (.ndjson, .jsonl, .json, or "-" for standard input).
        Text may be compressed (.gz, .bz2, .xz, .zst).
    session, query, document, position, click : str
        Names of the columns of a table. For UBI records, `click` is the value of action_name that
        means a click, and the other four are not used: a session is a query_id.
    skip_bad : bool, default=False
        Skip bad rows and warn with their number, instead of raising ValueError for the first.

    Returns
    -------
    ClickLog
        All sessions, with the documents of each by ascending position, and ids as text.

    Raises
    ------
    ValueError
        ``file:line: what is wrong``: broken JSON, positions below 1, two documents at one position
        of a session, clicks on documents that were not shown.

    See Also
    --------
    ClickLog.join : Join a log with features to train on it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from marginrank import load_clicks
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.csv")
    >>> _ = path.write_text("session,query,document,position,click\ns1,q,a,1,0\ns1,q,b,2,1\n")
    >>> log = load_clicks(path)
    >>> log.document.tolist(), log.position.tolist(), log.click.tolist()
    (['a', 'b'], [1, 2], [0.0, 1.0])
    """
    paths, bad = log_paths(source), BadRows(skip_bad)
    columns = LogColumns(session, query, document, position, click)
    sessions = list(read_sessions(paths, columns, bad))
    if not any(one.shown for one in sessions):
        raise ValueError(
            f"{name_of_log(paths)} contains no documents that were shown; skipped {bad.skipped}."
        )
    if bad.counts:
        warn_caller(f"{name_of_log(paths)}: skipped {bad.skipped}.")
    return as_log(sessions)


def as_log(sessions: Sequence[LoggedSession]) -> ClickLog:
    """Return a list of sessions as a ClickLog, without sessions that have no documents."""
    sizes = [len(one.shown) for one in sessions if one.shown]
    shown = [document for one in sessions for document in one.shown]
    query, document = (np.empty(len(shown), dtype=object) for _ in range(2))
    query[:] = [one.query for one in sessions for _ in one.shown]
    document[:] = [one.document for one in shown]
    return ClickLog(
        session=np.repeat(np.arange(len(sizes)), sizes),
        query=query,
        document=document,
        position=np.array([one.position for one in shown], dtype=np.int64),
        click=np.array([one.click for one in shown], dtype=np.float64),
    )


def read_sessions(
    paths: Sequence[str],
    columns: LogColumns,
    bad: BadRows,
    *,
    folder: str | None = None,
    progress: Progress | None = None,
) -> Iterator[LoggedSession]:
    """Yield the sessions of a click log, whose rows may be in any order.

    If `folder` is given, a large log is first divided by session into temporary files there, so
    that only the sessions of one file are in memory at a time.
    """
    endings = {path: ending_of(path) for path in paths}
    tables = [ending in TABLES for ending in endings.values()]
    if any(tables) != all(tables):
        raise ValueError(f"{', '.join(paths)}: tables and JSON cannot be read as one log.")
    log: TableLog | UbiLog = TableLog(columns) if all(tables) else UbiLog(columns.click)
    entries = (entry for path in paths for entry in log.entries(path, endings[path], bad, progress))
    n_parts = 1 if folder is None else _number_of_parts(paths)
    for part in _in_parts(entries, folder, n_parts):
        for own in _by_session(part).values():
            found = log.session(own, bad)
            if found is not None:
                yield found


def log_paths(source: Sources) -> list[str]:
    """Return the files of a click log as a list; raise ValueError for an unknown file type."""
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not paths:
        raise ValueError("source is an empty list; pass at least one file.")
    for path in paths:
        ending_of(os.fspath(path))
    return [os.fspath(path) for path in paths]


def name_of_log(paths: Sequence[str]) -> str:
    """Return the name of a click log for messages, such as "log.csv with 2 more"."""
    first = "<stdin>" if paths[0] == "-" else paths[0]
    return first if len(paths) == 1 else f"{first} with {len(paths) - 1} more"


def is_table(path: str) -> bool:
    """Return True if a click log is a table (.csv, .tsv, .parquet), and False if it is JSON."""
    return ending_of(path) in TABLES


def ending_of(path: str) -> str:
    """Return the file type of a click log: ".csv" for "log.csv" and "log.csv.gz"."""
    if path == "-":
        return JSON_LINES[0]
    stem, ending = os.path.splitext(path.lower())
    if ending in COMPRESSED:
        ending = os.path.splitext(stem)[1]
        ending = "" if ending == ".parquet" else ending
    if ending not in (*TABLES, *JSON_LINES):
        raise ValueError(
            f"{path}: the name of a click log must end in {', '.join((*TABLES, *JSON_LINES))}."
        )
    return ending


def _number_of_parts(paths: Sequence[str]) -> int:
    n_bytes = 0
    for path in paths:
        compressed = path.lower().endswith((*COMPRESSED, ".parquet"))
        size = PIPED_BYTES if path == "-" else os.stat(path).st_size
        n_bytes += size * (RATIO if compressed else 1)
    return min(-(-n_bytes // PART_BYTES) or 1, MOST_PARTS)


def _by_session(entries: Iterable[Entry]) -> dict[str, list[list[Any]]]:
    sessions: dict[str, list[list[Any]]] = {}
    for session, entry in entries:
        sessions.setdefault(session, []).append(entry)
    return sessions


def _in_parts(
    entries: Iterable[Entry], folder: str | None, n_parts: int
) -> Iterator[Iterable[Entry]]:
    """Divide the entries of a log by session into files in `folder`; yield the entries of each.

    Without `folder`, yield all entries at once.
    """
    if folder is None or n_parts == 1:
        yield entries
        return
    names = [os.path.join(folder, f"part{k}") for k in range(n_parts)]
    waiting: list[list[str]] = [[] for _ in names]
    n_waiting = 0
    for session, entry in entries:
        line = json.dumps([session, entry], separators=(",", ":"))
        waiting[zlib.crc32(session.encode("utf-8", "surrogatepass")) % n_parts].append(line)
        n_waiting += len(line)
        if n_waiting > BUFFERED:
            _write_parts(names, waiting)
            n_waiting = 0
    _write_parts(names, waiting)
    for name in names:
        if os.path.exists(name):
            yield _read_part(name)
            os.unlink(name)


def _write_parts(names: Sequence[str], waiting: Sequence[list[str]]) -> None:
    """Append the waiting lines of each file to it, and empty the lists."""
    for name, lines in zip(names, waiting, strict=True):
        if lines:
            with open(name, "a", encoding="ascii") as file:
                file.writelines(f"{line}\n" for line in lines)
            lines.clear()


def _read_part(name: str) -> Iterator[Entry]:
    with open(name, encoding="ascii") as file:
        for line in file:
            session, entry = json.loads(line)
            yield session, entry
