"""RankSVM, the linear ranking support vector machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypedDict, TypeVar, Unpack

from numpy.typing import ArrayLike

from marginrank._utils.types import Floats
from marginrank.estimators.base import BatchRanker
from marginrank.estimators.input import (
    check_features_of_fit,
    labels_or_zeros,
    pair_options,
    training_data,
)
from marginrank.fit.linear import Parameters, fit_linear
from marginrank.fit.query_influence import LeaveOneOut, coef_stderr, leave_one_out

Result = TypeVar("Result")


class FitArguments(TypedDict, total=False):
    """Types of the keyword arguments of :meth:`RankSVM.fit`: queries, weights and pairs."""

    qid: ArrayLike | None
    group: ArrayLike | None
    sample_weight: ArrayLike | None
    query_weight: ArrayLike | None
    propensity: ArrayLike | None
    pairs: Any
    pair_weight: ArrayLike | None
    pair_margin: ArrayLike | None


def _by_role(
    *,
    qid: Any = None,
    group: Any = None,
    sample_weight: Any = None,
    query_weight: Any = None,
    position: Any = None,
    context: Any = None,
    **pairs: Any,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the arguments about queries, about weights and positions, and about pairs."""
    weights = {"sample_weight": sample_weight, "query_weight": query_weight}
    weights |= {"position": position, "context": context}
    return {"qid": qid, "group": group}, weights, pairs


class RankSVM(BatchRanker):
    """Linear ranking SVM: one weight per feature, learned from pairs of documents.

    Minimizes F(w) = ½‖w‖² + C · Σ ℓ(s_i − s_j), with scores s = Xw and a loss ℓ, summed over the
    pairs (i, j) of documents of one query with labels y_i > y_j. Pairs are never enumerated, so
    queries of a million documents are fine. If `pairs` is passed to :meth:`fit`, the loss is summed
    over the listed pairs instead. There is no intercept, because it would not change any ranking.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss against the regularizer. With ``normalization="none"`` it is the weight
        of one pair, as in LIBLINEAR-ranksvm.
    lam : float, optional
        Weight λ of the regularizer, as an alternative to C: the fit minimizes λ‖w‖² plus the loss,
        by setting C = 1 / (2λ). With ``normalization="pairs"``, λ is the parameter of TreeRankSVM.
    objective : {"pairs", "ndcg@k"}, default="pairs"
        "pairs" minimizes the loss over all pairs. "ndcg@10", or any other cut-off, optimizes NDCG:
        after a fit with ``pair_cost="ndcg"``, each further fit weights a pair by the change of DCG
        if its two documents swapped their ranks, with discounts averaged over the earlier models.
        The model with the best NDCG on the training queries is kept.
    loss : {"squared_hinge", "hinge", "huber", "logistic"}, default="squared_hinge"
        Loss ℓ(t) of a pair with score difference t: max(0, 1 − t)² for "squared_hinge";
        max(0, 1 − t) for "hinge"; the squared hinge made linear below t = 0 for "huber";
        log(1 + exp(−t)) for "logistic", as in RankNet. The logistic loss is exact on listed
        `pairs`, and approximated within 0.01 on pairs from labels; ``"logistic@0.001"`` is within
        0.001.
    solver : {"auto", "newton", "tron", "smoothing", "ocas", "bmrm"}, default="auto"
        "auto" is "newton", or "smoothing" for the hinge loss. For reference there are "tron" (Lee
        and Lin, 2014) for smooth losses, and the bundle methods "ocas" and "bmrm" for the hinge
        loss, the latter as in TreeRankSVM (Airola et al., 2011).
    tol : float, default=1e-6
        Relative distance (F − F*) / F* of the objective F to its minimum F* at which the fit stops.
    max_iter : int, default=1000
        Maximum number of solver iterations, for each problem.
    pair_selection : {"all", "adjacent", "within:d", "label-within:d"}, default="all"
        Use all pairs of a query, or only pairs of close levels (Lee and Lin, section 5): adjacent
        levels, levels that differ by at most d ("within:2"), or labels that differ by at most d
        ("label-within:1" is y_i = y_j + 1; labels must be whole numbers). Levels are dense ranks of
        the labels of a query: labels 0 and 4 are adjacent if no document has 1, 2 or 3.
    pair_cost : None, {"gain", "ndcg"}, callable or array-like, default=None
        Factor of the loss of a pair; None is 1. "gain" is 2^{y_i} − 2^{y_j}; "ndcg" is the share of
        the query's ideal DCG that is lost if the two documents swap places in an ideal ranking; a
        callable is called with the two labels y_i > y_j; a matrix has one row and one column per
        distinct label, in ascending order, with the row for the preferred document.
    margin : {"unit", "label", "gain"}, callable or array-like, default="unit"
        Margin of a pair, the score difference from which on its hinge loss is zero. "unit" is 1;
        "label" is y_i − y_j; "gain" is 2^{y_i} − 2^{y_j}; a callable d of one label gives
        d(y_i) − d(y_j); a callable of two labels y_i > y_j, or a matrix like `pair_cost`, gives the
        margin itself, for at most 16 distinct labels. With the squared hinge, a pair in the wrong
        order costs at least its squared margin.
    normalization : {"none", "pairs", "query"}, default="none"
        "none" sums the loss over all pairs; "pairs" takes the mean over all pairs; "query" takes
        the mean over the pairs of each query, then over the queries.
    scale : None, {"standard", "range", "query"} or array-like of shape (n_features,), default=None
        Divisors of the features, applied without a copy of X: none; the standard deviation, as
        with StandardScaler; the range, as with MinMaxScaler; the within-query standard deviation
        (root mean squared deviation of documents from their query's mean); or positive numbers.
        Constant features are not scaled.
    device : None, "cpu", "cuda" or "cuda:1", default=None
        Device to compute on. None uses the GPU of X if X is a tensor of at least 16 MiB on a GPU,
        and the native kernels otherwise. "cuda" always uses a GPU, through PyTorch; "cpu" runs the
        same PyTorch code without a GPU. See docs/how_to/gpu.md.
    warm_start : bool, default=False
        Start from the coefficients of the last fit.
    n_jobs : int, default=None
        Number of threads; None and −1 mean all. The result does not depend on it.
    verbose : int, default=0
        If positive, print one line per iteration.
    random_state : int, RandomState instance or None, default=0
        Seed of the document samples that speed up "newton". They do not change the optimum, only
        the last digits of the result.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w of the unscaled features.
    scale_ : ndarray of shape (n_features,), or None
        Divisors of the features.
    objective_ : float
        The objective F(w). If features were scaled, its regularizer is ½ Σ scale_² w².
    gap_ : float
        Certified upper bound on F(w) − F*, where F* is the minimum of F.
    stop_reason_ : StopReason
        Why the solver stopped.
    n_iter_ : int
        Number of iterations on the full data.
    history_ : list of Iteration
        One entry per iteration: seconds, objective, gap, passes over X and more.
    n_pairs_ : int
        Number of pairs in the loss.
    support_pairs_ : int
        Number of support pairs: pairs inside their margin, also if their weight is zero. The
        optimal `coef_` depends on no other pair. A loaded model does not have this attribute.
    position_effect_ : ndarray of shape (n_positions,) or (n_contexts, n_positions)
        Effect of each position on the score of a click, if `position` was passed to :meth:`fit`.
        Positions from the 20th on share the last effect. NaN for a position without documents. A
        loaded model does not have this attribute.
    contexts_ : ndarray of shape (n_contexts,)
        The contexts in the order of the rows of ``position_effect_``, if `context` was passed.
    n_rounds_ : int
        Number of problems that were solved, if `objective` is not "pairs". Objective, gap and stop
        reason are from the problem whose weights were kept; iterations and history are from all
        problems.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the columns of X, or the RankingData, have string names.

    See Also
    --------
    RankSVMCV : Selects C by cross-validation.
    SparseRankSVM : Uses few features.
    AdditiveRankSVM : Learns one curve per feature.

    Notes
    -----
    Ctrl-C ends a fit after the current pass over X; the best coefficients so far are stored before
    KeyboardInterrupt is raised.

    References
    ----------
    C.-P. Lee and C.-J. Lin (2014). Large-scale linear RankSVM. Neural Computation 26(4).
    A. Airola, T. Pahikkala and T. Salakoski (2011). Training linear ranking SVMs in linearithmic
    time using red-black trees. Pattern Recognition Letters 32(9).

    Examples
    --------
    >>> from marginrank import RankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = RankSVM(C=0.01).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.8
    True
    """

    _parameters_type = Parameters
    _fit_function = staticmethod(fit_linear)

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
        """Store the arguments as attributes; see :class:`KeywordArguments`."""

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
        position: ArrayLike | None = None,
        context: ArrayLike | None = None,
        monotonic_position: bool = False,
        pairs: Any = None,
        pair_weight: ArrayLike | None = None,
        pair_margin: ArrayLike | None = None,
        memory_limit: int | float | str | None = None,
        eval_set: Any = None,
        eval_group: Any = None,
    ) -> Self:
        """Fit one weight per feature to pairs of documents with different labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), RankingData or path
            The documents. C-contiguous float32 or float64 arrays and CSR matrices are not copied.
            A RankingData, or the path of a store that :meth:`RankingData.save` or ``marginrank
            convert`` wrote, brings labels, queries and weights.
        y : array-like of shape (n_documents,)
            Labels, any real numbers; higher is preferred. Ignored if `pairs` is given.
        qid : array-like of shape (n_documents,), optional
            Query of each document, of any type and in any order.
        group : array-like of shape (n_queries,), optional
            Sizes of contiguous queries, instead of `qid`. Without both, all documents are one
            query.
        sample_weight : array-like of shape (n_documents,), optional
            Weights of the documents. The weight of a pair is the product of its documents' weights.
        query_weight : array-like of shape (n_queries,) or (n_documents,), optional
            Weights of the queries in order of first appearance, or repeated for each document.
        propensity : array-like of shape (n_documents,), optional
            Probability that a document was examined, for click data: the weight of a pair is
            divided by the propensity of its preferred document. If labels are 0 and 1, a click
            competes with all other documents of its list, clicked or not (Joachims et al., 2017),
            unless `pair_cost` or `margin` is given.
        position : array-like of shape (n_documents,), optional
            Position at which a document was shown, 1 for the top, if y are clicks and qid are
            sessions. The fit then has one effect per position, beside the weights, and reports it
            as ``position_effect_``; predictions do not use it. See docs/how_to/clicks.md.
        context : array-like of shape (n_documents,), optional
            Layout, device or trust level under which a document was shown, an integer or string.
            Each context has its own effects of positions.
        monotonic_position : bool, default=False
            Constrain the effects of positions not to increase from one position to the next.
        pairs : array-like of shape (n_pairs, 2), sparse matrix or PairList, optional
            Learn from these pairs of documents of one query, instead of labels: row numbers, the
            preferred one first; or a sparse matrix of shape (n_pairs, n_documents) with a 1 for the
            preferred document and a −1 for the other in each row; or the result of
            :func:`~marginrank.load_pairs`. A pair that is listed twice counts twice.
        pair_weight : array-like of shape (n_pairs,), optional
            Weights of the pairs.
        pair_margin : array-like of shape (n_pairs,), optional
            Margins of the pairs, zero or more, instead of the margin of the loss.
        memory_limit : int, float or str, optional
            Maximum memory of the process in bytes, or a size such as "2GB", for a store whose X is
            larger: X is then read from disk in every pass, and the optimum is the same. By default
            a store is read from disk if it does not fit in free memory.
        eval_set, eval_group : any
            Ignored, because the fit has no early stopping. PyTerrier passes both, in
            ``pt.ltr.apply_learned_model(RankSVM(), form="ltr")``.

        Returns
        -------
        RankSVM
            The fitted estimator.
        """
        queries, weights, pairs_given = _by_role(
            qid=qid,
            group=group,
            sample_weight=sample_weight,
            query_weight=query_weight,
            position=position,
            context=context,
            propensity=propensity,
            monotonic_position=monotonic_position,
            pairs=pairs,
            pair_weight=pair_weight,
            pair_margin=pair_margin,
        )
        weights |= {"position": position, "context": context}
        self._fit(X, y, **queries, memory_limit=memory_limit, weights=weights, pairs=pairs_given)
        return self

    def coef_stderr(
        self, X: Any, y: ArrayLike | None = None, **arguments: Unpack[FitArguments]
    ) -> Floats:
        """Return the standard error of each weight, clustered by query.

        The errors are the standard deviations of ``coef_`` over samples of queries, estimated from
        one Hessian and one gradient per query (the sandwich covariance), without further fits. The
        estimate treats hyperparameters and ``scale_`` as fixed.

        Parameters
        ----------
        X, y
            As in :meth:`fit`, with X in memory.
        **arguments
            The other arguments of :meth:`fit`: qid, group, sample_weight, query_weight,
            propensity, pairs, pair_weight and pair_margin.

        Returns
        -------
        ndarray of shape (n_features,)
            The standard errors, zero for features without effect.

        Notes
        -----
        The covariance is H⁻¹ (Q / (Q − 1) · Σ_q ψ_q ψ_qᵀ) H⁻¹ for the Hessian H of the objective,
        Q queries with pairs and the centered gradients ψ_q of their losses. The regularizer biases
        weights towards zero, so ``coef_ ± 2 · stderr`` covers the weights that an infinite sample
        would give with the same regularizer, not the weights without a regularizer.

        The estimate is too small if a sample of queries can move many pairs across the margin,
        where the curvature of the loss changes: with many features per query and a large C. It is
        wrong if many pairs lie exactly at the margin, as with a few discrete features. A bootstrap
        over queries, by `query_weight`, is valid in both cases. The hinge loss has no curvature and
        raises ValueError, as does an NDCG objective.

        Examples
        --------
        >>> from marginrank import RankSVM, make_ranking
        >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
        >>> model = RankSVM(C=0.01).fit(X, y, qid=qid)
        >>> error = model.coef_stderr(X, y, qid=qid)
        >>> bool(abs(model.coef_ / error).max() > 2)
        True
        """
        return self._influence(coef_stderr, X, y, arguments)

    def leave_one_out(
        self, X: Any, y: ArrayLike | None = None, **arguments: Unpack[FitArguments]
    ) -> LeaveOneOut:
        """Return estimates of the scores and the loss from leave-one-query-out models.

        Each document is scored by an estimate of the model that is fitted without its query: one
        Newton step from ``coef_``, instead of a fit. Metrics of these scores, and the loss, are
        estimates for new queries, as by cross-validation with one fold per query.

        Parameters
        ----------
        X, y
            As in :meth:`fit`, with X in memory.
        **arguments
            The other arguments of :meth:`fit`: qid, group, sample_weight, query_weight,
            propensity, pairs, pair_weight and pair_margin.

        Returns
        -------
        LeaveOneOut
            The attribute `scores` has one score per document, by the model fitted without the
            document's query. `loss` is the sum of the losses of all queries with these scores, in
            units of ``objective_``.

        Notes
        -----
        The estimate treats hyperparameters and ``scale_`` as fixed. The Newton step is exact if no
        pair crosses a kink of the loss. With raw features and more features than queries, the
        estimate of the loss is too small. The hinge loss and an NDCG objective raise ValueError.
        Memory is 16 bytes per entry of X.

        Examples
        --------
        >>> from marginrank import RankSVM, make_ranking
        >>> from marginrank.metrics import ndcg
        >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
        >>> model = RankSVM(C=0.01).fit(X, y, qid=qid)
        >>> left_out = model.leave_one_out(X, y, qid=qid)
        >>> ndcg(y, left_out.scores, qid=qid) < ndcg(y, model.predict(X), qid=qid)
        True
        """
        return self._influence(leave_one_out, X, y, arguments)

    def _influence(
        self, function: Callable[..., Result], X: Any, y: Any, arguments: FitArguments
    ) -> Result:
        """Return the result of `function` for the arguments of the fit and the fitted model."""
        model = self.to_linear_model()
        queries, weights, pairs = _by_role(**arguments)
        y, queries["group"] = labels_or_zeros(pairs.get("pairs"), X, y, **queries)
        data = training_data(X, y=y, **queries, **weights, n_jobs=self.n_jobs)
        check_features_of_fit(self, data)
        return function(data, model, **pair_options(data, **pairs))
