"""The command ``marginrank clicks``: convert a click log to training data."""

import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from marginrank._utils.types import Integers
from marginrank.cli.flags.declaration import flag
from marginrank.cli.flags.writing import ClicksFlags
from marginrank.cli.support.checks import check_files, check_flags, check_writable
from marginrank.cli.support.data import DataRequest, data_summary, open_data
from marginrank.cli.support.files import naming
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.streams import check_piped
from marginrank.clicks.features import FeatureIndex, SessionCounts, session_blocks
from marginrank.clicks.log_files import is_table, log_paths, name_of_log, read_sessions
from marginrank.clicks.sessions import BadRows
from marginrank.clicks.table_log import LogColumns
from marginrank.data.stored_data import open_stored
from marginrank.io.store_builder import DocumentBlock, build_store

COLUMNS_ONLY = ("session", "query", "document", "position")


def run(flags: ClicksFlags, phases: Phases) -> None:
    """Convert the sessions of a click log to a store to train on."""
    out, paths = flags.out, log_paths(flags.log)
    given = flags.reading.given
    for name in COLUMNS_ONLY:
        if name in given and not is_table(paths[0]):
            raise ValueError(
                f"{flag(name)} is for tables, but {paths[0]} is JSON; drop {flag(name)}."
            )
    check_flags(given - {"features"}, [flags.features])
    check_writable(out, folder=True)
    check_files([*paths, flags.features], [out])
    if "-" in paths:
        check_piped()
    if os.path.exists(out) and not flags.overwrite:
        raise ValueError(f"{out} exists; replace it with --overwrite.")
    request = DataRequest(comments=True, text_dtype="smallest", labels=False)
    features = open_data([flags.features], flags.reading, phases, request)
    with naming(flags.features), phases.phase("index", flags.features):
        index = FeatureIndex(features)
    bad, counts = BadRows(flags.skip_bad), SessionCounts()
    _write(flags, index, bad, counts, phases)
    result = _summary(flags, bad, counts)
    if flags.json:
        print_json({**result, "seconds": phases.seconds})
    else:
        _print_summary(result)


def _write(
    flags: ClicksFlags, index: FeatureIndex, bad: BadRows, counts: SessionCounts, phases: Phases
) -> None:
    """Write the sessions of a click log to a store, block by block.

    A large log is first divided by session into temporary files beside the store.
    """
    paths = log_paths(flags.log)
    columns = LogColumns(flags.session, flags.query, flags.document, flags.position, flags.click)
    name, beside = name_of_log(paths), os.path.dirname(os.path.abspath(flags.out))

    def blocks() -> Iterator[DocumentBlock]:
        with (
            phases.reading(name) as progress,
            tempfile.TemporaryDirectory(prefix=".marginrank-clicks-", dir=beside) as folder,
        ):
            sessions = read_sessions(paths, columns, bad, folder=folder, progress=progress)
            yield from session_blocks(sessions, index, bad, counts)
            if not counts.sizes:
                raise ValueError(
                    f"{name}: none of the {counts.total} sessions has both a clicked and an "
                    f"unclicked document, so no pair to learn from; skipped {bad.skipped}."
                )

    start, before = time.perf_counter(), phases.seconds["read"]
    build_store(blocks(), flags.out, overwrite=flags.overwrite, group=lambda _: _sizes(counts))
    read = phases.seconds["read"] - before
    phases.add("write", time.perf_counter() - start - read, flags.out)


def _sizes(counts: SessionCounts) -> Integers:
    """Return the number of documents of each session in the store."""
    return np.array(counts.sizes, dtype=np.int64)


def _summary(flags: ClicksFlags, bad: BadRows, counts: SessionCounts) -> dict[str, Any]:
    data = open_stored(flags.out, verify=False)
    return {
        "out": flags.out,
        "sessions": counts.total,
        "without_clicks": counts.without_clicks,
        "all_clicked": counts.all_clicked,
        "stored": data_summary(data),
        "clicks": counts.clicks,
        "last_position": int(np.asarray(data.position).max()),
        "moved_documents": counts.n_moved,
        "skipped": dict(bad.counts),
    }


def _print_summary(result: dict[str, Any]) -> None:
    stored = result["stored"]
    print_line(f"Wrote {result['out']} (store): {stored['queries']:,} sessions to train on")
    print_line("")
    rows = [
        ("sessions in the log", result["sessions"]),
        ("dropped: no click", result["without_clicks"]),
        ("dropped: all documents clicked", result["all_clicked"]),
        *((name, stored[name]) for name in ("documents", "features", "pairs")),
        ("clicks", result["clicks"]),
        ("last position", result["last_position"]),
        ("documents at several positions", result["moved_documents"]),
        *((f"skipped: {kind}", count) for kind, count in result["skipped"].items()),
    ]
    print_table("Click log", rows)
