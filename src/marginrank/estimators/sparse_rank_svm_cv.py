"""SparseRankSVMCV: a sparse ranking machine that chooses its own regularisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from marginrank._utils.parameters import check_choice, check_number
from marginrank.data import RankingData
from marginrank.estimators.base import LinearRanker, check_seed, warn_of
from marginrank.estimators.input import features_of, set_features
from marginrank.estimators.sparse_rank_svm import SparseRankSVM
from marginrank.fit.sparse import SparseParameters
from marginrank.metrics.names import metric_name
from marginrank.metrics.scorers import metric_of
from marginrank.models import LinearModel
from marginrank.models.fit_report import unfinished_message
from marginrank.selection.folds import (
    cost_by_label,
    folds_of,
    has_pairs,
    over_folds,
    rows_of,
)
from marginrank.selection.path import (
    PATH_TOL,
    SHARED_WITH_A_FIT,
    SparsePath,
    check_grid,
    fit_path,
)

FOUND = (
    "coef_",
    "scale_",
    "sparsity_",
    "objective_",
    "gap_",
    "stop_reason_",
    "n_iter_",
    "history_",
    "n_pairs_",
)


class SparseRankSVMCV(LinearRanker):
    """SparseRankSVM with the C, or the radius, that ranks held-out queries best.

    The value v of a grid is chosen that maximises

        (1/K) Σ_k metric(queries of fold k, scores X w_k(v)), tied scores as in random order,

    where w_k(v) are the weights of :class:`~marginrank.SparseRankSVM` learned without fold k, by
    :func:`~marginrank.sparse_path`. Of equals the sparsest is taken. The last fit is on all data.

    Parameters
    ----------
    parameter : {"C", "radius"}, default="C"
        What to choose.
    n_points : int, default=50
        Length of the default grid.
    values : array-like, optional
        The Cs or radii to choose from. By default, the grid of :func:`~marginrank.sparse_path` for
        all data.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds of whole queries, drawn at random and equal in queries; or a splitter of
        scikit-learn, which gets the queries as groups; or the rows of each fold. A query in both
        parts of a fold is refused. The documents of a single query are divided at random.
    scoring : str or callable, default="ndcg@10"
        The metric, as :func:`~marginrank.metrics.get_metric` takes it, or a scorer of
        :func:`~marginrank.metrics.make_ranking_scorer`. Folds on which it has no value, or that
        have no pair to judge by, are left out, with a warning.
    l1_ratio, positive, loss, max_iter, pair_selection, pair_cost, normalization, scale, n_jobs
        As in :class:`~marginrank.SparseRankSVM`. The spread of features is that of the documents
        of each fit: held-out ones do not count.
    tol : float, default=1e-6
        Certified relative distance of the last fit to its optimum. Those of the folds need not come
        closer than 1e-4.
    verbose : int, default=0
        If positive, print one line per fold, and one line per iteration of the last fit.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, and of the samples that speed up the fits.

    Attributes
    ----------
    best_value_ : float
        The C or radius that was chosen.
    values_ : ndarray of shape (n_points,)
        The grid, ascending.
    scores_ : ndarray of shape (n_points, n_folds)
        The metric of each value on each fold; nan where it has none.
    path_ : SparsePath
        Models of the whole grid on all data, with the means of the scores.
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
    >>> model.scores_.shape, bool(model.best_value_ in model.values_)
    ((10, 3), True)
    """

    def __init__(
        self,
        *,
        parameter: str = "C",
        n_points: int = 50,
        values: ArrayLike | None = None,
        cv: Any = 5,
        scoring: Any = "ndcg@10",
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
        self.parameter = parameter
        self.n_points = n_points
        self.values = values
        self.cv = cv
        self.scoring = scoring
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
        """Choose the value, and learn the weights with it.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            As in :meth:`RankSVM.fit`. The metric is not weighted.

        Returns
        -------
        SparseRankSVMCV
            The fitted estimator.
        """
        check_choice("parameter", self.parameter, ("C", "radius"))
        check_number("tol", self.tol)
        values = None if self.values is None else check_grid("values", self.values)
        seed = check_seed(self.random_state)
        data = self._data(X, y, qid, group, sample_weight, query_weight)
        folds = folds_of(data, self.cv, seed)
        path = self._path(data, values, seed)
        cost = cost_by_label(self.pair_cost, data.y)
        scores = np.full((path.values.size, len(folds)), np.nan)
        paths = [path]
        for k, fold in enumerate(folds):
            if not has_pairs(data.y[fold.test], data.qid[fold.test]):
                continue
            train, test = (
                rows_of(data, rows, n_jobs=self.n_jobs) for rows in (fold.train, fold.test)
            )
            paths.append(self._path(train, path.values, seed, test, pair_cost=cost))
            scores[:, k] = paths[-1].scores
            if self.verbose:
                print(f"fold {fold.number} of {len(folds)}: {paths[-1]}", flush=True)
        unfinished = sum(one.n_unfinished for one in paths)
        message = unfinished_message(unfinished, len(paths) * path.values.size, has_tol=False)
        warn_of(message, ConvergenceWarning)
        metric = metric_name(metric_of(self.scoring))
        path = replace(path, metric=metric, scores=over_folds(scores, metric).mean)
        best_value = float(path.values[path.best])
        self.best_estimator_ = self._at(best_value).fit(data)
        self.scores_, self.path_, self.values_ = scores, path, path.values
        self.best_value_ = best_value
        set_features(self, features_of(data))
        for name in FOUND:
            setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def to_linear_model(self) -> LinearModel:
        """Return the last fit as plain data, as model files hold it."""
        check_is_fitted(self)
        return self.best_estimator_.to_linear_model()

    def _path(
        self,
        data: RankingData,
        values: Any,
        seed: int,
        held_out: RankingData | None = None,
        **changed: Any,
    ) -> SparsePath:
        """Return the models over the grid, or over the default one if `values` is None."""
        parameters = SparseParameters(
            radius=1.0 if self.parameter == "radius" else None,
            tol=max(self.tol, PATH_TOL),
            **(self._shared() | changed),
        )
        path, _ = fit_path(
            data,
            parameters,
            values,
            n_points=self.n_points,
            held_out=held_out,
            metric=self.scoring,
            random_state=seed,
        )
        return path

    def _at(self, value: float) -> SparseRankSVM:
        """Return the estimator with a value of the grid, not fitted."""
        last = {name: getattr(self, name) for name in ("tol", "verbose", "random_state")}
        chosen: dict[str, Any] = {self.parameter: value}
        return SparseRankSVM(**chosen, **last, **self._shared())

    def _shared(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SHARED_WITH_A_FIT}
