"""The choice among models of different parameters by how they rank what they have not seen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from marginrank._base.parameters import ParameterError, check_choice, given
from marginrank._base.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.metrics._options import exceeds
from marginrank.metrics.comparison import Comparison
from marginrank.training.folds import over_folds
from marginrank.training.judges import Judge
from marginrank.training.linear import Parameters
from marginrank.training.linear_paths import default_Cs, solve_paths

RULES = ("best", "one_se")


class Grid(NamedTuple):
    """Candidates that differ in C alone; what they have in common is a combination."""

    combination: int
    parameters: Parameters
    Cs: Floats


class Trial(NamedTuple):
    """A candidate was judged on one more part: the number of each, and the metric."""

    candidate: int
    part: int
    score: float


@dataclass(frozen=True)
class Candidate:
    """Parameters that are tried, and what came out so far.

    Attributes
    ----------
    combination : int
        Shared by all that differ in C alone.
    parameters : Parameters
        All of them, with C.
    scores : ndarray of shape (n_parts,)
        The metric on each part; nan where it has no value, or was not tried.
    weights : list of ndarray or None
        What was learned for each part.
    """

    combination: int
    parameters: Parameters
    scores: Floats
    weights: list[Floats | None]

    @property
    def complete_weights(self) -> list[Floats]:
        """The weights, without parts that were not tried."""
        return [w for w in self.weights if w is not None]

    @property
    def is_complete(self) -> bool:
        """Whether all parts were tried."""
        return len(self.complete_weights) == len(self.weights)


@dataclass(frozen=True)
class Selection:
    """The candidates that were judged on all parts, and the choice among them.

    Attributes
    ----------
    metric : str
        What they were judged by.
    varied : tuple of str
        Names of the parameters beside C of which several values were tried.
    candidates : list of Candidate
        In the order in which they were tried.
    scores : ndarray of shape (n_candidates, n_parts)
        The metric of each candidate on each part.
    mean, error : ndarray of shape (n_candidates,)
        Means over the parts that have a value, and their standard errors.
    best : int
        The chosen candidate.
    """

    metric: str
    varied: tuple[str, ...]
    candidates: list[Candidate]
    scores: Floats
    mean: Floats
    error: Floats
    best: int

    @property
    def parameters(self) -> Parameters:
        """The parameters that were chosen."""
        return self.candidates[self.best].parameters

    def label(self, k: int) -> str:
        """Return what sets a candidate apart from those of other combinations."""
        parameters = self.candidates[k].parameters
        values = ", ".join(f"{name}={_short(getattr(parameters, name))}" for name in self.varied)
        return values or "mean ± standard error"

    @property
    def runner_up(self) -> int | None:
        """The candidate with the highest mean beside the chosen one, if another has a mean."""
        others = self.mean.copy()
        others[self.best] = np.nan
        return None if np.isnan(others).all() else int(np.nanargmax(others))


class Search:
    """Tries candidates, grid by grid, and chooses among those that were tried.

    It can be left at any time: what was judged on all parts by then can be chosen.

    Parameters
    ----------
    data : RankingData
        The documents.
    judge : Judge
        What candidates are judged by.
    varied : sequence of str
        Names of the parameters beside C that grids differ in.
    seed : int
        For the samples that speed up the fits.

    Attributes
    ----------
    candidates : list of Candidate
        Those of all grids so far.
    """

    def __init__(
        self, data: RankingData, judge: Judge, *, varied: Sequence[str] = (), seed: int = 0
    ) -> None:
        self.candidates: list[Candidate] = []
        self._varied = tuple(varied)
        self._data = data
        self._judge = judge
        self._seed = seed

    def try_grid(self, grid: Grid) -> Iterator[Trial]:
        """Learn and judge the candidates of a grid; yield after each model."""
        parts = self._judge.parts
        first = len(self.candidates)
        for C in grid.Cs:
            parameters = replace(grid.parameters, C=float(C), lam=None)
            scores = np.full(len(parts), np.nan)
            self.candidates.append(
                Candidate(grid.combination, parameters, scores, [None] * len(parts))
            )
        for found in solve_paths(self._data, grid.parameters, grid.Cs, parts, seed=self._seed):
            number, part = first + found.step, found.part
            candidate = self.candidates[number]
            candidate.scores[part] = self._judge.score(part, found.result.w)
            candidate.weights[part] = found.result.w
            yield Trial(number, part, float(candidate.scores[part]))

    def selection(self, rule: str = "best") -> Selection:
        """Choose among the candidates that were judged on all parts.

        Parameters
        ----------
        rule : {"best", "one_se"}
            The highest mean, and of equals up to rounding the first; or the smallest C, with all
            other parameters those of the best, whose mean is not below that by more than its
            standard error.
        """
        check_choice("rule", rule, RULES)
        complete = [candidate for candidate in self.candidates if candidate.is_complete]
        if not complete:
            raise ValueError("no candidate was judged on all folds; give the search more time.")
        scores = np.array([candidate.scores for candidate in complete])
        mean, error = over_folds(scores, self._judge.metric)
        best = int(np.argmin(exceeds(np.nanmax(mean), mean) | np.isnan(mean)))
        if rule == "one_se":
            best = _simplest(complete, mean, error, best)
        return Selection(self._judge.metric, self._varied, complete, scores, mean, error, best)

    def compare(self, selection: Selection) -> Comparison | None:
        """Compare the chosen candidate with the runner-up, query by query, if there is one.

        None also where fewer than two queries have a value of the metric.
        """
        other = selection.runner_up
        if other is None:
            return None
        chosen, second = (selection.candidates[k] for k in (selection.best, other))
        return self._judge.compare(chosen.complete_weights, second.complete_weights)


def _simplest(candidates: Sequence[Candidate], mean: Floats, error: Floats, best: int) -> int:
    """Return the candidate of the smallest C that is as good as the best, but for its error."""
    if np.isnan(error[best]):
        raise ParameterError(
            given("rule", "one_se"),
            " needs a standard error, and there is one fold only; take more folds.",
        )
    near = [
        k
        for k, candidate in enumerate(candidates)
        if candidate.combination == candidates[best].combination
        and mean[k] >= mean[best] - error[best]
    ]
    return min(near, key=lambda k: candidates[k].parameters.C)


def grids_of(
    data: RankingData,
    base: Parameters,
    axes: Mapping[str, Sequence[Any]],
    *,
    Cs: Floats | None,
    n_points: int,
) -> list[Grid]:
    """Return a grid of C for each combination of other parameters.

    Parameters
    ----------
    data : RankingData
        The documents.
    base : Parameters
        What all have.
    axes : mapping
        Names of parameters, and the values to try.
    Cs : ndarray, optional
        The grid, ascending; by default one from the data for each combination, as what C means
        depends on normalisation, scale and loss.
    n_points : int
        Length of the default grid.
    """
    return [
        Grid(number, one, default_Cs(data, one, n_points) if Cs is None else Cs)
        for number, one in enumerate(combinations(base, axes))
    ]


def combinations(base: Parameters, axes: Mapping[str, Sequence[Any]]) -> list[Parameters]:
    """Return the parameters of each combination of some values, checked; the last varies first."""
    found = [
        replace(base, **dict(zip(axes, values, strict=True))) for values in product(*axes.values())
    ]
    for parameters in found:
        parameters.check()
    return found


def _short(value: Any) -> str:
    """Return a value of a parameter in a word."""
    if value is None or isinstance(value, str):
        return str(value).lower()
    return getattr(value, "__name__", "given")
