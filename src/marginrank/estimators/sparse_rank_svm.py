"""SparseRankSVM, a linear RankSVM with an l1 norm, which uses few features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from marginrank.estimators.base import BatchRanker, warn_of
from marginrank.fit.sparse import SparseParameters, empty_message, fit_sparse
from marginrank.models import LinearModel


class SparseRankSVM(BatchRanker):
    """Linear ranking SVM with an l1 norm, which makes most weights exactly zero.

    With a radius r (Lai et al., 2013):

        minimize  (1/p) Σ ℓ(s_i − s_j)  subject to  ‖w‖₁ ≤ r

    and without one:

        minimize  l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖² + (C/p) Σ ℓ(s_i − s_j)

    with scores s = Xw and a loss ℓ, summed over the p pairs (i, j) of documents of one query with
    labels y_i > y_j. Pairs are never enumerated. With ``l1_ratio=1`` both forms have the same
    solutions: each C corresponds to a radius, the l1 norm of its weights.

    Parameters
    ----------
    radius : float, default=None
        Upper bound r on ‖w‖₁. If given, `C` is ignored.
    C : float, default=None
        Weight of the loss against the penalty. With ``l1_ratio=1``, all weights are zero if C is at
        most :func:`~marginrank.fit.sparse.first_C` of the data. None means 50 times that value.
    l1_ratio : float, default=1.0
        Share of ‖w‖₁ in the penalty; the rest is ½‖w‖². With 0, the model is
        ``RankSVM(C=C, normalization="pairs")``.
    positive : bool, default=False
        Whether weights must be non-negative.
    objective : {"pairs", "ndcg@k"}, default="pairs"
        As in :class:`~marginrank.RankSVM`. With the Huber loss and "truncated_gradient" it is
        RSRank (Sun et al., 2009).
    loss : {"squared_hinge", "hinge", "huber", "logistic"}, default="squared_hinge"
        As in :class:`~marginrank.RankSVM`. The hinge loss needs "proximal_newton", which minimizes
        smoothed losses.
    solver : {"proximal_newton", "fenchel", "truncated_gradient"}, default="proximal_newton"
        "proximal_newton" is fast on all kinds of data; "fenchel" is FenchelRank (Lai et al., 2013)
        and needs a radius; "truncated_gradient" is TGRank, its baseline, and needs a penalty.
    variant : {"plain", "short", "away", "pairwise"}, default="plain"
        Steps of the solver "fenchel". "plain" is the published algorithm; "short" is the paper's
        alternative with shorter steps and no line search; "away" and "pairwise" are two variants
        of Frank-Wolfe steps with linear convergence.
    tol : float, default=1e-6
        Relative distance (F − F*) / F* of the objective F to its minimum F* at which the fit stops.
        The distance is always proven by a duality gap. If F* may be zero, the distance is relative
        to a millionth of the loss at w = 0.
    normalization : {"none", "pairs", "query"}, default="pairs"
        "pairs" takes the mean of the loss over all pairs; "none" the sum; "query" the mean over
        the pairs of each query, then over the queries.
    scale : None, {"standard", "range", "query"} or array-like, default="standard"
        Divisors of the features, as in :class:`~marginrank.RankSVM`: ‖w‖₁ becomes
        Σ `scale_` · abs(w).
    max_iter, pair_selection, pair_cost, device, warm_start, n_jobs, verbose
        As in :class:`~marginrank.RankSVM`.
    random_state : int, RandomState instance or None, default=0
        Seed of the samples that speed up "proximal_newton". They do not change the optimum, only
        the last digits of the result.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w of the unscaled features.
    C_ : float or None
        The C that was used; None with a radius.
    sparsity_ : float
        Share of the weights that are not zero.
    objective_ : float
        The objective F(w) in the form that was minimized: with a radius, or with a penalty.
    gap_ : float
        Certified upper bound on F(w) − F*, where F* is the minimum of F, by Fenchel duality.
    scale_, stop_reason_, n_iter_, n_rounds_, history_, n_pairs_, support_pairs_, \
position_effect_, contexts_, n_features_in_, feature_names_in_
        As in :class:`~marginrank.RankSVM`.

    See Also
    --------
    SparseRankSVMCV : Selects C or the radius by cross-validation.
    sparse_path : Models for a grid of C or radii.

    Notes
    -----
    The l1 norm treats all features alike, so they should have comparable scales. The default
    divides each by its standard deviation. Lai et al. scale each to [0, 1], as ``scale="range"``
    does.

    References
    ----------
    H. Lai, Y. Pan, C. Liu, L. Lin and J. Wu (2013). Sparse learning-to-rank via an efficient
    primal-dual algorithm. IEEE Transactions on Computers 62(6).

    Examples
    --------
    >>> from marginrank import SparseRankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = SparseRankSVM(radius=0.5).fit(X, y, qid=qid)
    >>> bool(abs(model.coef_).sum() <= 0.5), model.stop_reason_.name
    (True, 'CERTIFIED')
    """

    _parameters_type = SparseParameters
    _fit_function = staticmethod(fit_sparse)

    def __init__(
        self,
        *,
        radius: float | None = None,
        C: float | None = None,
        l1_ratio: float = 1.0,
        positive: bool = False,
        objective: str = "pairs",
        loss: str = "squared_hinge",
        solver: str = "proximal_newton",
        variant: str = "plain",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        normalization: str = "pairs",
        scale: Any = "standard",
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
        position: ArrayLike | None = None,
        context: ArrayLike | None = None,
        memory_limit: int | float | str | None = None,
    ) -> Self:
        """Fit one weight per feature, most of them zero, to pairs of documents.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, position, context, memory_limit
            As in :meth:`RankSVM.fit`.

        Returns
        -------
        SparseRankSVM
            The fitted estimator.
        """
        parameters = self._fit(
            X,
            y,
            qid=qid,
            group=group,
            memory_limit=memory_limit,
            weights={
                "sample_weight": sample_weight,
                "query_weight": query_weight,
                "position": position,
                "context": context,
            },
            pairs={},
        )
        warn_of(empty_message(self.coef_, parameters))
        return self

    def _set_model(self, model: LinearModel) -> None:
        super()._set_model(model)
        self.sparsity_ = float(np.count_nonzero(model.coef) / model.coef.size)
        self.C_ = None if model.report is None else model.report.C
