"""SparseRankSVMCV, a sparse RankSVM that selects C or the radius by cross-validation."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from numpy.typing import ArrayLike

from marginrank.data import RankingData
from marginrank.estimators.base import LinearRanker
from marginrank.estimators.search_base import SearchRanker
from marginrank.estimators.sparse_rank_svm import SparseRankSVM
from marginrank.fit.sparse import SparseParameters
from marginrank.selection.paths import SparsePath, fit_path, given_grid
from marginrank.selection.results import SearchResult
from marginrank.selection.space import SearchSpace
from marginrank.selection.sparse_paths import SparseLearner


class SparseRankSVMCV(SearchRanker, LinearRanker):
    """SparseRankSVM with C or the radius selected by cross-validation over queries.

    With K folds, the best value v of C or the radius on a grid maximizes the mean score

        (1/K) Σ_k metric(queries of fold k, scores X w_k(v)),

    where w_k(v) are the weights of :class:`~marginrank.SparseRankSVM` trained without fold k, by
    :func:`~marginrank.sparse_path`. Documents with tied scores count as in random order. Among
    equals the sparsest model is selected. At the end, a model is fitted to all data with the best
    value.

    Parameters
    ----------
    Cs, radii : array-like, optional
        The grid of C or of radii. By default the grid of :func:`~marginrank.sparse_path` for all
        data.
    n_points : int, default=50
        Number of values in the default grid.
    parameter : {"C", "radius"}, default="C"
        Parameter of the default grid.
    cv, scoring, refit
        As in :class:`~marginrank.RankSVMCV`.
    rule : {"best", "one_se"}, default="best"
        "best" selects the highest mean score; "one_se" selects the sparsest model whose mean score
        is within one standard error of the highest.
    l1_ratio, positive, loss, max_iter, pair_selection, pair_cost, normalization, scale, device, \
n_jobs
        As in :class:`~marginrank.SparseRankSVM`. Divisors of features are computed from the
        training documents of each fit, without the held-out documents.
    tol : float, default=1e-6
        Certified relative distance to the optimum at which the fit to all data stops. Fits to folds
        stop at 1e-4 or at `tol`, whichever is larger.
    verbose : int, default=0
        If positive, print one line per fit to a fold, and one per iteration of the fit to all data.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, and of the samples that speed up the fits.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, search_, comparison_, n_splits_
        As in :class:`~marginrank.RankSVMCV`; the parameter is C, or radius.
    path_ : SparsePath
        Models fitted to all data, one per value of the grid, with the mean scores over the folds.
    best_estimator_ : SparseRankSVM
        The model fitted to all data with the best parameters, which :meth:`save` writes.
    coef_, scale_, sparsity_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, \
support_pairs_, n_features_in_, feature_names_in_
        Attributes of `best_estimator_`; see :class:`~marginrank.SparseRankSVM`.

    Examples
    --------
    >>> from marginrank import SparseRankSVMCV, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = SparseRankSVMCV(n_points=10, cv=3).fit(X, y, qid=qid)
    >>> len(model.cv_results_["params"]), model.best_score_ > 0.8
    (10, True)
    """

    _estimator = SparseRankSVM

    def __init__(
        self,
        *,
        Cs: ArrayLike | None = None,
        radii: ArrayLike | None = None,
        n_points: int = SparseLearner.n_points,
        parameter: str = "C",
        cv: Any = 5,
        scoring: Any = "ndcg@10",
        rule: str = "best",
        refit: bool = True,
        l1_ratio: float = 1.0,
        positive: bool = False,
        loss: str = "squared_hinge",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        normalization: str = "pairs",
        scale: Any = "standard",
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        """Store the arguments as attributes; see :class:`KeywordArguments`."""

    def _space(self) -> SearchSpace:
        parameter, grid = given_grid(self.Cs, self.radii, self.parameter)
        fixed = self._fixed(field.name for field in fields(SparseParameters))
        base = SparseParameters(radius=1.0 if parameter == "radius" else None, **fixed)
        return SearchSpace(base, {}, grid, self.n_points, SparseLearner(parameter))

    def _search(self, data: RankingData, space: SearchSpace, seed: int) -> SearchResult:
        found = super()._search(data, space, seed)
        (shared,) = space.combinations
        values = found.values
        path, _ = fit_path(
            SparsePath, space.learner, data, shared, grid=values, n_points=values.size, seed=seed
        )
        self.path_ = replace(path, metric=found.metric, scores=found.mean)
        return found
