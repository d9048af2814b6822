"""Parts that are read from disk, one after the other, in this process."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Integers
from marginrank.objective.backends.interface import PartKernels
from marginrank.objective.backends.native import NativeKernels, NativeMatrix, as_native
from marginrank.objective.backends.parts.executor import ByPart, Executor, Task, Tell
from marginrank.objective.backends.parts.plan import Plan
from marginrank.objective.backends.parts.sliced import Slice, SlicedKernels
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet

LOSSES_KEPT = 2  # whose native pairs are not made again: a solver changes between two at most


class Blocks(Protocol):
    """Rows of X, a block at a time."""

    def sweep(self, blocks: Iterable[int]) -> Iterator[tuple[int, Any]]:
        """Yield the rows of blocks in the given order, each valid until the next."""


class StreamingExecutor(Executor):
    """Calls functions of the parts in their order, while the next rows are read.

    Parameters
    ----------
    blocks : Blocks
        Reads X.
    plan : Plan
        What the parts are.
    pairs : sequence of PairSet
        The pairs of each.
    n_features : int
        Number of columns.
    threads : int
        Number of threads.
    columns : ndarray of int64, optional
        The columns of X that count; all by default.
    """

    def __init__(
        self,
        blocks: Blocks,
        plan: Plan,
        pairs: Sequence[PairSet],
        n_features: int,
        threads: int,
        columns: Integers | None = None,
    ) -> None:
        self._blocks = blocks
        self._plan = plan
        self._pairs = pairs
        self._n_features = n_features
        self._threads = threads
        self._columns = columns
        self._bounds = np.cumsum([0, *(part.n_documents for part in pairs)])
        self._natives: dict[Loss, list[NativeKernels]] = {}

    @property
    def bounds(self) -> Integers:
        """Where the documents of the parts begin."""
        return self._bounds

    def run(
        self,
        task: Task,
        loss: Loss,
        each: Sequence[ByPart | None],
        common: Sequence[Any],
        *,
        tell: Tell | None = None,
        sweep: bool = False,
    ) -> tuple[Any, ...]:
        """Call a task for every part."""
        natives = self._kernels(loss)
        parts: Iterable[tuple[int, PartKernels]]
        parts = self._sweep(natives) if sweep else enumerate(natives)
        handles = []
        for k, kernels in parts:
            own = [None if some is None else some.handles[k][some.item] for some in each]
            kept, told = task(kernels, *own, *common)
            handles.append(kept)
            if tell is not None:
                tell(told)
        return tuple(handles)

    def place(self, values: Sequence[Any]) -> ByPart:
        """Give every part a value."""
        return ByPart(tuple((value,) for value in values))

    def restrict(self, columns: Integers) -> "StreamingExecutor":
        """Return the same parts with some columns of X alone."""
        return StreamingExecutor(
            self._blocks, self._plan, self._pairs, columns.size, self._threads, columns
        )

    def _kernels(self, loss: Loss) -> list[NativeKernels]:
        """Return kernels for all that needs no X."""
        natives = self._natives.pop(loss, None)
        if natives is None:
            nothing = as_native(sp.csr_array((0, self._n_features)))
            natives = [
                NativeKernels(nothing, part, part.native(loss), self._threads)
                for part in self._pairs
            ]
        self._natives[loss] = natives
        while len(self._natives) > LOSSES_KEPT:
            self._natives.pop(next(iter(self._natives)))
        return natives

    def _sweep(self, natives: list[NativeKernels]) -> Iterator[tuple[int, PartKernels]]:
        """Read X once, and queries that are longer than a block as often as they need."""
        for is_long, parts in groupby(range(len(natives)), self._plan.is_long):
            if is_long:
                for k in parts:
                    slices = partial(self._slices, k)
                    yield k, SlicedKernels(natives[k], slices, self._n_features)
            else:
                numbers = {int(self._plan.blocks[k]): k for k in parts}
                for block, X in self._blocks.sweep(numbers):
                    yield numbers[block], natives[numbers[block]].on(self._matrix(X))

    def _slices(self, part: int) -> Iterator[Slice]:
        """Yield the rows of a long query."""
        first, last = self._plan.blocks[part : part + 2].tolist()
        begin = int(self._plan.rows[part])
        for block, X in self._blocks.sweep(range(first, last)):
            rows = self._plan.block_rows[block : block + 2] - begin
            yield Slice(int(rows[0]), int(rows[1]), self._matrix(X))

    def _matrix(self, X: Any) -> NativeMatrix:
        matrix = as_native(X)
        if self._columns is None:
            return matrix
        return matrix.restrict(self._columns, self._threads)
