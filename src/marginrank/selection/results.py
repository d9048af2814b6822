"""The result of a search: candidates, their scores and the selected one."""

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
    """Parameters that are tried, and their scores so far; the search alone has the models.

    Attributes
    ----------
    combination : int
        Shared by all candidates that differ in `value` alone.
    parameters : RidgeParameters or SparseParameters
        All parameters.
    value : float
        The value of the learner's parameter, such as C.
    scores : ndarray of shape (n_splits,)
        The metric on each split; nan if it has no value there, or was not computed yet.
    tried : ndarray of bool, shape (n_splits,)
        The splits on which it was computed.
    """

    combination: int
    parameters: Any
    value: float
    scores: Floats
    tried: Booleans

    @property
    def position(self) -> tuple[int, float]:
        """The key among equals: the first combination, and the smallest value."""
        return self.combination, self.value

    @property
    def is_complete(self) -> bool:
        """Whether it was scored on all splits."""
        return bool(self.tried.all())

    @property
    def mean(self) -> float:
        """The mean over the splits that have a score so far; nan if there is none."""
        scores = self.scores[~np.isnan(self.scores)]
        return float(scores.mean()) if scores.size else np.nan


class SearchProgress(NamedTuple):
    """The state of a search after one more fit.

    Attributes
    ----------
    done : int
        Number of fits.
    planned : int or None
        How many there will be; None with a time limit.
    candidate : Candidate
        What was fitted last.
    best : Candidate or None
        The complete candidate with the highest mean so far; nested searches do not count.
    mean : float
        Its mean.
    metric : str
        Name of the metric.
    outer_fold : int or None
        The fold that a nested search leaves out.
    """

    done: int
    planned: int | None
    candidate: Candidate
    best: Candidate | None
    mean: float
    metric: str
    outer_fold: int | None


@dataclass(frozen=True)
class NestedEstimate:
    """The score of the whole search on queries that had no part in it.

    Attributes
    ----------
    parameters : list
        What was selected without the queries of each fold.
    scores : ndarray of shape (n_folds,)
        The metric of its model on these queries; nan if it has no value.
    mean, error : float
        Mean over the folds, and its standard error.
    """

    parameters: list[Any]
    scores: Floats
    mean: float
    error: float


@dataclass(frozen=True, repr=False)
class SearchResult(ResultTable):
    """The candidates that were scored on all splits, and the selected one.

    Attributes
    ----------
    metric : str
        Name of the metric.
    rule : {"best", "one_se"}
        How the candidate was selected.
    parameter : str
        Name of the parameter that grids are of, such as "C".
    varied : tuple of str
        Names of the other parameters of which several values were tried.
    candidates : list of Candidate
        In the order in which they were tried.
    incomplete : list of Candidate
        Candidates that were begun, but not scored on all splits.
    scores : ndarray of shape (n_candidates, n_splits)
        The metric of each candidate on each split.
    mean, error : ndarray of shape (n_candidates,)
        Means over the splits that have a value, and their standard errors.
    best_index : int
        The selected candidate.
    parameters : RidgeParameters or SparseParameters
        Parameters to fit all data with.
    comparison : Comparison or None
        The selected candidate against the runner-up, query by query; None if there is none, or if
        fewer than two queries have a value of the metric.
    nested : NestedEstimate or None
        The estimate by nested folds, if it was asked for and not interrupted.
    n_combinations, n_candidates : int
        How many there are to try, without finer grids.
    n_fits, n_unfinished : int
        Fits, and those of them that did not reach `tol`.
    is_out_of_time, is_interrupted : bool
        Whether the time limit, or Ctrl-C, ended the search.
    """

    metric: str
    rule: str
    parameter: str
    varied: tuple[str, ...]
    candidates: list[Candidate]
    incomplete: list[Candidate]
    scores: Floats
    mean: Floats
    error: Floats
    best_index: int
    parameters: Any
    n_combinations: int
    n_candidates: int
    n_fits: int
    n_unfinished: int
    comparison: Comparison | None = None
    nested: NestedEstimate | None = None
    is_out_of_time: bool = False
    is_interrupted: bool = False

    @property
    def values(self) -> Floats:
        """The value of `parameter` of each candidate."""
        return np.array([candidate.value for candidate in self.candidates])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters that candidates differ in."""
        return (self.parameter, *self.varied)

    @property
    def params(self) -> list[dict[str, Any]]:
        """These parameters of each candidate."""
        return [
            {name: getattr(candidate.parameters, name) for name in self.names}
            for candidate in self.candidates
        ]

    @property
    def best_params(self) -> dict[str, Any]:
        """These parameters of the selected candidate."""
        return self.params[self.best_index]

    @property
    def best_score(self) -> float:
        """The mean score of the selected candidate."""
        return float(self.mean[self.best_index])

    @property
    def cv_results(self) -> dict[str, Any]:
        """The candidates and scores, named as in scikit-learn's GridSearchCV."""
        params = self.params
        splits = {f"split{k}_test_score": scores for k, scores in enumerate(self.scores.T)}
        has_score = ~np.isnan(self.scores).all(axis=0)  # as the mean is over these splits
        return {
            **{f"param_{name}": _column(name, params) for name in self.names},
            "params": params,
            **splits,
            "mean_test_score": self.mean,
            "std_test_score": np.std(self.scores[:, has_score], axis=1),
            "rank_test_score": _ranks(self.mean),
        }

    @property
    def runner_up(self) -> int | None:
        """The candidate with the highest mean beside the selected one, if another has a mean."""
        return find_runner_up(self.mean, self.best_index)

    @property
    def n_tried(self) -> int:
        """Number of combinations with a complete candidate."""
        return len({candidate.combination for candidate in self.candidates})

    @property
    def n_untried(self) -> int:
        """Number of candidates of the first grids that are not complete."""
        return max(self.n_candidates - len(self.candidates), 0)

    def label(self, k: int) -> str:
        """Return the parameters that set a candidate apart from other combinations."""
        return short_params(self.candidates[k].parameters, self.varied) or "mean ± standard error"

    def convergence_message(self) -> Message | None:
        """Return the warning about fits that did not reach tol, or None."""
        return unfinished_message(self.n_unfinished, self.n_fits, "fits of the search")

    def edge_message(self) -> Message | None:
        """Return the warning that values beyond those of the grid may be better, or None."""
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
                told = f"the best {self.parameter}, {value:.4g}, is the {name} that was tried; try "
                return Message(told, f"{name[:-2]}r ones with ", Mention(self.parameter), ".")
        return None

    def _columns(self) -> dict[str, Any]:
        params = {
            name: [getattr(one.parameters, name) for one in self.candidates] for name in self.names
        }
        folds = {f"fold{k}": scores for k, scores in enumerate(self.scores.T, 1)}
        return {**params, "mean": self.mean, "error": self.error, **folds}

    def _summary(self) -> str:
        return (
            f"{len(self.candidates)} candidates by {self.metric}, best "
            f"{short_params(self.parameters, self.names)} with {self.best_score:.4f}"
        )


def find_best(candidates: Sequence[Candidate], mean: Floats, error: Floats, rule: str) -> int:
    """Return the selected candidate.

    By the rule "best", that is the highest mean, and of equals up to rounding the first combination
    and its smallest value. By "one_se", the smallest value of that combination whose mean is not
    lower by more than one standard error of the best one's mean.
    """
    equals = np.flatnonzero(~(exceeds(np.nanmax(mean), mean) | np.isnan(mean)))
    best = min(equals.tolist(), key=lambda k: candidates[k].position)
    if rule == "best":
        return int(best)
    if np.isnan(error[best]):
        raise ParameterError(
            given("rule", rule),
            " needs a standard error, and there is one fold only; take more folds.",
        )
    near = [
        k
        for k, candidate in enumerate(candidates)
        if candidate.combination == candidates[best].combination
        and mean[k] >= mean[best] - error[best]
    ]
    return min(near, key=lambda k: candidates[k].value)


def find_runner_up(mean: Floats, best: int) -> int | None:
    """Return the highest mean beside the selected candidate, if another has a mean."""
    others = mean.copy()
    others[best] = np.nan
    return None if np.isnan(others).all() else int(np.nanargmax(others))


def short_params(parameters: Any, names: Sequence[str]) -> str:
    """Return some parameters with their values, as in "C=0.1, loss=hinge"."""
    return ", ".join(f"{name}={_short(getattr(parameters, name))}" for name in names)


def _short(value: Any) -> str:
    if value is None or isinstance(value, str):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value:.4g}"
    return getattr(value, "__name__", "given")


def _is_better(scores: Floats, others: Floats) -> bool:
    """Whether scores on the same splits are higher, on average by more than a standard error."""
    gains = (scores - others)[~np.isnan(scores - others)]
    if not gains.size:
        return False
    error = gains.std(ddof=1) / np.sqrt(gains.size) if gains.size > 1 else 0.0
    return bool(exceeds(scores, others).any() and gains.mean() > error)


def _column(name: str, params: list[dict[str, Any]]) -> Any:
    """Return the values of a parameter, as GridSearchCV has them: none is masked."""
    listed = [one[name] for one in params]
    kind = float if all(isinstance(value, float) for value in listed) else object
    values = np.array(listed, dtype=kind)
    return np.ma.MaskedArray(values, mask=np.zeros(len(params), dtype=bool))


def _ranks(mean: Floats) -> Any:
    """Return 1 for the highest mean, the same rank for equals, and the last one for nan."""
    known = np.where(np.isnan(mean), -np.inf, mean)
    return 1 + np.sum(known[None, :] > known[:, None], axis=1)
