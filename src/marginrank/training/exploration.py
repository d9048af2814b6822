"""What to choose from, and the order in which it is tried: coarse grids of C, then finer ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from marginrank._base.cached import cached_property
from marginrank._base.parameters import check_integer
from marginrank._base.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.metrics._options import exceeds
from marginrank.training.linear import Parameters
from marginrank.training.linear_paths import default_Cs
from marginrank.training.path import check_grid
from marginrank.training.selection import Candidate, Grid, Search, combinations

SEARCH_TOL = 1e-5  # of the fits that are compared; at 1e-4, metrics of a few queries still move
POINTS = 21  # of a grid of C from the data
COARSE_POINTS = 11  # the same where finer grids follow
FINEST = 0.25  # octaves between neighbours: closer ones differ by less than folds do


@dataclass(frozen=True)
class Space:
    """What to choose from: all combinations of some values, each on a grid of C.

    Attributes
    ----------
    base : Parameters
        What all candidates have; `tol` is that of the last fit.
    axes : mapping
        Names of parameters other than C, and the values to try.
    Cs : sequence of float, optional
        The values of C; by default a grid from the data for each combination.
    n_points : int, optional
        Length of the default grid; by default 21, or 11 where finer grids follow. They do with a
        limit of time, but not where the values of C are given.
    """

    base: Parameters
    axes: Mapping[str, Sequence[Any]]
    Cs: Sequence[float] | None = None
    n_points: int | None = None

    def check(self) -> None:
        """Refuse wrong values, and combinations that no solver can do."""
        if self.Cs is not None:
            check_grid("C", self.Cs)
        if self.n_points is not None:
            check_integer("n_points", self.n_points, at_least=1)
        combinations(self.base, self.axes)

    @property
    def varied(self) -> list[str]:
        """Names of the parameters beside C of which there are several values."""
        return [name for name, values in self.axes.items() if len(values) > 1]

    @cached_property
    def combinations(self) -> list[Parameters]:
        """The combinations, with the precision that it takes to compare them."""
        base = replace(self.base, tol=max(self.base.tol, SEARCH_TOL))
        return combinations(base, self.axes)

    def points(self, *, coarse: bool) -> int:
        """Return the length of default grids."""
        if self.n_points is not None:
            return self.n_points
        return COARSE_POINTS if coarse else POINTS

    def n_candidates(self, n_points: int) -> int:
        """Return how many candidates there are, on default grids of a length."""
        return len(self.combinations) * (n_points if self.Cs is None else len(self.Cs))

    def grids(self, data: RankingData, n_points: int, rows: Integers | None) -> Iterator[Grid]:
        """Yield a grid for each combination; one that the rows tell, if no C are given."""
        for number, parameters in enumerate(self.combinations):
            if self.Cs is None:
                Cs = default_Cs(data, parameters, n_points, rows)
            else:
                Cs = check_grid("C", self.Cs)
            yield Grid(number, parameters, Cs)


class Count:
    """Models of candidates that are fitted, those of them that stopped early, and all of them.

    With a limit of time, nobody knows how many there will be.
    """

    def __init__(self, planned: int | None) -> None:
        self.done = 0
        self.unfinished = 0
        self.planned = planned

    def add(self, *, is_close: bool) -> None:
        """Count a model that is fitted."""
        self.done += 1
        self.unfinished += not is_close


class Exploration:
    """A search that keeps to a time, and knows the best candidate so far.

    Parameters
    ----------
    search : Search
        What tries the candidates.
    is_time_up : callable or None
        Tells whether to stop; None if there is no limit.
    refines : bool
        Whether finer grids follow.

    Attributes
    ----------
    best : Candidate or None
        The complete candidate that would be chosen now.
    mean : float
        Its mean over the folds that have a value.
    has_complete : bool
        Whether there is a complete candidate.
    is_out_of_time : bool
        Whether the time ended it.
    """

    def __init__(
        self, search: Search, is_time_up: Callable[[], bool] | None, *, refines: bool
    ) -> None:
        self.search = search
        self.best: Candidate | None = None
        self.mean = -np.inf
        self.has_complete = False
        self.is_out_of_time = False
        self._is_time_up = is_time_up
        self._refines = refines

    def explore(self, grids: Iterator[Grid], count: Count) -> Iterator[Candidate]:
        """Try grids, then finer ones if there are to be any; yield after each model."""
        finer = self._finer_grids() if self._refines else ()
        for grid in chain(grids, finer):
            for trial in self.search.try_grid(grid):
                candidate = self.search.candidates[trial.candidate]
                count.add(is_close=trial.is_close)
                if candidate.is_complete:
                    self._note(candidate)
                yield candidate
                if self.has_complete and self._is_time_up is not None and self._is_time_up():
                    self.is_out_of_time = True
                    return

    def _note(self, candidate: Candidate) -> None:
        """Take notice of a complete candidate."""
        self.has_complete = True
        scores = candidate.scores[~np.isnan(candidate.scores)]
        if not scores.size:
            return
        mean = float(scores.mean())
        is_equal = not exceeds(self.mean, mean)
        if (
            self.best is None
            or exceeds(mean, self.mean)
            or (is_equal and candidate.place < self.best.place)
        ):
            self.best, self.mean = candidate, max(mean, self.mean)

    def _finer_grids(self) -> Iterator[Grid]:
        """Yield grids around the best C, each twice as fine, until that makes no difference."""
        while self.best is not None:
            best = self.best
            tried = [
                candidate.parameters.C
                for candidate in self.search.candidates
                if candidate.combination == best.combination
            ]
            between = midpoints(np.sort(tried), best.parameters.C)
            if not between.size:
                return
            yield Grid(best.combination, best.parameters, between)


def midpoints(Cs: Floats, C: float) -> Floats:
    """Return the middles, on a logarithmic scale, between one C of a grid and its neighbours.

    There is none where neighbours are as close as they need be.
    """
    octaves = np.log2(Cs)
    k = int(np.searchsorted(Cs, C))
    around = octaves[max(k - 1, 0) : k + 2]
    wide = np.diff(around) > FINEST * (1.0 + 1e-9)
    return 2.0 ** ((around[1:] + around[:-1]) / 2)[wide]
