"""SGDRankSVM, a linear RankSVM fitted by stochastic gradient descent, also on streams."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import Message, check_number
from marginrank.data import RankingData
from marginrank.data.held_out import check_same_features, evaluation_data
from marginrank.data.ranking_data import check_beside_data
from marginrank.estimators.base import LinearRanker, check_seed
from marginrank.estimators.input import (
    check_features_of_fit,
    features_of,
    labels_or_zeros,
    pair_options,
    training_data,
)
from marginrank.fit.online import fit_online, stalled_message
from marginrank.fit.online_learner import (
    Learner,
    OnlineParameters,
    shown_positions,
    step_problem,
)
from marginrank.fit.scaling import scale_of_part
from marginrank.io.chunks import CHUNK_DOCUMENTS, ChunkSource
from marginrank.models import LinearModel
from marginrank.models.fit_report import FitReport, print_pass
from marginrank.models.json_model import COUNTS

OF_A_FIT = ("objective_", "gap_", "stop_reason_", "history_")  # attributes that partial_fit deletes


class SGDRankSVM(LinearRanker):
    """Linear RankSVM by stochastic gradient descent, for streams and for quick fits.

    Minimizes the objective of :class:`~marginrank.RankSVM` by steps over a few queries at a time:
    ½‖w‖² + C · Σ ℓ(s_i − s_j), with scores s = Xw and a loss ℓ, summed over the pairs (i, j) of
    documents of one query with labels y_i > y_j. A few passes over the data come within one percent
    of the optimum. The scale of the features and the step size need no tuning.

    Parameters
    ----------
    method : {"query", "pair"}, default="query"
        Steps over whole queries (Chapelle and Keerthi, 2010, algorithm 3), or over random pairs
        (algorithm 2; sofia-ml).
    C, loss, pair_selection, margin, n_jobs
        As in :class:`~marginrank.RankSVM`.
    pair_cost : None, {"gain", "ndcg"}, callable or array-like, default=None
        As in RankSVM. A matrix needs all labels at once, so :meth:`partial_fit` and :meth:`fit` of
        text files do not accept it.
    normalization : {"none", "pairs", "query"}, default="none"
        As in RankSVM. With "none", C depends on the number of pairs: see :meth:`partial_fit`.
    scale : None, {"standard", "range", "query"} or array-like of shape (n_features,), default=None
        As in RankSVM. :meth:`partial_fit`, which does not see all documents, accepts only an array,
        or continues with the `scale_` of the last fit.
    learning_rate : {"auto", "inverse", "constant"}, default="auto"
        Length of step t, relative to a Newton step on the data so far. "auto" is 2 / (t + 1), or
        (t + 1)^−½ for more than 512 features; "inverse" is eta0 / t; "constant" is eta0. Steps are
        never longer than Polyak's step.
    eta0 : float, default=1.0
        Factor of the learning rates "inverse" and "constant".
    average : bool, default=True
        Average the weights over the steps; step t has a weight of about t³.
    max_iter : int, default=100
        Maximum number of passes over the data.
    tol : float, default=1e-3
        Estimated relative distance (F − F*) / F* of the objective F to its minimum F* at which the
        fit stops. With early stopping, the increase of the metric that counts as progress.
    shuffle : bool, default=True
        Visit the queries in a new random order in each pass; with text, within each chunk.
    early_stopping : bool, default=False
        Stop when the metric on validation data no longer improves, and keep the weights with the
        best value of the metric.
    validation_fraction : float, default=0.1
        Share of the queries held out for early stopping, without `eval_set`.
    n_iter_no_change : int, default=5
        With early stopping, number of passes without progress after which the fit stops. Otherwise,
        number of last passes over which progress is measured: the fit stops with a warning if, at
        this rate, as many passes again as so far would reduce F by at most `tol` · F.
    scoring : str, default="ndcg@10"
        Name of the metric on validation data; see :func:`marginrank.metrics.get_metric`. Tied
        scores count as in random order. If the metric is undefined, the fit warns and stops as
        without early stopping.
    verbose : int, default=0
        If positive, print one line per pass.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of queries, the splits of long queries, random pairs and held-out queries.

    Attributes
    ----------
    coef_, scale_, n_features_in_, feature_names_in_
        As in :class:`~marginrank.RankSVM`.
    objective_, gap_, stop_reason_
        As in :class:`~marginrank.RankSVM`; after :meth:`fit`.
    n_iter_, t_ : int
        Number of passes and of steps, including `partial_fit`.
    history_ : list of Pass
        One entry per pass: seconds, objective, validation metric and more; after :meth:`fit`.
    position_effect_ : ndarray of shape (n_positions,)
        As in :class:`~marginrank.RankSVM`, if `position` was given.
    n_pairs_ : int
        Number of pairs in the data; after `partial_fit`, in all data so far.

    Notes
    -----
    Ctrl-C ends a fit; the best coefficients so far are stored before KeyboardInterrupt is raised.

    References
    ----------
    O. Chapelle and S. S. Keerthi (2010). Efficient algorithms for ranking with SVMs. Information
    Retrieval 13(3).

    Examples
    --------
    >>> from marginrank import SGDRankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> model = SGDRankSVM(C=0.01).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.8
    True

    A stream of whole queries:

    >>> model = SGDRankSVM(C=0.01)
    >>> for first in range(0, 50, 10):
    ...     part = (first <= qid) & (qid < first + 10)
    ...     model = model.partial_fit(X[part], y[part], qid=qid[part])
    >>> model.score(X, y, qid=qid) > 0.8
    True
    """

    _parameters_type = OnlineParameters
    _learner: Learner
    n_iter_: int
    n_pairs_: int

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
        pairs: Any = None,
        pair_weight: ArrayLike | None = None,
        pair_margin: ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        read_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Fit one weight per feature in several passes over the data.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), RankingData or path(s)
            The documents, as in :meth:`RankSVM.fit`. A store is mapped into memory; paths of LETOR
            text are read in chunks in each pass, so neither needs to fit in memory. On text,
            objectives of the history are estimates from the losses of the steps.
        y, qid, group, sample_weight, query_weight, propensity, position, pairs, pair_weight, \
pair_margin
            As in :meth:`RankSVM.fit`.
        eval_set : [(X, y)] or [RankingData], optional
            Validation data to measure `scoring` on after each pass, as in LightGBM and XGBoost.
        eval_qid, eval_group : list of one array-like, optional
            Queries of `eval_set`, as `qid` or `group`.
        read_options : dict, optional
            Options of :func:`~marginrank.iter_letor` for text, such as ``{"zero_based": True}``.
            Queries are shuffled only within the ``chunk_documents`` that are read at a time.

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
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        given = {"y": y, "qid": qid, "group": group, "position": position, **weights}
        of_pairs = {
            "pairs": pairs,
            "pair_weight": pair_weight,
            "pair_margin": pair_margin,
            "propensity": propensity,
        }
        options: dict[str, Any] = {}
        if _is_file(X):
            check_beside_data("a path", **given, **of_pairs)
            reading = {"chunk_documents": CHUNK_DOCUMENTS, **(read_options or {})}
            chunks: Any = ChunkSource(X, n_jobs=self.n_jobs, **reading)
            names, features = chunks.feature_names, {}
            if names is not None:
                features["feature_names_in_"] = np.array(names, dtype=object)
                check_same_features(held_out, len(names), names, what="eval_set")
        else:
            data = self._labelled_data(X, given, pairs)
            chunks = partial(list, [data])
            options, features = pair_options(data, **of_pairs), features_of(data)
            check_same_features(held_out, data.n_features, data.feature_names, what="eval_set")
        model = fit_online(
            chunks,
            parameters,
            **options,
            stream=getattr(chunks, "is_text", False),
            seed=seed,
            validation=held_out,
            callback=print_pass if self.verbose else None,
            on_learner=partial(setattr, self, "_learner"),
        )
        self._take_over(model, {"n_features_in_": model.n_features, **features})
        return self

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
        position: ArrayLike | None = None,
        pairs: Any = None,
        pair_weight: ArrayLike | None = None,
        pair_margin: ArrayLike | None = None,
    ) -> Self:
        """Update the weights by one pass over more queries, starting from the current weights.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight
            As in :meth:`fit`; queries must be complete.
        n_pairs_total : float, optional
            With ``normalization="none"``, the sum of the weights of all pairs of the stream, if
            known: λ, the weight of the regularizer per pair, is 1 / (C · n_pairs_total). By default
            λ is 1 / (C · pairs so far), so the objective is always RankSVM's on the data so far;
            repeated data count again. With other normalizations, λ is 1 / C.
        position : array-like of shape (n_documents,), optional
            As in :meth:`fit`. Either all parts of a stream have positions, or none has. The effects
            are updated with the weights; ``position_effect_`` has the effects for all data so far.
            They are not part of the model, so they start at 0 again if the model was loaded from a
            file.
        propensity, pairs, pair_weight, pair_margin
            As in :meth:`fit`; pairs are rows of this X.

        Returns
        -------
        SGDRankSVM
            The estimator.
        """
        parameters = self._parameters()
        parameters.check_stream()
        total = 0.0 if n_pairs_total is None else check_number("n_pairs_total", n_pairs_total)
        coef = getattr(self, "coef_", None)  # a model from a file has only its weights
        if coef is not None:
            check_features_of_fit(self, X)
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        given = {"y": y, "qid": qid, "group": group, "position": position, **weights}
        data = self._labelled_data(X, given, pairs)
        options = pair_options(data, pairs, pair_weight, pair_margin, propensity)
        problem = step_problem(data, parameters, **options)
        n_iter = n_pairs = 0
        if hasattr(self, "_learner"):
            learner, n_iter, n_pairs = self._learner, self.n_iter_, self.n_pairs_
        else:
            scale = scale_of_part(self.scale, data.n_features) if coef is None else self.scale_
            seed = check_seed(self.random_state)
            learner = Learner(data.n_features, seed, coef, scale, shown_positions(data))
        learner.expect(data)
        learner.learn(problem, parameters, total=total)
        self.coef_, effects = learner.separate(learner.coef(parameters, total=total))
        self.__dict__.update({f"{name}_": value for name, value in effects.items()})
        self._learner, self.scale_ = learner, learner.scale
        if coef is None:
            self.__dict__.update(features_of(data))
        for name in OF_A_FIT:
            self.__dict__.pop(name, None)
        self.t_ = learner.sgd.steps
        self.n_iter_ = n_iter + 1
        self.n_pairs_ = n_pairs + problem.pair_set.n_pairs
        return self

    def _labelled_data(self, X: Any, given: dict[str, Any], pairs: Any) -> RankingData:
        """Return validated data for a fit; its labels are zeros if `pairs` replace them."""
        y, group = labels_or_zeros(pairs, X, given["y"], given["qid"], given["group"])
        return self._data(X, **given | {"y": y, "group": group})

    def _convergence_message(self, report: FitReport) -> Message | None:
        return stalled_message(report)

    def to_linear_model(self) -> LinearModel:
        """Return the fitted model as plain data, as stored in model files."""
        model = super().to_linear_model()
        if not hasattr(self, "t_"):  # loaded from a file that has only weights
            return model
        return replace(model, counts={name: getattr(self, f"{name}_") for name in COUNTS})

    def _set_model(self, model: LinearModel) -> None:
        super()._set_model(model)
        for name, value in (model.counts or {}).items():
            setattr(self, f"{name}_", value)


def _is_file(X: Any) -> bool:
    """Return True for paths, and for open files, which ChunkSource rejects with a message."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(map(_is_file, X))
    return isinstance(X, (str, os.PathLike)) or hasattr(X, "read")
