"""Pairs implied by labels, never listed; a *level* is the rank of a label within its query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.queries import Documents, Queries, exact_sum
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.pair_margins import LabelMargins
from marginrank.objective.pair_sampling import (
    DrawnPairs,
    LevelDrawer,
    level_ranks,
    random_parts,
)
from marginrank.objective.pair_sets import PairSet, concatenated, joined_offsets, query_weight_of
from marginrank.objective.pair_weights import PairFactors

INSIDE = Loss("inside", (Piece(1.0, 1.0, 1),))  # at zero scores, each pair is below the margin
ANY_WIDTH = np.iinfo(np.int32).max  # stands for no limit in the kernels


@dataclass(frozen=True, kw_only=True)
class LevelPairs(PairSet):
    """All pairs of documents of one query whose labels differ, stored without a list.

    A level is the rank of a label within its query: 0, 1, …. With a `width`, only pairs whose
    levels differ by at most `width` count.
    """

    queries: Queries
    width: int | None = None  # largest difference of the levels of a pair; None for any
    factors: PairFactors | None = None  # pair weights; None for ones
    label_margins: LabelMargins | None = None  # added to the margin θ of each hinge term

    @classmethod
    def from_data(
        cls,
        data: RankingData,
        *,
        width: int | None = None,
        by_label: bool = False,
        pair_weights: PairFactors | None = None,
        margins: Floats | None = None,
        label_margins: LabelMargins | None = None,
        threads: int,
    ) -> Self:
        """Return the pairs implied by the labels of `data`.

        With a `width`, only pairs whose levels (ranks of the labels within the query) differ by at
        most `width` count. With `by_label`, the labels must differ by at most `width` instead.
        """
        queries = data.queries
        if by_label and width is not None:
            queries = _spaced_by_label(data, width)
        if pair_weights is not None:
            pair_weights = PairFactors(*(queries.grouped(side) for side in pair_weights))
        return cls(
            n_rows=data.n_documents,
            query_weight=query_weight_of(data),
            margins=queries.grouped(margins),
            threads=threads,
            queries=queries,
            width=width,
            factors=_scale_factors(pair_weights, queries.grouped(data.sample_weight)),
            label_margins=label_margins and label_margins.take(queries.rows),
        )

    @classmethod
    def one_by_one(cls, source: PairSet, drawn: DrawnPairs, weight: float) -> Self:
        """Return sampled pairs as a pair set in which each pair is a query of two documents.

        Each query has the weight `weight`.
        """
        documents = np.stack([drawn.preferred, drawn.other], axis=1).ravel()
        count, rows = drawn.preferred.size, source.documents.rows
        margins = None if source.margins is None else source.margins[documents]
        if drawn.margin is not None:
            margins = np.stack([drawn.margin, np.zeros(count)], axis=1).ravel()
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
            margins=margins,
            threads=source.threads,
            queries=queries,
        )

    def by_click(self, clicked: Booleans) -> Self:
        """Return a pair set that prefers each clicked document to all others of its query.

        It has one query per click, so its queries share rows of X. `clicked` is a mask of the
        documents.
        """
        clicks = np.flatnonzero(clicked)
        query = self.queries.query_of_document[clicks]
        sizes = self.queries.sizes[query]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        shift = np.repeat(self.queries.offsets[query] - offsets[:-1], sizes)
        documents = np.arange(offsets[-1]) + shift
        labels = (documents == np.repeat(clicks, sizes)).astype(np.float64)
        rows = documents if self.queries.rows is None else self.queries.rows[documents]
        queries = Queries.from_labels(labels, offsets, rows, self.threads)
        return replace(self._with(queries, documents), query_weight=self.query_weight[query])

    @property
    def documents(self) -> Documents:
        return self.queries

    @cached_property
    def _counts(self) -> Integers:
        if self.width is None:
            return self.queries.n_pairs
        if self.width == 1:
            return self.queries.n_adjacent_pairs
        return _count_close(self.queries.level, self.queries.offsets, self.width)

    @property
    def n_pairs(self) -> int:
        return exact_sum(self._counts)

    @property
    def active_queries(self) -> Booleans:
        return (self._counts > 0) & (self.query_weight > 0)

    @cached_property
    def weight_by_query(self) -> Floats:
        if self.factors is None:
            return self._counts.astype(np.float64)
        everywhere = replace(self.unweighted(), margins=None, label_margins=None)
        weighted = replace(everywhere, factors=self.factors)
        return weighted.active_weights(INSIDE, np.zeros(self.queries.n_documents))

    @property
    def covered(self) -> float:
        return float(np.sum(self.query_weight * self._counts.astype(np.float64)))

    def unweighted(self) -> Self:
        return replace(self, query_weight=np.ones(self.queries.n_queries), factors=None)

    def native(self, loss: Loss) -> _core.Pairs:
        factors, pieces, ranks = self.factors, loss.as_array(), None
        if self.label_margins is not None:
            factors, pieces, ranks = self.label_margins.windowed(factors, loss)
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
            width=ANY_WIDTH if self.width is None else min(self.width, ANY_WIDTH - 1),
            pieces=pieces,
            ranks=ranks,
        )

    def sample(self, fraction: float, seed: int, *, among: int | None = None) -> Self:
        result = self._keep(self._draw(fraction, np.random.default_rng(seed), among))
        return result if among is not None else result.standing_for(self.covered)

    def deal(self, n_parts: int, seed: int) -> list[Self]:
        part = self._dealt(n_parts, seed)
        kept = (self._keep(np.flatnonzero(part == k)) for k in range(n_parts))
        return [some.standing_for(self.covered) for some in kept]

    def _keep(self, documents: Integers) -> Self:
        # Return the pairs among `documents`. Each query keeps the total weight of all its pairs.
        query_of_document = self.queries.query_of_document[documents]
        offsets = self.queries.keep(documents, query_of_document).offsets
        chosen = query_of_document[offsets[:-1]]
        result = self._with(self._ranked_anew(documents, offsets, chosen), documents)
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
        by_label = [pairs.label_margins for pairs in sets if pairs.label_margins is not None]
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
            label_margins=LabelMargins.join(by_label) if by_label else None,
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
        # Return this set with other queries, which consist of the given documents of the set.
        factors = self.factors
        return replace(
            self,
            queries=queries,
            factors=factors and PairFactors(*(side[documents] for side in factors)),
            margins=None if self.margins is None else self.margins[documents],
            label_margins=self.label_margins and self.label_margins.take(documents),
        )

    def _ranked_anew(
        self, documents: Integers, offsets: Integers, query_of_part: Integers
    ) -> Queries:
        # Levels in a part keep the distances that they have in the query.
        rows = documents if self.queries.rows is None else self.queries.rows[documents]
        level = self.queries.level[documents]
        parts = Queries.from_labels(level.astype(np.float64), offsets, rows, self.threads)
        if self.width is None:
            return parts
        return replace(
            parts,
            level=level,
            n_levels=self.queries.n_levels[query_of_part],
            n_adjacent_pairs=_count_close(level, offsets, 1),
        )

    def drawer(self, queries: Integers) -> LevelDrawer:
        weight = np.zeros(self.queries.n_queries)
        weight[queries] = self.query_weight[queries]
        return LevelDrawer(self.queries, self.width, self.factors, self.label_margins, weight)


def _count_close(level: NDArray[np.int32], offsets: Integers, width: int) -> Integers:
    """Return the number of pairs per query with at most `width` between their levels."""
    query = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    rank = level_ranks(query, level, width)
    place, first, count = np.unique(rank.place, return_index=True, return_counts=True)
    before = np.concatenate([[0], np.cumsum(count)])
    lowest = np.searchsorted(place, place - rank.width)
    pairs = np.zeros(offsets.size - 1, dtype=np.int64)
    np.add.at(pairs, query[first], count * (before[:-1] - before[lowest]))
    return pairs


def _spaced_by_label(data: RankingData, width: int) -> Queries:
    """Return the queries of `data` with levels that differ as much as the labels.

    A difference of successive labels above `width` becomes `width` + 1.
    """
    queries = data.queries
    _check_whole(data.y)
    query = queries.query_of_document
    order = np.lexsort((queries.level, query))
    labels = queries.grouped(data.y)[order]
    steps = np.zeros(order.size, dtype=np.int64)
    # Differences within a query only: labels of the next query may be lower.
    inside = np.flatnonzero(np.diff(query) == 0)
    steps[inside + 1] = np.minimum(labels[inside + 1] - labels[inside], width + 1)
    climbed = np.cumsum(steps)
    level = np.empty(order.size, dtype=np.int32)
    level[order] = climbed - np.repeat(climbed[queries.offsets[:-1]], queries.sizes)
    return replace(
        queries,
        level=level,
        n_levels=np.maximum.reduceat(level, queries.offsets[:-1]) + 1,
        n_adjacent_pairs=_count_close(level, queries.offsets, 1),
    )


def _check_whole(y: NDArray[Any]) -> None:
    if y.dtype.kind == "f":
        bad = np.flatnonzero(np.floor(y) != y)
        if bad.size:
            raise ValueError(
                f"y[{bad[0]}] is {y[bad[0]]:g}; selecting pairs by the difference of labels "
                "(label-within) requires whole numbers. Multiply the labels by a constant, or use "
                "'within:1', which counts distinct labels."
            )


def _scale_factors(factors: PairFactors | None, weight: Floats | None) -> PairFactors | None:
    if weight is None:
        return factors
    column = weight[:, None]
    if factors is None:
        return PairFactors(column, column)
    return PairFactors(factors.preferred * column, factors.other * column)
