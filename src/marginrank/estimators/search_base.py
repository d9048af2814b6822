"""Base class of the estimators that select their parameters by cross-validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from marginrank._utils.parameters import check_choice, check_number
from marginrank.data import RankingData
from marginrank.estimators.base import BaseRanker, check_seed, warn_of
from marginrank.estimators.input import features_of, set_features
from marginrank.models.fit_report import unfinished_message
from marginrank.selection.results import RULES, SearchProgress, SearchResult, short_params
from marginrank.selection.search import run_search
from marginrank.selection.space import SearchSpace


class SearchRanker(BaseRanker):
    """Base class of estimators that search parameters, then fit all data with the selected ones."""

    _estimator: ClassVar[Any]  # class of the estimator of the last fit
    _searched: ClassVar[tuple[str, ...]] = ()  # parameters besides C that are searched

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        position: ArrayLike | None = None,
        context: ArrayLike | None = None,
    ) -> Self:
        """Select the parameters by cross-validation, and fit all data with the best ones.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            As in :meth:`RankSVM.fit` or :meth:`AdditiveRankSVM.fit`. The metric is not weighted.
        position, context
            As in :meth:`RankSVM.fit`. Documents of a test fold are then scored with the effects of
            the positions at which they were shown, because clicks depend on documents and
            positions.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_choice("rule", self.rule, RULES)
        check_number("tol", self.tol)
        space = self._space()
        seed = check_seed(self.random_state)
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        shown = {"position": position, "context": context}
        given = {"y": y, "qid": qid, "group": group, **weights, **shown}
        data, space = self._documents(X, given, space)
        self._search(data, space, seed)
        set_features(self, features_of(data))
        if self.refit:
            names = (self.search_.parameter, *self._searched)
            best = {name: getattr(self.search_.parameters, name) for name in names}
            known = self._estimator().get_params(deep=False)
            estimator = self._estimator(**self._fixed(known), **best)
            self.best_estimator_ = self._refit(estimator, data, X, given)
            self.__dict__.update(_fitted_attributes(self.best_estimator_))
        return self

    @abstractmethod
    def _space(self) -> SearchSpace:
        """Return the search space of candidates; raise ValueError if a parameter is wrong."""

    def _documents(
        self, X: Any, given: dict[str, Any], space: SearchSpace
    ) -> tuple[RankingData, SearchSpace]:
        """Return the checked documents, and the search space adapted to them."""
        return self._data(X, **given), space

    def _refit(self, estimator: Any, data: RankingData, X: Any, given: dict[str, Any]) -> Any:
        """Return the estimator, fitted to all data."""
        return estimator.fit(data)

    def _search(self, data: RankingData, space: SearchSpace, seed: int) -> SearchResult:
        """Run the search, and delete the model of an earlier fit.

        Sets ``search_``, ``cv_results_``, ``best_index_``, ``best_score_``, ``best_params_``,
        ``comparison_`` and ``n_splits_``.
        """
        log = SearchLog(space) if self.verbose else None
        result = run_search(
            data, space, cv=self.cv, metric=self.scoring, rule=self.rule, seed=seed, on_fit=log
        )
        message = unfinished_message(result.n_unfinished, result.n_fits, "fits to folds")
        warn_of(message, ConvergenceWarning)
        for name in _fitted_attributes(self.__dict__.pop("best_estimator_", None)):
            self.__dict__.pop(name, None)
        self.search_ = result
        self.cv_results_ = result.cv_results
        self.best_index_ = result.best_index
        self.best_score_ = result.best_score
        self.best_params_ = result.best_params
        self.comparison_ = result.comparison
        self.n_splits_ = result.scores.shape[1]
        return result

    def _fixed(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the parameters in `names` that this estimator has and the search keeps fixed."""
        own = self.get_params(deep=False)
        return {name: own[name] for name in names if name in own and name not in self._searched}

    def _require_model(self) -> None:
        """Raise NotFittedError if there is no model, for example after a fit with refit=False."""
        super()._require_model()
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                "No model available: refit=False. Set refit=True, or fit "
                f"{self._estimator.__name__} with best_params_."
            )


def _fitted_attributes(estimator: Any) -> dict[str, Any]:
    """Return the fitted attributes that a search copies: all except C_ (see ``best_params_``)."""
    found = getattr(estimator, "__dict__", {}).items()
    names = [name for name, _ in found if name.endswith("_") and name[0] != "_" and name != "C_"]
    return {name: getattr(estimator, name) for name in names}


class SearchLog:
    """Callback that prints one line per fit of a search, with its candidate's mean score so far."""

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
