"""Random division of items into parts, and random sampling of pairs, for stochastic gradients."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import Queries
from marginrank.objective.pair_margins import LabelMargins
from marginrank.objective.pair_weights import PairFactors

ANY_LEVEL = int(np.iinfo(np.int32).max)  # more levels than a query can have


def random_parts(sizes: Integers, n_parts: Integers, keys: Integers, seed: int) -> Integers:
    """Divide each group of items at random into equal parts; return the part number of each item.

    Group k has `sizes[k]` consecutive items and `n_parts[k]` parts. Part numbers continue from one
    group to the next. How a group is divided depends only on `seed` and keys[k].
    """
    part: Integers = np.repeat(np.cumsum(n_parts) - n_parts, sizes)
    ends = np.cumsum(sizes)
    for k in np.flatnonzero(n_parts > 1):
        rng = np.random.default_rng([seed, keys[k]])
        part[ends[k] - sizes[k] : ends[k]] += rng.permutation(sizes[k]) % n_parts[k]
    return part


class DrawnPairs(NamedTuple):
    """A sample of pairs: indices of the preferred and the other documents, and margins if any."""

    preferred: Integers
    other: Integers
    margin: Floats | None


class LevelRanks(NamedTuple):
    """One integer per document; documents whose integers differ by 1 to `width` are a pair."""

    place: Integers
    width: int


def level_ranks(query: Integers, level: NDArray[np.int32], width: int) -> LevelRanks:
    """Return one integer per document that is 1 to `width` apart for documents that form a pair.

    Integers of one query differ like its levels (ranks of the labels). Integers of different
    queries differ by more than `width`.
    """
    highest = int(level.max(initial=0))
    width = min(width, highest + 1)
    return LevelRanks(query * (highest + width + 1) + level, width)


class PairDrawer(ABC):
    """Samples pairs with replacement, with probability proportional to their weight."""

    total: float  # weight of all pairs

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> DrawnPairs:
        """Return `count` random pairs, drawn with replacement in proportion to their weight."""


class LevelDrawer(PairDrawer):
    """Samples pairs implied by labels, with replacement and in proportion to their weight.

    Each pair takes O(log n_documents). `width` is the largest difference of the levels (ranks of
    labels) of a pair; None for any.
    """

    def __init__(
        self,
        queries: Queries,
        width: int | None,
        factors: PairFactors | None,
        label_margins: LabelMargins | None,
        query_weight: Floats,
    ) -> None:
        query = queries.query_of_document
        # Sort documents by query and level, so that documents of lower levels come first.
        self._documents = np.lexsort((queries.level, query))
        if factors is None:
            factors = PairFactors(*np.ones((2, query.size, 1)))
        self._preferred: Floats = factors.preferred[self._documents]
        self._label_margins = label_margins
        other = factors.other[self._documents]
        self._mass = np.concatenate([np.zeros((1, other.shape[1])), np.cumsum(other, axis=0)])
        level = queries.level[self._documents]
        # The partners of a document are at the positions from `low` to `high`.
        rank = level_ranks(query, level, ANY_LEVEL if width is None else width)
        self._low, self._high = (
            np.searchsorted(rank.place, rank.place - below) for below in (rank.width, 0)
        )
        partners = self._mass[self._high] - self._mass[self._low]
        weight = np.sum(query_weight[query][:, None] * self._preferred * partners, axis=1)
        self._cumulative = np.cumsum(
            np.maximum(weight, 0.0)
        )  # can be negative by cancellation only
        self.total = float(self._cumulative[-1])

    def draw(self, count: int, rng: np.random.Generator) -> DrawnPairs:
        i = _draw_places(self._cumulative, count, rng)
        side = self._preferred[i]
        side = side / np.max(np.abs(side), axis=1, keepdims=True)

        def mass_before(place: Integers) -> Floats:
            mass: Floats = np.sum(side * self._mass[place], axis=1)
            return mass

        first, last = self._low[i], self._high[i] - 1
        start, end = mass_before(first), mass_before(last + 1)
        target = start + rng.random(count) * (end - start)
        # Bisection for the last position with at most the target mass before it.
        while np.any(first < last):
            middle = (first + last + 1) // 2
            fits = mass_before(middle) <= target
            first, last = np.where(fits, middle, first), np.where(fits, last, middle - 1)
        pair = self._documents[i], self._documents[first]
        by_label = self._label_margins
        return DrawnPairs(*pair, None if by_label is None else by_label.between(*pair))


class ListedDrawer(PairDrawer):
    """Samples pairs from a list, with replacement and in proportion to their weight."""

    def __init__(self, pairs: Integers, weight: Floats, margin: Floats | None) -> None:
        self._pairs = pairs
        self._margin = margin
        self._cumulative = np.cumsum(weight)
        self.total = float(self._cumulative[-1])

    def draw(self, count: int, rng: np.random.Generator) -> DrawnPairs:
        places = _draw_places(self._cumulative, count, rng)
        drawn = self._pairs[places]
        margin = None if self._margin is None else self._margin[places]
        return DrawnPairs(drawn[:, 0], drawn[:, 1], margin)


def _draw_places(cumulative: Floats, count: int, rng: np.random.Generator) -> Integers:
    # Random positions with probabilities in proportion to the increments of a cumulative sum.
    # Rounding must not select a position at the end whose increment is zero.
    last = np.flatnonzero(np.diff(cumulative, prepend=0.0) > 0)[-1]
    places = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    inside: Integers = np.minimum(places, last)
    return inside
