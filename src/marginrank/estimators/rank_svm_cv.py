"""RankSVMCV: a linear ranking machine that chooses its own C."""

from __future__ import annotations

from itertools import chain
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from marginrank._utils.parameters import check_choice, check_number
from marginrank.estimators.base import LinearRanker, check_seed, warn_of
from marginrank.estimators.input import features_of, set_features
from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.search_base import NO_MODEL, SearchLog, forget_model, keep_selection
from marginrank.fit.linear import Parameters, RidgeParameters
from marginrank.models import LinearModel
from marginrank.models.fit_report import unfinished_message
from marginrank.models.parameters import LINES_TRIED
from marginrank.selection.folds import folds_of
from marginrank.selection.judges import FoldJudge
from marginrank.selection.path import check_grid
from marginrank.selection.selection import RULES, Search, grids_of

AXES = ("loss", "normalization", "scale")
AUTO = "auto"
SHARED = ("solver", "max_iter", "pair_selection", "pair_cost", "margin", "n_jobs")
FOUND = (
    "coef_",
    "scale_",
    "objective_",
    "gap_",
    "stop_reason_",
    "n_iter_",
    "history_",
    "n_pairs_",
)


class RankSVMCV(LinearRanker):
    """RankSVM with the C that ranks held-out queries best.

    Of all candidates, values of C and of what else is listed, the one is chosen that maximises

        (1/K) Σ_k metric(queries of fold k, scores X w_k), tied scores as in random order,

    where w_k are the weights of :class:`~marginrank.RankSVM` learned without fold k. All values of
    C and all folds are solved side by side, and share every sweep over X: 130 fits take the time of
    a few. The last fit is on all data.

    Parameters
    ----------
    Cs : array-like, optional
        The values of C to choose from. By default `n_points` of them, from the data: see
        :func:`~marginrank.rank_path`.
    n_points : int, default=21
        Length of the default grid.
    cv : int, splitter or iterable of (train, test), default=5
        Number of folds of whole queries, which do not depend on the order of the rows; or a
        splitter of scikit-learn, which gets the queries as groups; or the rows of each fold. The
        documents of a single query are divided at random.
    scoring : str or callable, default="ndcg@10"
        The metric, as :func:`~marginrank.metrics.get_metric` takes it, or a scorer of
        :func:`~marginrank.metrics.make_ranking_scorer`. Folds on which it has no value, or that
        have no pair to judge by, are left out, with a warning.
    rule : {"best", "one_se"}, default="best"
        Choose the highest mean; or the smallest C, other parameters being those of the best, whose
        mean is not lower by more than one standard error of the best one's mean.
    refit : bool, default=True
        Learn from all data with what was chosen. Without it there is no model.
    loss : str or list of str, default="squared_hinge"
        As in :class:`~marginrank.RankSVM`; or a list of names to choose from.
    normalization, scale : str, list of str or None, default="auto"
        As in :class:`~marginrank.RankSVM`; or a list of names to choose from, as in
        ``scale=["none", "standard"]``. "auto" tries "none" and "query" where each has its own grid
        of C, from the data; with `Cs`, it is "none".
    solver, max_iter, pair_selection, pair_cost, margin, n_jobs
        As in :class:`~marginrank.RankSVM`.
    tol : float, default=1e-6
        Relative distance of each fit to its optimum. Often 1e-4 leads to the same choice, or to one
        that is as good, in less time.
    verbose : int, default=0
        If positive, print one line per fit to a fold, and one per iteration of the last fit.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, and of the samples that speed up the fits.

    Attributes
    ----------
    best_params_ : dict
        What was chosen: C, and the other parameters of which several values were tried.
    best_score_ : float
        Its mean score over the folds. As the best of many it is too good to be true by a little:
        see ``marginrank tune --nested``.
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict
        What was tried, as scikit-learn's GridSearchCV tells it: "param_C" and so on, "params",
        "split0_test_score", …, "mean_test_score", "std_test_score" and "rank_test_score". There are
        no times, as the fits run side by side. Means and deviations are over folds with a score.
    selection_ : Selection
        The candidates with their scores, for :func:`~marginrank.plots.plot_selection`.
    comparison_ : Comparison or None
        The chosen candidate against the one with the next best mean, query by query.
    n_splits_ : int
        Number of folds.
    best_estimator_ : RankSVM
        The last fit. A file that :meth:`save` writes holds this.
    coef_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_
        Those of `best_estimator_`; see :class:`~marginrank.RankSVM`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X, or the RankingData, have names that are strings.

    Examples
    --------
    >>> from marginrank import RankSVMCV, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = RankSVMCV(n_points=10, cv=3).fit(X, y, qid=qid)
    >>> len(model.cv_results_["params"]), bool(model.best_score_ > 0.8)
    (40, True)
    """

    def __init__(
        self,
        *,
        Cs: ArrayLike | None = None,
        n_points: int = 21,
        cv: Any = 5,
        scoring: Any = "ndcg@10",
        rule: str = "best",
        refit: bool = True,
        loss: Any = "squared_hinge",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        margin: Any = "unit",
        normalization: Any = "auto",
        scale: Any = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.Cs = Cs
        self.n_points = n_points
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.refit = refit
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.pair_selection = pair_selection
        self.pair_cost = pair_cost
        self.margin = margin
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
        """Choose the parameters, and learn the weights with them.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            As in :meth:`RankSVM.fit`. The metric is not weighted.

        Returns
        -------
        RankSVMCV
            The fitted estimator.
        """
        check_choice("rule", self.rule, RULES)
        check_number("tol", self.tol)
        Cs = None if self.Cs is None else check_grid("Cs", self.Cs)
        seed = check_seed(self.random_state)
        data = self._data(X, y, qid, group, sample_weight, query_weight)
        folds = folds_of(data, self.cv, seed)
        axes = {name: _choices(getattr(self, name), Cs) for name in AXES}
        varied = [name for name, values in axes.items() if len(values) > 1]
        judge = FoldJudge(data, folds, self.scoring, self.n_jobs)
        search = Search(data, judge, varied=varied, seed=seed)
        base = Parameters(tol=self.tol, **self._shared())
        grids = grids_of(data, base, axes, Cs=Cs, n_points=self.n_points)
        log = SearchLog(self.verbose, judge.metric, varied)
        is_close = []
        for trial in chain.from_iterable(map(search.try_grid, grids)):
            is_close.append(trial.is_close)
            log.add(search.candidates[trial.candidate])
        message = unfinished_message(is_close.count(False), len(is_close), "fits to folds")
        warn_of(message, ConvergenceWarning)
        selection = search.selection(self.rule)
        forget_model(self, FOUND)
        keep_selection(self, selection)
        self.comparison_ = search.compare(selection)
        set_features(self, features_of(data))
        if self.refit:
            self.best_estimator_ = self._chosen(selection.parameters).fit(data)
            for name in FOUND:
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def to_linear_model(self) -> LinearModel:
        """Return the last fit as plain data, as model files hold it."""
        self._require_model()
        return self.best_estimator_.to_linear_model()

    def _require_model(self) -> None:
        """Raise NotFittedError without weights, also after a fit that left out the last one."""
        super()._require_model()
        if not hasattr(self, "best_estimator_"):
            raise NotFittedError(NO_MODEL.format("RankSVM"))

    def _chosen(self, parameters: RidgeParameters) -> RankSVM:
        """Return the estimator of what was chosen, not fitted."""
        chosen = {name: getattr(parameters, name) for name in ("C", *AXES)}
        last = {name: getattr(self, name) for name in ("tol", "verbose", "random_state")}
        return RankSVM(**chosen, **last, **self._shared())

    def _shared(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SHARED}


def _choices(value: Any, Cs: Any) -> list[Any]:
    """Return the values to try: those of a list of names, or the only one."""
    if isinstance(value, str) and value == AUTO:
        return list(LINES_TRIED if Cs is None else LINES_TRIED[:1])
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    if is_list and all(entry is None or isinstance(entry, str) for entry in value):
        return list(value)
    return [value]
