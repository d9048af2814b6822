"""The pairs of documents that a loss is summed over, and their weights.

Pairs are implied by labels (:class:`~marginrank.objective.level_pairs.LevelPairs`) and never
listed, or they come from a list (:class:`~marginrank.objective.listed_pairs.ListedPairs`). Both
classes make the arguments of the kernels, and sample, cut and draw pairs.
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
    """The properties of pairs that an objective needs, even if the pairs are on other machines."""

    @property
    @abstractmethod
    def n_documents(self) -> int: ...

    @property
    @abstractmethod
    def n_queries(self) -> int: ...

    @property
    @abstractmethod
    def n_active_documents(self) -> int:
        """Number of documents of queries with pairs of positive weight."""

    @property
    @abstractmethod
    def n_pairs(self) -> int: ...

    @property
    @abstractmethod
    def has_weight(self) -> bool:
        """Whether any pair has a positive weight."""


class ActiveDocuments(NamedTuple):
    """Documents of queries with pairs of positive weight."""

    documents: Integers
    rows: Integers
    offsets: Integers


@dataclass(frozen=True, kw_only=True)
class PairSet(AlignedWhenUnpickled, PairCounts):
    """Pairs of documents of one query, in memory."""

    n_rows: int  # number of rows of X
    query_weight: Floats  # factor on the loss of each query
    margins: Floats | None  # one d_i per document; the margin of a pair is θ + d_i − d_j
    threads: int

    @property
    @abstractmethod
    def documents(self) -> Documents:
        """The documents, grouped by query."""

    @property
    def n_documents(self) -> int:
        return self.documents.n_documents

    @property
    def n_queries(self) -> int:
        return self.documents.n_queries

    @property
    @abstractmethod
    def active_queries(self) -> Booleans:
        """Mask of the queries with pairs of positive weight."""

    @property
    @abstractmethod
    def weight_by_query(self) -> Floats:
        """Σ δ_ij over the pairs of each query."""

    @property
    @abstractmethod
    def covered(self) -> float:
        """Sum over queries of weight × pairs (number or weight), to which samples are scaled up."""

    @abstractmethod
    def native(self, loss: Loss) -> _core.Pairs:
        """Return the pairs in the form that the kernels take."""

    @abstractmethod
    def sample(self, fraction: float, seed: int, *, among: int | None = None) -> Self:
        """Return a sample with about `fraction` of the active documents, as in `Objective.sample`.

        If this is a part of a larger set, `among` is the number of active documents of the larger
        set, and :meth:`standing_for` scales the weights up later.
        """

    @abstractmethod
    def deal(self, n_parts: int, seed: int) -> list[Self]:
        """Return random parts without a common document, each scaled to the weight of all pairs.

        Whole queries are distributed, except long queries, whose documents are distributed.
        """

    @abstractmethod
    def split(self, bounds: Integers, row_bounds: Integers) -> list[Self]:
        """Return parts: part k has the pairs of the queries bounds[k] … bounds[k + 1].

        The matrix of part k has the rows row_bounds[k] … row_bounds[k + 1], which hold these
        queries. Arrays over documents are not copied if documents are in the order of the rows.
        """

    def bundled(self) -> Self:
        """Return the same pairs, with queries split where that makes sweeps cheaper."""
        return self

    @abstractmethod
    def compact(self) -> Self:
        """Return the same pairs on a matrix that has only the rows of their documents."""

    @classmethod
    @abstractmethod
    def join(cls, sets: Sequence[Self]) -> Self:
        """Return the pairs of several sets on one matrix, with their rows one after the other.

        The sets are compact. All or none of them have factors, and all or none have margins.
        """

    @abstractmethod
    def cut(self, queries: Integers, *, largest: int, seed: int, first: int) -> Self:
        """Return some queries, cut into random parts of at most `largest` documents.

        Each part is a query of the result. The losses of a query's parts sum to its own loss,
        exactly or on average. How query q is cut depends only on `seed` and `first` + q.
        """

    @abstractmethod
    def drawer(self, queries: Integers) -> PairDrawer:
        """Return a sampler of pairs of the given queries, in proportion to their weights."""

    @property
    def weights(self) -> Floats:
        """Total weight of the pairs of each query, multiplied by the weight of the query."""
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
        """Return a mask of active queries that hold a large share of `among` active documents."""
        sizes = self.documents.sizes
        total = self.n_active_documents if among is None else among
        return self.active_queries & (sizes > total / LONG_QUERIES)

    def check_overflow(self) -> None:
        """Raise ValueError if weights are too large to compute with."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.sum(self.weights))
        if not total <= LARGEST_WEIGHT:
            raise ValueError(
                f"the weights of all pairs sum to {total:.3g}, too large to compute with (at most "
                f"{LARGEST_WEIGHT:g}); divide the weights or pair costs by a constant."
            )

    def weighted(self, C: float, normalization: str) -> Self:
        """Return the same pairs with C and the normalization in the query weights."""
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
        """Return the same pairs with weights that sum to `total`, unless all are zero."""
        own = float(np.sum(self.weights))
        return self if own <= 0 else replace(self, query_weight=self.query_weight * (total / own))

    def averaged(self) -> Self:
        """Return the same pairs with the mean over a query's pairs instead of their sum."""
        inside = self.weight_by_query
        mean = np.divide(self.query_weight, inside, out=np.zeros(inside.size), where=inside > 0)
        return replace(self, query_weight=mean)

    def without(self, queries: Booleans) -> Self:
        """Return the same pairs with some queries' weights set to zero."""
        return replace(self, query_weight=np.where(queries, 0.0, self.query_weight))

    @abstractmethod
    def unweighted(self) -> Self:
        """Return the same pairs, all of weight one."""

    def n_inside(self, loss: Loss, scores: Floats) -> int:
        """Return the number of pairs on which the loss has a slope, whatever their weight."""
        inside = Loss("inside", (Piece(1.0, loss.reach, 1),))
        counts = self.unweighted().active_weights(inside, scores)
        return exact_sum(counts.astype(np.int64))

    def active_weights(self, loss: Loss, scores: Floats) -> Floats:
        """Return the weight of each query's pairs inside the margin of the first piece."""
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
        # `full` is the weight of the pairs of each query, `kept` that of the kept pairs of a chosen
        # query.
        factor = np.divide(full[chosen], kept, out=np.zeros_like(kept), where=kept > 0)
        return self.query_weight[chosen] * factor

    def standing_for(self, covered: float) -> Self:
        """Return a sample with weights scaled up to the :attr:`covered` total of its source."""
        own = self.covered
        if own <= 0:
            return self
        return replace(self, query_weight=self.query_weight * (covered / own))


def check_C(C: float, total: float, weighted: float) -> None:
    """Raise ParameterError if C makes the weights of all pairs, `total`, overflow or vanish."""
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
    """Return the query weights, ones by default."""
    return np.ones(data.n_queries) if data.query_weight is None else data.query_weight


def joined_offsets(documents: Sequence[Documents]) -> Integers:
    """Return the query offsets of several sets, one after the other."""
    sizes = np.concatenate([some.sizes for some in documents])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def concatenated(values: Sequence[Floats | None]) -> Floats | None:
    """Return the concatenated arrays of several sets, or None if the sets have no arrays."""
    given = [some for some in values if some is not None]
    return np.concatenate(given) if given else None
