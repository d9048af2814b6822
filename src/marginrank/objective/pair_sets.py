"""Which pairs of documents a loss is summed over, and with what weights.

A set of pairs comes from labels (:class:`LevelPairs`), and then is never written down, or from a
list (:class:`ListedPairs`). Both turn into what the kernels take, and both can be sampled.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from marginrank import _core
from marginrank._base.cached import cached_property
from marginrank._base.parameters import Mention, ParameterError
from marginrank._base.types import Booleans, Floats, Integers
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import Documents, Queries, RankingData, exact_sum
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.pair_weights import PairFactors

Flags = Booleans

LARGEST_WEIGHT = 1e140  # squares of gradients must not overflow
LONG_QUERIES = 256  # a query with more than this part of the documents is thinned in samples
INSIDE = Loss("inside", (Piece(1.0, 1.0, 1),))  # at scores 0 every pair is inside its margin


@dataclass(frozen=True, kw_only=True)
class PairSet(ABC):
    """Pairs of documents of one query.

    Attributes
    ----------
    n_rows : int
        Number of rows of X.
    query_weight : ndarray of shape (n_queries,)
        What multiplies the loss of each query.
    margins : ndarray of shape (n_documents,) or None
        d_i: a pair's margin is θ + d_i − d_j.
    threads : int
        Number of threads.
    """

    n_rows: int
    query_weight: Floats
    margins: Floats | None
    threads: int

    @property
    @abstractmethod
    def documents(self) -> Documents:
        """The documents, grouped by query."""

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of pairs, exactly."""

    @property
    @abstractmethod
    def active_queries(self) -> Flags:
        """Which queries have pairs that count."""

    @property
    @abstractmethod
    def weight_by_query(self) -> Floats:
        """Σ δ_ij over the pairs of each query."""

    @abstractmethod
    def native(self, loss: Loss) -> _core.Pairs:
        """Return what the kernels take."""

    @abstractmethod
    def sample(self, fraction: float, seed: int) -> Self:
        """Return about `fraction` of the active documents; see :meth:`Objective.sample`."""

    @property
    def has_weight(self) -> bool:
        """Whether any pair has a positive weight."""
        return bool(np.any(self.query_weight * self.weight_by_query > 0))

    @cached_property
    def n_active_documents(self) -> int:
        """Number of documents of queries with pairs that count."""
        return int(np.sum(np.diff(self.documents.offsets)[self.active_queries]))

    @property
    def long_queries(self) -> Flags:
        """Which active queries have much of the data."""
        sizes = np.diff(self.documents.offsets)
        return self.active_queries & (sizes > self.n_active_documents / LONG_QUERIES)

    def weighted(self, C: float, normalization: str) -> Self:
        """Return the same pairs with C and the normalisation in the weights of the queries."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.sum(self.query_weight * self.weight_by_query))
            query_weight = self.query_weight * (C * self._normalizer(normalization))
            weighted = float(np.sum(query_weight * self.weight_by_query))
        if not total <= LARGEST_WEIGHT:
            raise ValueError(
                f"the weights of all pairs sum to {total:.3g}, too large to compute with (at most "
                f"{LARGEST_WEIGHT:g}); divide the weights or pair costs by a number."
            )
        if not weighted <= LARGEST_WEIGHT:
            raise ParameterError(
                Mention("C", f"{C:.3g}"),
                f" times the weights of all pairs is {weighted:.3g}, too large to compute with (at "
                f"most {LARGEST_WEIGHT:g}); lower C (raise lam).",
            )
        if weighted == 0 < total:
            raise ParameterError(
                Mention("C", f"{C:.3g}"),
                f" times the weights of all pairs, {total:.3g}, is zero in floating point; "
                "multiply the weights by a number, or raise C (lower lam).",
            )
        return replace(self, query_weight=query_weight)

    def _normalizer(self, normalization: str) -> Floats | float:
        """Return what multiplies each query's weight so that sums become weighted means."""
        if normalization == "none":
            return 1.0
        has_pairs = (self.weight_by_query > 0) & (self.query_weight > 0)
        if not has_pairs.any():
            return 1.0
        if normalization == "pairs":
            return 1.0 / float(np.sum(self.query_weight * self.weight_by_query))
        inverse = np.divide(
            1.0, self.weight_by_query, out=np.zeros(len(has_pairs)), where=has_pairs
        )
        return inverse / np.sum(self.query_weight[has_pairs])

    def _scaled_up(self, chosen: Integers, full: Floats, kept: Floats) -> Floats:
        """Return query weights for a sample of the chosen queries.

        `full` measures the pairs of each query, `kept` those in the sample: first the pairs kept of
        a query stand for all of its pairs, then the queries kept for all queries.
        """
        factor = np.divide(full[chosen], kept, out=np.zeros_like(kept), where=kept > 0)
        weight = self.query_weight[chosen] * factor
        total, covered = float(np.sum(self.query_weight * full)), float(np.sum(weight * kept))
        return weight * (total / covered) if covered > 0 else weight


@dataclass(frozen=True, kw_only=True)
class LevelPairs(PairSet):
    """All pairs of different levels of a query, or of adjacent ones."""

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
        """Return the pairs that the labels of `data` make."""
        rows = slice(None) if data.queries.rows is None else data.queries.rows
        if pair_weights is not None:
            pair_weights = PairFactors(pair_weights.preferred[rows], pair_weights.other[rows])
        return cls(
            n_rows=data.matrix.n_rows,
            query_weight=_query_weight(data),
            margins=_by_document(margins, data),
            threads=threads,
            queries=data.queries,
            adjacent=adjacent,
            factors=_scale_factors(pair_weights, data.sample_weight),
        )

    @property
    def documents(self) -> Documents:
        """The documents, grouped by query."""
        return self.queries

    @property
    def _counts(self) -> Integers:
        return self.queries.n_adjacent_pairs if self.adjacent else self.queries.n_pairs

    @property
    def n_pairs(self) -> int:
        """Number of pairs, exactly."""
        return exact_sum(self._counts)

    @property
    def active_queries(self) -> Flags:
        """Which queries have pairs that count."""
        return (self.queries.n_pairs > 0) & (self.query_weight > 0)

    @cached_property
    def weight_by_query(self) -> Floats:
        """Σ δ_ij over the pairs of each query."""
        if self.factors is None:
            return self._counts.astype(np.float64)
        unweighted = replace(self, query_weight=np.ones(self.queries.n_queries), margins=None)
        zeros = np.zeros(self.queries.n_documents)
        weights: Floats = _core.active_weights(unweighted.native(INSIDE), zeros, self.threads)
        return weights

    def native(self, loss: Loss) -> _core.Pairs:
        """Return what the kernels take."""
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

    def sample(self, fraction: float, seed: int) -> Self:
        """Draw whole queries, and documents of long ones."""
        documents, query_of_document = self._draw(fraction, np.random.default_rng(seed))
        queries = self.queries.take(documents, query_of_document, self.threads)
        factors = self.factors
        result = replace(
            self,
            queries=queries,
            factors=factors and PairFactors(*(side[documents] for side in factors)),
            margins=None if self.margins is None else self.margins[documents],
        )
        chosen = query_of_document[queries.offsets[:-1]]
        full, kept = (pairs._counts.astype(np.float64) for pairs in (self, result))
        return replace(result, query_weight=self._scaled_up(chosen, full, kept))

    def _draw(self, fraction: float, rng: np.random.Generator) -> tuple[Integers, Integers]:
        query_of_document = self.queries.query_of_document
        drawn_query = self.active_queries & (rng.random(self.queries.n_queries) < fraction)
        long_queries = self.long_queries
        keep = drawn_query[query_of_document]
        if long_queries.any():
            drawn_document = rng.random(self.queries.n_documents) < fraction
            keep = np.where(long_queries[query_of_document], drawn_document, keep)
        documents = np.flatnonzero(keep)
        return documents, query_of_document[documents]


@dataclass(frozen=True, kw_only=True)
class ListedPairs(PairSet):
    """The pairs of a list (PRSVM, paper 2): only those that count, and only their documents.

    Attributes
    ----------
    grouped : Documents
        The documents that are part of a pair.
    pairs : ndarray of int64, shape (n_pairs, 2)
        Numbers of documents, the preferred one first.
    pair_weight : ndarray of shape (n_pairs,) or None
        Weights of the pairs, all positive; None where all are 1.
    n_listed : int
        Number of pairs of the list, those of weight zero included.
    """

    grouped: Documents
    pairs: Integers
    pair_weight: Floats | None
    n_listed: int

    @classmethod
    def from_data(
        cls, data: RankingData, listed: PairList, *, margins: Floats | None, threads: int
    ) -> Self:
        """Return the pairs of a list of rows of `data`."""
        _check_queries(data, listed)
        rows = data.queries.rows
        pairs = listed.pairs if rows is None else _inverse(rows)[listed.pairs]
        everything = cls(
            n_rows=data.matrix.n_rows,
            query_weight=_query_weight(data),
            margins=_by_document(margins, data),
            threads=threads,
            grouped=Documents(data.queries.offsets, rows),
            pairs=pairs,
            pair_weight=_times(listed.weight, data.sample_weight, pairs),
            n_listed=len(listed),
        )
        return everything._keep(everything._counting)[0]

    @property
    def documents(self) -> Documents:
        """The documents, grouped by query."""
        return self.grouped

    @property
    def n_pairs(self) -> int:
        """Number of pairs, exactly."""
        return self.n_listed

    @property
    def active_queries(self) -> Flags:
        """Which queries have pairs that count: all that are here."""
        return np.ones(self.grouped.n_queries, dtype=bool)

    @cached_property
    def weight_by_query(self) -> Floats:
        """Σ δ_ij over the pairs of each query."""
        sums = np.bincount(self._query_of_pair, self.pair_weight, minlength=self.grouped.n_queries)
        return sums.astype(np.float64)

    @cached_property
    def _incidence(self) -> _core.Incidence:
        return _core.Incidence(self.grouped.n_documents, self.pairs, self.pair_weight)

    def native(self, loss: Loss) -> _core.Pairs:
        """Return what the kernels take."""
        return _core.Pairs.of_list(
            n_rows=self.n_rows,
            offsets=self.grouped.offsets,
            rows=self.grouped.rows,
            incidence=self._incidence,
            query_weight=self.query_weight,
            margin=self.margins,
            pieces=loss.as_array(),
        )

    def sample(self, fraction: float, seed: int) -> Self:
        """Draw whole queries, and pairs of long ones."""
        drawn = self._draw(fraction, np.random.default_rng(seed))
        result, chosen = self._keep(drawn)
        weight = self._scaled_up(chosen, self.weight_by_query, result.weight_by_query)
        return replace(result, query_weight=weight, n_listed=len(result.pairs))

    @property
    def _counting(self) -> Flags:
        """Which pairs have a positive weight."""
        counting: Flags = (self.query_weight > 0)[self._query_of_pair]
        return counting if self.pair_weight is None else counting & (self.pair_weight > 0)

    @property
    def _query_of_pair(self) -> Integers:
        query: Integers = self.grouped.query_of_document[self.pairs[:, 0]]
        return query

    def _keep(self, which: Flags) -> tuple[Self, Integers]:
        """Return some of the pairs, with their documents and queries, and which queries these are.

        Nothing is copied if that is all of them.
        """
        everything = bool(which.all())
        pairs = self.pairs if everything else self.pairs[which]
        weight = self.pair_weight
        weight = weight if weight is None or everything else weight[which]
        used = np.zeros(self.grouped.n_documents, dtype=bool)
        used[pairs] = True
        if used.all():
            return replace(self, pairs=pairs, pair_weight=weight), np.arange(self.grouped.n_queries)
        documents = np.flatnonzero(used)
        query = self.grouped.query_of_document[documents]
        grouped = self.grouped.keep(documents, query)
        chosen = query[grouped.offsets[:-1]]
        result = replace(
            self,
            query_weight=self.query_weight[chosen],
            margins=None if self.margins is None else self.margins[documents],
            grouped=grouped,
            pairs=(np.cumsum(used) - 1)[pairs],
            pair_weight=weight,
        )
        return result, chosen

    def _draw(self, fraction: float, rng: np.random.Generator) -> Flags:
        """Return which pairs to keep, so that about `fraction` of the documents are left."""
        query = self._query_of_pair
        drawn: Flags = (rng.random(self.grouped.n_queries) < fraction)[query]
        long_queries = self.long_queries
        if not long_queries.any():
            return drawn
        number = rng.random(len(query), dtype=np.float32)
        # A document stays if its pair of the lowest number does.
        lowest = np.ones(self.grouped.n_documents, dtype=np.float32)
        for side in self.pairs.T:
            np.minimum.at(lowest, side, number)
        limit = _lowest_part(lowest[long_queries[self.grouped.query_of_document]], fraction)
        return np.where(long_queries[query], number < limit, drawn)


def _lowest_part(values: NDArray[np.float32], fraction: float) -> float:
    """Return what about `fraction` of the values are below."""
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
            f"{place} joins row {i} of query {a} and row {j} of query {b}; a pair needs two "
            "documents of one query: drop it, or correct the queries."
        )


def _query_weight(data: RankingData) -> Floats:
    return np.ones(data.n_queries) if data.query_weight is None else data.query_weight


def _by_document(values: Floats | None, data: RankingData) -> Floats | None:
    """Bring what is given by row of X into the order of the documents."""
    rows = data.queries.rows
    return values if values is None or rows is None else values[rows]


def _inverse(rows: Integers) -> Integers:
    document = np.empty_like(rows)
    document[rows] = np.arange(rows.size)
    return document


def _times(weight: Floats | None, document_weight: Floats | None, pairs: Integers) -> Floats | None:
    """Multiply pair weights by the weights of both documents."""
    if document_weight is None:
        return weight
    product: Floats = document_weight[pairs[:, 0]] * document_weight[pairs[:, 1]]
    return product if weight is None else weight * product


def _scale_factors(factors: PairFactors | None, weight: Floats | None) -> PairFactors | None:
    """Multiply both sides by document weights."""
    if weight is None:
        return factors
    column = weight[:, None]
    if factors is None:
        return PairFactors(column, column)
    return PairFactors(factors.preferred * column, factors.other * column)
