"""How a store is cut into parts and blocks: by its queries and the size of their rows alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginrank._utils.types import Integers

PART_BYTES = 1 << 25  # in memory


@dataclass(frozen=True)
class Plan:
    """Parts of whole queries, and the blocks of rows that are read at a time.

    A part is one block, unless it is one query that is larger than a block.

    Attributes
    ----------
    queries : ndarray of int64
        Part k has the queries queries[k] … queries[k + 1].
    rows : ndarray of int64
        And the rows rows[k] … rows[k + 1].
    blocks : ndarray of int64
        And the blocks blocks[k] … blocks[k + 1].
    block_rows : ndarray of int64
        Block b has the rows block_rows[b] … block_rows[b + 1].
    """

    queries: Integers
    rows: Integers
    blocks: Integers
    block_rows: Integers

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return self.rows.size - 1

    def is_long(self, part: int) -> bool:
        """Tell whether a part is a query that is larger than a block."""
        return bool(self.blocks[part + 1] - self.blocks[part] > 1)


def make_plan(offsets: Integers, memory_before: Callable[[Integers], Integers]) -> Plan:
    """Cut queries that begin at the rows `offsets`, given the bytes that the rows before take."""
    before = memory_before(offsets)
    queries = [0]
    while queries[-1] < offsets.size - 1:
        first = queries[-1]
        last = int(np.searchsorted(before, before[first] + PART_BYTES, side="right")) - 1
        queries.append(max(last, first + 1))
    bounds = np.array(queries)
    rows = offsets[bounds]
    block_rows, blocks = [0], [0]
    for first, last in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        block_rows.extend(_cuts(first, last, memory_before))
        blocks.append(len(block_rows) - 1)
    return Plan(bounds, rows, np.array(blocks), np.array(block_rows))


def _cuts(first: int, last: int, memory_before: Callable[[Integers], Integers]) -> list[int]:
    """Return where the blocks of some rows end."""
    begin, end = memory_before(np.array([first, last]))
    n_blocks = max(-(-int(end - begin) // PART_BYTES), 1)
    if n_blocks == 1:
        return [last]
    before = memory_before(np.arange(first, last + 1))
    wanted = begin + (end - begin) * np.arange(1, n_blocks) // n_blocks
    cuts = first + np.searchsorted(before, wanted)
    return [*np.unique(np.clip(cuts, first + 1, last - 1)).tolist(), last]
