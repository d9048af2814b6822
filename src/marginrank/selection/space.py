"""Space of a search: combinations of parameter values, each with a grid of values such as C."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import Mention, ParameterError, check_integer, check_number
from marginrank._utils.threads import cached_property
from marginrank._utils.types import Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.selection.learner import PathLearner
from marginrank.selection.linear_paths import LINEAR

FARTHER = 10.0  # ratio of neighbors when a grid of one value is extended
FINEST = 0.25  # smallest distance of neighbors in octaves: closer values make no difference


class PathGrid(NamedTuple):
    """One combination of parameter values to try, and the values to try of the grid's parameter."""

    combination: int
    parameters: Any
    values: Floats


@dataclass(frozen=True)
class SearchSpace:
    """Parameter settings to try: combinations of `axes`, each with a grid of one more parameter.

    The learner determines the parameter of the grid, such as C.
    """

    base: Any  # values of the parameters not searched; `tol` is for the final fit only
    axes: Mapping[str, Sequence[Any]]  # values to try, by name
    # The grid. By default one from the data for each combination, because the meaning of C depends
    # on normalization, scale and loss.
    values: Sequence[float] | Floats | Integers | None = None
    # Length of the default grid. By default the learner's, or about half of it with a time limit,
    # because finer grids follow.
    n_points: int | None = None
    learner: PathLearner = LINEAR
    search_tol: float | None = None  # tol of candidates; default: base.tol or the learner's

    def __post_init__(self) -> None:
        """Raise ValueError if a value is wrong, or if no solver supports a combination."""
        if self.values is not None:
            check_grid(self.learner.parameter, self.values)
        if self.n_points is not None:
            check_integer("n_points", self.n_points, at_least=1)
        _ = self.combinations  # creating parameters validates them

    @property
    def varied(self) -> list[str]:
        """Names of the parameters with several values, without the parameter of the grid."""
        return [name for name, values in self.axes.items() if len(values) > 1]

    @cached_property
    def combinations(self) -> list[Any]:
        """The parameters of each combination; the last parameter in `axes` varies fastest."""
        tol = self.search_tol
        if tol is None:
            tol = max(self.base.tol, self.learner.search_tol)
        base = replace(self.base, tol=tol)
        return [
            replace(base, **dict(zip(self.axes, values, strict=True)))
            for values in product(*self.axes.values())
        ]

    def points(self, *, coarse: bool) -> int:
        """Return the number of values of a default grid; with `coarse`, about half of them."""
        if self.n_points is not None:
            return self.n_points
        return self.learner.n_points // 2 + 1 if coarse else self.learner.n_points

    def n_candidates(self, *, coarse: bool) -> int:
        """Return the number of parameter settings that a search tries before it refines grids."""
        n_points = self.points(coarse=coarse) if self.values is None else len(self.values)
        if self.room is not None:
            return len(self.combinations) - 1 + n_points
        return len(self.combinations) * n_points

    @property
    def room(self) -> tuple[float, float] | None:
        """Factors by which a default grid may be extended at both ends; None if it is fixed."""
        return self.learner.room if self.values is None else None

    def grids(
        self, data: RankingData, rows: Integers | None, *, coarse: bool
    ) -> Iterator[PathGrid]:
        """Yield one grid per combination of parameters; default grids are computed from `rows`."""
        for number, parameters in enumerate(self.combinations):
            if self.values is None:
                n_points = self.points(coarse=coarse)
                values = self.learner.default_grid(data, parameters, n_points, rows)
            else:
                values = check_grid(self.learner.parameter, self.values)
            yield PathGrid(number, parameters, values)


def check_grid(name: str, values: ArrayLike) -> Floats:
    """Return a grid of positive numbers in ascending order; raise an error if it is invalid."""
    try:
        grid = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        grid = np.empty(0)
    if grid.ndim != 1 or not grid.size:  # the user may mean a number of grid values
        raise ParameterError(Mention(name), " must be a list of numbers with at least one entry.")
    for value in grid:
        check_number(name, float(value))
    return np.unique(grid)


def beyond(
    values: Floats, value: float, ends: tuple[float, float], room: tuple[float, float]
) -> float | None:
    """Return the next grid value beyond the best `value`, or None if the best is not at an end.

    Also return None if the next value would be below ends[0] · room[0] or above ends[1] · room[1],
    where `ends` are the ends of the grid before it was extended.
    """
    lowest, highest = ends[0] * room[0], ends[1] * room[1]
    step = values[1] / values[0] if values.size > 1 else FARTHER
    rounding = 1.0 + 1e-9
    if values[-1] == value and value * step <= highest * rounding:
        return without_noise(value * step)
    if values[0] == value and value / step >= lowest / rounding:
        return without_noise(value / step)
    return None


def without_noise(value: float) -> float:
    """Return a value rounded to 12 digits, because extending a grid accumulates rounding errors."""
    return float(f"{value:.12g}")


def midpoints(values: Floats, value: float) -> Floats:
    """Return the geometric means of a grid value and its neighbors, to refine the grid.

    The mean with a neighbor is left out if the neighbor is already close.
    """
    octaves = np.log2(values)
    k = int(np.searchsorted(values, value))
    around = octaves[max(k - 1, 0) : k + 2]
    wide = np.diff(around) > FINEST * (1.0 + 1e-9)
    return 2.0 ** ((around[1:] + around[:-1]) / 2)[wide]
