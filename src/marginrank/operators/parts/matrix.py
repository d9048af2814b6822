"""A feature matrix in parts of whole queries: base class, and a matrix that is read from disk."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np

from marginrank._utils.memory import private_memory, readable
from marginrank._utils.parameters import Mention, ParameterError, Wording
from marginrank._utils.types import Floats, Integers
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.objective.pair_sets import PairCounts, PairSet
from marginrank.objective.protocols import Matrix
from marginrank.operators.native import NativeMatrix, as_native
from marginrank.operators.parts import tasks
from marginrank.operators.parts.design import PartsDesign, stacked
from marginrank.operators.parts.streaming import StreamingExecutor, make_plan
from marginrank.operators.parts.tasks import Executor

SLACK_BYTES = 1 << 26  # memory of threads, small arrays, and freed memory that the allocator keeps
# The rows in the reservoir, a sample in memory, may take RESERVOIR_BYTES, or BYTES_PER_SQUARE ·
# n_features² if that is more, because preconditioners need more documents for more features.
RESERVOIR_SHARE = 0.125  # largest share of the documents in the reservoir
RESERVOIR_BYTES = 1 << 24
BYTES_PER_SQUARE = 256
MOST_RESERVOIR_BYTES = 1 << 28  # upper limit
SEED = 0  # random seed of the reservoir; samples drawn from it have other seeds

OnRead = Callable[[int, int], None]


class Reservoir(NamedTuple):
    """A random sample of documents in memory, with their pairs, to draw smaller samples from."""

    source: PairCounts
    fraction: float  # share of the documents
    matrix: NativeMatrix
    pairs: PairSet


class PartsMatrix(Matrix):
    """A feature matrix X in parts of whole queries; the split depends on the data alone.

    A first pass over X finds the largest absolute value of each feature and draws a random sample
    of the documents, which preconditioners use.
    """

    def __init__(self) -> None:
        self._magnitudes: Floats | None = None
        self._reservoir: Reservoir | None = None

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """Number of bytes that all of X would take in memory."""

    @abstractmethod
    def executor(self, pairs: PairCounts, threads: int) -> Executor:
        """Return an object that calls functions on the parts of X and of a pair set."""

    def design(self, pairs: PairCounts, threads: int) -> PartsDesign:
        return PartsDesign(self, pairs, threads, partial(self.executor, pairs, threads))

    @property
    def largest_sample(self) -> float:
        wanted = max(RESERVOIR_BYTES, BYTES_PER_SQUARE * self.n_features**2)
        most = min(wanted, MOST_RESERVOIR_BYTES)
        return min(RESERVOIR_SHARE, most / max(self.memory_bytes, 1))

    def survey(self, pairs: PairCounts, threads: int) -> int:
        fraction = self.largest_sample
        matrix, sample = self._extract(pairs, fraction, SEED, threads)
        self._reservoir = Reservoir(pairs, fraction, matrix, sample)
        return 1

    def magnitudes(self, threads: int) -> Floats:
        if self._magnitudes is None:
            raise RuntimeError("call survey() before magnitudes()")
        return self._magnitudes

    def restrict(self, columns: Integers, threads: int) -> "RestrictedParts":
        return RestrictedParts(self, columns)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[NativeMatrix, PairSet]:
        """Draw a random sample of the documents; return their rows of X and their pairs, in memory.

        Reads X once if the sample is larger than the one that is already in memory.
        """
        if fraction > self.largest_sample:
            return self._extract(pairs, fraction, seed, threads)
        if self._reservoir is None or self._reservoir.source is not pairs:
            self.survey(pairs, threads)
        assert self._reservoir is not None
        reservoir = self._reservoir
        if fraction == reservoir.fraction:
            return reservoir.matrix, reservoir.pairs
        return reservoir.matrix, reservoir.pairs.sample(fraction / reservoir.fraction, seed)

    def _extract(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[NativeMatrix, PairSet]:
        """Return a random sample of every part, and store column magnitudes; reads X once."""
        executor = self.executor(pairs, threads)
        numbers = executor.place(range(executor.bounds.size - 1))
        found: list[tasks.Survey] = []
        common = [fraction, seed, pairs.n_active_documents]
        executor.run(tasks.survey, None, [numbers], common, report=found.append, sweep=True)
        self._magnitudes = np.max([part.magnitudes for part in found], axis=0)
        bad = np.flatnonzero(~np.isfinite(self._magnitudes))
        if bad.size:
            raise ValueError(f"X[:, {bad[0]}] has NaN or infinity; replace or impute them.")
        drawn = [part for part in found if part.pairs.n_documents] or found[:1]
        sample = type(drawn[0].pairs).join([part.pairs for part in drawn])
        X = stacked([part.X for part in drawn])
        covered = float(sum(part.covered for part in found))
        return as_native(X), sample.standing_for(covered)


class RestrictedParts(PartsMatrix):
    """Selected columns of a feature matrix that is stored in parts."""

    def __init__(self, whole: PartsMatrix, columns: Integers) -> None:
        super().__init__()
        self._whole = whole
        self._columns = columns
        self._executor: tuple[PairCounts, Executor] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self._whole.n_rows, self._columns.size

    @property
    def n_entries(self) -> int:
        # An estimate: all columns are assumed to have the same number of entries.
        return round(self._share * self._whole.n_entries)

    @property
    def memory_bytes(self) -> int:
        return round(self._share * self._whole.memory_bytes)

    @property
    def _share(self) -> float:
        return self._columns.size / max(self._whole.n_features, 1)

    def executor(self, pairs: PairCounts, threads: int) -> Executor:
        if self._executor is None or self._executor[0] is not pairs:
            self._executor = pairs, self._whole.executor(pairs, threads).restrict(self._columns)
        return self._executor[1]

    @property
    def largest_sample(self) -> float:
        return self._whole.largest_sample

    def magnitudes(self, threads: int) -> Floats:
        of_columns: Floats = self._whole.magnitudes(threads)[self._columns]
        return of_columns

    def restrict(self, columns: Integers, threads: int) -> "RestrictedParts":
        return RestrictedParts(self._whole, self._columns[columns])

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[NativeMatrix, PairSet]:
        matrix, sample = self._whole.sample(pairs, fraction, seed, threads)
        return matrix.restrict(self._columns, threads), sample


class FitMemory(NamedTuple):
    """Memory in bytes that a fit needs besides the feature matrix."""

    state: int  # state of the solver, for all documents
    scratch: int  # buffers for sums over the pairs of the longest queries
    features: int  # vectors with one entry per feature, or per pair of features


class MemoryPlan(NamedTuple):
    """Planned memory in bytes of a process that fits to data on disk, by purpose."""

    used: int  # memory of the process before the fit, including labels and weights of the data
    fit: FitMemory
    reservoir: int  # rows of samples
    buffers: int  # blocks of rows while they are read

    @property
    def needed(self) -> int:
        """The smallest `memory_limit` with which the fit can run, in bytes."""
        return self.used + sum(self.fit) + self.reservoir + self.buffers + SLACK_BYTES


class StreamedMatrix(PartsMatrix):
    """A feature matrix in an on-disk store, which is read from disk once per pass.

    Rows are grouped by query; queries begin at the rows `offsets`. The whole process may use
    `memory_limit` bytes. `on_read` is called with the number of rows of each processed block, and
    the bytes read for it.
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
        """The reader of X from disk; its cache gets all memory that the fit does not need."""
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
        sample = round(self.largest_sample * self.memory_bytes)
        return MemoryPlan(
            used=private_memory(),
            fit=self._fit_memory,
            reservoir=2 * sample,  # one copy for each part, one joined copy
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
        """Read X from disk once; yield the index and the rows of each part.

        The rows are valid until the next part is requested.
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
        if self._reader is not None:
            self._reader.close()


def _queries_of(pairs: PairSet, rows: Integers) -> Integers:
    """Return the index of the first query of each part, and the number of all queries.

    Part k begins at rows[k]. Queries are numbered as in `pairs`, which may leave out rows of X.
    """
    first = pairs.documents.offsets[:-1]
    if pairs.documents.rows is not None:
        first = pairs.documents.rows[first]
    return np.append(np.searchsorted(first, rows[:-1]), first.size)


def _too_small(limit: int, planned: MemoryPlan, n_rows: int) -> ParameterError:
    fit = planned.fit
    return ParameterError(
        Mention("memory_limit"),
        f" is {readable(limit)}, but the fit needs {readable(planned.needed)}: "
        f"{readable(planned.used)} already in use, {readable(fit.state)} for {n_rows} documents "
        f"({fit.state // n_rows} bytes each), {readable(fit.scratch)} for the longest query, "
        f"{readable(fit.features)} for vectors of features, {readable(planned.reservoir)} for "
        f"samples, {readable(planned.buffers)} for read buffers, {readable(SLACK_BYTES)} for "
        "threads and small arrays. Increase it, use another solver, or fit on several machines "
        "with ",
        Wording("marginrank.dask", "--dask"),
        ".",
    )
