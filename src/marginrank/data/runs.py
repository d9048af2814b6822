"""Runs and relevance judgments (qrels), joined by query and document.

A run holds the documents that a system retrieved, ``{query: {document: score}}``; qrels hold
relevance labels, ``{query: {document: label}}``. pytrec_eval and the JSON files of ranx use the
same dictionaries.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank import _core
from marginrank._utils.parameters import check_choice, check_integer
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank._utils.user_warnings import warn_caller
from marginrank.data.frames import as_table
from marginrank.data.validation import check_vector

ByDocument = dict[str, dict[str, float]]

# Names of columns in data frames of PyTerrier, ir_measures, pyvespa and ranx.
QUERY_COLUMNS = ("qid", "query_id", "q_id", "query")
DOCUMENT_COLUMNS = ("docno", "doc_id", "docid", "document")
SCORE_COLUMNS = ("score", "relevance_score")
LABEL_COLUMNS = ("label", "relevance", "rel", "relevance_label")


class JudgedDocuments(NamedTuple):
    """All documents of some runs and qrels as arrays, with labels and with scores for each run.

    Documents are sorted by query, then by descending id: a stable sort by score then breaks ties
    like trec_eval.
    """

    query_ids: NDArray[Any]
    query: Integers  # index in query_ids of each document's query
    document: NDArray[Any]
    y: Floats  # labels; 0 for documents without a judgment, and for negative labels
    is_judged: Booleans
    scores: Floats  # one row per run; -inf for documents that the run did not retrieve


def as_run(run: Any, name: str = "run") -> ByDocument:
    """Return a run as ``{query: {document: score}}``; raise ValueError if a score is not finite.

    Parameters
    ----------
    run : mapping, data frame or ranx.Run
        ``{query: {document: score}}``, or columns such as ``qid``, ``docno`` and ``score``.
    name : str
        Name of the run in error messages.
    """
    return _as_dictionaries(run, name, SCORE_COLUMNS)


def as_qrels(qrels: Any, name: str = "qrels") -> ByDocument:
    """Return qrels as ``{query: {document: label}}``; raise ValueError if a label is not finite.

    Parameters
    ----------
    qrels : mapping, data frame or ranx.Qrels
        ``{query: {document: label}}``, or columns such as ``qid``, ``docno`` and ``label``.
    name : str
        Name of the qrels in error messages.
    """
    return _as_dictionaries(qrels, name, LABEL_COLUMNS)


def judged_documents(
    runs: Sequence[ByDocument],
    qrels: ByDocument | None,
    *,
    unjudged: str = "irrelevant",
    depth: int | None = None,
) -> JudgedDocuments:
    """Return all documents of the judged queries in some runs and qrels, with labels and scores.

    With ``unjudged="skip"``, documents without a judgment are dropped (condensed lists). With
    `depth`, only the top `depth` documents of each run and query are used. Without qrels, all
    queries of the runs are returned, and no document is judged.
    """
    check_choice("unjudged", unjudged, ("irrelevant", "skip"))
    if qrels is None:
        qrels = {query: {} for run in runs for query in run}
    else:
        _check_common_queries(runs, qrels)
    number_of = {query: k for k, query in enumerate(qrels)}
    tables = [
        {query: own for query, own in one.items() if query in number_of} for one in (qrels, *runs)
    ]
    ids = sorted(set(chain.from_iterable(map(_documents, tables))), reverse=True)
    place_of = {document: k for k, document in enumerate(ids)}
    judged, *retrieved = (_Entries.of(table, number_of, place_of) for table in tables)
    if depth is not None:
        retrieved = [entries.top(depth) for entries in retrieved]
    kept = (judged, *retrieved) if unjudged == "irrelevant" else (judged,)
    keys = np.sort(np.concatenate([entries.key for entries in kept]))
    keys = keys[np.diff(keys, prepend=-1) > 0]
    query, document = np.divmod(keys, max(1, len(ids)))
    y = judged.at(keys)
    scores = np.array([entries.at(keys) for entries in retrieved])
    n_retrieved = sum(entries.key.size for entries in retrieved)
    common = (y > -np.inf) & np.any(scores > -np.inf, axis=0)
    if judged.key.size and n_retrieved and not common.any():
        _warn_of_ids(runs, qrels)
    return JudgedDocuments(
        np.array(list(qrels), dtype=object),
        query,
        np.array(ids, dtype=object)[document],
        np.maximum(y, 0.0),
        y > -np.inf,
        scores,
    )


def best_first(run: ByDocument) -> ByDocument:
    """Return a run with the documents of each query by descending score, ties by descending id."""
    return {
        query: dict(sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True))
        for query, scores in run.items()
    }


class RetrievedFeatures(NamedTuple):
    """Documents retrieved by at least one of several runs, with three features per run.

    The features of a run are the document's score, its rank, and 1 if the run did not retrieve it.
    """

    X: Floats
    y: Floats
    query: NDArray[Any]
    document: NDArray[Any]
    names: list[str]


def retrieved_features(
    runs: Mapping[str, Any], qrels: Any, depth: int, unjudged: str
) -> RetrievedFeatures:
    """Return the documents with rank ≤ `depth` in at least one run, with three features per run.

    The features are the document's score, its rank, and 1 if the run did not retrieve it.
    """
    if not runs:
        raise ValueError("runs is empty; pass at least one run, as in {'bm25': run}.")
    depth = check_integer("depth", depth, at_least=1)
    own = [as_run(run, name) for name, run in runs.items()]
    judgments = None if qrels is None else as_qrels(qrels)
    documents = judged_documents(own, judgments, unjudged=unjudged, depth=depth)
    kept = np.any(documents.scores > -np.inf, axis=0)
    if not kept.any():
        raise ValueError("all runs are empty: none has a document of any query; check the runs.")
    query, scores = documents.query[kept], documents.scores[:, kept]
    columns = [column for own in scores for column in _signal_columns(own, query, depth)]
    names = [f"{name}{ending}" for name in runs for ending in ("", "_rank", "_missing")]
    return RetrievedFeatures(
        np.column_stack(columns),
        documents.y[kept],
        documents.query_ids[query],
        documents.document[kept],
        names,
    )


def run_of(queries: NDArray[Any], documents: Sequence[str] | None, scores: ArrayLike) -> ByDocument:
    """Convert arrays of query ids, document ids and scores to {query: {document: score}}."""
    if documents is None:
        raise ValueError("the data has no document ids; pass them as comments=.")
    values = check_vector(scores, "scores", len(documents), "one score per document")
    run: ByDocument = {}
    for query, document, score in zip(queries, documents, values, strict=True):
        own = run.setdefault(str(query), {})
        if document in own:
            raise ValueError(
                f"two documents of query {str(query)!r} have the comment {document!r}; comments "
                "must be document ids, as in RankingData.from_runs."
            )
        own[document] = float(score)
    return run


class _Entries(NamedTuple):
    """The scores of a run, or the labels of qrels, as arrays.

    The key of a document of a query is query number × `n_documents` + document number. Ascending
    keys are in the order of JudgedDocuments: documents are numbered by descending id.
    """

    key: Integers
    value: Floats
    n_documents: int

    @classmethod
    def of(
        cls, table: ByDocument, number_of: dict[str, int], place_of: dict[str, int]
    ) -> "_Entries":
        sizes = [len(own) for own in table.values()]
        query = np.repeat([number_of[query] for query in table], sizes).astype(np.int64)
        place = np.fromiter(map(place_of.__getitem__, _documents(table)), np.int64, query.size)
        value = chain.from_iterable(own.values() for own in table.values())
        n = len(place_of)
        return cls(query * n + place, np.fromiter(value, np.float64, query.size), n)

    def top(self, depth: int) -> "_Entries":
        """Return only the top `depth` documents of each query; ties are broken by descending id."""
        query = self.key // self.n_documents
        if np.bincount(query).max(initial=0) <= depth:
            return self
        order = np.lexsort((self.key, -self.value, query))
        kept = order[_ranks(query[order]) <= depth]
        return self._replace(key=self.key[kept], value=self.value[kept])

    def at(self, keys: Integers) -> Floats:
        """Return the scores (or labels) of the documents with these sorted keys; -inf if absent."""
        values = np.full(keys.size, -np.inf)
        row = np.searchsorted(keys, self.key)
        found = np.append(keys, -1)[row] == self.key
        values[row[found]] = self.value[found]
        return values


def _documents(table: ByDocument) -> Iterator[str]:
    return chain.from_iterable(table.values())


def _ranks(group: Integers) -> Integers:
    """Return 1, 2, … within each group, given the sorted group numbers of all entries."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    return np.arange(1, group.size + 1) - np.repeat(starts, np.diff(starts, append=group.size))


def _signal_columns(scores: Floats, query: Integers, depth: int) -> tuple[Floats, ...]:
    """Return three feature columns of a run: score, rank, and 1 for documents not retrieved."""
    found = np.flatnonzero(scores > -np.inf)
    sizes = np.bincount(query[found], minlength=query[-1] + 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    ranked = found[_core.rank_documents(scores[found], offsets, 1)]
    rank = np.full(scores.size, depth + 1.0)
    rank[ranked] = _ranks(query[found])
    lowest = np.zeros(sizes.size)
    lowest[sizes > 0] = scores[ranked[offsets[1:][sizes > 0] - 1]]
    missing = np.isneginf(scores)
    return np.where(missing, lowest[query], scores), rank, missing.astype(np.float64)


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
        try:
            own = _with_plain_types(documents)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{name}[{query!r}] has a value that is not a number ({error}); pass "
                f"{{query: {{document: {columns[0]}}}}}."
            ) from error
        if len(own) < len(documents) or str(query) in result:
            raise ValueError(
                f"{name}: query {query!r} or one of its documents occurs twice, because ids are "
                "compared as text (1 and '1' are equal); rename one."
            )
        result[str(query)] = own
    _check_finite(result, name, columns[0])
    return result


def _with_plain_types(documents: Mapping[Any, Any]) -> dict[str, float]:
    """Return a copy of {document: value} with ids as text and values as floats."""
    if set(map(type, documents)) == {str} and set(map(type, documents.values())) == {float}:
        return dict(documents)
    return dict(zip(map(str, documents), map(float, documents.values()), strict=True))


def _check_finite(values: ByDocument, name: str, what: str) -> None:
    if all(map(math.isfinite, chain.from_iterable(own.values() for own in values.values()))):
        return
    query, document, value = next(
        (query, document, value)
        for query, own in values.items()
        for document, value in own.items()
        if not math.isfinite(value)
    )
    raise ValueError(
        f"{name}[{query!r}][{document!r}] is {value}; drop the document or give it a finite {what}."
    )


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
        f"{name} has no column {' or '.join(map(repr, known))}; rename one of its columns "
        f"({', '.join(map(str, names))})."
    )


def _warn_of_ids(runs: Sequence[ByDocument], qrels: ByDocument) -> None:
    """Warn that no retrieved document is judged, with a document id of the runs and the qrels."""
    of_runs, of_qrels = (
        next(document for table in tables for own in table.values() for document in own)
        for tables in (runs, [qrels])
    )
    warn_caller(
        f"No retrieved document is judged: a document id of the runs is {of_runs!r}, of the qrels "
        f"{of_qrels!r}. Check that both use the same ids."
    )


def _check_common_queries(runs: Sequence[ByDocument], qrels: ByDocument) -> None:
    if not qrels:
        raise ValueError("qrels has no judgments; pass at least one.")
    for number, run in enumerate(runs):
        if not run:
            raise ValueError(f"run {number + 1} has no documents; drop it or check its file.")
        if not run.keys() & qrels.keys():
            raise ValueError(
                f"no query of run {number + 1} is in the qrels: a query id of the run is "
                f"{next(iter(run))!r}, of the qrels {next(iter(qrels))!r}; use the same ids."
            )
    missing = [query for query in qrels if not any(query in run for run in runs)]
    if missing:
        warn_caller(
            f"{len(missing)} of {len(qrels)} judged queries are in no run, such as {missing[0]!r}; "
            "they are evaluated as if no document was retrieved."
        )
