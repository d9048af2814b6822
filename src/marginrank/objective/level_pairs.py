"""Pairs implied by labels, which are never listed: a level is the rank of a label in its query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.queries import Documents, Queries, exact_sum
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.pair_sampling import LevelDrawer, random_parts
from marginrank.objective.pair_sets import PairSet, concatenated, joined_offsets, query_weight_of
from marginrank.objective.pair_weights import PairFactors

INSIDE = Loss("inside", (Piece(1.0, 1.0, 1),))  # at scores 0 every pair is inside its margin


@dataclass(frozen=True, kw_only=True)
class LevelPairs(PairSet):
    """All pairs of documents of a query with different levels, or only with adjacent levels."""

    queries: Queries
    adjacent: bool
    factors: PairFactors | None

    @classmethod
    def from_data(
        cls,
        data: RankingData,
        *,
        adjacent: bool,
        pair_weights: PairFactors | None,
        margins: Floats | None,
        threads: int,
    ) -> Self:
        """Return the pairs that the labels of `data` imply."""
        queries = data.queries
        if pair_weights is not None:
            pair_weights = PairFactors(*(queries.grouped(side) for side in pair_weights))
        return cls(
            n_rows=data.n_documents,
            query_weight=query_weight_of(data),
            margins=queries.grouped(margins),
            threads=threads,
            queries=queries,
            adjacent=adjacent,
            factors=_scale_factors(pair_weights, queries.grouped(data.sample_weight)),
        )

    @classmethod
    def one_by_one(
        cls, source: PairSet, preferred: Integers, other: Integers, weight: float
    ) -> Self:
        """Return pairs (preferred, other) of documents of `source`, each as a query of its own."""
        documents = np.stack([preferred, other], axis=1).ravel()
        count, rows = preferred.size, source.documents.rows
        queries = Queries(
            offsets=np.arange(0, 2 * count + 1, 2, dtype=np.int64),
            rows=documents if rows is None else rows[documents],
            level=np.tile(np.array([1, 0], dtype=np.int32), count),
            n_levels=np.full(count, 2, dtype=np.int32),
            n_pairs=np.ones(count, dtype=np.int64),
            n_adjacent_pairs=np.ones(count, dtype=np.int64),
        )
        return cls(
            n_rows=source.n_rows,
            query_weight=np.full(count, weight),
            margins=None if source.margins is None else source.margins[documents],
            threads=source.threads,
            queries=queries,
            adjacent=False,
            factors=None,
        )

    @property
    def documents(self) -> Documents:
        return self.queries

    @property
    def _counts(self) -> Integers:
        return self.queries.n_adjacent_pairs if self.adjacent else self.queries.n_pairs

    @property
    def n_pairs(self) -> int:
        return exact_sum(self._counts)

    @property
    def active_queries(self) -> Booleans:
        return (self.queries.n_pairs > 0) & (self.query_weight > 0)

    @cached_property
    def weight_by_query(self) -> Floats:
        if self.factors is None:
            return self._counts.astype(np.float64)
        unweighted = replace(self, query_weight=np.ones(self.queries.n_queries), margins=None)
        return unweighted.active_weights(INSIDE, np.zeros(self.queries.n_documents))

    @property
    def covered(self) -> float:
        return float(np.sum(self.query_weight * self._counts.astype(np.float64)))

    def native(self, loss: Loss) -> _core.Pairs:
        factors = self.factors
        return _core.Pairs(
            n_rows=self.n_rows,
            offsets=self.queries.offsets,
            rows=self.queries.rows,
            level=self.queries.level,
            n_levels=self.queries.n_levels,
            query_weight=self.query_weight,
            preferred=None if factors is None else np.ascontiguousarray(factors.preferred),
            other=None if factors is None else np.ascontiguousarray(factors.other),
            margin=self.margins,
            adjacent=self.adjacent,
            pieces=loss.as_array(),
        )

    def sample(self, fraction: float, seed: int, *, among: int | None = None) -> Self:
        result = self._keep(self._draw(fraction, np.random.default_rng(seed), among))
        return result if among is not None else result.standing_for(self.covered)

    def deal(self, n_parts: int, seed: int) -> list[Self]:
        part = self._dealt(n_parts, seed)
        kept = (self._keep(np.flatnonzero(part == k)) for k in range(n_parts))
        return [some.standing_for(self.covered) for some in kept]

    def _keep(self, documents: Integers) -> Self:
        # The pairs among `documents`. Each query keeps the total weight of all its pairs.
        query_of_document = self.queries.query_of_document[documents]
        queries = self.queries.take(documents, query_of_document, self.threads)
        result = self._with(queries, documents)
        chosen = query_of_document[queries.offsets[:-1]]
        full, kept = (pairs._counts.astype(np.float64) for pairs in (self, result))
        return replace(result, query_weight=self._standing_for(chosen, full, kept))

    def split(self, bounds: Integers, row_bounds: Integers) -> list[Self]:
        parts = []
        for (first, last), (begin, end) in zip(pairwise(bounds), pairwise(row_bounds), strict=True):
            queries = self.queries.between(first, last, begin)
            documents = slice(self.queries.offsets[first], self.queries.offsets[last])
            part = replace(
                self._with(queries, documents), query_weight=self.query_weight[first:last]
            )
            parts.append(replace(part, n_rows=int(end - begin)))
        return parts

    def compact(self) -> Self:
        queries = replace(self.queries, rows=None)
        return replace(self, queries=queries, n_rows=queries.n_documents)

    @classmethod
    def join(cls, sets: Sequence[Self]) -> Self:
        factors = [pairs.factors for pairs in sets if pairs.factors is not None]
        return replace(
            sets[0],
            n_rows=sum(pairs.n_rows for pairs in sets),
            query_weight=np.concatenate([pairs.query_weight for pairs in sets]),
            margins=concatenated([pairs.margins for pairs in sets]),
            queries=Queries(
                joined_offsets([pairs.queries for pairs in sets]),
                None,
                *(
                    np.concatenate([getattr(pairs.queries, name) for pairs in sets])
                    for name in ("level", "n_levels", "n_pairs", "n_adjacent_pairs")
                ),
            ),
            factors=PairFactors(*map(np.concatenate, zip(*factors, strict=True)))
            if factors
            else None,
        )

    def _draw(self, fraction: float, rng: np.random.Generator, among: int | None) -> Integers:
        query_of_document = self.queries.query_of_document
        drawn_query = self.active_queries & (rng.random(self.queries.n_queries) < fraction)
        long_queries = self.long_queries(among)
        keep = drawn_query[query_of_document]
        if long_queries.any():
            drawn_document = rng.random(self.queries.n_documents) < fraction
            keep = np.where(long_queries[query_of_document], drawn_document, keep)
        return np.flatnonzero(keep)

    def cut(self, queries: Integers, *, largest: int, seed: int, first: int) -> Self:
        # The documents of a long query are distributed over parts at random. The pairs inside the
        # parts are a sample of its pairs, which is scaled up, so the gradient is unbiased.
        sizes = self.queries.sizes
        chosen = np.zeros(sizes.size, dtype=bool)
        chosen[queries] = True
        documents = np.flatnonzero(np.repeat(chosen, sizes))
        n_parts = -(-sizes[queries] // largest)
        part = random_parts(sizes[queries], n_parts, first + queries, seed)
        order = np.argsort(part, kind="stable")
        documents, part = documents[order], part[order]
        offsets = np.searchsorted(part, np.arange(np.sum(n_parts) + 1)).astype(np.int64)
        query_of_part = np.repeat(np.arange(queries.size), n_parts)
        parts = self._with(self._ranked_anew(documents, offsets, queries[query_of_part]), documents)
        parts = replace(parts, query_weight=np.ones(query_of_part.size))
        kept = np.bincount(query_of_part, parts.weight_by_query, queries.size)
        full = self.weights[queries]
        scale = np.divide(full, kept, out=np.zeros(queries.size), where=kept > 0)
        # Queries that are not cut keep their weight to the last digit.
        scale = np.where(n_parts > 1, scale, self.query_weight[queries])
        return replace(parts, query_weight=scale[query_of_part])

    def _with(self, queries: Queries, documents: Integers | slice) -> Self:
        # This set with `queries`, which consist of these of its `documents`.
        factors = self.factors
        return replace(
            self,
            queries=queries,
            factors=factors and PairFactors(*(side[documents] for side in factors)),
            margins=None if self.margins is None else self.margins[documents],
        )

    def _ranked_anew(
        self, documents: Integers, offsets: Integers, query_of_part: Integers
    ) -> Queries:
        # Levels are adjacent in a part only if they were adjacent in the query.
        rows = documents if self.queries.rows is None else self.queries.rows[documents]
        level = self.queries.level[documents]
        parts = Queries.from_labels(level.astype(np.float64), offsets, rows, self.threads)
        if not self.adjacent:
            return parts
        return replace(
            parts,
            level=level,
            n_levels=self.queries.n_levels[query_of_part],
            n_adjacent_pairs=_count_adjacent(level, offsets),
        )

    def drawer(self, queries: Integers) -> LevelDrawer:
        weight = np.zeros(self.queries.n_queries)
        weight[queries] = self.query_weight[queries]
        return LevelDrawer(self.queries, self.factors, self.adjacent, weight)


def _count_adjacent(level: NDArray[np.int32], offsets: Integers) -> Integers:
    query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    width = int(level.max(initial=0)) + 2  # keeps levels of two queries from being adjacent
    place, count = np.unique(query * width + level, return_counts=True)
    pairs = np.where(np.diff(place) == 1, count[1:] * count[:-1], 0)
    return np.bincount(place[1:] // width, pairs, offsets.size - 1).astype(np.int64)


def _scale_factors(factors: PairFactors | None, weight: Floats | None) -> PairFactors | None:
    if weight is None:
        return factors
    column = weight[:, None]
    if factors is None:
        return PairFactors(column, column)
    return PairFactors(factors.preferred * column, factors.other * column)
