"""Which pairs of documents a loss is summed over, and with what weights.

A set of pairs comes from labels (:class:`~marginrank.objective.level_pairs.LevelPairs`), and then
is never written down, or from a list (:class:`~marginrank.objective.listed_pairs.ListedPairs`).
Both turn into what the kernels take, and nothing else does; and both can be sampled, cut and drawn
from.
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
from marginrank.data.queries import Documents
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sampling import PairDrawer

LARGEST_WEIGHT = 1e140  # squares of gradients must not overflow
LONG_QUERIES = 256  # a query with more than this part of the documents is thinned in samples


class PairCounts(ABC):
    """What an objective knows of its pairs; they may be anywhere."""

    @property
    @abstractmethod
    def n_documents(self) -> int:
        """Number of documents."""

    @property
    @abstractmethod
    def n_queries(self) -> int:
        """Number of queries."""

    @property
    @abstractmethod
    def n_active_documents(self) -> int:
        """Number of documents of queries with pairs that count."""

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of pairs, exactly."""

    @property
    @abstractmethod
    def has_weight(self) -> bool:
        """Whether any pair has a positive weight."""


class ActiveDocuments(NamedTuple):
    """Documents of queries with pairs that count: their numbers, rows of X, and queries."""

    documents: Integers
    rows: Integers
    offsets: Integers


@dataclass(frozen=True, kw_only=True)
class PairSet(AlignedWhenUnpickled, PairCounts):
    """Pairs of documents of one query, in memory.

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
    def n_documents(self) -> int:
        return self.documents.n_documents

    @property
    def n_queries(self) -> int:
        return self.documents.n_queries

    @property
    @abstractmethod
    def active_queries(self) -> Booleans:
        """Which queries have pairs that count."""

    @property
    @abstractmethod
    def weight_by_query(self) -> Floats:
        """Σ δ_ij over the pairs of each query."""

    @property
    @abstractmethod
    def covered(self) -> float:
        """What a sample is scaled up to: the pairs, by weight or number, times those of queries."""

    @abstractmethod
    def native(self, loss: Loss) -> _core.Pairs:
        """Return what the kernels take."""

    @abstractmethod
    def sample(self, fraction: float, seed: int, *, among: int | None = None) -> Self:
        """Return about `fraction` of the active documents; see :meth:`Objective.sample`.

        If this is a part of a larger set, `among` is the number of active documents of all, and
        the weights are left for :meth:`standing_for` to scale up.
        """

    @abstractmethod
    def deal(self, n_parts: int, seed: int) -> list[Self]:
        """Return random parts without a common document, each standing for all pairs.

        Whole queries are dealt out; the documents of long queries are dealt one by one.
        """

    @abstractmethod
    def split(self, bounds: Integers, row_bounds: Integers) -> list[Self]:
        """Return the sets of pairs of neighbouring queries: bounds[k] … bounds[k + 1] each.

        Part k is on a matrix of the rows row_bounds[k] … row_bounds[k + 1], which hold these
        queries. Nothing of the size of the documents is copied where they are the rows.
        """

    @abstractmethod
    def compact(self) -> Self:
        """Return the same pairs on a matrix that has the rows of their documents alone."""

    @classmethod
    @abstractmethod
    def join(cls, sets: Sequence[Self]) -> Self:
        """Return the pairs of several sets on one matrix: the rows of each under those before.

        The sets are compact, and have factors and margins, or have none, all alike.
        """

    @abstractmethod
    def cut(self, queries: Integers, *, largest: int, seed: int, first: int) -> Self:
        """Return the given queries, those of more than `largest` documents cut into random parts.

        A part has `largest` documents at most, and is a query of the result. The losses of a
        query's parts add up to its own loss, exactly or on average. How query q is cut depends on
        `seed` and `first` + q alone.
        """

    @abstractmethod
    def drawer(self, queries: Integers) -> PairDrawer:
        """Return what draws pairs of the given queries, in proportion to their weights."""

    @property
    def weights(self) -> Floats:
        """Weight of all pairs of each query, with the query's own in it."""
        return self.query_weight * self.weight_by_query

    @property
    def has_weight(self) -> bool:
        return bool(np.any(self.weights > 0))

    @cached_property
    def n_active_documents(self) -> int:
        return int(np.sum(self.documents.sizes[self.active_queries]))

    @property
    def active_documents(self) -> ActiveDocuments:
        """The documents of queries with pairs that count."""
        sizes, active = self.documents.sizes, self.active_queries
        documents = np.flatnonzero(np.repeat(active, sizes))
        rows = self.documents.rows
        return ActiveDocuments(
            documents=documents,
            rows=documents if rows is None else rows[documents],
            offsets=np.concatenate([[0], np.cumsum(sizes[active])]),
        )

    def long_queries(self, among: int | None = None) -> Booleans:
        """Tell which active queries have much of the data, of which this may be a part."""
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
                f"{LARGEST_WEIGHT:g}); divide the weights or pair costs by a number."
            )

    def weighted(self, C: float, normalization: str) -> Self:
        """Return the same pairs with C and the normalisation in the weights of the queries."""
        self.check_overflow()
        total = float(np.sum(self.weights))
        with np.errstate(over="ignore", invalid="ignore"):
            query_weight = self.query_weight * (C * self._normalizer(normalization))
            weighted = float(np.sum(query_weight * self.weight_by_query))
        check_C(C, total, weighted)
        return replace(self, query_weight=query_weight)

    def _dealt(self, n_parts: int, seed: int) -> Integers:
        """Return the number of the part that each document is dealt to."""
        rng = np.random.default_rng(seed)
        query = self.documents.query_of_document
        part: Integers = (rng.permutation(self.n_queries) % n_parts)[query]
        long_queries = self.long_queries()
        if long_queries.any():
            by_document = rng.permutation(self.n_documents) % n_parts
            part = np.where(long_queries[query], by_document, part)
        return part

    def weighing(self, total: float) -> Self:
        """Return the same pairs with weights that sum to `total`, if they have any."""
        own = float(np.sum(self.weights))
        return self if own <= 0 else replace(self, query_weight=self.query_weight * (total / own))

    def averaged(self) -> Self:
        """Return the same pairs with the mean over a query's pairs instead of their sum."""
        inside = self.weight_by_query
        mean = np.divide(self.query_weight, inside, out=np.zeros(inside.size), where=inside > 0)
        return replace(self, query_weight=mean)

    def without(self, queries: Booleans) -> Self:
        """Return the same pairs with no weight on those of some queries."""
        return replace(self, query_weight=np.where(queries, 0.0, self.query_weight))

    def active_weights(self, loss: Loss, scores: Floats) -> Floats:
        """Return, by query, the weight of the pairs inside the margin of the first piece."""
        weights: Floats = _core.active_weights(self.native(loss), scores, self.threads)
        return weights

    def _normalizer(self, normalization: str) -> Floats | float:
        """Return what multiplies each query's weight so that sums become weighted means."""
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
        """Return weights of the chosen queries, of each of which some pairs are kept.

        `full` measures the pairs of each query, `kept` those that stand for them.
        """
        factor = np.divide(full[chosen], kept, out=np.zeros_like(kept), where=kept > 0)
        return self.query_weight[chosen] * factor

    def standing_for(self, covered: float) -> Self:
        """Return the pairs of a sample with the weights of the set that it stands for.

        Its queries then stand for all queries, of which :attr:`covered` tells.
        """
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
            f"most {LARGEST_WEIGHT:g}); lower C (raise lam).",
        )
    if weighted == 0 < total:
        raise ParameterError(
            Mention("C", f"{C:.3g}"),
            f" times the weights of all pairs, {total:.3g}, is zero in floating point; "
            "multiply the weights by a number, or raise C (lower lam).",
        )


def query_weight_of(data: RankingData) -> Floats:
    """Return the weights of the queries, ones if there are none."""
    return np.ones(data.n_queries) if data.query_weight is None else data.query_weight


def joined_offsets(documents: Sequence[Documents]) -> Integers:
    """Return where queries begin that come one set after the other."""
    sizes = np.concatenate([some.sizes for some in documents])
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def concatenated(values: Sequence[Floats | None]) -> Floats | None:
    """Return what several sets have, one after the other; None where they have none."""
    given = [some for some in values if some is not None]
    return np.concatenate(given) if given else None
