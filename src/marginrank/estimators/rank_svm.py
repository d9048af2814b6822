"""RankSVM: the linear ranking machine."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

from numpy.typing import ArrayLike

from marginrank.estimators.base import BatchRanker, check_seed
from marginrank.estimators.input import check_listed, labels_beside, tensor_or_none
from marginrank.fit.inputs import check_propensity
from marginrank.fit.linear import Parameters, fit_linear


class RankSVM(BatchRanker):
    """Linear RankSVM.

    Minimises ½‖w‖² + C · Σ ℓ(s_i − s_j) over the pairs (i, j) of documents of one query with
    y_i > y_j, where s = Xw. The pairs are never written down: a query of a million documents is no
    problem. Or over the pairs that :meth:`fit` is given, where there are preferences and no labels.
    There is no intercept, as it would not change any order.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the regulariser. With ``normalization="none"`` it is a weight a
        pair, as in LIBLINEAR-ranksvm.
    lam : float, optional
        λ instead of C: stands for C = 1 / 2λ, which has the same solution as λ‖w‖² plus the loss.
        With ``normalization="pairs"`` this is TreeRankSVM's parameter.
    objective : {"pairs", "ndcg@k"}, default="pairs"
        "pairs" minimises the loss over all pairs. "ndcg@10", or with any other cut-off, has NDCG of
        the first documents as the goal: after ``pair_cost="ndcg"``, further problems weigh pairs by
        the ranks that their documents have had so far, and the best weights for the training
        queries are kept.
    loss : {"squared_hinge", "hinge", "huber", "logistic"}, default="squared_hinge"
        ℓ(t) = max(0, 1 − t)²; max(0, 1 − t); the squared hinge made linear below t = 0; or
        log(1 + exp(−t)), as in RankNet, to within 0.01. ``"logistic@0.001"`` is within 0.001.
    solver : {"auto", "newton", "tron", "smoothing", "ocas", "bmrm"}, default="auto"
        "auto" is "newton", or for the hinge loss "smoothing". For reference there are "tron" of Lee
        and Lin (2014) for smooth losses, and for the hinge loss the bundle methods "ocas" and
        "bmrm", the latter as in TreeRankSVM (Airola et al., 2011).
    tol : float, default=1e-6
        Relative distance to the optimal objective, (F − F*) / F*.
    max_iter : int, default=1000
        Limit on the iterations of the solver, for each problem.
    pair_selection : {"all", "adjacent"}, default="all"
        Use all pairs, or only those of adjacent levels of a query (Lee and Lin, section 5).
    pair_cost : None, {"gain", "ndcg"}, callable or array-like, default=None
        What multiplies the loss of a pair. "gain" is 2^{y_i} − 2^{y_j}; "ndcg" is the share of the
        query's ideal DCG that swapping the two documents of an ideal ranking costs; a callable
        takes the labels y_i > y_j; a matrix has a row and a column for each distinct label,
        ascending, the row for the preferred document.
    margin : {"unit", "label", "gain"} or callable, default="unit"
        Margin of a pair: that of the loss, or d_i − d_j with d = y, d = 2^y or d = margin(y). A
        violated pair then costs (d_i − d_j)² with the squared hinge.
    normalization : {"none", "pairs", "query"}, default="none"
        "none" sums the loss over all pairs; "pairs" takes its mean over all pairs; "query" takes
        the mean over the pairs of each query, then over the queries.
    scale : None, {"standard", "range", "query"} or array-like of shape (n_features,), default=None
        What features are divided by, without a copy of X: nothing; their standard deviation, which
        is the same as StandardScaler first; their range, as MinMaxScaler; their spread inside
        queries, the root of the mean squared deviation of documents from their query's mean; or
        positive numbers of your own. A feature that does not vary is left as it is.
    device : None, "cpu", "cuda" or "cuda:1", default=None
        Where to compute. None follows X: a tensor on a GPU is used there, anything else goes to
        the native kernels; so does a tensor of less than 16 MiB, as they are faster. "cuda" is a
        GPU, by PyTorch, and insists on it. "cpu" is the same code without a GPU. See docs/gpu.md.
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
        The weights w, of the features as they are: not scaled.
    scale_ : ndarray of shape (n_features,), or None
        What features were divided by.
    objective_ : float
        F(w), where features that were scaled have the regulariser ½ Σ scale_² w².
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
    n_rounds_ : int
        Number of problems that were solved, if `objective` is not "pairs". Objective, gap and
        reason to stop are those of the problem whose weights were kept; iterations and history are
        those of all.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X, or the RankingData, have names that are strings.

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
        lam: float | None = None,
        objective: str = "pairs",
        loss: str = "squared_hinge",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        margin: Any = "unit",
        normalization: str = "none",
        scale: Any = None,
        device: str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.objective = objective
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.pair_selection = pair_selection
        self.pair_cost = pair_cost
        self.margin = margin
        self.normalization = normalization
        self.scale = scale
        self.device = device
        self.warm_start = warm_start
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
        propensity: ArrayLike | None = None,
        pairs: Any = None,
        pair_weight: ArrayLike | None = None,
        memory_limit: int | float | str | None = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), RankingData or path
            float32 and float64 with contiguous rows and CSR are not copied. A RankingData brings
            labels, queries and weights, and is not checked or grouped again; so does the path of a
            store, that :meth:`RankingData.save` or ``marginrank convert`` wrote.
        y : array-like of shape (n_documents,)
            Labels, any real numbers; higher is preferred. Not needed, and not looked at, if `pairs`
            are given.
        qid : array-like of shape (n_documents,), optional
            Query of each document, of any type and in any order.
        group : array-like of shape (n_queries,), optional
            Sizes of contiguous queries, instead of `qid`. With neither, all is one query.
        sample_weight : array-like of shape (n_documents,), optional
            A pair weighs the product of its two documents' weights.
        query_weight : array-like of shape (n_queries,) or (n_documents,), optional
            Weights of the queries in order of first appearance, or repeated for each document.
        propensity : array-like of shape (n_documents,), optional
            Probability that a document was examined, as for clicks: a pair's weight is divided by
            that of its preferred document.
        pairs : array-like of shape (n_pairs, 2), sparse matrix or PairList, optional
            Learn from these pairs of documents of one query, instead of labels: row numbers, the
            preferred one first. Or the sparse matrix of shape (n_pairs, n_documents) whose rows
            hold a 1 for the preferred document and a −1 for the other. Or what
            :func:`~marginrank.load_pairs` returns. A pair that is listed twice counts twice.
        pair_weight : array-like of shape (n_pairs,), optional
            Weights of the pairs.
        memory_limit : int, float or str, optional
            Bytes of memory that the process may have, or a size such as "2GB", for a store whose X
            is larger: it is then read from disk in every sweep, to the same optimum. Without one, a
            store is read from disk if it does not fit in the memory that is free.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        parameters = self._parameters()
        seed = check_seed(self.random_state)
        labels, group = labels_beside(pairs, X, y, qid, group)
        data, limit, _ = self._open(
            X,
            memory_limit,
            y=labels,
            qid=qid,
            group=group,
            sample_weight=sample_weight,
            query_weight=query_weight,
        )
        model = fit_linear(
            data,
            parameters,
            pairs=check_listed(pairs, pair_weight, data.n_documents),
            propensity=check_propensity(propensity, data.n_documents),
            seed=seed,
            w0=self._start(data.n_features),
            memory_limit=limit,
            tensor=tensor_or_none(X),
            **self._watch(data, limit)._asdict(),
        )
        self._take_over(model, data)
        return self

    def _parameters(self) -> Parameters:
        return Parameters(**{field.name: getattr(self, field.name) for field in fields(Parameters)})
