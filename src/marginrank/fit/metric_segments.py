"""A ranking metric as an exact, piecewise constant function of the weights of a linear score.

The metric is a sum of gain × discount(rank) over the documents with a gain. The rank of a document
changes where its score equals the score of another document of the query. So if weights move along
a line segment, the metric is constant between these crossings: the idea of minimum error rate
training (Och, 2003).
"""

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np

from marginrank import _core
from marginrank._utils.types import Booleans, Floats, Integers

CHUNK = 1 << 22  # number of score differences computed at a time, to bound the memory (32 MiB)
ROUNDING = 1e-12  # score differences below this share of the largest feature are ties
NARROWEST = 1e-9  # a shorter interval is a rounding error: its two breakpoints should be equal


class Steps(NamedTuple):
    """A piecewise constant function on the interval 0 … 1.

    It has the value values[k] between breakpoints[k − 1] and breakpoints[k].
    """

    breakpoints: Floats
    values: Floats


class Crossings(NamedTuple):
    """Positions at which a metric changes while the weights of a score move along a segment.

    A position t between 0 and 1 stands for the weights (1 − t) u + t v. Positions are ascending.
    """

    t: Floats
    change: Floats  # change of the query's metric at each crossing
    query: Integers
    start: Floats  # metric of each query before the first crossing

    def steps(self, query_weight: Floats) -> Steps:
        """Return the metric, summed over queries with weights, as a function of the position t."""
        changes = np.cumsum(self.change * query_weight[self.query])
        start = float(self.start @ query_weight)
        return Steps(self.t, start + np.concatenate([[0.0], changes]))

    def best(self, query_weights: Floats) -> tuple[Floats, Floats]:
        """Return the best position and the metric there, for each sample of query weights.

        `query_weights` has one sample per row. The position is the middle of the widest interval on
        which the metric, summed over queries with weights, is maximal.
        """
        return _core.best_intervals(
            self.t, self.change, self.query, self.start, query_weights, NARROWEST, ROUNDING
        )


@dataclass(frozen=True)
class LinearRankMetric:
    """A ranking metric as a function of the weights of a linear score.

    It stores the documents with a positive gain, each paired with the documents of its query that
    may rank above or below it, depending on the weights. Documents that always rank above are only
    counted. Documents with equal scores rank in row order.
    """

    differences: Floats  # per pair: features of the document minus features of the other document
    is_first: Booleans  # whether the document ranks above the other document if they tie
    starts: Integers  # first pair of each document
    document: Integers  # index of the document of each pair, among the stored documents
    rank: Integers  # 1 + number of documents that always rank above the document
    gain: Floats
    query: Integers
    constant: Floats  # per query: contribution of documents whose rank never changes
    discount: Floats  # discount of each rank; the last entry is for all greater ranks
    tie: float  # scores that differ by at most this are ties, for weights up to 1

    @classmethod
    def of(
        cls,
        features: Floats,
        offsets: Integers,
        gain: Floats,
        discount: Floats,
        *,
        positive: bool,
    ) -> "LinearRankMetric":
        """Return the metric for documents that are grouped by query, with given gains.

        With `positive`, weights are assumed to be non-negative.
        """
        n_queries = offsets.size - 1
        query_of = np.repeat(np.arange(n_queries), np.diff(offsets))
        own = np.flatnonzero(gain > 0.0)
        sizes = np.diff(offsets)[query_of[own]]
        document = np.repeat(np.arange(own.size), sizes)
        within = np.arange(document.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        other = offsets[query_of[own]][document] + within
        differences = features.take(own[document], axis=0) - features.take(other, axis=0)
        is_first = own[document] <= other  # exclude pairs of a document with itself
        tied = _all_of_row(differences == 0.0)
        above, below = tied & ~is_first, tied & is_first
        if positive:
            above |= _all_of_row(differences < 0.0)
            below |= _all_of_row(differences > 0.0)
        rank = 1 + np.bincount(document[above], minlength=own.size)
        paired = ~(above | below)
        last = discount.size - 1
        moves = np.bincount(document[paired], minlength=own.size) > 0
        moves &= discount[np.minimum(rank, last)] > 0.0
        fixed = gain[own] * discount[np.minimum(rank, last)] * ~moves
        constant: Floats = np.bincount(query_of[own], fixed, n_queries).astype(np.float64)
        paired &= moves[document]
        document = (np.cumsum(moves) - 1)[document[paired]]
        return cls(
            differences=differences.compress(paired, axis=0),
            is_first=is_first[paired],
            starts=np.searchsorted(document, np.arange(np.sum(moves))),
            document=document,
            rank=rank[moves],
            gain=gain[own][moves],
            query=query_of[own][moves],
            constant=constant,
            discount=discount,
            tie=ROUNDING * float(np.abs(features).max(initial=0.0)),
        )

    def values(self, weights: Floats) -> Floats:
        """Return the metric for several weight vectors: one row per query, one column per vector.

        `weights` has one weight vector per row.
        """
        result = np.empty((self.constant.size, len(weights)))
        step = max(1, CHUNK // max(1, len(self.differences)))
        for first in range(0, len(weights), step):
            some = weights[first : first + step]
            result[:, first : first + step] = self._values(some)
        return result

    def along(self, u: Floats, v: Floats) -> "Crossings":
        """Return the positions at which the metric changes on the segment from weights u to v."""
        at_u, at_v = self._differences(u), self._differences(v)
        begins = self._wins(at_u, at_v)
        moved = np.flatnonzero(begins != self._wins(at_v, at_u))
        t = at_u[moved] / (at_u[moved] - at_v[moved])
        document = self.document[moved]
        order = np.lexsort((t, document))
        t, document, moved = t[order], document[order], moved[order]
        rank = self._ranks(~begins[:, None])[:, 0]
        change = np.where(begins[moved], 1, -1)
        after = np.cumsum(change)
        # The running sum of a document begins with its rank at u.
        first = np.flatnonzero(np.diff(document, prepend=-1))
        base = rank[document[first]] - after[first] + change[first]
        after += np.repeat(base, np.diff(np.append(first, document.size)))
        gained = self._discounts(after) - self._discounts(after - change)
        kept = np.flatnonzero(gained)
        kept = kept[np.argsort(t[kept], kind="stable")]
        own = document[kept]
        at_start = np.bincount(self.query, self.gain * self._discounts(rank), self.constant.size)
        return Crossings(
            t[kept], self.gain[own] * gained[kept], self.query[own], self.constant + at_start
        )

    def _values(self, weights: Floats) -> Floats:
        scores = self.differences @ weights.T
        loses = (scores < -self.tie) | ((np.abs(scores) <= self.tie) & ~self.is_first[:, None])
        gained = self.gain[:, None] * self._discounts(self._ranks(loses))
        total = np.repeat(self.constant[:, None], len(weights), axis=1)
        if gained.size:
            first = np.flatnonzero(np.diff(self.query, prepend=-1))
            total[self.query[first]] += np.add.reduceat(gained, first, axis=0)
        return total

    def _ranks(self, loses: Booleans) -> Integers:
        """Return ranks of documents, given the pairs they lose; one column per weight vector."""
        if not self.starts.size:
            return np.empty((0, loses.shape[1]), dtype=np.int64)
        lost = np.add.reduceat(loses, self.starts, axis=0, dtype=np.int64)
        return self.rank[:, None] + lost

    def _discounts(self, ranks: Integers) -> Floats:
        return self.discount[np.minimum(ranks, self.discount.size - 1)]

    def _differences(self, weights: Floats) -> Floats:
        scores: Floats = self.differences @ weights
        scores[np.abs(scores) <= self.tie] = 0.0
        return scores

    def _wins(self, near: Floats, far: Floats) -> Booleans:
        """Return, per pair, whether the document ranks first for weights near one end of a segment.

        `near` has the score differences at this end, `far` at the other end.
        """
        score = np.where(near != 0.0, near, far)
        wins: Booleans = (score > 0.0) | ((score == 0.0) & self.is_first)
        return wins


def _all_of_row(conditions: Booleans) -> Booleans:
    """Return ``conditions.all(axis=1)``; faster than NumPy for few columns."""
    result: Booleans = reduce(np.logical_and, conditions.T)
    return result
