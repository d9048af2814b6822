"""The queries in a report: a table with one row per query, and the documents of each query.

A *block* has the documents of a query, with the contributions of features to their scores. The page
must stay small: if all blocks together are too large, they are made again with fewer features and
shorter titles, and with fewer of the queries that are shown with all their documents.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.metrics.ranking import ranks
from marginrank.reporting.evaluation import Rankings
from marginrank.reporting.terms import Terms, TermTable, largest_first, rows_of
from marginrank.reporting.text import cut, n_bytes

MOST_QUERIES = 1000
MOST_EXTREMES = 100  # number of the most improved queries, and of the most worsened, in the table
TOP = 10  # documents shown from the top of each ranking
MOST_RELEVANT = 3  # number of documents with the highest labels that are shown at any rank
MOST_SLIDERS = 12

MOST_BYTES = 1_520_000  # most bytes of query ids and blocks together
ATTEMPTS = 12  # attempts to stay below MOST_BYTES, each with a smaller share of these sizes:
TERM_BYTES = 700_000  # contributions of features
TITLE_BYTES = 250_000  # titles of documents
ID_BYTES = 80_000  # query ids
SAMPLE_BYTES = 450_000  # blocks of the queries that are shown with all documents
LONGEST_TITLE, SHORTEST_TITLE = 120, 12
MOST_TERMS = 40  # most features of a block
# Number of the worst, of the most improved, and of the most worsened queries, which the page lists
# first. Their blocks may have PROMINENCE times as many features as others.
MOST_PROMINENT = 50
PROMINENCE = 4
BASE64 = 4 / 3


@dataclass(frozen=True)
class QuerySection:
    """The queries in a report, with their documents.

    Attributes
    ----------
    table : dict
        One list per column: ids, counts and metrics of the listed queries.
    blocks : list of dict
        The documents of each listed query, with the contributions of features to their scores.
    terms : list of int
        Numbers of the features (or pairs of features) that occur in blocks. Blocks refer to them by
        the index in this list.
    """

    table: dict[str, Any]
    blocks: list[dict[str, Any]]
    terms: list[int]


@dataclass(frozen=True)
class _Documents:
    """Labels, scores and ranks of all documents, query by query."""

    offsets: Integers
    labels: Floats
    scores: Floats
    rank: Integers
    other_rank: Integers
    titles: Sequence[str] | None
    is_judged: Booleans | None

    @classmethod
    def of(cls, rankings: Rankings, is_judged: Booleans | None) -> _Documents:
        data = rankings.data
        group = data.queries.grouped
        y = group(data.y).astype(np.float64)
        scores = group(rankings.scores)
        other = y if rankings.baseline is None else group(rankings.baseline)
        sizes = data.queries.sizes
        titles = data.comments
        if titles is not None and data.queries.rows is not None:
            titles = [titles[row] for row in data.queries.rows.tolist()]
        return cls(
            offsets=data.queries.offsets,
            labels=y,
            scores=scores,
            rank=ranks(scores, group=sizes),
            other_rank=ranks(other, group=sizes),
            titles=titles,
            is_judged=group(is_judged),
        )

    def shown(self, query: int) -> Integers:
        """Return the documents of a query that the page shows.

        They are the top of both rankings, and the documents with the highest labels.
        """
        first, last = self.offsets[query : query + 2]
        labels = self.labels[first:last]
        is_top = np.minimum(self.rank[first:last], self.other_rank[first:last]) <= TOP
        is_top[np.argsort(-labels, kind="stable")[:MOST_RELEVANT]] = True
        return np.arange(first, last)[is_top]

    def all_of(self, query: int) -> Integers:
        """Return the indices of all documents of a query."""
        return np.arange(self.offsets[query], self.offsets[query + 1])


def query_section(
    rankings: Rankings, terms: Terms | None, sliders: Sequence[int], is_judged: Booleans | None
) -> QuerySection:
    """Return selected queries for a report with their documents, limited to about 1.5 MB.

    `sliders` are the features whose weights the reader of the page can change.
    """
    values = rankings.by_query(rankings.metric, rankings.scores)
    baseline = None
    if rankings.baseline is not None:
        baseline = rankings.by_query(rankings.metric, rankings.baseline)
    rng = np.random.default_rng(rankings.seed)
    change = values if baseline is None else values - baseline
    listed, order = _listed(change, rng)
    documents = _Documents.of(rankings, is_judged)
    table = _table(rankings, listed, values, baseline, documents)
    prominent = _prominent(listed, values, change)
    share = 1.0
    for _ in range(ATTEMPTS):
        blocks = _Blocks(rankings, documents, terms, list(sliders), share)
        made = list(blocks.of(listed, order, prominent))
        table["id"] = _ids(rankings, listed, share)
        size = n_bytes([made, table["id"]])
        if size <= MOST_BYTES:
            break
        share *= 0.98 * MOST_BYTES / size
    return QuerySection(table, made, blocks.mentioned)


def _listed(change: Floats, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Return the queries to list, and a random order of queries.

    `change` is how much the metric of each query has improved. The first queries in the random
    order are shown with all their documents.
    """
    n = change.size
    if n <= MOST_QUERIES:
        return np.arange(n), rng.permutation(n)
    ends = np.concatenate([_lowest(by, MOST_EXTREMES) for by in (change, -change)])
    drawn = rng.permutation(n)[: MOST_QUERIES - ends.size]
    return np.union1d(ends, drawn), drawn


def _prominent(listed: Integers, values: Floats, change: Floats) -> set[int]:
    """Return the queries with the lowest metric, and the most improved and worsened queries."""
    ends = [listed[_lowest(by[listed], MOST_PROMINENT)] for by in (values, change, -change)]
    return set(np.concatenate(ends).tolist())


def _lowest(values: Floats, most: int) -> Integers:
    """Return the indices of the lowest values, lowest first, without NaN."""
    return np.argsort(values, kind="stable")[: min(most, np.count_nonzero(~np.isnan(values)))]


def _table(
    rankings: Rankings,
    listed: Integers,
    values: Floats,
    baseline: Floats | None,
    documents: _Documents,
) -> dict[str, Any]:
    queries = rankings.data.queries
    relevant = np.add.reduceat((documents.labels > 0).astype(np.int64), queries.offsets[:-1])
    return {
        "total": rankings.data.n_queries,
        "documents": queries.sizes[listed].tolist(),
        "relevant": relevant[listed].tolist(),
        "value": _rounded(values[listed]),
        "baseline": None if baseline is None else _rounded(baseline[listed]),
    }


def _ids(rankings: Rankings, listed: Integers, share: float) -> list[str]:
    longest = int(np.clip(share * ID_BYTES / listed.size, SHORTEST_TITLE, LONGEST_TITLE))
    return [cut(str(one), longest) for one in rankings.data.query_ids[listed].tolist()]


def _rounded(values: Floats) -> list[float | None]:
    return [None if value != value else round(value, 12) for value in values.tolist()]


class _Blocks:
    """Builder of the blocks (documents of a query) in a report.

    `share`, at most 1, multiplies the limits on the bytes of the parts of blocks.
    """

    def __init__(
        self,
        rankings: Rankings,
        documents: _Documents,
        terms: Terms | None,
        sliders: list[int],
        share: float,
    ) -> None:
        self._data = rankings.data
        self._documents = documents
        self._terms = terms
        self._sliders = np.array(sliders, dtype=np.int64)
        self._share = share
        self.mentioned: list[int] = list(sliders)
        self._places = {term: place for place, term in enumerate(sliders)}

    def of(
        self, listed: Integers, order: Integers, prominent: set[int]
    ) -> Iterator[dict[str, Any]]:
        """Yield a dict for each listed query, with its documents and their features."""
        documents = self._documents
        in_sample = set() if self._terms is None else self._sample(order)
        shown = [
            documents.all_of(query) if query in in_sample else documents.shown(query)
            for query in listed.tolist()
        ]
        chosen = np.concatenate(shown)
        weight = [PROMINENCE if query in prominent else 1 for query in listed.tolist()]
        n_terms = self._number_of_terms(sum(map(int.__mul__, weight, map(len, shown))))
        title = int(np.clip(self._share * TITLE_BYTES / chosen.size, SHORTEST_TITLE, LONGEST_TITLE))
        whole = None
        if self._terms is not None and self._terms.weights is None:
            whole = self._terms.of_rows(rows_of(self._data, chosen))  # faster than query by query
        at = 0
        for query, own, times in zip(listed.tolist(), shown, weight, strict=True):
            table = None
            if whole is not None:
                table = TermTable(
                    whole.columns,
                    whole.values[at : at + own.size],
                    whole.terms[at : at + own.size],
                )
            elif self._terms is not None:
                table = self._terms.of_rows(rows_of(self._data, own))
            at += own.size
            yield {
                **self._described(own, int(documents.offsets[query]), title),
                "full": query in in_sample,
                **self._encoded(table, int(times * n_terms), is_full=query in in_sample),
            }

    def _entry_bytes(self, width: int) -> float:
        """Return the bytes that one feature of one document takes in the page.

        For linear models, only the feature's value is stored. For other models, its contribution to
        the score is stored too, in a float of `width` bytes.
        """
        is_linear = self._terms is not None and self._terms.weights is not None
        return BASE64 * (self._data.X.dtype.itemsize if is_linear else 4 + width)

    def _sample(self, order: Integers) -> set[int]:
        """Return the queries that are shown with all their documents."""
        per_document = self._entry_bytes(8) * max(self._sliders.size, 1) + 24 + SHORTEST_TITLE
        left, sample = self._share * SAMPLE_BYTES, set()
        sizes = np.diff(self._documents.offsets)
        for query in order.tolist():
            needed = per_document * sizes[query]
            if needed <= left:
                sample.add(query)
                left -= needed
        return sample

    def _number_of_terms(self, n_documents: int) -> float:
        if self._terms is None:
            return 0.0
        fitting = self._share * TERM_BYTES / (self._entry_bytes(4) * max(n_documents, 1))
        return min(max(fitting, 1.0), float(MOST_TERMS))

    def _described(self, own: Integers, first: int, title: int) -> dict[str, Any]:
        documents = self._documents
        titles = documents.titles
        block = {
            "label": _plain(documents.labels[own]),
            "rank": documents.rank[own].tolist(),
            "other": documents.other_rank[own].tolist(),
            "score": _encode(documents.scores[own]),
        }
        if titles is None:
            block["place"] = (own - first).tolist()
        else:
            block["title"] = [cut(titles[k].strip(), title) for k in own.tolist()]
        if documents.is_judged is not None:
            block["judged"] = documents.is_judged[own].astype(int).tolist()
        return block

    def _encoded(self, table: TermTable | None, n_terms: int, *, is_full: bool) -> dict[str, Any]:
        """Return the encoded features whose contributions differ most within a query.

        If the query is shown with all documents (`is_full`), the features of the sliders are
        included.
        """
        if table is None:
            return {}
        spread = np.std(table.terms, axis=0) if len(table.terms) else np.zeros(0)
        kept = largest_first(spread, n_terms)
        if is_full:
            sliders = np.flatnonzero(np.isin(table.columns, self._sliders))
            kept = np.concatenate([sliders, kept[~np.isin(kept, sliders)]])[
                : max(n_terms, sliders.size)
            ]
        block: dict[str, Any] = {
            "terms": [self._place(int(table.columns[k])) for k in kept],
            "others": int(np.count_nonzero(spread)) - int(np.count_nonzero(spread[kept])),
        }
        values = np.ascontiguousarray(table.values[:, kept])
        if self._terms is not None and self._terms.weights is not None:
            return {**block, "values": _encode(values), "bytes": values.dtype.itemsize}
        # If all contributions are stored, the page adds them up and needs every digit. Otherwise
        # the page shows the score minus the stored contributions as one entry, "other features".
        width = 8 if is_full or block["others"] == 0 else 4
        added = np.ascontiguousarray(table.terms[:, kept]).astype(f"f{width}")
        block |= {"added": _encode(added), "added_bytes": width}
        return {**block, "values": _encode(values.astype(np.float32)), "bytes": 4}

    def _place(self, term: int) -> int:
        if term not in self._places:
            self._places[term] = len(self.mentioned)
            self.mentioned.append(term)
        return self._places[term]


def _encode(values: NDArray[Any]) -> str:
    """Return an array as base64 text of little-endian numbers."""
    return base64.b64encode(values.astype(values.dtype.newbyteorder("<")).tobytes()).decode()


def _plain(labels: Floats) -> list[float]:
    """Return labels as a list, with integers where possible to save bytes."""
    return [int(value) if value == int(value) else value for value in labels.tolist()]
