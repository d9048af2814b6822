"""RankSVM: the linear ranking machine."""

import warnings
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from marginrank.data import RankingData
from marginrank.data._validation import check_features
from marginrank.estimators._linear import LinearRanker, check_seed
from marginrank.fitting import Parameters, convergence_message, fit_linear
from marginrank.solvers import SolverResult, StopReason
from marginrank.solvers.result import print_iteration

Floats = NDArray[np.float64]


class RankSVM(LinearRanker):
    """Linear RankSVM.

    Minimises ½‖w‖² + C · Σ ℓ(s_i − s_j) over the pairs (i, j) of documents of one query with
    y_i > y_j, where s = Xw. The pairs are never written down: a query of a million documents is no
    problem. There is no intercept, as it would not change any order.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the regulariser. With ``normalization="none"`` it is a weight a
        pair, as in LIBLINEAR-ranksvm.
    loss : {"squared_hinge", "huber"}, default="squared_hinge"
        ℓ(t) = max(0, 1 − t)², or the same made linear below t = 0.
    solver : {"newton", "tron"}, default="newton"
        "newton" is fast on every kind of data; "tron" is the method of Lee and Lin (2014), for
        reference.
    tol : float, default=1e-6
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int, default=1000
        Limit on the iterations of the solver.
    pair_selection : {"all", "adjacent"}, default="all"
        Use all pairs, or only those of adjacent levels of a query (Lee and Lin, section 5).
    normalization : {"none", "pairs", "query"}, default="none"
        "none" sums the loss over all pairs; "pairs" takes its mean over all pairs; "query" takes
        the mean over the pairs of each query, then over the queries.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    n_jobs : int, default=None
        Number of threads; None and −1 mean all. The result does not depend on it.
    verbose : int, default=0
        If positive, print a line an iteration.
    random_state : int, RandomState instance or None, default=0
        Seed of the samples that speed up "newton". They do not change the optimum, only the last
        digits of where the solver stops.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w.
    objective_ : float
        F(w).
    gap_ : float
        A certified upper bound on F(w) − F*.
    stop_reason_ : StopReason
        Why the solver stopped.
    n_iter_ : int
        Iterations on the full data.
    history_ : list of Iteration
        A line an iteration: seconds, objective, gap, sweeps over X and more.
    n_pairs_ : int
        Number of pairs in the loss.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    Notes
    -----
    Ctrl-C ends a fit after the current sweep over X; the best coefficients so far are stored before
    KeyboardInterrupt is raised.

    Examples
    --------
    >>> from marginrank import RankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = RankSVM(C=0.01).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.8
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "squared_hinge",
        solver: str = "newton",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        normalization: str = "none",
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.pair_selection = pair_selection
        self.normalization = normalization
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features)
            float32 and float64 with contiguous rows and CSR are not copied.
        y : array-like of shape (n_documents,)
            Labels, any real numbers; higher is preferred.
        qid : array-like of shape (n_documents,), optional
            Query of each document, of any type and in any order.
        group : array-like of shape (n_queries,), optional
            Sizes of contiguous queries, instead of `qid`. With neither, all is one query.
        sample_weight : array-like of shape (n_documents,), optional
            A pair weighs the product of its two documents' weights.
        query_weight : array-like of shape (n_queries,) or (n_documents,), optional
            Weights of the queries in order of first appearance, or repeated for each document.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        parameters = self._parameters()
        parameters.check()
        seed = check_seed(self.random_state)
        X_checked = check_features(X)
        validate_data(self, X, skip_check_array=True)
        data = RankingData(
            X_checked,
            y,
            qid,
            group,
            sample_weight=sample_weight,
            query_weight=query_weight,
            n_jobs=self.n_jobs,
        )
        fit = fit_linear(
            data,
            parameters,
            seed=seed,
            w0=self._start(data.n_features),
            callback=print_iteration if self.verbose else None,
        )
        self.n_pairs_ = fit.n_pairs
        self._store(fit.result)
        return self

    def _parameters(self) -> Parameters:
        return Parameters(**{field.name: getattr(self, field.name) for field in fields(Parameters)})

    def _start(self, n_features: int) -> Floats | None:
        coef: Floats | None = getattr(self, "coef_", None) if self.warm_start else None
        if coef is not None and coef.shape != (n_features,):
            raise ValueError(
                f"X has {n_features} features but warm_start continues a fit with {coef.size}; "
                "use the same features, or warm_start=False."
            )
        return coef

    def _store(self, result: SolverResult) -> None:
        self.coef_ = result.w
        self.objective_ = result.objective
        self.gap_ = result.gap
        self.stop_reason_ = result.stop
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        if result.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        message = convergence_message(result, self.tol)
        if message is not None:
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
