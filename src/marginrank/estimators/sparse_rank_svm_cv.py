"""SparseRankSVMCV: a sparse RankSVM that searches its own regularization."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Self

from numpy.typing import ArrayLike

from marginrank.estimators.base import LinearRanker, check_seed
from marginrank.estimators.input import features_of, set_features
from marginrank.estimators.search_base import FIT_ATTRIBUTES, SearchMixin
from marginrank.estimators.sparse_rank_svm import SparseRankSVM
from marginrank.fit.sparse import SparseParameters
from marginrank.models import LinearModel
from marginrank.selection.paths import SparsePath, fit_path, given_grid
from marginrank.selection.space import SearchSpace
from marginrank.selection.sparse_paths import SparseLearner


class SparseRankSVMCV(SearchMixin, LinearRanker):
    """SparseRankSVM with the C, or the radius, that ranks held-out queries best.

    The best value v of a grid maximizes

        (1/K) Σ_k metric(queries of fold k, scores X w_k(v)), tied scores as in random order,

    where w_k(v) are the weights of :class:`~marginrank.SparseRankSVM` trained without fold k, by
    :func:`~marginrank.sparse_path`. Of equals the sparsest is taken. The last fit is on all data.

    Parameters
    ----------
    Cs, radii : array-like, optional
        The grid, of either form. By default, the grid of :func:`~marginrank.sparse_path` for all
        data.
    n_points : int, default=50
        Length of the default grid.
    parameter : {"C", "radius"}, default="C"
        What the default grid is of.
    cv, scoring, refit
        As in :class:`~marginrank.RankSVMCV`.
    rule : {"best", "one_se"}, default="best"
        Select the highest mean; or the sparsest model whose mean is not lower by more than one
        standard error of the best one's mean.
    l1_ratio, positive, loss, max_iter, pair_selection, pair_cost, normalization, scale, n_jobs
        As in :class:`~marginrank.SparseRankSVM`. The scale of features is that of the documents of
        each fit: held-out ones do not count.
    tol : float, default=1e-6
        Certified relative distance of the last fit to its optimum. Those of the folds need not come
        closer than 1e-4.
    verbose : int, default=0
        If positive, print one line per fit to a fold, and one per iteration of the last fit.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, and of the samples that speed up the fits.

    Attributes
    ----------
    best_params_, best_score_, best_index_, cv_results_, search_, comparison_, n_splits_
        As in :class:`~marginrank.RankSVMCV`; the parameter is C, or radius.
    path_ : SparsePath
        Models of the whole grid on all data, with the mean scores of the folds.
    best_estimator_ : SparseRankSVM
        The last fit. A file that :meth:`save` writes holds this.
    coef_, scale_, sparsity_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_
        Those of `best_estimator_`; see :class:`~marginrank.SparseRankSVM`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X, or the RankingData, have names that are strings.

    Examples
    --------
    >>> from marginrank import SparseRankSVMCV, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = SparseRankSVMCV(n_points=10, cv=3).fit(X, y, qid=qid)
    >>> len(model.cv_results_["params"]), model.best_score_ > 0.8
    (10, True)
    """

    _estimator = SparseRankSVM
    _found = ("coef_", "sparsity_", *FIT_ATTRIBUTES)

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
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.Cs = Cs
        self.radii = radii
        self.n_points = n_points
        self.parameter = parameter
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.refit = refit
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.pair_selection = pair_selection
        self.pair_cost = pair_cost
        self.normalization = normalization
        self.scale = scale
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Search the value, and fit the weights with the best one.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            As in :meth:`RankSVM.fit`. The metric is not weighted.

        Returns
        -------
        SparseRankSVMCV
            The fitted estimator.
        """
        self._check_search()
        parameter, grid = given_grid(self.Cs, self.radii, self.parameter)
        fixed = self._fixed(field.name for field in fields(SparseParameters))
        base = SparseParameters(radius=1.0 if parameter == "radius" else None, **fixed)
        seed = check_seed(self.random_state)
        data = self._data(X, y, qid, group, sample_weight, query_weight)
        learner = SparseLearner(parameter)
        space = SearchSpace(base, {}, grid, self.n_points, learner)
        found = self._search(data, space, seed)
        (shared,) = space.combinations
        values = found.values
        path, _ = fit_path(
            SparsePath, learner, data, shared, grid=values, n_points=values.size, seed=seed
        )
        self.path_ = replace(path, metric=found.metric, scores=found.mean)
        set_features(self, features_of(data))
        self._fit_best(data)
        return self

    def to_linear_model(self) -> LinearModel:
        """Return the last fit as plain data, as model files hold it."""
        self._require_model()
        model: LinearModel = self.best_estimator_.to_linear_model()
        return model
