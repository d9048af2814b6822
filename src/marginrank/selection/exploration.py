"""What to choose from, and the order in which it is tried: coarse grids of C, then finer ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from marginrank._utils.parameters import check_integer
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import RidgeParameters
from marginrank.metrics.options import exceeds
from marginrank.selection.learners import LINES, Learner
from marginrank.selection.path import check_grid
from marginrank.selection.selection import Candidate, Grid, Search, combinations

FARTHER = 10.0  # from a C that is alone on its grid to the next
FINEST = 0.25  # octaves between neighbours: closer ones differ by less than folds do


@dataclass(frozen=True)
class Space:
    """What to choose from: all combinations of some values, each on a grid of C.

    Attributes
    ----------
    base : RidgeParameters
        What all candidates have; `tol` is that of the last fit.
    axes : mapping
        Names of parameters other than C, and the values to try.
    Cs : sequence of float, optional
        The values of C; by default a grid from the data for each combination.
    n_points : int, optional
        Length of the default grid; by default that of the learner, or about half of it where finer
        grids follow. They do with a limit of time, but not where the values of C are given.
    learner : Learner
        What learns.
    """

    base: RidgeParameters
    axes: Mapping[str, Sequence[Any]]
    Cs: Sequence[float] | None = None
    n_points: int | None = None
    learner: Learner = LINES

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
    def combinations(self) -> list[RidgeParameters]:
        """The combinations, with the precision that it takes to compare them."""
        base = replace(self.base, tol=max(self.base.tol, self.learner.search_tol))
        return combinations(base, self.axes)

    def points(self, *, coarse: bool) -> int:
        """Return the length of default grids."""
        if self.n_points is not None:
            return self.n_points
        return self.learner.n_points // 2 + 1 if coarse else self.learner.n_points

    def n_candidates(self, n_points: int) -> int:
        """Return how many candidates there are, on default grids of a length."""
        if self.room is not None:
            return len(self.combinations) - 1 + n_points
        return len(self.combinations) * (n_points if self.Cs is None else len(self.Cs))

    @property
    def room(self) -> tuple[float, float] | None:
        """What is left for grids to go on; none for those that are given."""
        return self.learner.room if self.Cs is None else None

    def grids(self, data: RankingData, n_points: int, rows: Integers | None) -> Iterator[Grid]:
        """Yield a grid for each combination; one that the rows tell, if no C are given."""
        for number, parameters in enumerate(self.combinations):
            if self.Cs is None:
                Cs = self.learner.default_Cs(data, parameters, n_points, rows)
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

    def plan(self, n_models: int) -> None:
        """Expect some more."""
        if self.planned is not None:
            self.planned += n_models


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
    room : tuple of float, optional
        By how much grids may go on at either end, where that is the best: factors of C. Then the
        first combination alone has all of its grid, the others the C that is the best so far.

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
        self,
        search: Search,
        is_time_up: Callable[[], bool] | None,
        *,
        refines: bool,
        room: tuple[float, float] | None = None,
    ) -> None:
        self.search = search
        self.best: Candidate | None = None
        self.mean = -np.inf
        self.has_complete = False
        self.is_out_of_time = False
        self._is_time_up = is_time_up
        self._refines = refines
        self._room = room

    def explore(self, grids: Iterator[Grid], count: Count) -> Iterator[Candidate]:
        """Try grids, then finer ones if there are to be any; yield after each model."""
        finer = self._finer_grids() if self._refines else ()
        narrow = grids if self._room is None else self._one_at_a_time(grids, self._room, count)
        for grid in chain(narrow, finer):
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

    def _one_at_a_time(
        self, grids: Iterator[Grid], room: tuple[float, float], count: Count
    ) -> Iterator[Grid]:
        """Yield the first grid, of others one C; each goes on while its end is the best of all."""
        ends: dict[int, tuple[float, float]] = {}
        for grid in grids:
            ends[grid.combination] = float(grid.Cs[0]), float(grid.Cs[-1])
            if self.best is not None:
                # A C may mean something else here: what counts is its place on the grid.
                place = self.best.parameters.C / ends[self.best.combination][0]
                grid = grid._replace(
                    Cs=np.array([_without_noise(ends[grid.combination][0] * place)])
                )
            yield grid
            while self.best is not None:
                best = self.best
                C = beyond(self._tried(best), best.parameters.C, ends[best.combination], room)
                if C is None:
                    break
                count.plan(best.tried.size)
                yield Grid(best.combination, best.parameters, np.array([C]))

    def _tried(self, candidate: Candidate) -> Floats:
        """Return the C of all candidates that differ from one in nothing else, ascending."""
        own = candidate.combination
        alike = [one for one in self.search.candidates if one.combination == own]
        return np.sort([one.parameters.C for one in alike])

    def _finer_grids(self) -> Iterator[Grid]:
        """Yield grids around the best C, each twice as fine, until that makes no difference."""
        while self.best is not None:
            best = self.best
            between = midpoints(self._tried(best), best.parameters.C)
            if not between.size:
                return
            yield Grid(best.combination, best.parameters, between)


def beyond(
    Cs: Floats, C: float, ends: tuple[float, float], room: tuple[float, float]
) -> float | None:
    """Return the next C beyond the end of a grid, if one C is there; None if there is no room."""
    lowest, highest = ends[0] * room[0], ends[1] * room[1]
    step = Cs[1] / Cs[0] if Cs.size > 1 else FARTHER
    rounding = 1.0 + 1e-9
    if Cs[-1] == C and C * step <= highest * rounding:
        return _without_noise(C * step)
    if Cs[0] == C and C / step >= lowest / rounding:
        return _without_noise(C / step)
    return None


def _without_noise(C: float) -> float:
    """Return a C without its last digits, which are those of rounding where a grid goes on."""
    return float(f"{C:.12g}")


def midpoints(Cs: Floats, C: float) -> Floats:
    """Return the middles, on a logarithmic scale, between one C of a grid and its neighbours.

    There is none where neighbours are as close as they need be.
    """
    octaves = np.log2(Cs)
    k = int(np.searchsorted(Cs, C))
    around = octaves[max(k - 1, 0) : k + 2]
    wide = np.diff(around) > FINEST * (1.0 + 1e-9)
    return 2.0 ** ((around[1:] + around[:-1]) / 2)[wide]
