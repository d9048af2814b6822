"""Checks of labels and queries: no pairs, imbalance, split queries, group sizes as query ids."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Integers
from marginrank.data import RankingData
from marginrank.health.finding import Finding, Severity, listed

IMBALANCED = 0.99  # share of the documents with the commonest label
SOME_WITHOUT_PAIRS = 0.1  # share of the queries; a smaller share is usual and not reported
MANY_WITHOUT_PAIRS = 0.5
LEAST_PRODUCT = 10  # with a smaller product of ids, they may divide the sizes by chance


def check_queries(data: RankingData, place: str) -> list[Finding]:
    """Return findings about the labels and queries of a data set.

    `place` is the name of the data set in messages: "train" or "test".
    """
    return [*_check_labels(data, place), *_check_ids(data, place)]


def _check_labels(data: RankingData, place: str) -> list[Finding]:
    labels, counts = np.unique(data.y, return_counts=True)
    if labels.size == 1:
        return [
            Finding(
                "one-label",
                "error",
                place,
                f"All {data.n_documents:,} labels are {labels[0]:g}, so there is nothing to learn.",
                "Check which column has the labels.",
            )
        ]
    if data.n_pairs == 0:
        single = data.n_queries == data.n_documents
        reason = "every query has one document" if single else "labels differ only between queries"
        return [
            Finding(
                "no-pairs",
                "error",
                place,
                f"None of the {data.n_queries:,} queries has a pair of documents: {reason}.",
                "Check qid; it must be the same for all documents of a query."
                if single
                else "Check labels and qid; a query needs documents with different labels.",
            )
        ]
    found = []
    most = int(counts.argmax())
    share = counts[most] / data.n_documents
    if share > IMBALANCED:
        found.append(
            Finding(
                "imbalanced-labels",
                "warning",
                place,
                f"{100 * share:.2f} % of the labels are {labels[most]:g}; only "
                f"{data.n_documents - counts[most]:,} documents have another label.",
                f"Check whether {labels[most]:g} also stands for missing labels; read metrics with "
                "their intervals, because few documents decide them.",
            )
        )
    return found + _check_pairs(data, place)


def _check_pairs(data: RankingData, place: str) -> list[Finding]:
    without = np.flatnonzero(data.queries.n_pairs == 0)
    if without.size < max(SOME_WITHOUT_PAIRS * data.n_queries, 2):
        return []
    severity: Severity = "note"
    if without.size > MANY_WITHOUT_PAIRS * data.n_queries:
        severity = "warning"
    shown = listed(data.query_ids[without].tolist())
    return [
        Finding(
            "queries-without-pairs",
            severity,
            place,
            f"{without.size:,} of {data.n_queries:,} queries have no pair, because all their "
            f"documents have the same label: {shown}.",
            "Check labels and qid. If they are right, keep them: fits ignore these queries, and "
            "metrics such as NDCG count a query without a relevant document as 0.",
        )
    ]


def _check_ids(data: RankingData, place: str) -> list[Finding]:
    found = []
    split = _split_queries(data)
    if split.size:
        found.append(
            Finding(
                "split-queries",
                "warning",
                place,
                f"The documents of {split.size:,} of {data.n_queries:,} queries are not "
                f"contiguous: {listed(data.query_ids[split].tolist())}.",
                "If different queries share an id, for example after files were joined, make the "
                "ids unique; otherwise sort the rows by qid.",
            )
        )
    if _ids_divide_sizes(data):
        sizes = data.queries.sizes
        q = int(np.argmax(sizes))
        found.append(
            Finding(
                "group-sizes-as-qid",
                "warning",
                place,
                f"The number of documents of each query is a multiple of its id, for example "
                f"{sizes[q]:,} documents for the id {data.query_ids[q]}, so the ids seem to be "
                "group sizes.",
                "Pass group sizes as group= (--group), or give each query its own id.",
            )
        )
    return found


def _split_queries(data: RankingData) -> Integers:
    """Return the queries whose documents are not in consecutive rows."""
    if data.queries.rows is None:
        return np.zeros(0, dtype=np.int64)
    query = data.qid
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    return np.flatnonzero(np.bincount(query[starts], minlength=data.n_queries) > 1)


def _ids_divide_sizes(data: RankingData) -> bool:
    """Return True if query ids look like group sizes that were passed as qid by mistake.

    Groups of the same size are then merged to one query, so each id divides the size of its query.
    Small ids may divide the sizes by chance. If all ids equal the sizes of their queries, no groups
    were merged, so the queries are right.
    """
    ids = numbers_of(data.query_ids)
    sizes = data.queries.sizes
    if ids is None or ids.min() < 1 or np.array_equal(ids, sizes):
        return False
    return not np.any(sizes % ids) and float(np.log(ids).sum()) >= np.log(LEAST_PRODUCT)


def numbers_of(ids: NDArray[Any]) -> Integers | None:
    """Return query ids as int64, or None if one is not an integer from 0 to 10¹⁸ − 1."""
    texts = [str(i) for i in ids.tolist()]
    if not all(text.isdecimal() and len(text) <= 18 for text in texts):
        return None
    return np.array([int(text) for text in texts], dtype=np.int64)
