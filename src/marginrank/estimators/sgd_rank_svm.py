"""SGDRankSVM: online learning and streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from marginrank._utils.parameters import check_number
from marginrank.data import RankingData
from marginrank.data.held_out import check_same_features, evaluation_data
from marginrank.data.ranking_data import check_beside_data
from marginrank.estimators.base import LinearRanker, check_seed, warn_of
from marginrank.estimators.input import (
    check_features_of_fit,
    check_listed,
    features_of,
    labels_beside,
    set_features,
    training_data,
)
from marginrank.fit.inputs import check_propensity
from marginrank.fit.online import fit_online, stalled_message
from marginrank.fit.online_learner import Learner, OnlineParameters, step_problem
from marginrank.fit.scaling import effect_message, scale_of_part
from marginrank.io.chunks import CHUNK_DOCUMENTS, ChunkSource
from marginrank.models import LinearModel
from marginrank.models.fit_report import StopReason, print_pass, report_of
from marginrank.models.json_model import COUNTS

OF_A_FIT = ("objective_", "gap_", "stop_reason_", "history_")  # not true of later weights


class SGDRankSVM(LinearRanker):
    """Linear RankSVM by stochastic gradient descent, for streams and for a quick fit.

    Minimises the objective of :class:`~marginrank.RankSVM`, ½‖w‖² + C · Σ ℓ(s_i − s_j), a few
    queries at a time. A few passes come within a per cent of the optimum; the scale of the features
    and the step size need no attention.

    Parameters
    ----------
    method : {"query", "pair"}, default="query"
        Take steps over whole queries (Chapelle and Keerthi, algorithm 3), or over pairs drawn at
        random (their algorithm 2; sofia-ml).
    C : float, default=1.0
        Weight of the loss against the regulariser, as in RankSVM.
    loss : {"squared_hinge", "hinge", "huber", "logistic"}, default="squared_hinge"
        The loss on a pair, as in RankSVM.
    pair_selection : {"all", "adjacent"}, default="all"
        As in RankSVM.
    pair_cost : None, {"gain", "ndcg"}, callable or array-like, default=None
        As in RankSVM. A matrix needs all labels at once, so that streams do not take it: neither
        :meth:`partial_fit` nor :meth:`fit` of text files.
    margin : {"unit", "label", "gain"} or callable, default="unit"
        As in RankSVM.
    normalization : {"none", "pairs", "query"}, default="none"
        As in RankSVM. With "none", C refers to the number of pairs: see :meth:`partial_fit`.
    scale : None, {"standard", "range", "query"} or array-like of shape (n_features,), default=None
        As in RankSVM. :meth:`partial_fit`, which does not see all documents, takes an array, or
        goes on with the `scale_` of the last fit.
    learning_rate : {"auto", "inverse", "constant"}, default="auto"
        Length γ_t of step t, in units of a Newton step on what was seen so far. "auto" is
        2 / (t + 1), or (t + 1)^−½ for more than 512 features; "inverse" is eta0 / t; "constant" is
        eta0. No step is longer than Polyak's.
    eta0 : float, default=1.0
        Of the learning rates "inverse" and "constant".
    average : bool, default=True
        Average the weights over the steps; step t counts about as t³.
    max_iter : int, default=100
        Limit on the passes over the data.
    tol : float, default=1e-3
        Relative distance to the optimal objective, (F − F*) / F*, by an estimate: the fit ends if
        it is reached. With early stopping, the rise of the metric that counts as progress.
    shuffle : bool, default=True
        Visit the queries in a new random order in each pass; those of text, inside a chunk.
    early_stopping : bool, default=False
        Stop by the metric of validation data and keep the weights that were best there.
    validation_fraction : float, default=0.1
        Share of the queries held out for early stopping, if no validation data is given.
    n_iter_no_change : int, default=5
        With early stopping, the passes without progress after which the fit stops. Without, those
        whose pace is looked at: the fit stops, with a warning, if as many passes as were made
        would not gain `tol` at this pace.
    scoring : str, default="ndcg@10"
        Name of the metric on validation data; see :func:`marginrank.metrics.get_metric`. Tied
        scores count as in random order. If it has no value there, the fit stops by its objective,
        with a warning.
    n_jobs : int, default=None
        Number of threads; None and −1 mean all. The result does not depend on it.
    verbose : int, default=0
        If positive, print a line a pass.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of the queries, of how long ones are cut, of drawn pairs and of held-out
        queries.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        The weights w, of the features as they are: not scaled.
    scale_ : ndarray of shape (n_features,), or None
        What features are divided by.
    objective_, gap_ : float
        F(w) on the training data, and a certified upper bound on F(w) − F*; after a fit.
    stop_reason_ : StopReason
        Why the fit stopped; after a fit.
    n_iter_, t_ : int
        Number of passes and of steps, those of `partial_fit` included.
    history_ : list of Pass
        A line a pass: seconds, objective, validation metric and more; after a fit.
    n_pairs_ : int
        Number of pairs in the data; after `partial_fit`, in all data so far.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    Notes
    -----
    Ctrl-C ends a fit; the best coefficients so far are stored before KeyboardInterrupt is raised.

    Examples
    --------
    >>> from marginrank import SGDRankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = SGDRankSVM(C=0.01).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.8
    True

    A stream, in pieces of whole queries:

    >>> model = SGDRankSVM(C=0.01)
    >>> for first in range(0, 50, 10):
    ...     piece = (first <= qid) & (qid < first + 10)
    ...     model = model.partial_fit(X[piece], y[piece], qid=qid[piece])
    >>> model.score(X, y, qid=qid) > 0.8
    True
    """

    __metadata_request__partial_fit = {"qid": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        method: str = "query",
        C: float = 1.0,
        loss: str = "squared_hinge",
        pair_selection: str = "all",
        pair_cost: Any = None,
        margin: Any = "unit",
        normalization: str = "none",
        scale: Any = None,
        learning_rate: str = "auto",
        eta0: float = 1.0,
        average: bool = True,
        max_iter: int = 100,
        tol: float = 1e-3,
        shuffle: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        scoring: str = "ndcg@10",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.C = C
        self.loss = loss
        self.pair_selection = pair_selection
        self.pair_cost = pair_cost
        self.margin = margin
        self.normalization = normalization
        self.scale = scale
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.average = average
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
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
        eval_set: Any = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        read_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn the weights in several passes over the data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), RankingData or path(s)
            float32 and float64 with contiguous rows and CSR are not copied. A RankingData brings
            labels, queries and weights, and is not checked or grouped again. So do the path of a
            store, which is mapped into memory, and paths of LETOR text, which is read anew for each
            pass, in chunks: neither needs to fit in memory. On text, objectives of the history are
            estimates from the losses that queries had when they were learned from.
        y : array-like of shape (n_documents,)
            Labels, any real numbers; higher is preferred. Ignored if `pairs` are given.
        qid : array-like of shape (n_documents,), optional
            Query of each document, of any type and in any order.
        group : array-like of shape (n_queries,), optional
            Sizes of contiguous queries, instead of `qid`. With neither, all is one query.
        sample_weight : array-like of shape (n_documents,), optional
            A pair weighs the product of its two documents' weights.
        query_weight : array-like of shape (n_queries,) or (n_documents,), optional
            Weights of the queries in order of first appearance, or repeated for each document.
        propensity : array-like of shape (n_documents,), optional
            Probability that a document was examined, as in RankSVM.
        pairs : array-like of shape (n_pairs, 2), sparse matrix or PairList, optional
            Learn from these pairs of documents of one query, instead of labels, as in RankSVM.
        pair_weight : array-like of shape (n_pairs,), optional
            Weights of the pairs.
        eval_set : [(X, y)] or [RankingData], optional
            Validation data to measure `scoring` on after each pass, as in LightGBM and XGBoost.
        eval_qid, eval_group : list of one array-like, optional
            Queries of `eval_set`, as `qid` or `group`.
        read_options : dict, optional
            Options of :func:`~marginrank.iter_letor` for text, such as ``{"zero_based": True}``.
            Queries are shuffled only among the ``chunk_documents`` that are read at a time.

        Returns
        -------
        SGDRankSVM
            The fitted estimator.
        """
        parameters = self._parameters()
        seed = check_seed(self.random_state)
        held_out = evaluation_data(
            eval_set, eval_qid, eval_group, n_jobs=self.n_jobs, make=training_data
        )
        beside = {
            "y": y,
            "qid": qid,
            "group": group,
            "sample_weight": sample_weight,
            "query_weight": query_weight,
            "propensity": propensity,
            "pairs": pairs,
            "pair_weight": pair_weight,
        }
        if _is_file(X):
            check_beside_data("a path", **beside)
            options = {"chunk_documents": CHUNK_DOCUMENTS, **(read_options or {})}
            chunks = ChunkSource(X, n_jobs=self.n_jobs, **options)
            return self._fit_file(chunks, parameters, held_out, seed)
        data, given = self._given(X, **beside)
        check_same_features(held_out, data.n_features, data.feature_names, what="eval_set")
        return self._fit(
            lambda: [data],
            parameters,
            held_out,
            features_of(data),
            stream=False,
            seed=seed,
            **given,
        )

    def _fit_file(
        self,
        chunks: ChunkSource,
        parameters: OnlineParameters,
        held_out: RankingData | None,
        seed: int,
    ) -> Self:
        names = chunks.feature_names
        if names is not None:
            check_same_features(held_out, len(names), names, what="eval_set")
        features = {} if names is None else {"feature_names_in_": np.array(names, dtype=object)}
        return self._fit(chunks, parameters, held_out, features, stream=chunks.is_text, seed=seed)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        n_pairs_total: float | None = None,
        propensity: ArrayLike | None = None,
        pairs: Any = None,
        pair_weight: ArrayLike | None = None,
    ) -> Self:
        """Make one pass over more queries, going on from what was learned before.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            As in :meth:`fit`; each query must be whole.
        n_pairs_total : float, optional
            With ``normalization="none"``, the weight of all pairs of the stream, if it is known: λ,
            the weight of the regulariser by pair, is 1 / (C · n_pairs_total). By default it falls
            as 1 / (C · pairs so far), so that the objective is at any time that of RankSVM on the
            data so far; data that comes again counts again. The other normalisations are means,
            and λ is 1 / C.
        propensity, pairs, pair_weight
            As in :meth:`fit`; pairs name rows of this X.

        Returns
        -------
        SGDRankSVM
            The estimator.
        """
        parameters = self._parameters()
        parameters.check_stream()
        total = 0.0 if n_pairs_total is None else check_number("n_pairs_total", n_pairs_total)
        coef = getattr(self, "coef_", None)  # of a model from a file, which keeps nothing else
        if coef is not None:
            check_features_of_fit(self, X)
        labels = (y, qid, group, sample_weight, query_weight)
        data, given = self._given(X, *labels, propensity, pairs, pair_weight)
        features = features_of(data) if coef is None else {}
        problem = step_problem(data, parameters, **given)
        learner, before = self._last_learner(data.n_features, coef)
        learner.learn(problem, parameters, total=total)
        self.coef_ = learner.coef(parameters, total=total)
        self._learner, self.scale_ = learner, learner.scale
        self.__dict__.update(features)
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self.t_ = learner.sgd.steps
        self.n_iter_ = before["n_iter_"] + 1
        self.n_pairs_ = before["n_pairs_"] + problem.pair_set.n_pairs
        return self

    def _given(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        group: ArrayLike | None,
        sample_weight: ArrayLike | None,
        query_weight: ArrayLike | None,
        propensity: ArrayLike | None,
        pairs: Any,
        pair_weight: ArrayLike | None,
    ) -> tuple[RankingData, dict[str, Any]]:
        """Check and group what a fit was given: the data, and what it was told of its pairs."""
        labels, group = labels_beside(pairs, X, y, qid, group)
        data = self._data(X, labels, qid, group, sample_weight, query_weight)
        return data, {
            "pairs": check_listed(pairs, pair_weight, data.n_documents),
            "propensity": check_propensity(propensity, data.n_documents),
        }

    def _last_learner(self, n_features: int, coef: Any) -> tuple[Learner, dict[str, int]]:
        """Return what goes on learning, and how many passes and pairs it has seen."""
        if hasattr(self, "_learner"):
            return self._learner, {name: getattr(self, name) for name in ("n_iter_", "n_pairs_")}
        scale = scale_of_part(self.scale, n_features) if coef is None else self.scale_
        learner = Learner(n_features, check_seed(self.random_state), coef, scale)
        return learner, {"n_iter_": 0, "n_pairs_": 0}

    def to_linear_model(self) -> LinearModel:
        """Return the fitted model as plain data, as model files hold it."""
        model = super().to_linear_model()
        if not hasattr(self, "t_"):  # from a file of weights only
            return model
        return replace(model, counts={name: getattr(self, f"{name}_") for name in COUNTS})

    def _set_model(self, model: LinearModel) -> None:
        super()._set_model(model)
        for name, value in (model.counts or {}).items():
            setattr(self, f"{name}_", value)

    def _fit(
        self,
        chunks: Callable[[], Iterable[RankingData]],
        parameters: OnlineParameters,
        validation: RankingData | None,
        features: dict[str, Any],
        *,
        stream: bool,
        seed: int,
        **given: Any,
    ) -> Self:
        model = fit_online(
            chunks,
            parameters,
            **given,
            stream=stream,
            seed=seed,
            validation=validation,
            callback=print_pass if self.verbose else None,
            on_learner=partial(setattr, self, "_learner"),
        )
        set_features(self, {"n_features_in_": model.n_features, **features})
        self._set_model(model)
        report = report_of(model)
        if report.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        warn_of(effect_message(report.without_effect, features.get("feature_names_in_")))
        warn_of(stalled_message(report), ConvergenceWarning)
        return self

    def _parameters(self) -> OnlineParameters:
        names = [field.name for field in fields(OnlineParameters)]
        return OnlineParameters(**{name: getattr(self, name) for name in names})


def _is_file(X: Any) -> bool:
    """Whether X names files or is one, which :class:`ChunkSource` rejects."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(map(_is_file, X))
    return isinstance(X, (str, os.PathLike)) or hasattr(X, "read")
