"""Pair sets that come from an explicit list of pairs (i, j), i preferred to j."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from marginrank import _core
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.pair_lists import PairList
from marginrank.data.queries import Documents
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sampling import ListedDrawer, random_parts
from marginrank.objective.pair_sets import PairSet, concatenated, joined_offsets, query_weight_of

LONG_QUERY = 1024  # documents; a sweep reads the rows of shorter queries only once
BUNDLE = 32  # documents per group of small connected components: their rows stay in cache


@dataclass(frozen=True, kw_only=True)
class ListedPairs(PairSet):
    """The pairs of an explicit list that have a positive weight, and their documents."""

    grouped: Documents  # the documents of these pairs, grouped by query
    pairs: Integers  # shape (n_pairs, 2); document indices, the preferred document first
    pair_weight: Floats | None  # all positive; None for ones
    pair_margin: Floats | None  # added to the margin θ of each hinge term; None for zeros
    n_listed: int  # number of pairs of the list, including pairs of weight zero

    @classmethod
    def from_data(
        cls, data: RankingData, listed: PairList, *, margins: Floats | None, threads: int
    ) -> Self:
        """Return the pairs (i, j) of a list, where i and j are row indices of `data`."""
        _check_queries(data, listed)
        documents = Documents(data.queries.offsets, data.queries.rows)
        document_of_row = documents.by_row(np.arange(documents.n_documents))
        pairs = listed.pairs if documents.rows is None else document_of_row[listed.pairs]
        everything = cls(
            n_rows=data.n_documents,
            query_weight=query_weight_of(data),
            margins=documents.grouped(margins),
            threads=threads,
            grouped=documents,
            pairs=pairs,
            pair_weight=_times(listed.weight, data.sample_weight, listed.pairs),
            pair_margin=listed.margin,
            n_listed=len(listed),
        )
        counting = (everything.query_weight > 0)[everything._query_of_pair]
        if everything.pair_weight is not None:
            counting &= everything.pair_weight > 0
        return everything._keep(counting)[0]

    @property
    def documents(self) -> Documents:
        return self.grouped

    @property
    def n_pairs(self) -> int:
        return self.n_listed

    @property
    def active_queries(self) -> Booleans:
        active: Booleans = self.query_weight > 0
        return active

    @cached_property
    def weight_by_query(self) -> Floats:
        sums = np.bincount(self._query_of_pair, self.pair_weight, minlength=self.grouped.n_queries)
        return sums.astype(np.float64)

    @property
    def covered(self) -> float:
        return float(np.sum(self.weights))

    @cached_property
    def _incidence(self) -> _core.Incidence:
        return _core.Incidence(
            n_documents=self.grouped.n_documents,
            pairs=self.pairs,
            weight=self.pair_weight,
            margin=self.pair_margin,
        )

    def unweighted(self) -> Self:
        return replace(self, query_weight=np.ones(self.grouped.n_queries), pair_weight=None)

    def native(self, loss: Loss) -> _core.Pairs:
        return _core.Pairs.of_list(
            n_rows=self.n_rows,
            offsets=self.grouped.offsets,
            rows=self.grouped.rows,
            incidence=self._incidence,
            query_weight=self.query_weight,
            margin=self.margins,
            pieces=loss.as_array(),
        )

    def sample(self, fraction: float, seed: int, *, among: int | None = None) -> Self:
        result = self._sampled(self._draw(fraction, np.random.default_rng(seed), among))
        return result if among is not None else result.standing_for(self.covered)

    def deal(self, n_parts: int, seed: int) -> list[Self]:
        # Pairs of documents in different parts are dropped.
        part = self._dealt(n_parts, seed)[self.pairs]
        inside = np.where(part[:, 0] == part[:, 1], part[:, 0], n_parts)
        kept = (self._sampled(inside == k) for k in range(n_parts))
        return [some.standing_for(self.covered) for some in kept]

    def _sampled(self, which: Booleans) -> Self:
        # Return some of the pairs, with the weight of all pairs of their queries.
        result, chosen = self._keep(which)
        weight = self._standing_for(chosen, self.weight_by_query, result.weight_by_query)
        return replace(result, query_weight=weight, n_listed=len(result.pairs))

    @property
    def _query_of_pair(self) -> Integers:
        query: Integers = self.grouped.query_of_document[self.pairs[:, 0]]
        return query

    def _keep(self, which: Booleans) -> tuple[Self, Integers]:
        # Return some of the pairs with only their documents and queries, and the indices of these
        # queries. Nothing is copied if all pairs are kept.
        some = self if which.all() else self._take(which)
        pairs = some.pairs
        used = np.zeros(self.grouped.n_documents, dtype=bool)
        used[pairs] = True
        if used.all():
            return some, np.arange(self.grouped.n_queries)
        documents = np.flatnonzero(used)
        query = self.grouped.query_of_document[documents]
        grouped = self.grouped.keep(documents, query)
        chosen = query[grouped.offsets[:-1]]
        result = replace(
            some,
            query_weight=self.query_weight[chosen],
            margins=None if self.margins is None else self.margins[documents],
            grouped=grouped,
            pairs=(np.cumsum(used) - 1)[pairs],
        )
        return result, chosen

    def _take(self, which: Booleans | Integers | slice) -> Self:
        # Return some of the pairs on the same documents.
        weight, margin = self.pair_weight, self.pair_margin
        return replace(
            self,
            pairs=self.pairs[which],
            pair_weight=None if weight is None else weight[which],
            pair_margin=None if margin is None else margin[which],
        )

    def bundled(self) -> Self:
        """Return the same pairs, with long queries split into queries that have no pair in common.

        Each query of the result consists of a few small connected components of the graph of the
        pairs, or of one large component. A pass over X reads the rows of a short query once, and
        the rows of a long query twice.
        """
        long_queries = self.grouped.sizes > LONG_QUERY
        if not long_queries.any():
            return self
        n, query = self.grouped.n_documents, self.grouped.query_of_document
        graph = sp.coo_array((np.ones(len(self.pairs), dtype=bool), self.pairs.T), shape=(n, n))
        component = connected_components(graph, directed=False)[1]
        component = np.where(long_queries[query], component, n + query)
        # Components are numbered by their first documents, so queries stay together.
        _, first, component = np.unique(component, return_index=True, return_inverse=True)
        order = np.argsort(first[component], kind="stable")
        starts = np.flatnonzero(np.diff(component[order], prepend=-1))
        kept = _bundle_starts(starts, query[order[starts]])
        position = np.empty(n, dtype=np.int64)
        position[order] = np.arange(n)
        rows = self.grouped.rows
        return replace(
            self,
            query_weight=self.query_weight[query[order[kept]]],
            margins=None if self.margins is None else self.margins[order],
            grouped=Documents(np.append(kept, n), order if rows is None else rows[order]),
            pairs=position[self.pairs],
        )

    def split(self, bounds: Integers, row_bounds: Integers) -> list[Self]:
        ordered = self._take(np.argsort(self.pairs[:, 0], kind="stable"))
        offsets = self.grouped.offsets
        cuts = np.searchsorted(ordered.pairs[:, 0], offsets[bounds])
        parts = []
        for k, (first, last) in enumerate(pairwise(bounds)):
            documents = slice(offsets[first], offsets[last])
            some = ordered._take(slice(cuts[k], cuts[k + 1]))
            rows = self.grouped.rows
            begin = row_bounds[k]
            grouped = Documents(
                offsets[first : last + 1] - offsets[first],
                None if rows is None else rows[documents] - begin,
            )
            parts.append(
                replace(
                    some,
                    n_rows=int(row_bounds[k + 1] - begin),
                    query_weight=self.query_weight[first:last],
                    margins=None if self.margins is None else self.margins[documents],
                    grouped=grouped,
                    pairs=some.pairs - offsets[first],
                    n_listed=int(cuts[k + 1] - cuts[k]),
                )
            )
        return parts

    def compact(self) -> Self:
        grouped = Documents(self.grouped.offsets, None)
        return replace(self, grouped=grouped, n_rows=grouped.n_documents)

    @classmethod
    def join(cls, sets: Sequence[Self]) -> Self:
        before = np.cumsum([0, *(pairs.n_documents for pairs in sets[:-1])])
        return replace(
            sets[0],
            n_rows=sum(pairs.n_rows for pairs in sets),
            query_weight=np.concatenate([pairs.query_weight for pairs in sets]),
            margins=concatenated([pairs.margins for pairs in sets]),
            grouped=Documents(joined_offsets([pairs.grouped for pairs in sets]), None),
            pairs=np.concatenate([s.pairs + n for s, n in zip(sets, before, strict=True)]),
            pair_weight=concatenated([pairs.pair_weight for pairs in sets]),
            pair_margin=concatenated([pairs.pair_margin for pairs in sets]),
            n_listed=sum(pairs.n_listed for pairs in sets),
        )

    def _draw(self, fraction: float, rng: np.random.Generator, among: int | None) -> Booleans:
        # Return a mask of pairs to keep, whose documents are about `fraction` of all documents.
        query = self._query_of_pair
        drawn: Booleans = (rng.random(self.grouped.n_queries) < fraction)[query]
        long_queries = self.long_queries(among)
        if not long_queries.any():
            return drawn
        number = rng.random(len(query), dtype=np.float32)
        # A document is kept if the pair with its lowest random number is kept.
        lowest = np.ones(self.grouped.n_documents, dtype=np.float32)
        for side in self.pairs.T:
            np.minimum.at(lowest, side, number)
        limit = _lowest_part(lowest[long_queries[self.grouped.query_of_document]], fraction)
        return np.where(long_queries[query], number < limit, drawn)

    def cut(self, queries: Integers, *, largest: int, seed: int, first: int) -> Self:
        # The pairs of long queries are distributed: none is lost, but documents are repeated.
        query_of_pair = self._query_of_pair
        counts = np.bincount(query_of_pair, minlength=self.grouped.n_queries)[queries]
        order = np.argsort(query_of_pair, kind="stable")
        order = order[np.isin(query_of_pair[order], queries)]
        sizes = self.grouped.sizes[queries]
        n_parts = np.where(sizes > largest, -(-counts // (largest // 2)), 1)
        part = random_parts(counts, n_parts, first + queries, seed)
        # A document is copied to each part that contains one of its pairs.
        n = self.grouped.n_documents
        copies, pairs = np.unique(part[:, None] * n + self.pairs[order], return_inverse=True)
        documents, rows = copies % n, self.grouped.rows
        offsets = np.searchsorted(copies // n, np.arange(np.sum(n_parts) + 1)).astype(np.int64)
        return replace(
            self._take(order),
            query_weight=np.repeat(self.query_weight[queries], n_parts),
            margins=None if self.margins is None else self.margins[documents],
            grouped=Documents(offsets, documents if rows is None else rows[documents]),
            pairs=pairs.reshape(-1, 2),
        )

    def drawer(self, queries: Integers) -> ListedDrawer:
        by_query = np.zeros(self.grouped.n_queries)
        by_query[queries] = self.query_weight[queries]
        by_pair = by_query[self._query_of_pair]
        own = self.pair_weight
        weight = by_pair if own is None else by_pair * own
        return ListedDrawer(self.pairs, weight, self.pair_margin)


def _bundle_starts(starts: Integers, query: Integers) -> Integers:
    # A group begins at the first component of a query, and after each full group.
    begun = np.searchsorted(query, query)  # the first component of the same query
    offset = starts - starts[begun]
    full = np.diff(offset // BUNDLE, prepend=-1) != 0
    kept: Integers = starts[full | (np.arange(starts.size) == begun)]
    return kept


def _lowest_part(values: NDArray[np.float32], fraction: float) -> float:
    # Return the quantile of the values at `fraction`.
    count = round(fraction * values.size)
    return float(np.partition(values, count)[count]) if count < values.size else np.inf


def _check_queries(data: RankingData, listed: PairList) -> None:
    if data.n_queries == 1:
        return
    query = data.qid
    apart = np.flatnonzero(query[listed.pairs[:, 0]] != query[listed.pairs[:, 1]])
    if apart.size:
        (i, j), place = listed.pairs[apart[0]], listed.place(int(apart[0]))
        a, b = data.query_ids[query[i]], data.query_ids[query[j]]
        raise ValueError(
            f"{place} joins row {i} of query {a} and row {j} of query {b}; pairs must be within "
            "one query. Drop the pair or correct qid."
        )


def _times(weight: Floats | None, document_weight: Floats | None, pairs: Integers) -> Floats | None:
    if document_weight is None:
        return weight
    product: Floats = document_weight[pairs[:, 0]] * document_weight[pairs[:, 1]]
    return product if weight is None else weight * product
