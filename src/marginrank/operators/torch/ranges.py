"""Sums over ranges of documents, several passes at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from marginrank.operators.torch.levels import Levels, PassRanges

PASSES_AT_ONCE = 4  # their prefix sums take 8 bytes a document each


@dataclass(frozen=True)
class Ranges:
    """The ranges of some passes, in one run of prefix sums over all of them.

    Attributes
    ----------
    levels : Levels
        Where levels begin.
    numbers : range
        Which passes.
    source : Tensor of int32, shape (n_passes * n_documents + 1,)
        Where the values of the run are: a document, or past all documents for the value that it
        has as the other side of its pairs. The first one is there for its prefix sum alone.
    starts : Tensor of int32, shape (n_passes * n_leaves,)
        Where ranges begin, by pass and leaf.
    stops : list of Tensor of int32, shape (n_passes * n_documents,)
        Where ranges end, by pass and document, for each window.
    """

    levels: Levels
    numbers: range
    source: Tensor
    starts: Tensor
    stops: list[Tensor]

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.levels.leaves.leaf.numel()

    def prefix_sums(self, values: Tensor) -> Tensor:
        """Return the sums of the first values of the run; all differ by the same from the truth."""
        return torch.cumsum(values.index_select(0, self.source), 0, dtype=values.dtype)

    def sums(self, prefix_sums: Tensor, window: int) -> Tensor:
        """Return the sum over all partners of each document."""
        shape = len(self.numbers) + 1, self.n_documents
        parts = torch.empty(shape, dtype=prefix_sums.dtype, device=prefix_sums.device)
        torch.index_select(prefix_sums, 0, self.stops[window], out=parts[:-1].view(-1))
        started = prefix_sums.index_select(0, self.starts).view(len(self.numbers), -1)
        torch.index_select(-started.sum(0), 0, self.levels.leaves.leaf, out=parts[-1])
        return parts.sum(0)

    def sums_by_side(self, prefix_sums: Tensor, window: int) -> tuple[Tensor, Tensor]:
        """Return the sum over the preferred partners of each document, and over the others."""
        n_passes = len(self.numbers)
        stopped = prefix_sums.index_select(0, self.stops[window]).view(n_passes, -1)
        started = prefix_sums.index_select(0, self.starts).view(n_passes, -1)
        parts = stopped - started.index_select(1, self.levels.leaves.leaf)
        seeks = torch.stack([self.levels.seeks_preferred(number) for number in self.numbers])
        above = torch.where(seeks, parts, 0).sum(0)
        return above, parts.sum(0) - above

    def keep(self, windows: Sequence[int]) -> "Ranges":
        """Return the ranges of some windows alone."""
        stops = [self.stops[window] for window in windows]
        return Ranges(self.levels, self.numbers, self.source, self.starts, stops)


def gather(levels: Levels, passes: list[PassRanges], *, by_side: bool) -> list[Ranges]:
    """Put passes together; with values of two kinds, if documents have one for each side."""
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
    """Return places of several passes as places of their common run."""
    moved = [place + number * n_documents for number, place in enumerate(places)]
    return torch.cat(moved).to(torch.int32)
