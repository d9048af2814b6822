"""RankSVMCV, a linear RankSVM that selects C by cross-validation."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from numpy.typing import ArrayLike

from marginrank.estimators.base import LinearRanker
from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.search_base import SearchRanker
from marginrank.fit.linear import Parameters
from marginrank.models.parameters import LINEAR_TRIED
from marginrank.selection.space import SearchSpace, check_grid

AUTO = "auto"


class RankSVMCV(SearchRanker, LinearRanker):
    """RankSVM with C selected by cross-validation over queries.

    The candidates are all combinations of the values of C and of other parameters that are lists.
    With K folds, the best candidate maximizes the mean score

        (1/K) Σ_k metric(queries of fold k, scores X w_k),

    where w_k are the weights of :class:`~marginrank.RankSVM` trained without fold k. Documents with
    tied scores count as in random order. All values of C and all folds are solved together and
    share every pass over X, so 130 fits take the time of a few. At the end, a model is fitted to
    all data with the best parameters.

    Parameters
    ----------
    Cs : array-like, optional
        Values of C to try. By default a grid of `n_points` values for the data: see
        :func:`~marginrank.linear_path`.
    n_points : int, default=21
        Number of values of C in the default grid.
    cv : int, "loo", splitter or iterable of (train, test), default=5
        Number of folds of whole queries, which do not depend on the order of the rows; or a
        splitter of scikit-learn, which gets the queries as groups; or the rows of each fold. The
        documents of a single query are split at random. "loo" leaves out one query at a time: each
        candidate is fitted once, to all data, and a Newton step per query estimates the scores
        without it, as in :meth:`RankSVM.leave_one_out`. It requires a smooth loss and counts as one
        fold, without a standard error.
    scoring : str or callable, default="ndcg@10"
        The metric, see :func:`~marginrank.metrics.get_metric`, or a scorer of
        :func:`~marginrank.metrics.make_ranking_scorer`. Folds on which it is undefined, or that
        have no query with different labels, are skipped with a warning.
    rule : {"best", "one_se"}, default="best"
        "best" selects the candidate with the highest mean score, and among equals the smallest C.
        "one_se" keeps the other parameters of that candidate, and selects the smallest C whose mean
        score is within one standard error of the highest.
    refit : bool, default=True
        Fit a model to all data with the best parameters. If False, `predict` raises an error.
    loss : str or list of str, default="squared_hinge"
        As in :class:`~marginrank.RankSVM`; or a list of names to try.
    normalization, scale : str, list of str or None, default="auto"
        As in :class:`~marginrank.RankSVM`; or a list of names to try, as in
        ``scale=["none", "standard"]``. "auto" tries "none" and "query", each with its own default
        grid of C; with `Cs`, it is "none".
    solver, max_iter, pair_selection, pair_cost, margin, n_jobs
        As in :class:`~marginrank.RankSVM`.
    device : None, "cpu", "cuda" or "cuda:1", default=None
        Device to compute on; None uses the native kernels on the CPU. On a GPU, the fits of all
        values of C and all folds share one matrix product with X. See docs/how_to/gpu.md.
    tol : float, default=1e-6
        Relative distance to the optimum at which the fit to all data stops. The fits to folds stop
        at 1e-4 or at `tol`, whichever is larger: a smaller distance would change the mean scores by
        less than their standard errors.
    verbose : int, default=0
        If positive, print one line per fit to a fold, and one per iteration of the fit to all data.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds, and of the samples that speed up the fits.

    Attributes
    ----------
    best_params_ : dict
        The selected C, and the other parameters with several candidates.
    best_score_ : float
        Mean score over the folds of the selected candidate. It is slightly optimistic, because it
        is the best of many: see ``marginrank tune --nested``.
    best_index_ : int
        Index of the selected candidate in `cv_results_`.
    cv_results_ : dict
        All candidates, as in scikit-learn's GridSearchCV: "param_C" and so on, "params",
        "split0_test_score", …, "mean_test_score", "std_test_score" and "rank_test_score". There are
        no times, because fits run together. Means and deviations are over the folds on which the
        metric is defined.
    search_ : SearchResult
        The candidates with their scores and standard errors, for
        :func:`~marginrank.plots.plot_search`.
    comparison_ : Comparison or None
        Comparison of the best candidate with the second best, query by query.
    n_splits_ : int
        Number of folds.
    best_estimator_ : RankSVM
        The model fitted to all data with the best parameters, which :meth:`save` writes.
    coef_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, support_pairs_, \
n_features_in_, feature_names_in_
        Attributes of `best_estimator_`; see :class:`~marginrank.RankSVM`.

    Examples
    --------
    >>> from marginrank import RankSVMCV, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = RankSVMCV(n_points=10, cv=3).fit(X, y, qid=qid)
    >>> len(model.cv_results_["params"]), bool(model.best_score_ > 0.8)
    (40, True)
    """

    _estimator = RankSVM
    _searched = ("loss", "normalization", "scale")

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
        device: str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        """Store the arguments as attributes; see :class:`KeywordArguments`."""

    def _space(self) -> SearchSpace:
        Cs = None if self.Cs is None else check_grid("Cs", self.Cs)
        axes = {name: _values(getattr(self, name), Cs) for name in self._searched}
        first = {name: values[0] for name, values in axes.items()}
        base = Parameters(**self._fixed(field.name for field in fields(Parameters)), **first)
        return SearchSpace(base, axes, Cs, self.n_points)


def _values(value: Any, Cs: Any) -> list[Any]:
    """Return the values to try: the entries of a list of names, or the only value."""
    if isinstance(value, str) and value == AUTO:
        return list(LINEAR_TRIED if Cs is None else LINEAR_TRIED[:1])
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    if is_list and all(entry is None or isinstance(entry, str) for entry in value):
        return list(value)
    return [value]
