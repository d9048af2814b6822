"""Sums over the pairs of each document, for pairs implied by labels, by a wavelet partition.

The *partners* of a document are the documents with which it forms a pair that has a positive hinge
term. In the order of the scores they are the documents of a higher level before one position, and
the documents of a lower level after another. (A level is the rank of a label in its query.)

Levels are compared bit by bit, the highest bit first, in one *pass* per bit. A pass splits each
group of documents whose levels agree in all higher bits into two parts, by the bit; both keep the
order of the scores. Every level of one part is higher than every level of the other, its *sibling*.
So the partners of a document of the lower part are the first documents of the sibling, and the
partners of a document of the higher part are the last. The lower part is stored backwards, so
partners are always the first documents of the sibling. This gives one range per document and pass;
its start depends only on level and query. A sum over the range is a difference of two prefix sums.
Two different levels are split in exactly one pass, so each pair counts once.

If only pairs of adjacent levels count, there are two passes: for the next higher level and for the
next lower level.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from marginrank._utils.types import Integers
from marginrank.objective.level_pairs import LevelPairs
from marginrank.operators.torch.documents import Order, Window, inverse

PASSES_AT_ONCE = 4  # passes with joint prefix sums, which take 8 bytes per document and pass


@dataclass(frozen=True)
class Leaves:
    """The combinations of query and level that have documents (*leaves*), in ascending order.

    A level is the rank of a label in its query. Leaves are sorted by query, then by level.
    """

    leaf: Tensor  # int32, index of the leaf of each document
    level: Tensor  # int32, the level of each leaf
    first: Tensor  # int32, number of documents before each level of each query, sorted by both
    slot: Tensor  # int64, for each leaf: position of level 0 of its query in `first`
    last_slot: Tensor  # int64, for each leaf: position after the last level of its query
    n_levels: int  # largest number of levels of a query

    @classmethod
    def of(cls, pairs: LevelPairs, device: torch.device) -> "Leaves":
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
        return (self.n_levels - 1).bit_length()

    @cached_property
    def level_of_document(self) -> Tensor:
        return self.spread(self.level)

    def spread(self, values: Tensor) -> Tensor:
        """Return a tensor that has, for each document, the value of its leaf in `values`."""
        return values.index_select(0, self.leaf)

    def documents_below(self, level: Tensor) -> Tensor:
        """Return, for each leaf, the number of documents before a given level of its query.

        Documents are sorted by query, then by level; documents of earlier queries are counted.
        `level` has one level per leaf.
        """
        slot = torch.minimum(torch.maximum(self.slot + level, self.slot), self.last_slot)
        return self.first.index_select(0, slot)


class PassRanges(NamedTuple):
    """Where the partners of each document are, for the pairs whose levels first differ at one bit.

    A level is the rank of a label in its query. The partners of a document are the documents that
    it forms such pairs with; they are in one range of `source`.
    """

    source: Tensor  # int32, the document at each position
    is_preferred: Tensor  # for each document, whether its pairs in this pass prefer it
    stops: list[Tensor]  # int32, one tensor per window: end of the range of each document


class AllLevels:
    """Sums over pairs of any two levels (ranks of labels), with one pass per bit of a level.

    The docstring of the module explains passes.
    """

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.bits = list(reversed(range(leaves.n_bits)))

    def starts(self, number: int) -> Tensor:
        """Return, for each leaf, where the documents that form pairs with it in a pass start.

        It is a position in the documents as ordered by pass number `number`; the docstring of the
        module explains passes.
        """
        return self._part(self.bits[number], sibling=True)

    def seeks_preferred(self, number: int) -> Tensor:
        """Return a mask of the documents that are less relevant than their partners in a pass.

        Pass number `number` has the pairs whose levels first differ at one bit, where these
        documents have a 0 and their partners a 1.
        """
        return (self.leaves.level_of_document >> self.bits[number]) & 1 == 0

    def passes(self, order: Order, windows: list[Window]) -> list[PassRanges]:
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
        """Return, for each leaf, where its part (or the sibling) starts after a split by `bit`."""
        part = self.leaves.level >> bit
        return self.leaves.documents_below((part ^ 1 if sibling else part) << bit)

    def part_starts(self, bit: int) -> tuple[Tensor, Tensor]:
        """Return, for each document, where the two parts of its group start after a split by a bit.

        A group consists of the documents of a query whose levels agree in the higher bits.
        """
        own = self.leaves.spread(self._part(bit, sibling=False))
        other = self.leaves.spread(self._part(bit, sibling=True))
        return torch.minimum(own, other), torch.maximum(own, other)


class _Split:
    """One pass of the wavelet partition: every node is split by a bit of the level.

    A node is the range of positions of documents whose levels agree in the higher bits. After the
    split, its lower part is before its higher part.
    """

    def __init__(self, levels: AllLevels, number: int, bit: int, place: Tensor) -> None:
        self.is_high = ~levels.seeks_preferred(number)
        self.low_start, self.high_start = levels.part_starts(bit)
        by_place = torch.empty_like(place).index_copy_(0, place.long(), self.is_high.int())
        self._highs = torch.zeros(place.numel() + 1, dtype=torch.int32, device=place.device)
        torch.cumsum(by_place, 0, dtype=torch.int32, out=self._highs[1:])
        self._before = self._highs.index_select(0, self.low_start)

    def _highs_in_front(self, place: Tensor) -> Tensor:
        """Return, for each document, how many documents of its node before `place` have the bit."""
        return self._highs.index_select(0, place) - self._before

    def follow(self, place: Tensor) -> Tensor:
        """Return the positions of documents after this split, given their positions before it."""
        highs = self._highs_in_front(place)
        return torch.where(self.is_high, self.high_start + highs, place - highs)

    def stop(self, window: Window) -> Tensor:
        """Return, for each document, where the range of documents that it forms pairs with ends.

        The position is in the order after the split; `window` has the range in the order of the
        scores.
        """
        first_high = self.high_start + self._highs_in_front(window.end)
        lows_left_out = window.begin - self.low_start - self._highs_in_front(window.begin)
        return torch.where(self.is_high, self.high_start - lows_left_out, first_high)

    def source(self, place: Tensor) -> Tensor:
        """Return the document indices in the order of this pass.

        Documents of lower parts are in reverse order.
        """
        place = self.follow(place)
        backwards = self.low_start + self.high_start - 1 - place
        return inverse(torch.where(self.is_high, place, backwards))


class AdjacentLevels:
    """Sums over pairs of adjacent levels: one pass for the next higher level, one for the lower.

    A level is the rank of a label in its query.
    """

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves

    def starts(self, number: int) -> Tensor:
        return self.leaves.documents_below(self.leaves.level + (-1 if number else 1))

    def seeks_preferred(self, number: int) -> Tensor:
        return torch.full_like(self.leaves.leaf, number == 0, dtype=torch.bool)

    def passes(self, order: Order, windows: list[Window]) -> list[PassRanges]:
        n = order.place.numel()
        rank = self.leaves.spread(self.leaves.slot + self.leaves.level)
        key = rank * n + order.place
        place = inverse(torch.argsort(key))
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
            PassRanges(inverse(place), self.seeks_preferred(0), upper),
            PassRanges(inverse(backwards), self.seeks_preferred(1), under),
        ]


Levels = AllLevels | AdjacentLevels


@dataclass(frozen=True)
class Ranges:
    """For each document, the ranges of positions of the documents that it forms pairs with.

    There is one range per hinge term and *pass*; the docstring of the module explains passes.
    Several passes are joined into one array, so one prefix sum serves all of them.
    """

    levels: Levels
    numbers: range  # indices of the passes
    # For each position in the joined passes (int32): a document, plus n_documents for the value it
    # has as the other side of its pairs. The first entry only shifts the prefix sums by one.
    source: Tensor
    starts: Tensor  # int32, starts of the ranges by pass and leaf
    stops: list[Tensor]  # int32, one tensor per window: ends of the ranges by pass and document

    def prefix_sums(self, values: Tensor) -> Tensor:
        """Return prefix sums of one value per document, in the order of the ranges."""
        return torch.cumsum(values.index_select(0, self.source), 0, dtype=values.dtype)

    def sums(self, prefix_sums: Tensor, window: int) -> Tensor:
        """Return, for each document, the sum of values over the documents that it forms pairs with.

        `prefix_sums` are the prefix sums of the values. Only pairs in the given window (of one
        hinge term) count.
        """
        shape = len(self.numbers) + 1, self.levels.leaves.leaf.numel()
        parts = torch.empty(shape, dtype=prefix_sums.dtype, device=prefix_sums.device)
        torch.index_select(prefix_sums, 0, self.stops[window], out=parts[:-1].view(-1))
        started = prefix_sums.index_select(0, self.starts).view(len(self.numbers), -1)
        torch.index_select(-started.sum(0), 0, self.levels.leaves.leaf, out=parts[-1])
        return parts.sum(0)

    def sums_by_side(self, prefix_sums: Tensor, window: int) -> tuple[Tensor, Tensor]:
        """Return two sums per document: over the preferred documents of its pairs, and the others.

        `prefix_sums` are the prefix sums of the values to add up. Only pairs in the given window
        (of one hinge term) count.
        """
        n_passes = len(self.numbers)
        stopped = prefix_sums.index_select(0, self.stops[window]).view(n_passes, -1)
        started = prefix_sums.index_select(0, self.starts).view(n_passes, -1)
        parts = stopped - started.index_select(1, self.levels.leaves.leaf)
        seeks = torch.stack([self.levels.seeks_preferred(number) for number in self.numbers])
        above = torch.where(seeks, parts, 0).sum(0)
        return above, parts.sum(0) - above

    def keep(self, windows: Sequence[int]) -> "Ranges":
        """Return this object for some of the hinge terms only, given by their indices."""
        stops = [self.stops[window] for window in windows]
        return Ranges(self.levels, self.numbers, self.source, self.starts, stops)


def gather(levels: Levels, passes: list[PassRanges], *, by_side: bool) -> list[Ranges]:
    """Return the ranges of all passes, with up to PASSES_AT_ONCE passes joined in each object.

    Set `by_side` if a document has one value for pairs that prefer it and another for other pairs.
    """
    found = []
    n_documents = levels.leaves.leaf.numel()
    for first in range(0, len(passes), PASSES_AT_ONCE):
        some = passes[first : first + PASSES_AT_ONCE]
        numbers = range(first, first + len(some))
        sources = [_source(ranges, by_side) for ranges in some]
        by_window = zip(*(ranges.stops for ranges in some), strict=True)
        found.append(
            Ranges(
                levels=levels,
                numbers=numbers,
                source=torch.cat([sources[0][:1], *sources]),
                starts=_joined([levels.starts(number) for number in numbers], n_documents),
                stops=[_joined(stops, n_documents) for stops in by_window],
            )
        )
    return found


def _source(ranges: PassRanges, by_side: bool) -> Tensor:
    if not by_side:
        return ranges.source
    is_other = ~ranges.is_preferred.index_select(0, ranges.source)
    return ranges.source + is_other * ranges.source.numel()


def _joined(places: Sequence[Tensor], n_documents: int) -> Tensor:
    """Return positions in several passes, shifted to positions in the joined passes."""
    moved = [place + number * n_documents for number, place in enumerate(places)]
    return torch.cat(moved).to(torch.int32)
