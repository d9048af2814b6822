"""Reading and writing of runs and qrels in TREC's text formats, or as JSON."""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.runs import ByDocument, as_qrels, as_run
from marginrank.io.text_sources import (
    Path,
    Source,
    compressed,
    printable,
    source_name,
    texts_of,
)

RUN_COLUMNS = "query Q0 document rank score tag"
QRELS_COLUMNS = "query 0 document label"


def load_run(source: Source | Any) -> ByDocument:
    r"""Read a run: the documents that a system retrieved for each query, with their scores.

    Parameters
    ----------
    source : path, binary file object, mapping, data frame or ranx.Run
        TREC text, ``query Q0 document rank score tag`` per line, or a JSON object
        ``{query: {document: score}}``. Files that end in .gz, .bz2, .xz or .zst are decompressed;
        "-" is standard input. Other objects are converted.

    Returns
    -------
    dict
        ``{query: {document: score}}``, for :meth:`marginrank.RankingData.from_runs` and
        :func:`marginrank.metrics.evaluate_run`. The scores define the ranking. If the ranks in the
        file contradict them, a warning names the first such query.

    Raises
    ------
    ValueError
        ``file:line: what is wrong``, for the first malformed line.

    See Also
    --------
    load_qrels : Read relevance judgments.

    Examples
    --------
    >>> import io
    >>> from marginrank import load_run
    >>> load_run(io.BytesIO(b"q1 Q0 d7 1 12.5 bm25\nq1 Q0 d3 2 9.0 bm25\n"))
    {'q1': {'d7': 12.5, 'd3': 9.0}}
    """
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        return as_run(source)
    name = source_name(source)
    ranks: ByDocument = {}

    def parse(fields: list[str]) -> tuple[str, str, float]:
        query, _, document, rank, score, _ = fields
        ranks.setdefault(query, {})[document] = _number(rank, "rank")
        return query, document, _number(score, "score")

    run = _load(source, name, RUN_COLUMNS, parse)
    if run is None:
        return as_run(_read_json(source, name), name)
    _warn_about_ranks(run, ranks, name)
    return run


def load_qrels(source: Source) -> ByDocument:
    r"""Read relevance judgments (qrels): the label of each judged document of each query.

    Parameters
    ----------
    source : path or binary file object
        TREC text, ``query 0 document label`` per line, or a JSON object
        ``{query: {document: label}}``. Files that end in .gz, .bz2, .xz or .zst are decompressed;
        "-" is standard input.

    Returns
    -------
    dict
        ``{query: {document: label}}``.

    Raises
    ------
    ValueError
        ``file:line: what is wrong``, for the first malformed line.

    See Also
    --------
    load_run : Read the documents that a system retrieved.

    Examples
    --------
    >>> import io
    >>> from marginrank import load_qrels
    >>> load_qrels(io.BytesIO(b"q1 0 d7 2\nq1 0 d3 0\n"))
    {'q1': {'d7': 2.0, 'd3': 0.0}}
    """
    name = source_name(source)
    qrels = _load(
        source,
        name,
        QRELS_COLUMNS,
        lambda fields: (fields[0], fields[2], _number(fields[3], "label")),
    )
    return as_qrels(_read_json(source, name), name) if qrels is None else qrels


def dump_run(run: ByDocument, path: Path, *, tag: str = "marginrank") -> None:
    """Write a run as TREC text, best documents first; files such as run.txt.gz are compressed.

    Parameters
    ----------
    run : dict
        ``{query: {document: score}}``, as from :meth:`marginrank.RankingData.to_run`. Ids must not
        contain white space.
    path : str or path
        The file to write. It appears only when it is complete.
    tag : str, default="marginrank"
        Name of the run, the last column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from marginrank import dump_run
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.run")
    >>> dump_run({"q1": {"d3": 0.5, "d7": 2.0}}, path, tag="a")
    >>> print(path.read_text(), end="")
    q1 Q0 d7 1 2.0 a
    q1 Q0 d3 2 0.5 a
    """
    with atomic_write(path) as file, compressed(os.fspath(path), file) as out:
        for query, documents in as_run(run).items():
            best_first = sorted(documents.items(), key=lambda item: (item[1], item[0]))[::-1]
            for rank, (document, score) in enumerate(best_first, 1):
                fields = query, "Q0", document, str(rank), repr(score), tag
                line = " ".join(fields)
                if line.split() != list(fields):
                    raise ValueError(
                        f"{line!r} has white space in an id or in tag={tag!r}, or one is empty; "
                        "replace them."
                    )
                out.write(f"{line}\n".encode())


def _load(
    source: Source, name: str, columns: str, parse: Callable[[list[str]], tuple[str, str, float]]
) -> ByDocument | None:
    """Return TREC text as {query: {document: number}}, or None if the source is JSON.

    `parse` converts the fields of a line; `columns` names them in error messages.
    """
    result: ByDocument = {}
    width = len(columns.split())
    for number, line in enumerate(_lines(source), 1):
        fields = line.split()
        if not fields:
            continue
        if number == 1 and fields[0].startswith("{"):
            return None
        try:
            if len(fields) != width:
                raise ValueError(f"{len(fields)} columns; write {columns!r}")
            query, document, value = parse(fields)
        except ValueError as error:
            raise ValueError(f"{name}:{number}: {error}.") from None
        own = result.setdefault(query, {})
        if document in own:
            raise ValueError(
                f"{name}:{number}: document {document!r} of query {query!r} was listed before; "
                "keep one of them."
            )
        own[document] = value
    if not result:
        raise ValueError(f"{name} is empty; write one line per document: {columns!r}.")
    return result


def _lines(source: Source) -> Iterator[str]:
    for text, first, last in texts_of(source, None):
        yield from text[first:last].decode("utf-8", "surrogateescape").splitlines()


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            f"{what} '{printable(text.encode('utf-8', 'replace')[:40])}' is not a finite number"
        )
    return value


def _read_json(source: Source, name: str) -> object:
    if not isinstance(source, (str, os.PathLike)) or source == "-":
        raise ValueError(f"{name}: JSON is read from files only; pass a path, or TREC text.")
    text = b"".join(chunk[first:last] for chunk, first, last in texts_of(source, None))
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: not valid JSON ({error}).") from error


def _warn_about_ranks(run: ByDocument, ranks: ByDocument, name: str) -> None:
    for query, scores in run.items():
        by_rank = sorted(scores, key=ranks[query].__getitem__)
        values = np.array([scores[document] for document in by_rank])
        if np.any(np.diff(values) > 0):
            warn_caller(
                f"{name}: ranks contradict scores, first in query {query!r}; the scores are used."
            )
            return
