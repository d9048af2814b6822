"""Runs and relevance judgments (qrels), joined by query and document.

A run holds the documents that a system retrieved, ``{query: {document: score}}``; qrels hold
relevance labels, ``{query: {document: label}}``. pytrec_eval and ranx's JSON files use the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.parameters import check_choice, check_integer
from marginrank._utils.types import Booleans, Floats
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.frames import as_table
from marginrank.data.validation import check_vector

ByDocument = dict[str, dict[str, float]]

# Columns as PyTerrier, ir_measures, pyvespa and ranx name them.
QUERY_COLUMNS = ("qid", "query_id", "q_id", "query")
DOCUMENT_COLUMNS = ("docno", "doc_id", "docid", "document")
SCORE_COLUMNS = ("score", "relevance_score")
LABEL_COLUMNS = ("label", "relevance", "rel", "relevance_label")


class JudgedDocuments(NamedTuple):
    """The documents of runs and qrels: query by query, in descending order of their ids.

    Ties in input order are then broken as trec_eval breaks them.
    """

    query: NDArray[Any]
    document: NDArray[Any]
    y: Floats  # 0 for documents without a judgment, and for negative labels
    is_judged: Booleans
    scores: Floats  # one row per run; -inf for documents that it did not retrieve


def as_run(run: Any, name: str = "run") -> ByDocument:
    """Return a run as dictionaries; raise ValueError for a score that is not finite.

    Parameters
    ----------
    run : mapping, data frame or ranx.Run
        ``{query: {document: score}}``, or columns such as ``qid``, ``docno`` and ``score``.
    name : str
        Name in messages.
    """
    return _as_dictionaries(run, name, SCORE_COLUMNS)


def as_qrels(qrels: Any, name: str = "qrels") -> ByDocument:
    """Return judgments as dictionaries; raise ValueError for a label that is not finite.

    Parameters
    ----------
    qrels : mapping, data frame or ranx.Qrels
        ``{query: {document: label}}``, or columns such as ``qid``, ``docno`` and ``label``.
    name : str
        Name in messages.
    """
    return _as_dictionaries(qrels, name, LABEL_COLUMNS)


def judged_documents(
    runs: Sequence[ByDocument], qrels: ByDocument, *, unjudged: str = "irrelevant"
) -> JudgedDocuments:
    """Return all documents that are judged, or retrieved by a run, for the queries of the qrels.

    With ``unjudged="skip"``, documents without a judgment are dropped (condensed lists).
    """
    check_choice("unjudged", unjudged, ("irrelevant", "skip"))
    _check_common_queries(runs, qrels)
    rows: list[tuple[str, str]] = []
    for query, labels in qrels.items():
        found = set(labels)
        if unjudged == "irrelevant":
            found.update(*(run.get(query, {}) for run in runs))
        rows += [(query, document) for document in sorted(found, reverse=True)]
    label = [qrels[query].get(document) for query, document in rows]
    scores = np.array(
        [[run.get(query, {}).get(document, -np.inf) for query, document in rows] for run in runs]
    )
    query, document = np.array(rows, dtype=object).T
    is_judged = np.array([value is not None for value in label])
    y = np.array([max(value or 0.0, 0.0) for value in label])
    return JudgedDocuments(query, document, y, is_judged, scores)


def top_documents(run: ByDocument, depth: int) -> ByDocument:
    """Return the `depth` best documents of each query; ties are broken by descending id."""
    return {query: dict(list(own.items())[:depth]) for query, own in best_first(run).items()}


def best_first(run: ByDocument) -> ByDocument:
    """Return each query's documents by descending score; ties are broken by descending id."""
    return {
        query: dict(sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True))
        for query, scores in run.items()
    }


class RetrievedFeatures(NamedTuple):
    """Documents that any run retrieved, with three features per run."""

    X: Floats
    y: Floats
    query: NDArray[Any]
    document: NDArray[Any]
    names: list[str]


def retrieved_features(
    runs: Mapping[str, Any], qrels: Any, depth: int, unjudged: str
) -> RetrievedFeatures:
    """Return the documents in the first `depth` of any run, with features of each run."""
    if not runs:
        raise ValueError("runs is empty; pass at least one run, as in {'bm25': run}.")
    depth = check_integer("depth", depth, at_least=1)
    tops = [top_documents(as_run(run, name), depth) for name, run in runs.items()]
    if qrels is None:  # nothing is judged: every query and document of the runs
        judgments: ByDocument = {query: {} for run in tops for query in run}
    else:
        judgments = as_qrels(qrels)
    documents = judged_documents(tops, judgments, unjudged=unjudged)
    kept = np.any(documents.scores > -np.inf, axis=0)
    query, scores = documents.query[kept], documents.scores[:, kept]
    columns = [column for own in scores for column in _signal_columns(own, query, depth)]
    names = [f"{name}{ending}" for name in runs for ending in ("", "_rank", "_missing")]
    y = documents.y[kept]
    return RetrievedFeatures(np.column_stack(columns), y, query, documents.document[kept], names)


def run_of(queries: NDArray[Any], documents: Sequence[str] | None, scores: ArrayLike) -> ByDocument:
    """Return the scores of documents as a run."""
    if documents is None:
        raise ValueError("the data has no comments, which hold the ids of documents in a run.")
    values = check_vector(scores, "scores", len(documents), "one score per document")
    run: ByDocument = {}
    for query, document, score in zip(queries, documents, values, strict=True):
        own = run.setdefault(str(query), {})
        if document in own:
            raise ValueError(
                f"two documents of query {str(query)!r} have the comment {document!r}; comments "
                "must be document ids, as RankingData.from_runs has them."
            )
        own[document] = float(score)
    return run


def _signal_columns(scores: Floats, query: NDArray[Any], depth: int) -> tuple[Floats, ...]:
    """Return three features of a run: score, rank, and whether it lacks the document."""
    missing = np.isneginf(scores)
    rank = np.full(scores.size, depth + 1.0)
    filled = np.where(missing, 0.0, scores)
    starts = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
    for first, last in zip(starts, [*starts[1:], scores.size], strict=True):
        own = first + np.flatnonzero(~missing[first:last])
        if own.size:
            rank[own[np.argsort(-scores[own], kind="stable")]] = np.arange(1, own.size + 1)
            filled[first:last][missing[first:last]] = scores[own].min()
    return filled, rank, missing.astype(np.float64)


def _as_dictionaries(values: Any, name: str, columns: Sequence[str]) -> ByDocument:
    if not isinstance(values, Mapping) and hasattr(values, "to_dict") and hasattr(values, "name"):
        values = values.to_dict()  # ranx
    if not isinstance(values, Mapping):
        return _from_frame(values, name, columns)
    result: ByDocument = {}
    for query, documents in values.items():
        if not isinstance(documents, Mapping):
            raise TypeError(
                f"{name}[{query!r}] is a {type(documents).__name__}; pass "
                f"{{query: {{document: {columns[0]}}}}}."
            )
        result[str(query)] = own = {str(key): float(value) for key, value in documents.items()}
        for document, value in own.items():
            if not np.isfinite(value):
                raise ValueError(
                    f"{name}[{query!r}][{document!r}] is {value}; drop the document or give it a "
                    f"finite {columns[0]}."
                )
    return result


def _from_frame(frame: Any, name: str, columns: Sequence[str]) -> ByDocument:
    table = as_table(frame)
    at = [_find_column(table.names, known, name) for known in _roles(columns)]
    queries, documents, values = (table.rows(k, 0, table.n_rows) for k in at)
    result: ByDocument = {}
    rows = zip(queries, documents, values, strict=True)
    for number, (query, document, value) in enumerate(rows):
        own = result.setdefault(str(query), {})
        if str(document) in own:
            raise ValueError(
                f"row {number} of {name} repeats document {document!r} of query {query!r}; keep "
                "one of them."
            )
        own[str(document)] = float(value)
    return _as_dictionaries(result, name, columns)


def _roles(columns: Sequence[str]) -> tuple[Sequence[str], ...]:
    return QUERY_COLUMNS, DOCUMENT_COLUMNS, columns


def _find_column(names: Sequence[Any], known: Sequence[str], name: str) -> int:
    for candidate in known:
        if candidate in names:
            return names.index(candidate)
    raise ValueError(
        f"{name} has no column {' or '.join(map(repr, known))}; rename one of "
        f"{', '.join(map(str, names))}."
    )


def _check_common_queries(runs: Sequence[ByDocument], qrels: ByDocument) -> None:
    if not qrels:
        raise ValueError("qrels has no judgments.")
    for number, run in enumerate(runs):
        common = run.keys() & qrels.keys()
        if not common:
            raise ValueError(
                f"no query of run {number + 1} is in the qrels; their ids look like "
                f"{next(iter(run), '')!r} and {next(iter(qrels))!r}."
            )
    missing = [query for query in qrels if not any(query in run for run in runs)]
    if missing:
        warn_caller(
            f"{len(missing)} of {len(qrels)} judged queries are in no run, such as {missing[0]!r}; "
            "they count with nothing retrieved."
        )
