"""Result of a search over parameters: candidates, their scores and the selected candidate.

A *candidate* is one setting of all parameters. It consists of a *combination* of parameter values
and a value of one more parameter, such as C, for which each combination has a *grid*.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.parameters import Mention, Message, ParameterError, given
from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.comparison import Comparison
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import unfinished_message

RULES = ("best", "one_se")


@dataclass(frozen=True, eq=False)
class Candidate:
    """One setting of all parameters that a search tries, with its score on each fold."""

    combination: int  # index of the combination; candidates that differ only in `value` share it
    parameters: Any
    value: float  # value of the grid's parameter, such as C
    scores: Floats  # score on each split; nan if undefined or not computed yet
    tried: Booleans  # mask of the splits whose scores were computed

    @property
    def position(self) -> tuple[int, float]:
        """Sort key (combination, value) of the candidate; among equal scores, the first wins."""
        return self.combination, self.value

    @property
    def is_complete(self) -> bool:
        """Whether the candidate was scored on all folds or validation data."""
        return bool(self.tried.all())

    @property
    def mean(self) -> float:
        """Mean score of the candidate over the folds scored so far; nan if there is none."""
        scores = self.scores[~np.isnan(self.scores)]
        return float(scores.mean()) if scores.size else np.nan


class SearchProgress(NamedTuple):
    """State of a search over parameters after one more fit, for callbacks."""

    done: int  # number of fits so far
    planned: int | None  # number of planned fits; None with a time limit
    candidate: Candidate  # candidate of the last fit
    best: Candidate | None  # best candidate so far that was scored on all splits
    mean: float  # mean score of the best candidate
    metric: str
    outer_fold: int | None  # fold that a nested search excludes; None in the main search


@dataclass(frozen=True)
class NestedEstimate:
    """Scores from nested cross-validation: each on a fold that the search did not use."""

    parameters: list[Any]  # parameters selected for each outer fold, without its queries
    scores: Floats  # score of each selected model on its outer fold; nan if undefined
    mean: float  # mean over the folds
    error: float  # standard error of the mean


@dataclass(frozen=True, repr=False)
class SearchResult(ResultTable):
    """Result of a search over parameters: candidates scored on all folds, and the selected one."""

    metric: str  # name of the metric
    rule: str  # rule of the selection: "best" or "one_se"
    parameter: str  # parameter of the grids, such as "C"
    varied: tuple[str, ...]  # names of the other parameters that have several values
    candidates: list[Candidate]  # complete candidates, in the order of the search
    incomplete: list[Candidate]  # candidates that were not scored on all splits
    scores: Floats  # shape (n_candidates, n_splits)
    mean: Floats  # mean of each candidate over the splits with a value
    error: Floats  # standard errors of the means
    best_index: int  # index of the selected candidate
    parameters: Any  # selected parameters, for the final fit to all data
    n_combinations: int  # number of combinations in the search space
    n_candidates: int  # number of candidates in the search space, not counting finer grids
    n_fits: int
    n_unfinished: int  # number of fits that did not reach tol
    # The selected candidate compared with the runner-up by query. None without a runner-up, or if
    # fewer than two queries have a value.
    comparison: Comparison | None = None
    nested: NestedEstimate | None = None  # None if interrupted
    is_out_of_time: bool = False  # whether the time limit ended the search
    is_interrupted: bool = False  # whether Ctrl-C ended the search

    @property
    def values(self) -> Floats:
        """Value of the grid's parameter, such as C, for each candidate of the search."""
        return np.array([candidate.value for candidate in self.candidates])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters in which the candidates of the search differ."""
        return (self.parameter, *self.varied)

    @property
    def params(self) -> list[dict[str, Any]]:
        """One dict per candidate of the search, with the parameters in which candidates differ."""
        return [
            {name: getattr(candidate.parameters, name) for name in self.names}
            for candidate in self.candidates
        ]

    @property
    def best_params(self) -> dict[str, Any]:
        """The selected parameters: a dict of the parameters in which the candidates differ."""
        return self.params[self.best_index]

    @property
    def best_score(self) -> float:
        """Mean score of the selected candidate over the folds."""
        return float(self.mean[self.best_index])

    @property
    def cv_results(self) -> dict[str, Any]:
        """All candidates with their scores, as ``cv_results_`` of scikit-learn's GridSearchCV."""
        params = self.params
        has_score = ~np.isnan(self.scores).all(axis=0)  # splits that have a score
        mean = np.where(np.isnan(self.mean), -np.inf, self.mean)
        return {
            **{f"param_{name}": _masked([one[name] for one in params]) for name in self.names},
            "params": params,
            **{f"split{k}_test_score": scores for k, scores in enumerate(self.scores.T)},
            "mean_test_score": self.mean,
            "std_test_score": np.std(self.scores[:, has_score], axis=1),
            "rank_test_score": 1 + np.sum(mean[None, :] > mean[:, None], axis=1),
        }

    @property
    def runner_up(self) -> int | None:
        """Index of the candidate with the best mean score after the selected one, or None."""
        return find_runner_up(self.mean, self.best_index)

    @property
    def n_tried(self) -> int:
        """Number of combinations of parameters scored on all folds with some grid value."""
        return len({candidate.combination for candidate in self.candidates})

    @property
    def n_untried(self) -> int:
        """Number of parameter settings that were planned but not scored on all folds."""
        return max(self.n_candidates - len(self.candidates), 0)

    def label(self, k: int) -> str:
        """Return the parameters of candidate k, except the grid's parameter, as a short text."""
        return short_params(self.candidates[k].parameters, self.varied) or "mean ± standard error"

    def convergence_message(self) -> Message | None:
        """Return the warning that some fits of the search did not reach `tol`, or None."""
        return unfinished_message(self.n_unfinished, self.n_fits, "fits of the search")

    def edge_message(self) -> Message | None:
        """Return the warning that the best value is at an end of its grid, or None."""
        best = int(np.nanargmax(self.mean))
        combination, value = self.candidates[best].position
        members = [k for k, one in enumerate(self.candidates) if one.combination == combination]
        members.sort(key=lambda k: self.candidates[k].value)
        not_reached = [one.value for one in self.incomplete if one.combination == combination]
        for name, ends, is_end in (
            ("smallest", members[:2], min(not_reached, default=np.inf) > value),
            ("largest", members[:-3:-1], max(not_reached, default=0.0) < value),
        ):
            is_best = is_end and len(ends) == 2 and ends[0] == best
            if is_best and _is_better(*self.scores[ends]):
                return Message(
                    f"the best {self.parameter}, {value:.4g}, is the {name} value tried; try "
                    f"{name[:-2]}r values of ",
                    Mention(self.parameter),
                    ".",
                )
        return None

    def _columns(self) -> dict[str, Any]:
        params = {name: [one[name] for one in self.params] for name in self.names}
        folds = {f"fold{k}": scores for k, scores in enumerate(self.scores.T, 1)}
        return {**params, "mean": self.mean, "error": self.error, **folds}

    def _summary(self) -> str:
        return (
            f"{len(self.candidates)} candidates by {self.metric}, best "
            f"{short_params(self.parameters, self.names)} with {self.best_score:.4f}"
        )


def find_best(candidates: Sequence[Candidate], mean: Floats, error: Floats, rule: str) -> int:
    """Return the index of the candidate (setting of the parameters) that a search selects.

    The rule "best" selects the highest mean score. Among means that are equal up to rounding, it
    selects the first combination of parameters and its smallest grid value, such as C. The rule
    "one_se" selects, in the same combination, the smallest value whose mean is within one standard
    error of the best mean.
    """
    equals = np.flatnonzero(~(exceeds(np.nanmax(mean), mean) | np.isnan(mean)))
    best = min(equals.tolist(), key=lambda k: candidates[k].position)
    if rule == "best":
        return int(best)
    if np.isnan(error[best]):
        raise ParameterError(
            given("rule", rule),
            " requires a standard error, but there is only one fold; use more folds.",
        )
    near = [
        k
        for k, candidate in enumerate(candidates)
        if candidate.combination == candidates[best].combination
        and mean[k] >= mean[best] - error[best]
    ]
    return min(near, key=lambda k: candidates[k].value)


def find_runner_up(mean: Floats, best: int) -> int | None:
    """Return the index of the second best mean, given the index of the best one, or None."""
    others = mean.copy()
    others[best] = np.nan
    return None if np.isnan(others).all() else int(np.nanargmax(others))


def short_params(parameters: Any, names: Sequence[str]) -> str:
    """Return the parameters in `names` as text, such as "C=0.1, loss=hinge"."""
    return ", ".join(f"{name}={_short(getattr(parameters, name))}" for name in names)


def _short(value: Any) -> str:
    if value is None or isinstance(value, str):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:.4g}"
    return getattr(value, "__name__", "given")


def _is_better(scores: Floats, others: Floats) -> bool:
    """Whether `scores` are above `others`, on average by more than a standard error."""
    gains = (scores - others)[~np.isnan(scores - others)]
    if not gains.size:
        return False
    error = gains.std(ddof=1) / np.sqrt(gains.size) if gains.size > 1 else 0.0
    return bool(exceeds(scores, others).any() and gains.mean() > error)


def _masked(values: list[Any]) -> Any:
    """Return a masked array without masked values, the type in GridSearchCV's results."""
    kind = float if all(isinstance(value, float) for value in values) else object
    return np.ma.MaskedArray(np.array(values, dtype=kind), mask=np.zeros(len(values), dtype=bool))
