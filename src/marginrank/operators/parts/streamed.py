"""X of a store, read from disk again and again, within a limit on memory."""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np

from marginrank._utils.memory import private_memory, readable
from marginrank._utils.parameters import Mention, ParameterError, Wording
from marginrank._utils.types import Integers
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.objective.pair_sets import PairCounts, PairSet
from marginrank.operators.parts.design import stacked
from marginrank.operators.parts.matrix import PartsMatrix
from marginrank.operators.parts.streaming import StreamingExecutor, make_plan

SLACK_BYTES = 1 << 26  # for threads, small arrays, and what an allocator does not give back at once

OnRead = Callable[[int, int], None]


class FitMemory(NamedTuple):
    """What a fit needs beside X, in bytes.

    Attributes
    ----------
    state : int
        For what a solver keeps of each document.
    scratch : int
        For the longest queries, while their pairs are added up.
    features : int
        For vectors with one entry per feature, or per pair of features.
    """

    state: int
    scratch: int
    features: int


class MemoryPlan(NamedTuple):
    """What memory goes where, in bytes.

    Attributes
    ----------
    used : int
        By the process, labels and weights of the data included, before the fit.
    fit : FitMemory
        By the fit itself.
    reservoir : int
        For the rows of samples.
    buffers : int
        For blocks that are read.
    """

    used: int
    fit: FitMemory
    reservoir: int
    buffers: int

    @property
    def needed(self) -> int:
        """What a fit cannot do without."""
        return self.used + sum(self.fit) + self.reservoir + self.buffers + SLACK_BYTES


class StreamedMatrix(PartsMatrix):
    """X of a store whose rows are grouped by query.

    Parameters
    ----------
    features : StoredFeatures
        X.
    offsets : ndarray of int64
        The rows where queries begin, and the number of rows.
    memory_limit : int
        Bytes of memory that the process may have, whatever else is in it.
    fit_memory : FitMemory
        What the fit needs beside X.
    threads : int
        Number of threads.
    on_read : callable, optional
        Called with the rows of each block that was computed with, and the bytes read for it.
    """

    def __init__(
        self,
        features: StoredFeatures,
        offsets: Integers,
        *,
        memory_limit: int,
        fit_memory: FitMemory,
        threads: int,
        on_read: OnRead | None = None,
    ) -> None:
        super().__init__()
        self._features = features
        self._limit = memory_limit
        self._fit_memory = fit_memory
        self._threads = threads
        self._on_read = on_read
        self.plan = make_plan(offsets, features.memory_before)
        self._reader: FeatureReader | None = None
        self._executor: tuple[PairCounts, StreamingExecutor] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self._features.shape

    @property
    def n_entries(self) -> int:
        return self._features.n_entries

    @property
    def memory_bytes(self) -> int:
        return self._features.memory_bytes

    @property
    def reader(self) -> FeatureReader:
        """What reads X; it takes what memory is left when it is first asked for."""
        if self._reader is None:
            planned = self.memory_plan()
            if planned.needed > self._limit:
                raise _too_small(self._limit, planned, self.n_rows)
            self._reader = FeatureReader(
                self._features,
                self.plan.block_rows,
                pinned_bytes=self._limit - planned.needed,
                threads=self._threads,
                on_read=self._on_read,
            )
        return self._reader

    def memory_plan(self) -> MemoryPlan:
        """Return what memory a fit will need."""
        sample = round(self.largest_sample * self.memory_bytes)
        return MemoryPlan(
            used=private_memory(),
            fit=self._fit_memory,
            reservoir=2 * sample,  # in pieces, and put together
            buffers=FeatureReader.memory_needed(self._features, self.plan.block_rows),
        )

    def executor(self, pairs: PairCounts, threads: int) -> StreamingExecutor:
        if self._executor is None or self._executor[0] is not pairs:
            in_memory = cast(PairSet, pairs)
            parts = in_memory.split(_queries_of(in_memory, self.plan.rows), self.plan.rows)
            executor = StreamingExecutor(self.reader, self.plan, parts, self.n_features, threads)
            self._executor = pairs, executor
        return self._executor[1]

    def parts(self) -> Iterator[tuple[int, Any]]:
        """Yield each part with its rows, valid until the next; a sweep.

        The blocks of a query that has several are put together.
        """
        blocks = self.plan.blocks
        for is_long, parts in groupby(range(self.plan.n_parts), self.plan.is_long):
            if is_long:
                for k in parts:
                    pieces = self.reader.sweep(range(int(blocks[k]), int(blocks[k + 1])))
                    yield k, stacked([X.copy() for _, X in pieces])
            else:
                numbers = {int(blocks[k]): k for k in parts}
                for block, X in self.reader.sweep(numbers):
                    yield numbers[block], X

    def close(self) -> None:
        """Give back what memory and files the reader has."""
        if self._reader is not None:
            self._reader.close()


def _queries_of(pairs: PairSet, rows: Integers) -> Integers:
    """Return which queries begin the parts; some rows may belong to no document of a pair."""
    first = pairs.documents.offsets[:-1]
    if pairs.documents.rows is not None:
        first = pairs.documents.rows[first]
    return np.append(np.searchsorted(first, rows[:-1]), first.size)


def _too_small(limit: int, planned: MemoryPlan, n_rows: int) -> ParameterError:
    fit = planned.fit
    return ParameterError(
        Mention("memory_limit"),
        f" is {readable(limit)}, and a fit needs {readable(planned.needed)}: "
        f"{readable(planned.used)} are in use, {readable(fit.state)} are for "
        f"{fit.state // n_rows} bytes of each of {n_rows} documents, {readable(fit.scratch)} for "
        f"the longest query, {readable(fit.features)} for vectors of features, "
        f"{readable(planned.reservoir)} for samples and {readable(planned.buffers)} for blocks "
        "that are read; raise it, take another solver, or fit on several machines with ",
        Wording("marginrank.dask", "--dask"),
        ".",
    )
