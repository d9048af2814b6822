"""Computation on a feature matrix on disk, part by part, while the next part is read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.data.queries import Queries
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.objective.gram import Rows
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.losses import Loss
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.protocols import Design, GroupedLoss, PairLoss, QueryLosses, Scores, State
from marginrank.operators.native import NativeDesign, NativeLoss, NativeMatrix, as_native
from marginrank.operators.parts.design import OrderedSum, stacked
from marginrank.operators.parts.tasks import ByPart, Executor, PartKernels, Report, Task

PART_BYTES = 1 << 25  # memory of one part
LOSSES_KEPT = 2  # losses whose C++ pairs are cached: a solver alternates between two at most
COLUMNS_AT_ONCE = 32  # Hessian columns per pass: more take more memory, fewer take more passes


@dataclass(frozen=True)
class Plan:
    """The division of the rows of X on disk into parts of whole queries, and into blocks to read.

    A part is one block, unless it is a single query larger than a block. The division depends only
    on the queries and the size of their rows.
    """

    queries: Integers  # part k has the queries queries[k] to queries[k + 1] − 1
    rows: Integers  # part k has the rows rows[k] to rows[k + 1] − 1
    blocks: Integers  # part k has the blocks blocks[k] to blocks[k + 1] − 1
    block_rows: Integers  # block b has the rows block_rows[b] to block_rows[b + 1] − 1

    @property
    def n_parts(self) -> int:
        return self.rows.size - 1

    def is_long(self, part: int) -> bool:
        """Whether part `part` is a single query that is too long to be read as one block."""
        return bool(self.blocks[part + 1] - self.blocks[part] > 1)


def make_plan(offsets: Integers, memory_before: Callable[[Integers], Integers]) -> Plan:
    """Return a division of the rows of X on disk into parts of whole queries of about PART_BYTES.

    Query q has the rows offsets[q] to offsets[q + 1] − 1. `memory_before` maps row indices to the
    bytes that all earlier rows take.
    """
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
    begin, end = memory_before(np.array([first, last]))
    n_blocks = max(-(-int(end - begin) // PART_BYTES), 1)
    if n_blocks == 1:
        return [last]
    before = memory_before(np.arange(first, last + 1))
    wanted = begin + (end - begin) * np.arange(1, n_blocks) // n_blocks
    cuts = first + np.searchsorted(before, wanted)
    return [*np.unique(np.clip(cuts, first + 1, last - 1)).tolist(), last]


class StreamingExecutor(Executor):
    """Calls functions on the parts of a feature matrix on disk, while the next part is read.

    `blocks` reads X from disk. `pairs` has one pair set per part. `columns` are the columns of X in
    use, by default all.
    """

    def __init__(
        self,
        blocks: FeatureReader,
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
        self._losses: dict[Loss, list[NativeLoss]] = {}

    @property
    def bounds(self) -> Integers:
        return self._bounds

    def run(
        self,
        task: Task,
        loss: Loss | None,
        each: Sequence[ByPart | None],
        common: Sequence[Any],
        *,
        report: Report | None = None,
        sweep: bool = False,
    ) -> tuple[Any, ...]:
        losses = None if loss is None else self._losses_on_parts(loss)
        designs: Iterable[tuple[int, Design]]
        designs = self._sweep() if sweep else enumerate(self._without_rows)
        handles = []
        for k, design in designs:
            own = [None if some is None else some.handles[k][some.item] for some in each]
            part = PartKernels(design, None if losses is None else losses[k])
            kept, reported = task(part, *own, *common)
            handles.append(kept)
            if report is not None:
                report(reported)
        return tuple(handles)

    def place(self, values: Sequence[Any]) -> ByPart:
        return ByPart(tuple((value,) for value in values))

    def restrict(self, columns: Integers) -> "StreamingExecutor":
        return StreamingExecutor(
            self._blocks, self._plan, self._pairs, columns.size, self._threads, columns
        )

    @cached_property
    def _without_rows(self) -> list[NativeDesign]:
        """One design per part with an empty X, for functions that do not read X."""
        nothing = as_native(sp.csr_array((0, self._n_features)))
        return [NativeDesign(nothing, part, self._threads) for part in self._pairs]

    def _losses_on_parts(self, loss: Loss) -> list[NativeLoss]:
        losses = self._losses.pop(loss, None)
        if losses is None:
            losses = [design.pair_loss(loss) for design in self._without_rows]
        self._losses[loss] = losses
        while len(self._losses) > LOSSES_KEPT:
            self._losses.pop(next(iter(self._losses)))
        return losses

    def _sweep(self) -> Iterator[tuple[int, Design]]:
        """Read X from disk once; yield the index and the design (documents and rows) of each part.

        The design of a query longer than a block reads its own rows, block by block.
        """
        designs = self._without_rows
        for is_long, parts in groupby(range(len(designs)), self._plan.is_long):
            if is_long:
                for k in parts:
                    yield k, SlicedDesign(designs[k], partial(self._slices, k))
            else:
                numbers = {int(self._plan.blocks[k]): k for k in parts}
                for block, X in self._blocks.sweep(numbers):
                    yield numbers[block], designs[numbers[block]].on(self._matrix(X))

    def _slices(self, part: int) -> Iterator["Slice"]:
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


class Slice(NamedTuple):
    """Rows `first` to `last` − 1 of a query that is too long to be read from disk at once."""

    first: int
    last: int
    matrix: NativeMatrix


class SlicedDesign(Design):
    """Products with X for one query that is too long to be read from disk at once.

    Each product reads the rows slice by slice: one pass over the rows computes the scores, another
    the sums over documents, because the pairs of a query depend on all its scores. `design` has the
    same documents without X; each call of `slices` reads the rows once.
    """

    pairs: PairSet

    def __init__(self, design: NativeDesign, slices: Callable[[], Iterator[Slice]]) -> None:
        super().__init__(design.matrix, design.pairs, design.threads)
        self.space = design.space
        self._slices = slices

    def pair_loss(self, loss: Loss) -> NativeLoss:
        return NativeLoss(self.pairs.native(loss), self.space, self.threads)

    def dot(self, w: Floats) -> Scores:
        return self._concatenated(lambda design: design.dot(w))

    def column(self, j: int) -> Scores:
        return self._concatenated(lambda design: design.column(j))

    def _concatenated(self, of_slice: Callable[[NativeDesign], Scores]) -> Scores:
        return Scores(np.concatenate([cast(Floats, of_slice(d)) for _, d in self._pass()]))

    def transpose_dot(self, z: Scores) -> Floats:
        total, values = OrderedSum(), cast(Floats, z)
        for documents, design in self._pass():
            total.add(design.transpose_dot(Scores(values[documents])))
        return total.total

    def by_group(self, by_query: QueryLosses, z: Scores, n_groups: int) -> GroupedLoss:
        losses = cast(Floats, by_query)[:, 0]
        return GroupedLoss(losses, self.transpose_dot(z)[None, :][: losses.size])

    def query_squares(self, by_query: QueryLosses) -> Floats:
        size = np.sum(cast(Floats, by_query)[:, 2])  # 0 if the query has no pairs
        squares: Floats = (size * self.magnitudes()) ** 2
        return squares

    def hessian(self, loss: PairLoss, state: State) -> Floats:
        """Return the Hessian of the loss; reads X twice per COLUMNS_AT_ONCE columns of X."""
        return np.concatenate([self._strip(loss, state, c) for c in self._strips()], axis=1)

    def hess_diag(self, loss: PairLoss, state: State) -> Floats:
        parts = [np.diag(self._strip(loss, state, some)[some]) for some in self._strips()]
        return np.concatenate(parts)

    def _strips(self) -> Iterator[Integers]:
        n_features = self.matrix.n_features
        for first in range(0, n_features, COLUMNS_AT_ONCE):
            yield np.arange(first, min(first + COLUMNS_AT_ONCE, n_features))

    def _strip(self, loss: PairLoss, state: State, columns: Integers) -> Floats:
        images = np.concatenate(
            [
                np.stack([cast(Floats, design.column(j)) for j in columns.tolist()], axis=1)
                for _, design in self._pass()
            ]
        )
        curved = np.empty_like(images.T)
        for c, image in enumerate(np.ascontiguousarray(images.T)):
            curved[c] = loss.hess_vec(state, Scores(image))
        total = OrderedSum()
        for documents, design in self._pass():
            some = np.ascontiguousarray(curved[:, documents])
            total.add(np.stack([design.transpose_dot(Scores(z)) for z in some], axis=1))
        return total.total

    def magnitudes(self) -> Floats:
        largest: Floats = np.max([design.magnitudes() for _, design in self._pass()], axis=0)
        return largest

    def rows(self, rows: Integers) -> Rows:
        taken = []
        for piece in self._slices():
            first, last = np.searchsorted(rows, [piece.first, piece.last])
            # Copy: the next slice overwrites this one.
            taken.append(piece.matrix.rows(rows[first:last] - piece.first).copy())
        return Rows.of(stacked(taken))

    def _pass(self) -> Iterator[tuple[slice, NativeDesign]]:
        """Read the rows of a long query; yield the range of documents and the design of a slice."""
        documents = self.pairs.documents
        for piece in self._slices():
            rows = None
            some = slice(piece.first, piece.last)
            if documents.rows is not None:
                some = slice(*np.searchsorted(documents.rows, [piece.first, piece.last]).tolist())
                rows = documents.rows[some] - piece.first
            n_rows = piece.last - piece.first
            pairs = _no_pairs(some.stop - some.start, n_rows, rows, self.threads)
            yield some, piece.matrix.design(pairs, self.threads)


def _no_pairs(n_documents: int, n_rows: int, rows: Integers | None, threads: int) -> LevelPairs:
    """Return a pair set without pairs: one query whose documents all have the same label."""
    ends = np.array([0, n_documents], dtype=np.int64)
    return LevelPairs(
        n_rows=n_rows,
        query_weight=np.ones(1),
        margins=None,
        threads=threads,
        queries=Queries.from_labels(np.zeros(n_documents), ends, rows, threads),
    )
