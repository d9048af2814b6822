"""Which sums over documents in some order make up the sums over the partners of each document.

Partners are documents of a higher level that stand before a place in the order of the scores, and
documents of a lower level that stand after one. For any number of levels that takes as many
*passes* as a level has bits (a wavelet partition). In the pass of a bit, documents whose levels
agree in the higher bits are split by this one, in the order of their scores. The two parts are
siblings: all of one have a higher level than all of the other. So a document of the lower part has
partners among the first of its sibling, a document of the higher part among the last; and where the
lower part is stored backwards, the partners are the first of the sibling in either case. Each
document then has one range in a pass, and their sum is a difference of two prefix sums. Where a
range begins depends on level and query alone.

Pairs of adjacent levels take two passes, for the next higher level and the next lower one.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marginrank._utils.types import Integers
from marginrank.objective.level_pairs import LevelPairs
from marginrank.operators.torch.windows import Order, Window


@dataclass(frozen=True)
class Leaves:
    """The levels of each query that have documents, in ascending order.

    Attributes
    ----------
    leaf : Tensor of int32, shape (n_documents,)
        The leaf of each document.
    level : Tensor of int32, shape (n_leaves,)
        Level of each leaf.
    first : Tensor of int32
        Documents in front of each level of each query, where all are sorted by query and level.
    slot, last_slot : Tensor of int64, shape (n_leaves,)
        Where level 0 of the leaf's query stands in `first`, and where what comes after its last.
    n_levels : int
        The largest number of levels of a query.
    """

    leaf: Tensor
    level: Tensor
    first: Tensor
    slot: Tensor
    last_slot: Tensor
    n_levels: int

    @classmethod
    def of(cls, pairs: LevelPairs, device: torch.device) -> "Leaves":
        """Find them."""
        queries = pairs.queries
        base: Integers = np.concatenate([[0], np.cumsum(queries.n_levels)]).astype(np.int64)
        query = queries.query_of_document
        slot: Integers = base[query] + queries.level
        counts = np.bincount(slot, minlength=base[-1])
        present = np.flatnonzero(counts)
        number = np.cumsum(counts > 0) - 1
        query_of_leaf = np.searchsorted(base, present, side="right") - 1

        def put(values: Integers, dtype: torch.dtype) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=device)

        return cls(
            leaf=put(number[slot], torch.int32),
            level=put(present - base[query_of_leaf], torch.int32),
            first=put(np.concatenate([[0], np.cumsum(counts)]), torch.int32),
            slot=put(base[query_of_leaf], torch.int64),
            last_slot=put(base[query_of_leaf + 1], torch.int64),
            n_levels=int(np.max(queries.n_levels, initial=1)),
        )

    @property
    def n_bits(self) -> int:
        """Bits of a level."""
        return (self.n_levels - 1).bit_length()

    @cached_property
    def level_of_document(self) -> Tensor:
        """Level of each document."""
        return self.spread(self.level)

    def spread(self, values: Tensor) -> Tensor:
        """Return what each leaf has, for each of its documents."""
        return values.index_select(0, self.leaf)

    def documents_below(self, level: Tensor) -> Tensor:
        """Return the documents in front of a level of each leaf's query, in all queries."""
        slot = torch.minimum(torch.maximum(self.slot + level, self.slot), self.last_slot)
        return self.first.index_select(0, slot)


class PassRanges(NamedTuple):
    """One pass over the documents in some order.

    Attributes
    ----------
    source : Tensor of int32
        The document at each place.
    is_preferred : Tensor of bool, by document
        Whether the document stands there as the preferred side of its pairs.
    stops : list of Tensor of int32, by document
        Where the range of each document ends, for each window.
    """

    source: Tensor
    is_preferred: Tensor
    stops: list[Tensor]


class AllLevels:
    """Pairs of different levels: a pass for each bit of a level."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.bits = list(reversed(range(leaves.n_bits)))

    @property
    def n_passes(self) -> int:
        """Number of passes."""
        return len(self.bits)

    def starts(self, number: int) -> Tensor:
        """Return, by leaf, where the ranges of a pass begin: at the sibling's first document."""
        return self._part(self.bits[number], sibling=True)

    def seeks_preferred(self, number: int) -> Tensor:
        """Return, by document, whether it has preferred partners in a pass: its bit is zero."""
        return (self.leaves.level_of_document >> self.bits[number]) & 1 == 0

    def passes(self, order: Order, windows: list[Window]) -> list[PassRanges]:
        """Return the ranges of every pass for some windows."""
        place, windows = order.place, list(windows)
        found = []
        for number, bit in enumerate(self.bits):
            split = _Split(self, number, bit, place)
            stops = [split.stop(window) for window in windows]
            found.append(PassRanges(split.source(place), split.is_high, stops))
            windows = [Window(*map(split.follow, window)) for window in windows]
            place = split.follow(place)
        return found

    def _part(self, bit: int, *, sibling: bool) -> Tensor:
        """Return where the part of each leaf begins after the split by a bit, or its sibling."""
        part = self.leaves.level >> bit
        return self.leaves.documents_below((part ^ 1 if sibling else part) << bit)

    def part_starts(self, bit: int) -> tuple[Tensor, Tensor]:
        """Return where the lower and the higher part begin, by document."""
        own = self.leaves.spread(self._part(bit, sibling=False))
        other = self.leaves.spread(self._part(bit, sibling=True))
        return torch.minimum(own, other), torch.maximum(own, other)


class _Split:
    """The documents of every node of the partition, split by a bit.

    A node is a run of places; its lower part comes to stand before its higher part.
    """

    def __init__(self, levels: AllLevels, number: int, bit: int, place: Tensor) -> None:
        self.is_high = ~levels.seeks_preferred(number)
        self.low_start, self.high_start = levels.part_starts(bit)
        by_place = torch.empty_like(place).index_copy_(0, place.long(), self.is_high.int())
        self._highs = torch.zeros(place.numel() + 1, dtype=torch.int32, device=place.device)
        torch.cumsum(by_place, 0, dtype=torch.int32, out=self._highs[1:])
        self._before = self._highs.index_select(0, self.low_start)

    def _highs_in_front(self, place: Tensor) -> Tensor:
        """Count the documents of the higher part in the node before a place of it."""
        return self._highs.index_select(0, place) - self._before

    def follow(self, place: Tensor) -> Tensor:
        """Return a place of each document's node as a place of the document's own part."""
        highs = self._highs_in_front(place)
        return torch.where(self.is_high, self.high_start + highs, place - highs)

    def stop(self, window: Window) -> Tensor:
        """Return where the range of each document ends in its sibling."""
        first_high = self.high_start + self._highs_in_front(window.end)
        lows_left_out = window.begin - self.low_start - self._highs_in_front(window.begin)
        return torch.where(self.is_high, self.high_start - lows_left_out, first_high)

    def source(self, place: Tensor) -> Tensor:
        """Return the documents in the order of the pass: lower parts backwards."""
        place = self.follow(place)
        backwards = self.low_start + self.high_start - 1 - place
        return _documents_at(torch.where(self.is_high, place, backwards))


class AdjacentLevels:
    """Pairs of adjacent levels: a pass for the next higher one, and one for the next lower one."""

    n_passes = 2

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves

    def starts(self, number: int) -> Tensor:
        """Return, by leaf, where the ranges of a pass begin."""
        return self.leaves.documents_below(self.leaves.level + (-1 if number else 1))

    def seeks_preferred(self, number: int) -> Tensor:
        """Return, by document, whether it has preferred partners in a pass."""
        return torch.full_like(self.leaves.leaf, number == 0, dtype=torch.bool)

    def passes(self, order: Order, windows: list[Window]) -> list[PassRanges]:
        """Return the ranges of both passes for some windows."""
        n = order.place.numel()
        rank = self.leaves.spread(self.leaves.slot + self.leaves.level)
        key = rank * n + order.place
        place = _place_of(key)
        sorted_key = torch.empty_like(key).index_copy_(0, place.long(), key)
        own, higher, lower = (
            self.leaves.spread(self.leaves.documents_below(self.leaves.level + step))
            for step in (0, 1, -1)
        )
        backwards = own + higher - 1 - place
        upper, under = [], []
        for window in windows:
            bound = (rank + 1) * n + window.end
            upper.append(torch.searchsorted(sorted_key, bound, out_int32=True))
            bound = (rank - 1) * n + window.begin
            under.append(lower + own - torch.searchsorted(sorted_key, bound, out_int32=True))
        return [
            PassRanges(_documents_at(place), self.seeks_preferred(0), upper),
            PassRanges(_documents_at(backwards), self.seeks_preferred(1), under),
        ]


Levels = AllLevels | AdjacentLevels


def _documents_at(place: Tensor) -> Tensor:
    """Return the document at each place, given the place of each."""
    numbers = torch.arange(place.numel(), dtype=torch.int32, device=place.device)
    return torch.empty_like(numbers).index_copy_(0, place.long(), numbers)


def _place_of(key: Tensor) -> Tensor:
    """Return the place of each entry in ascending order; no two are equal."""
    return _documents_at(torch.argsort(key))
