"""AdditiveRankSVMCV, an additive ranker that selects its parameters by cross-validation."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import ParameterError, given
from marginrank.additive.fit import AdditiveParameters
from marginrank.additive.selection import AdditiveLearner
from marginrank.data import RankingData
from marginrank.estimators.additive_rank_svm import AdditiveRankSVM, additive_input
from marginrank.estimators.input import remember_columns
from marginrank.estimators.search_base import SearchRanker
from marginrank.models.parameters import ADDITIVE_TRIED, BINS_TRIED, SMOOTHNESS_TRIED
from marginrank.selection.space import SearchSpace, check_grid


class AdditiveRankSVMCV(SearchRanker, AdditiveRankSVM):  # type: ignore[misc]
    """AdditiveRankSVM with C, smoothness and number of bins selected by cross-validation.

    Every candidate of the grid is trained without each fold and scored on it, as in
    :class:`~marginrank.RankSVMCV`; the last fit is on all data. The models of a fold share knots
    and bins, and each is warm-started from its neighbor on the grid.

    Parameters
    ----------
    Cs : array-like, optional
        Values of C to try. If given, all combinations with `smoothness` and `max_bins` are tried.
        By default the values are `n_points` powers of ten around 1, divided by the number of pairs
        if ``normalization="none"``. One parameter is then searched at a time: all values of C with
        the first `max_bins` and `smoothness`, then the other values of these two with the best C
        so far. If the best C is at an end of the grid, the grid is extended, by up to a factor of
        10 down and 100 up.
    n_points : int, default=3
        Number of values of C in the default grid.
    smoothness : float or array-like, default=(0.03, 3)
        Values of the smoothness to try.
    max_bins : int or array-like, default=32
        Numbers of bins to try.
    cv, scoring, refit
        As in :class:`~marginrank.RankSVMCV`.
    rule : {"best", "one_se"}, default="best"
        "best" selects the candidate with the highest mean score; among equals, the one with the
        first `max_bins` and `smoothness` and the smallest C. "one_se" keeps the `max_bins` and
        `smoothness` of that candidate, and selects the smallest C whose mean score is within one
        standard error of the highest.
    normalization : {"none", "pairs", "query"}, default="pairs"
        As in :class:`~marginrank.RankSVM`; with "pairs", the meaning of C does not depend on the
        amount of data.
    loss, categorical_features, interactions, monotonic_cst, group_l1, solver, tol, max_iter
        As in :class:`~marginrank.AdditiveRankSVM`. Fits to folds use a `tol` of at least 1e-3.
    pair_selection, pair_cost, margin, scale
        As in :class:`~marginrank.AdditiveRankSVM`.
    n_jobs, verbose, random_state
        As in :class:`~marginrank.AdditiveRankSVM`; the seed is also used for the folds, and a
        positive `verbose` also prints one line per fit to a fold.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, search_, comparison_, n_splits_
        As in :class:`~marginrank.RankSVMCV`.
    best_estimator_ : AdditiveRankSVM
        The model fitted to all data with the best parameters, which :meth:`save` writes.
    curves_, interactions_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, \
support_pairs_, n_features_in_, feature_names_in_
        Attributes of `best_estimator_`; see :class:`~marginrank.AdditiveRankSVM`.

    Examples
    --------
    >>> from marginrank import AdditiveRankSVMCV, make_ranking
    >>> X, y, qid = make_ranking(n_queries=30, docs_per_query=10, random_state=0)
    >>> model = AdditiveRankSVMCV(Cs=[1, 10], smoothness=[1, 10], cv=3).fit(X, y, qid=qid)
    >>> len(model.cv_results_["params"]), model.best_params_["C"] in (1, 10)
    (4, True)
    """

    _estimator = AdditiveRankSVM
    _searched = ("max_bins", "smoothness")

    def __init__(
        self,
        *,
        Cs: ArrayLike | None = None,
        n_points: int = AdditiveLearner.n_points,
        smoothness: Any = SMOOTHNESS_TRIED,
        max_bins: Any = BINS_TRIED,
        cv: Any = 5,
        scoring: Any = "ndcg@10",
        rule: str = "best",
        refit: bool = True,
        loss: str = "squared_hinge",
        categorical_features: Any = None,
        interactions: int = 0,
        monotonic_cst: Any = None,
        group_l1: float = 0.0,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        margin: Any = "unit",
        normalization: str = ADDITIVE_TRIED,
        scale: Any = "standard",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        """Store the arguments as attributes; see :class:`KeywordArguments`."""

    def _space(self) -> SearchSpace:
        Cs = None if self.Cs is None else check_grid("Cs", self.Cs)
        axes = {name: self._values(name) for name in self._searched}
        base = AdditiveParameters(**self._fixed(f.name for f in fields(AdditiveParameters)))
        return SearchSpace(base, axes, Cs, self.n_points, AdditiveLearner())

    def _documents(
        self, X: Any, given: dict[str, Any], space: SearchSpace
    ) -> tuple[RankingData, SearchSpace]:
        documents = additive_input(X, **given, n_jobs=self.n_jobs)
        remember_columns(self, *given.values())
        return documents.data, replace(space, base=documents.with_categories(space.base))

    def _refit(self, estimator: Any, data: RankingData, X: Any, given: dict[str, Any]) -> Any:
        if given["qid"] is None and given["group"] is None and not isinstance(X, RankingData):
            given["group"] = [data.n_documents]  # the search has warned about missing queries
        return estimator.fit(X, **given)  # pass X, because `data` lacks the text of categories

    def _values(self, name: str) -> list[Any]:
        listed = getattr(self, name)
        values = [_plain(value) for value in (listed if _is_listed(listed) else [listed])]
        if any(map(_is_listed, values)):
            raise ParameterError(given(name, listed), " must be a number or a list of numbers.")
        if not values:
            raise ParameterError(given(name, listed), " has no values to try.")
        return list(dict.fromkeys(values))


def _is_listed(value: Any) -> bool:
    return np.iterable(value) and not isinstance(value, str)


def _plain(value: Any) -> Any:
    """Return a NumPy number as a Python number, and any other value unchanged."""
    return value.item() if isinstance(value, (np.generic, np.ndarray)) and not value.ndim else value
