"""Base of the estimators that search their own parameters."""

from collections.abc import Iterable
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from marginrank._utils.parameters import check_choice, check_number
from marginrank.data import RankingData
from marginrank.estimators.base import warn_of
from marginrank.models.fit_report import unfinished_message
from marginrank.selection.results import RULES, SearchProgress, SearchResult, short_params
from marginrank.selection.search import run_search
from marginrank.selection.space import SearchSpace

FIT_ATTRIBUTES = (
    "scale_",
    "objective_",
    "gap_",
    "stop_reason_",
    "n_iter_",
    "history_",
    "n_pairs_",
)


class SearchMixin:
    """Runs a search, and keeps its result and the last fit.

    Attributes
    ----------
    _estimator : type
        What is fitted last.
    _searched : tuple of str
        Its parameters that are searched beside C.
    _found : tuple of str
        Its attributes that the estimator has, too.
    """

    _estimator: ClassVar[Any]
    _searched: ClassVar[tuple[str, ...]] = ()
    _found: ClassVar[tuple[str, ...]]

    def _check_search(self: Any) -> None:
        """Raise ValueError before the data are read, if a parameter of the search is wrong."""
        check_choice("rule", self.rule, RULES)
        check_number("tol", self.tol)

    def _search(self: Any, data: RankingData, space: SearchSpace, seed: int) -> SearchResult:
        """Search, and drop the model of an earlier fit.

        Sets: ``search_``, ``cv_results_``, ``best_index_``, ``best_score_``, ``best_params_``,
        ``comparison_`` and ``n_splits_``.
        """
        log = SearchLog(space) if self.verbose else None
        result = run_search(
            data, space, cv=self.cv, metric=self.scoring, rule=self.rule, seed=seed, on_fit=log
        )
        message = unfinished_message(result.n_unfinished, result.n_fits, "fits to folds")
        warn_of(message, ConvergenceWarning)
        for name in ("best_estimator_", *self._found):
            if hasattr(self, name):
                delattr(self, name)
        self.search_ = result
        self.cv_results_ = result.cv_results
        self.best_index_ = result.best_index
        self.best_score_ = result.best_score
        self.best_params_ = result.best_params
        self.comparison_ = result.comparison
        self.n_splits_ = result.scores.shape[1]
        return result

    def _fit_best(self: Any, *data: Any, **options: Any) -> None:
        """Fit all data with the selected parameters, if there is to be a last fit.

        Sets: ``best_estimator_`` and the attributes that are shared with it.
        """
        if not self.refit:
            return
        names = (self.search_.parameter, *self._searched)
        best = {name: getattr(self.search_.parameters, name) for name in names}
        known = self._estimator().get_params(deep=False)
        self.best_estimator_ = self._estimator(**self._fixed(known), **best).fit(*data, **options)
        for name in self._found:
            setattr(self, name, getattr(self.best_estimator_, name))

    def _fixed(self: Any, names: Iterable[str]) -> dict[str, Any]:
        """Return those of the named parameters that this estimator has and does not search."""
        own = self.get_params(deep=False)
        return {name: own[name] for name in names if name in own and name not in self._searched}

    def _require_model(self: Any) -> None:
        """Raise NotFittedError without a model, also after a fit with refit=False."""
        super()._require_model()  # type: ignore[misc]
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                "No model available: refit=False. Set refit=True, or fit "
                f"{self._estimator.__name__} with best_params_."
            )


class SearchLog:
    """Prints one line per fit of a search, with the mean score of its candidate so far."""

    def __init__(self, space: SearchSpace) -> None:
        self._names = (space.learner.parameter, *space.varied)
        self._start = perf_counter()

    def __call__(self, progress: SearchProgress) -> None:
        """Print the candidate of the fit that has just ended."""
        candidate = progress.candidate
        mean = "undefined" if np.isnan(candidate.mean) else f"{candidate.mean:.4f}"
        print(
            f"fit {progress.done:4d}  {perf_counter() - self._start:8.3f} s  "
            f"{progress.metric} {mean} on {candidate.tried.sum()} of {candidate.tried.size} folds  "
            f"{short_params(candidate.parameters, self._names)}",
            flush=True,
        )
