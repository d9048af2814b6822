"""The choice among models of different parameters by how they rank what they have not seen."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.parameters import ParameterError, check_choice, given
from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Booleans, Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import RidgeParameters
from marginrank.metrics.comparison import Comparison
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import is_close
from marginrank.selection.folds import over_folds
from marginrank.selection.judges import Judge
from marginrank.selection.learners import LINES, Learner

RULES = ("best", "one_se")


class Grid(NamedTuple):
    """Candidates that differ in C alone; what they have in common is a combination."""

    combination: int
    parameters: RidgeParameters
    Cs: Floats


class Trial(NamedTuple):
    """A candidate was judged on one more part.

    Attributes
    ----------
    candidate, part : int
        The number of each.
    score : float
        The metric.
    is_close : bool
        Whether the fit came as close to its optimum as was asked for.
    """

    candidate: int
    part: int
    score: float
    is_close: bool


@dataclass(frozen=True, eq=False)
class Candidate:
    """Parameters that are tried, and how they do so far; the search alone has the models.

    Attributes
    ----------
    combination : int
        Shared by all that differ in C alone.
    parameters : RidgeParameters
        All of them, with C.
    scores : ndarray of shape (n_parts,)
        The metric on each part; nan where it has no value, or was not tried.
    tried : ndarray of bool, shape (n_parts,)
        The parts that were tried.
    """

    combination: int
    parameters: RidgeParameters
    scores: Floats
    tried: Booleans

    @property
    def place(self) -> tuple[int, float]:
        """What decides between equals: the first combination, and the smallest C."""
        return self.combination, self.parameters.C

    @property
    def is_complete(self) -> bool:
        """Whether all parts were tried."""
        return bool(self.tried.all())


@dataclass(frozen=True, repr=False)
class Selection(ResultTable):
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
    def parameters(self) -> RidgeParameters:
        """The parameters that were chosen."""
        return self.candidates[self.best].parameters

    def label(self, k: int) -> str:
        """Return what sets a candidate apart from those of other combinations."""
        return named(self.candidates[k].parameters, self.varied) or "mean ± standard error"

    @property
    def runner_up(self) -> int | None:
        """The candidate with the highest mean beside the chosen one, if another has a mean."""
        others = self.mean.copy()
        others[self.best] = np.nan
        return None if np.isnan(others).all() else int(np.nanargmax(others))

    def _columns(self) -> dict[str, Any]:
        parameters = {
            name: [getattr(one.parameters, name) for one in self.candidates]
            for name in ("C", *self.varied)
        }
        folds = {f"fold{k}": scores for k, scores in enumerate(self.scores.T, 1)}
        return {**parameters, "mean": self.mean, "error": self.error, **folds}

    def _summary(self) -> str:
        return (
            f"{len(self.candidates)} candidates by {self.metric}, chosen "
            f"{named(self.parameters, ('C', *self.varied))} with {self.mean[self.best]:.4f}"
        )


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
    learner : Learner
        What learns the models.

    Attributes
    ----------
    candidates : list of Candidate
        Those of all grids so far.
    """

    def __init__(
        self,
        data: RankingData,
        judge: Judge,
        *,
        varied: Sequence[str] = (),
        seed: int = 0,
        learner: Learner = LINES,
    ) -> None:
        self.candidates: list[Candidate] = []
        self._models: dict[Candidate, dict[int, Any]] = {}
        self._varied = tuple(varied)
        self._data = data
        self._judge = judge
        self._seed = seed
        self._learner = learner

    def try_grid(self, grid: Grid) -> Iterator[Trial]:
        """Learn and judge the candidates of a grid; yield after each model."""
        parts = self._judge.parts
        first = len(self.candidates)
        for C in grid.Cs:
            parameters = replace(grid.parameters, C=float(C), lam=None)
            scores, tried = np.full(len(parts), np.nan), np.zeros(len(parts), dtype=bool)
            self.candidates.append(Candidate(grid.combination, parameters, scores, tried))
        learned = self._learner.solve(self._data, grid.parameters, grid.Cs, parts, seed=self._seed)
        for found in learned:
            number, part = first + found.step, found.part
            candidate = self.candidates[number]
            candidate.scores[part] = self._judge.score(part, found.model)
            candidate.tried[part] = True
            self._models.setdefault(candidate, {})[part] = found.model
            close = is_close(found.result, grid.parameters.tol)
            yield Trial(number, part, float(candidate.scores[part]), close)

    def selection(self, rule: str = "best") -> Selection:
        """Choose among the candidates that were judged on all parts.

        Parameters
        ----------
        rule : {"best", "one_se"}
            The highest mean, and of equals up to rounding the first combination, and its smallest
            C; or the smallest C, with all other parameters those of the best, whose mean is not
            below that by more than its standard error.
        """
        check_choice("rule", rule, RULES)
        complete = [candidate for candidate in self.candidates if candidate.is_complete]
        if not complete:
            raise ValueError("no candidate was judged on all folds; give the search more time.")
        scores = np.array([candidate.scores for candidate in complete])
        mean, error = over_folds(scores, self._judge.metric)
        equals = np.flatnonzero(~(exceeds(np.nanmax(mean), mean) | np.isnan(mean)))
        best = int(min(equals, key=lambda k: complete[k].place))
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
        chosen, second = (self.models(selection.candidates[k]) for k in (selection.best, other))
        return self._judge.compare(chosen, second)

    def models(self, candidate: Candidate) -> list[Any]:
        """Return what was learned for each part of a candidate that is complete."""
        by_part = self._models[candidate]
        return [by_part[part] for part in range(len(by_part))]


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
    base: RidgeParameters,
    axes: Mapping[str, Sequence[Any]],
    *,
    Cs: Floats | None,
    n_points: int,
    learner: Learner = LINES,
) -> list[Grid]:
    """Return a grid of C for each combination of other parameters.

    Parameters
    ----------
    data : RankingData
        The documents.
    base : RidgeParameters
        What all have.
    axes : mapping
        Names of parameters, and the values to try.
    Cs : ndarray, optional
        The grid, ascending; by default one from the data for each combination, as what C means
        depends on normalisation, scale and loss.
    n_points : int
        Length of the default grid.
    learner : Learner
        What knows that.
    """
    return [
        Grid(number, one, learner.default_Cs(data, one, n_points) if Cs is None else Cs)
        for number, one in enumerate(combinations(base, axes))
    ]


def combinations(base: RidgeParameters, axes: Mapping[str, Sequence[Any]]) -> list[RidgeParameters]:
    """Return the parameters of each combination of some values, checked; the last varies first."""
    return [
        replace(base, **dict(zip(axes, values, strict=True))) for values in product(*axes.values())
    ]


def named(parameters: RidgeParameters, names: Sequence[str]) -> str:
    """Return some parameters with their values, as in "C=0.1, loss=hinge"."""
    return ", ".join(f"{name}={_short(getattr(parameters, name))}" for name in names)


def _short(value: Any) -> str:
    """Return a value of a parameter in a word."""
    if value is None or isinstance(value, str):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:.4g}"
    return getattr(value, "__name__", "given")
