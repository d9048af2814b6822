"""AdditiveRankSVMCV: an additive ranker that chooses its own C, smoothness and bins."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from marginrank._base.parameters import ParameterError, check_integer, check_number, given
from marginrank.data.knots import MOST_BINS
from marginrank.estimators._linear import check_seed
from marginrank.estimators.additive_rank_svm import AdditiveRankSVM, documents_and_features
from marginrank.training.additive import AdditiveParameters
from marginrank.training.additive_selection import Grid, choose_additive
from marginrank.training.folds import cost_by_label, folds_of

CS = tuple(10.0 ** np.arange(-2, 4))
CHOSEN = ("C", "smoothness", "max_bins")


class AdditiveRankSVMCV(AdditiveRankSVM):
    """AdditiveRankSVM with the C, smoothness and number of bins that rank held-out queries best.

    Every candidate of the grid is learned without each fold, and judged on it; the last fit is on
    all data. Of equals, the one with fewer bins, smoother curves and a lower C is taken.

    Parameters
    ----------
    Cs : array-like, default=(0.01, 0.1, 1, 10, 100, 1000)
        Values of C to choose from.
    smoothness : float or array-like, default=(0.03, 0.3, 3, 30)
        Values of the smoothness to choose from.
    max_bins : int or array-like, default=32
        Numbers of bins to choose from.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of whole queries, as in :class:`~marginrank.RankSVMCV`.
    scoring : str or callable, default="ndcg@10"
        The metric, as in :class:`~marginrank.RankSVMCV`.
    normalization : {"none", "pairs", "query"}, default="pairs"
        As in :class:`~marginrank.RankSVM`; with "pairs", a C means the same for any amount of data.
    loss, categorical, interactions, monotone, l1, solver, tol, max_iter
        As in :class:`~marginrank.AdditiveRankSVM`. Fits of folds need not come closer than 1e-3.
    pair_selection, pair_cost, margin, scale
        As in :class:`~marginrank.AdditiveRankSVM`.
    n_jobs, verbose, random_state
        As in :class:`~marginrank.AdditiveRankSVM`; the seed is also that of the folds.

    Attributes
    ----------
    best_params_ : dict
        The "C", "smoothness" and "max_bins" that were chosen.
    scores_ : ndarray of shape (n_bins, n_smoothness, n_Cs, n_folds)
        The metric of each candidate on each fold; nan where it has none.
    best_estimator_ : AdditiveRankSVM
        The last fit. A file that :meth:`save` writes holds this.
    curves_, interactions_, scale_, objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_
        Those of `best_estimator_`; see :class:`~marginrank.AdditiveRankSVM`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if there are any.

    Examples
    --------
    >>> from marginrank import AdditiveRankSVMCV, make_ranking
    >>> X, y, qid = make_ranking(n_queries=30, docs_per_query=10, random_state=0)
    >>> model = AdditiveRankSVMCV(Cs=[1, 10], smoothness=[1, 10], cv=3).fit(X, y, qid=qid)
    >>> model.scores_.shape, model.best_params_["C"] in (1, 10)
    ((1, 2, 2, 3), True)
    """

    def __init__(
        self,
        *,
        Cs: ArrayLike = CS,
        smoothness: Any = (0.03, 0.3, 3.0, 30.0),
        max_bins: Any = 32,
        cv: Any = 5,
        scoring: Any = "ndcg@10",
        loss: str = "squared_hinge",
        categorical: Any = None,
        interactions: int = 0,
        monotone: Any = None,
        l1: float = 0.0,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        margin: Any = "unit",
        normalization: str = "pairs",
        scale: Any = "standard",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.Cs = Cs
        self.smoothness = smoothness
        self.max_bins = max_bins
        self.cv = cv
        self.scoring = scoring
        self.loss = loss
        self.categorical = categorical
        self.interactions = interactions
        self.monotone = monotone
        self.l1 = l1
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

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Choose the parameters, and learn the curves with them.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            As in :meth:`AdditiveRankSVM.fit`. The metric is not weighted.

        Returns
        -------
        AdditiveRankSVMCV
            The fitted estimator.
        """
        grid = self._grid()
        shared = {name: getattr(self, name) for name in SHARED}
        parameters = AdditiveParameters(**shared)
        parameters.check()
        seed = check_seed(self.random_state)
        weights = (qid, group, sample_weight, query_weight)
        data, features, names = documents_and_features(X, y, *weights, n_jobs=self.n_jobs)
        folded = AdditiveParameters(**shared | {"pair_cost": cost_by_label(self.pair_cost, data.y)})
        choice = choose_additive(
            data,
            features,
            folded,
            grid,
            folds_of(data, self.cv, seed),
            metric=self.scoring,
            feature_names=names,
            seed=seed,
        )
        chosen = {
            name: getattr(choice.parameters, name) for name in ("C", "smoothness", "max_bins")
        }
        others = {"verbose": self.verbose, "random_state": self.random_state}
        best = AdditiveRankSVM(**shared | chosen | others).fit(X, y, *weights)
        self.__dict__.update({name: v for name, v in vars(best).items() if name.endswith("_")})
        self.best_estimator_, self.best_params_, self.scores_ = best, chosen, choice.scores
        return self

    def _grid(self) -> Grid:
        max_bins = [
            check_integer("max_bins", n, at_least=1, at_most=MOST_BINS)
            for n in _values(self.max_bins)
        ]
        smoothness = [check_number("smoothness", s) for s in _values(self.smoothness)]
        Cs = [check_number("Cs", C) for C in _values(self.Cs)]
        for name, values in (("max_bins", max_bins), ("smoothness", smoothness), ("Cs", Cs)):
            if not values:
                raise ParameterError(given(name, getattr(self, name)), " has nothing to choose.")
        return Grid(sorted(set(max_bins)), sorted(set(smoothness)), sorted(set(Cs)))

    def to_additive_model(self) -> Any:
        """Return the last fit as plain data, as model files hold it."""
        self._require_model()
        return self.best_estimator_.to_additive_model()


# What a fit takes and this estimator does not choose.
SHARED = (
    "loss",
    "categorical",
    "interactions",
    "monotone",
    "l1",
    "solver",
    "tol",
    "max_iter",
    "pair_selection",
    "pair_cost",
    "margin",
    "normalization",
    "scale",
    "n_jobs",
)


def _values(given: Any) -> list[Any]:
    return list(given) if np.ndim(given) else [given]
