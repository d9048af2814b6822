"""X in parts of whole queries: any executor's."""

from abc import abstractmethod
from functools import partial
from typing import NamedTuple

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.objective.pair_sets import PairCounts, PairSet
from marginrank.objective.protocols import Matrix
from marginrank.operators.native import NativeMatrix, as_native
from marginrank.operators.parts import tasks
from marginrank.operators.parts.design import PartsDesign, stacked
from marginrank.operators.parts.executor import Executor

RESERVOIR_SHARE = 0.125  # of the documents that are kept in memory for samples
RESERVOIR_BYTES = 1 << 24  # which are no more than that, unless a preconditioner needs more
BYTES_PER_SQUARE = 256  # of the number of features, for a preconditioner
MOST_RESERVOIR_BYTES = 1 << 28  # whatever the number of features
SEED = 0  # of the reservoir; samples are drawn from it with seeds of their own


class Reservoir(NamedTuple):
    """A sample in memory, of which smaller samples are drawn: of `fraction` of the documents."""

    source: PairCounts
    fraction: float
    matrix: NativeMatrix
    pairs: PairSet


class PartsMatrix(Matrix):
    """X in parts, which are fixed by the data alone.

    One sweep, the survey, measures how large the features are and fills the reservoir: rows of some
    documents, in memory, from which samples are drawn.
    """

    def __init__(self) -> None:
        self._magnitudes: Floats | None = None
        self._reservoir: Reservoir | None = None

    @property
    @abstractmethod
    def memory_bytes(self) -> int:
        """What all of X would take in memory."""

    @abstractmethod
    def executor(self, pairs: PairCounts, threads: int) -> Executor:
        """Return the executor of the parts of a set of pairs."""

    def design(self, pairs: PairCounts, threads: int) -> PartsDesign:
        return PartsDesign(self, pairs, threads, partial(self.executor, pairs, threads))

    @property
    def largest_sample(self) -> float:
        wanted = max(RESERVOIR_BYTES, BYTES_PER_SQUARE * self.n_features**2)
        most = min(wanted, MOST_RESERVOIR_BYTES)
        return min(RESERVOIR_SHARE, most / max(self.memory_bytes, 1))

    def survey(self, pairs: PairCounts, threads: int) -> int:
        """Read X once: magnitudes, and the rows of the reservoir."""
        fraction = self.largest_sample
        matrix, sample = self._extract(pairs, fraction, SEED, threads)
        self._reservoir = Reservoir(pairs, fraction, matrix, sample)
        return 1

    def magnitudes(self, threads: int) -> Floats:
        """Return the largest absolute value of each feature; a sweep, before the survey."""
        if self._magnitudes is None:
            raise RuntimeError("the parts are surveyed before they are computed with")
        return self._magnitudes

    def restrict(self, columns: Integers, threads: int) -> "RestrictedParts":
        return RestrictedParts(self, columns)

    def sample(
        self, pairs: PairCounts, fraction: float, seed: int, threads: int
    ) -> tuple[NativeMatrix, PairSet]:
        """Return a sample of the pairs with its rows of X, in memory; a sweep if it is large."""
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
        """Draw a sample from every part; a sweep."""
        executor = self.executor(pairs, threads)
        numbers = executor.place(range(executor.bounds.size - 1))
        found: list[tasks.Survey] = []
        executor.run(
            tasks.survey,
            None,
            [numbers],
            [fraction, seed, pairs.n_active_documents],
            report=found.append,
            sweep=True,
        )
        self._magnitudes = np.max([part.magnitudes for part in found], axis=0)
        _check_finite(self._magnitudes)
        drawn = [part for part in found if part.pairs.n_documents] or found[:1]
        sample = type(drawn[0].pairs).join([part.pairs for part in drawn])
        X = stacked([part.X for part in drawn])
        covered = float(sum(part.covered for part in found))
        return as_native(X), sample.standing_for(covered)


def _check_finite(magnitudes: Floats) -> None:
    bad = np.flatnonzero(~np.isfinite(magnitudes))
    if bad.size:
        raise ValueError(f"X[:, {bad[0]}] has NaN or infinity; replace or impute such values.")


class RestrictedParts(PartsMatrix):
    """Some columns of X in parts."""

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
        """Number of stored entries, if all columns have as many."""
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
