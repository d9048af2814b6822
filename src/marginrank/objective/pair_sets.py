"""Base classes for sets of document pairs: the pairs that the loss is summed over, with weights.

Pairs are implied by labels (:class:`~marginrank.objective.level_pairs.LevelPairs`) and never
listed, or they come from a list (:class:`~marginrank.objective.listed_pairs.ListedPairs`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from marginrank import _core
from marginrank._utils.alignment import AlignedWhenUnpickled
from marginrank._utils.parameters import Mention, ParameterError
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Booleans, Floats, Integers
from marginrank.data.queries import Documents, exact_sum
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.pair_sampling import PairDrawer

LARGEST_WEIGHT = 1e140  # squares of gradients must not overflow
LONG_QUERIES = 256  # samples take only a part of a query that has more than 1/256 of the documents


class PairCounts(ABC):
    """Numbers of documents, queries and pairs of a pair set that may be on another machine."""

    @property
    @abstractmethod
    def n_documents(self) -> int: ...

    @property
    @abstractmethod
    def n_queries(self) -> int: ...

    @property
    @abstractmethod
    def n_active_documents(self) -> int:
        """Number of documents in queries that have a pair of positive weight."""

    @property
    @abstractmethod
    def n_pairs(self) -> int: ...

    @property
    @abstractmethod
    def has_weight(self) -> bool:
        """Whether any pair has a positive weight."""


class ActiveDocuments(NamedTuple):
    """Documents in queries that have a pair of positive weight; the loss ignores all others.

    `rows` are their rows of X; `offsets` has the index of the first active document of each query.
    """

    documents: Integers
    rows: Integers
    offsets: Integers


@dataclass(frozen=True, kw_only=True)
class PairSet(AlignedWhenUnpickled, PairCounts):
    """A set of weighted pairs of documents in memory; both documents are of the same query."""

    n_rows: int  # number of rows of X
    query_weight: Floats  # factor on the loss of each query
    margins: Floats | None  # one d_i per document; the margin of a pair is θ + d_i − d_j
    threads: int

    @property
    @abstractmethod
    def documents(self) -> Documents:
        """The documents of the pair set, grouped by query."""

    @property
    def n_documents(self) -> int:
        return self.documents.n_documents

    @property
    def n_queries(self) -> int:
        return self.documents.n_queries

    @property
    @abstractmethod
    def active_queries(self) -> Booleans:
        """Mask of the queries that have a pair of positive weight."""

    @property
    @abstractmethod
    def weight_by_query(self) -> Floats:
        """The sum of the pair weights of each query."""

    @property
    @abstractmethod
    def covered(self) -> float:
        """The total weight of all pairs, for scaling the weights of a sample up to the same total.

        It is the sum over queries of the query weight times the number of pairs (if they are
        implied by labels) or the total pair weight (if they are listed).
        """

    @abstractmethod
    def native(self, loss: Loss) -> _core.Pairs:
        """Return the pairs and the hinge terms of `loss` as an object for the C++ kernels."""

    @abstractmethod
    def sample(self, fraction: float, seed: int, *, among: int | None = None) -> Self:
        """Return a random sample of the pairs, with about `fraction` of their documents.

        See :meth:`Objective.sample`. If this set is a part of a larger one, `among` is the
        `n_active_documents` of the larger set, and the caller scales the weights up with
        :meth:`standing_for`.
        """

    @abstractmethod
    def deal(self, n_parts: int, seed: int) -> list[Self]:
        """Divide the documents at random into `n_parts` parts; return the pairs inside each part.

        A part gets whole queries; the documents of a long query are shared out to all parts. The
        weights of each part are scaled up to the total weight of this set.
        """

    @abstractmethod
    def split(self, bounds: Integers, row_bounds: Integers) -> list[Self]:
        """Return one pair set per part: part k has the queries bounds[k] to bounds[k + 1] − 1.

        The rows of X of part k are row_bounds[k] to row_bounds[k + 1] − 1. Arrays over documents
        are not copied if documents are in the order of the rows.
        """

    def bundled(self) -> Self:
        """Return the same pairs, with long queries split if that makes a pass over X faster."""
        return self

    @abstractmethod
    def compact(self) -> Self:
        """Return the same pairs for a smaller matrix that has only the rows of their documents."""

    @classmethod
    @abstractmethod
    def join(cls, sets: Sequence[Self]) -> Self:
        """Return the union of several pair sets; their rows of X are stacked in the same order.

        Each set must be compact (see :meth:`compact`). Either all or none have pair weights, and
        either all or none have margins.
        """

    @abstractmethod
    def cut(self, queries: Integers, *, largest: int, seed: int, first: int) -> Self:
        """Cut some queries at random into parts of at most `largest` documents; return the pairs.

        Each part is a query of the result. The losses of the parts of a query sum to the loss of
        the query, exactly or on average. How query q is cut depends only on `seed` and `first` + q.
        """

    @abstractmethod
    def drawer(self, queries: Integers) -> PairDrawer:
        """Return a sampler of the pairs of `queries`, with probability proportional to weight."""

    @property
    def weights(self) -> Floats:
        """The total weight of each query: its query weight times the sum of its pair weights."""
        return self.query_weight * self.weight_by_query

    @property
    def has_weight(self) -> bool:
        return bool(np.any(self.weights > 0))

    @cached_property
    def n_active_documents(self) -> int:
        return int(np.sum(self.documents.sizes[self.active_queries]))

    @property
    def active_documents(self) -> ActiveDocuments:
        sizes, active = self.documents.sizes, self.active_queries
        documents = np.flatnonzero(np.repeat(active, sizes))
        rows = self.documents.rows
        return ActiveDocuments(
            documents=documents,
            rows=documents if rows is None else rows[documents],
            offsets=np.concatenate([[0], np.cumsum(sizes[active])]),
        )

    def long_queries(self, among: int | None = None) -> Booleans:
        """Return a mask of the long queries, with more than 1 / LONG_QUERIES of all documents.

        Only documents in queries with pairs count. `among` is the number of all documents, by
        default of this set.
        """
        sizes = self.documents.sizes
        total = self.n_active_documents if among is None else among
        return self.active_queries & (sizes > total / LONG_QUERIES)

    def check_overflow(self) -> None:
        """Raise ValueError if the total weight of all pairs is too large to compute with."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.sum(self.weights))
        if not total <= LARGEST_WEIGHT:
            raise ValueError(
                f"the weights of all pairs sum to {total:.3g}, too large to compute with (at most "
                f"{LARGEST_WEIGHT:g}); divide the weights or pair costs by a constant."
            )

    def weighted(self, C: float, normalization: str) -> Self:
        """Multiply the query weights by C and normalize them; return the new pair set.

        `normalization` is the parameter of RankSVM: "none", "query" or "pairs".
        """
        self.check_overflow()
        total = float(np.sum(self.weights))
        with np.errstate(over="ignore", invalid="ignore"):
            query_weight = self.query_weight * (C * self._normalizer(normalization))
            weighted = float(np.sum(query_weight * self.weight_by_query))
        check_C(C, total, weighted)
        return replace(self, query_weight=query_weight)

    def _dealt(self, n_parts: int, seed: int) -> Integers:
        # Return the index of the part of each document.
        rng = np.random.default_rng(seed)
        query = self.documents.query_of_document
        part: Integers = (rng.permutation(self.n_queries) % n_parts)[query]
        long_queries = self.long_queries()
        if long_queries.any():
            by_document = rng.permutation(self.n_documents) % n_parts
            part = np.where(long_queries[query], by_document, part)
        return part

    def weighing(self, total: float) -> Self:
        """Return the same pairs with weights rescaled to sum to `total`, unless all are zero."""
        own = float(np.sum(self.weights))
        return self if own <= 0 else replace(self, query_weight=self.query_weight * (total / own))

    def averaged(self) -> Self:
        """Return the same pairs, weighted so that each query counts the mean loss of its pairs."""
        inside = self.weight_by_query
        mean = np.divide(self.query_weight, inside, out=np.zeros(inside.size), where=inside > 0)
        return replace(self, query_weight=mean)

    def without(self, queries: Booleans) -> Self:
        """Set the weights of the queries in the mask `queries` to zero; return the new pair set."""
        return replace(self, query_weight=np.where(queries, 0.0, self.query_weight))

    @abstractmethod
    def unweighted(self) -> Self:
        """Set all query weights and pair weights to one; return the new pair set."""

    def n_inside(self, loss: Loss, scores: Floats) -> int:
        """Return the number of pairs with a score difference below `loss.reach`.

        Above `loss.reach` the loss is constant.
        """
        inside = Loss("inside", (Piece(1.0, loss.reach, 1),))
        counts = self.unweighted().active_weights(inside, scores)
        return exact_sum(counts.astype(np.int64))

    def active_weights(self, loss: Loss, scores: Floats) -> Floats:
        """Return, for each query, the total weight of the pairs with s_i − s_j < θ.

        θ is the position of the kink of the first hinge term of the loss, s_i and s_j are scores.
        """
        weights: Floats = _core.active_weights(self.native(loss), scores, self.threads)
        return weights

    def _normalizer(self, normalization: str) -> Floats | float:
        # Return the factor on each query's weight that turns sums into weighted means.
        if normalization == "none":
            return 1.0
        has_pairs = (self.weight_by_query > 0) & (self.query_weight > 0)
        if not has_pairs.any():
            return 1.0
        if normalization == "pairs":
            return 1.0 / float(np.sum(self.weights))
        inverse = np.divide(
            1.0, self.weight_by_query, out=np.zeros(len(has_pairs)), where=has_pairs
        )
        return inverse / np.sum(self.query_weight[has_pairs])

    def _standing_for(self, chosen: Integers, full: Floats, kept: Floats) -> Floats:
        # Return the weights of the `chosen` queries, scaled up for the pairs that were dropped.
        # `full` has the weight of all pairs of each query, `kept` the weight of the kept pairs of
        # each chosen query.
        factor = np.divide(full[chosen], kept, out=np.zeros_like(kept), where=kept > 0)
        return self.query_weight[chosen] * factor

    def standing_for(self, covered: float) -> Self:
        """Return this set with weights scaled to the total weight `covered` of a larger set.

        This set is a sample of the larger set.
        """
        own = self.covered
        if own <= 0:
            return self
        return replace(self, query_weight=self.query_weight * (covered / own))


def check_C(C: float, total: float, weighted: float) -> None:
    """Raise ParameterError if C times the total pair weight overflows, or underflows to zero.

    `total` is the sum of all pair weights before and `weighted` after multiplication by C.
    """
    if not weighted <= LARGEST_WEIGHT:
        raise ParameterError(
            Mention("C", f"{C:.3g}"),
            f" times the weights of all pairs is {weighted:.3g}, too large to compute with (at "
            f"most {LARGEST_WEIGHT:g}); decrease C (increase lam).",
        )
    if weighted == 0 < total:
        raise ParameterError(
            Mention("C", f"{C:.3g}"),
            f" times the weights of all pairs, {total:.3g}, is zero in floating point; multiply "
            "the weights by a constant, or increase C (decrease lam).",
        )


def query_weight_of(data: RankingData) -> Floats:
    """Return the query weights of `data`, or ones if it has none."""
    return np.ones(data.n_queries) if data.query_weight is None else data.query_weight


def joined_offsets(documents: Sequence[Documents]) -> Integers:
    """Return the offsets of the queries in the concatenation of several sets of documents."""
    sizes = np.concatenate([some.sizes for some in documents])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def concatenated(values: Sequence[Floats | None]) -> Floats | None:
    """Return the concatenation of the arrays that are not None, or None if all are None."""
    given = [some for some in values if some is not None]
    return np.concatenate(given) if given else None
