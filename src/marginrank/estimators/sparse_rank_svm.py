"""SparseRankSVM: a linear ranking machine that uses few features."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from marginrank.estimators.base import BatchRanker, check_seed, warn_of
from marginrank.estimators.input import tensor_or_none
from marginrank.fit.sparse import SparseParameters, empty_message, fit_sparse
from marginrank.models import LinearModel


class SparseRankSVM(BatchRanker):
    """Linear RankSVM with an l1 norm, which makes most weights exactly zero.

    With a radius r (paper 3: Lai et al., 2013):

        minimise  (1/p) Σ ℓ(s_i − s_j)  subject to  ‖w‖₁ ≤ r

    and without one:

        minimise  l1_ratio · ‖w‖₁ + (1 − l1_ratio) · ½‖w‖² + (C/p) Σ ℓ(s_i − s_j)

    over the p pairs (i, j) of documents of one query with y_i > y_j, where s = Xw. The pairs are
    never written down. Both forms find the same models: every C has its radius, the l1 norm of its
    weights.

    Parameters
    ----------
    radius : float, default=None
        Bound on ‖w‖₁. With a radius, `C` has no effect.
    C : float, default=None
        Weight of the loss against the penalty. With ``l1_ratio=1``, all weights are zero up to
        :func:`~marginrank.fit.sparse.first_C`. None means 50 times that value.
    l1_ratio : float, default=1.0
        Share of ‖w‖₁ in the penalty, the rest being ½‖w‖². With 0, the model is
        ``RankSVM(C=C, normalization="pairs")``.
    positive : bool, default=False
        Whether weights must not be negative.
    loss : {"squared_hinge", "huber", "logistic"}, default="squared_hinge"
        As in :class:`~marginrank.RankSVM`; the hinge loss has no sparse solver.
    solver : {"proximal_newton", "fenchel", "truncated_gradient"}, default="proximal_newton"
        "proximal_newton" is fast on every kind of data; "fenchel" is FenchelRank of paper 3 and
        needs a radius; "truncated_gradient" is TGRank, its baseline, and takes a penalty.
    variant : {"plain", "away", "pairwise"}, default="plain"
        Steps of "fenchel": those of paper 3, or such that converge linearly.
    tol : float, default=1e-6
        Relative distance to the optimal objective, (F − F*) / F*, which is always certified. Where
        F* may be zero, the distance is relative to a millionth of the loss at w = 0.
    max_iter : int, default=1000
        Limit on the iterations of the solver.
    pair_selection : {"all", "adjacent"}, default="all"
        Use all pairs, or only those of adjacent levels of a query.
    pair_cost : None, {"gain", "ndcg"}, callable or array-like, default=None
        What multiplies the loss of a pair; see :class:`~marginrank.RankSVM`.
    normalization : {"none", "pairs", "query"}, default="pairs"
        "pairs" takes the mean of the loss over all pairs; "none" its sum; "query" takes the mean
        over the pairs of each query, then over the queries.
    scale : None, {"standard", "range", "query"} or array-like, default="standard"
        What features are divided by, as in :class:`~marginrank.RankSVM`: in place of ‖w‖₁ there is
        Σ scale_ |w|.
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
        Seed of the samples that speed up "proximal_newton". They do not change the optimum, only
        the last digits of where the solver stops.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w, of the features as they are: not scaled.
    C_ : float or None
        The weight of the loss that was used; None with a radius.
    scale_ : ndarray of shape (n_features,), or None
        What features were divided by.
    sparsity_ : float
        Share of the weights that are not zero, as in paper 3.
    objective_ : float
        F(w), in either form.
    gap_ : float
        A certified upper bound on F(w) − F*, by Fenchel duality.
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
        Names of the features, if the columns of X, or the RankingData, have names that are strings.

    Notes
    -----
    The l1 norm treats all features alike, so they should have comparable scales. The default
    divides each by its standard deviation. Paper 3 scales each to [0, 1], as ``scale="range"``
    does.

    Examples
    --------
    >>> from marginrank import SparseRankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = SparseRankSVM(radius=0.5).fit(X, y, qid=qid)
    >>> bool(abs(model.coef_).sum() <= 0.5), model.stop_reason_.name
    (True, 'CERTIFIED')
    """

    def __init__(
        self,
        *,
        radius: float | None = None,
        C: float | None = None,
        l1_ratio: float = 1.0,
        positive: bool = False,
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
        self.radius = radius
        self.C = C
        self.l1_ratio = l1_ratio
        self.positive = positive
        self.loss = loss
        self.solver = solver
        self.variant = variant
        self.tol = tol
        self.max_iter = max_iter
        self.pair_selection = pair_selection
        self.pair_cost = pair_cost
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
        memory_limit: int | float | str | None = None,
    ) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, memory_limit
            As in :meth:`RankSVM.fit`.

        Returns
        -------
        SparseRankSVM
            The fitted estimator.
        """
        parameters = self._parameters()
        seed = check_seed(self.random_state)
        data, limit, _ = self._open(
            X,
            memory_limit,
            y=y,
            qid=qid,
            group=group,
            sample_weight=sample_weight,
            query_weight=query_weight,
        )
        model = fit_sparse(
            data,
            parameters,
            seed=seed,
            w0=self._start(data.n_features),
            memory_limit=limit,
            tensor=tensor_or_none(X),
            **self._watch(data, limit)._asdict(),
        )
        self._take_over(model, data)
        warn_of(empty_message(self.coef_, parameters))
        return self

    def _set_model(self, model: LinearModel) -> None:
        super()._set_model(model)
        self.sparsity_ = float(np.count_nonzero(model.coef) / model.coef.size)
        self.C_ = None if model.report is None else model.report.C

    def _parameters(self) -> SparseParameters:
        names = [field.name for field in fields(SparseParameters)]
        return SparseParameters(**{name: getattr(self, name) for name in names})
