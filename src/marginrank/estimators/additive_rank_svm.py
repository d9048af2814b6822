"""AdditiveRankSVM: a curve for each feature."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.additive.fit import AdditiveParameters, empty_message, fit_additive
from marginrank.data import RankingData
from marginrank.data.categories import categorical_columns, text_categories, with_numbers
from marginrank.data.feature_choice import columns_of
from marginrank.data.validation import check_features
from marginrank.estimators.base import BaseRanker, check_seed, finish, warn_of
from marginrank.estimators.input import (
    check_features_of_fit,
    check_listed,
    feature_names_of,
    features_of,
    labels_beside,
    queries_of,
    remember_columns,
    set_features,
    take_columns,
    training_data,
    without_used_columns,
)
from marginrank.fit.inputs import check_propensity
from marginrank.models import AdditiveModel, additive_model, write_model
from marginrank.models.fit_report import print_iteration, report_of


class AdditiveInput(NamedTuple):
    """The documents; columns that a data frame has as categories; the text of some of these."""

    data: RankingData
    categorical: list[int]
    texts: dict[int, list[str]]

    def with_categories(self, parameters: AdditiveParameters) -> AdditiveParameters:
        """Return parameters whose categorical features are also those of the data frame."""
        if not self.categorical:
            return parameters
        listed = columns_of(
            "categorical_features",
            parameters.categorical_features,
            self.data.feature_names,
            self.data.n_features,
        )
        return replace(parameters, categorical_features=sorted({*listed, *self.categorical}))


def documents_and_features(
    X: Any,
    y: Any,
    qid: Any,
    group: Any,
    sample_weight: Any,
    query_weight: Any,
    *,
    n_jobs: int | None,
) -> AdditiveInput:
    """Return what a fit was given, checked and grouped."""
    X, values = take_columns(
        X, y=y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight
    )
    categorical, texts = list(categorical_columns(X)), text_categories(X)
    data = training_data(with_numbers(X, texts), **values, allow_nan=True, n_jobs=n_jobs)
    return AdditiveInput(data, categorical, texts)


class AdditiveRankSVM(BaseRanker):
    """RankSVM with a curve for each feature, in the place of a weight.

    Scores are f(x) = Σ_k f_k(x_k), and what some pairs of features add with `interactions`. Each
    f_k is straight between knots, which are quantiles of the feature. It minimises
    Σ_k P(f_k) + C · Σ ℓ(f(x_i) − f(x_j)) over the pairs, where the penalty P of a straight line is
    that of RankSVM, ½ (σ w)², and that of other curves is more, by `smoothness` times their
    roughness. So curves move away from lines only where the data pay for it: with two knots a
    feature, or a huge `smoothness`, this is :class:`~marginrank.RankSVM`.

    NaN is a value like any other: what it adds to a score is learned. So are None, pandas.NA and
    masked entries.

    Parameters
    ----------
    C : float, default=10.0
        Weight of the loss, as in :class:`~marginrank.RankSVM`.
    normalization : {"none", "pairs", "query"}, default="query"
        As in :class:`~marginrank.RankSVM`; with "query", a C means the same for any amount of data.
    lam, objective, loss, solver, tol, max_iter, pair_selection, pair_cost, margin
        As in :class:`~marginrank.RankSVM`.
    max_bins : int, default=16
        The largest number of bins between the knots of a feature, up to 254. A feature with fewer
        values has a knot at each.
    smoothness : float, default=None
        Weight of the roughness of curves, against the penalty of a line. None means
        n_features / 200: the more curves there are, the smoother each.
    categorical_features : array-like of str, int or bool, or "from_dtype", optional
        Features whose values are numbers that stand for names: their own names, their columns, or a
        boolean mask. Each value gets a weight of its own, as if it were a column of zeros and ones.
        Values that the fit did not see add what missing ones do; they are compared exactly, so use
        integers. Columns of a pandas frame that have the type "category" are categorical without
        being listed, and may hold text; "from_dtype" lists no others, as None does.
    interactions : int, default=0
        Number of pairs of features that may act together: pairs whose joint effect promises most
        are found one after the other, and each gets a function of both features, which holds what
        no sum of two curves can.
    monotonic_cst : dict or array-like of int of shape (n_features,), optional
        Features whose curves may only rise (1) or fall (-1), by their own name or column, as
        ``{"bm25": 1, 3: -1}``; or 1, -1 or 0 for each feature. What is added for missing values is
        free. With the hinge loss, its solver is "smoothing".
    group_l1 : float, default=0.0
        Weight of Σ_k √(2 P(f_k)), the norms of the curves beside their squares, which drops
        features: their curves are zero. It cannot be combined with `monotonic_cst`. It adds
        `group_l1` · σ |w| for a line. Its solver is "newton", or "smoothing" for the hinge loss.
    scale : None, {"standard", "range", "query"} or array-like, default="standard"
        What features are divided by, as in :class:`~marginrank.RankSVM`. Where values are missing,
        it is that with the middle one of the knots in their place.
    n_jobs : int, default=None
        Number of threads; None and −1 mean all. The result does not depend on it.
    verbose : int, default=0
        If positive, print a line an iteration.
    random_state : int, RandomState instance or None, default=0
        Seed of the samples that speed up "newton".

    Attributes
    ----------
    curves_ : list of Curve
        For each feature its `knots`, the `values` there, what is added for `missing` values, and
        whether it is `categorical`.
    interactions_ : list of Interaction
        For each pair of `features` their `knots`, and the `values` at each two of them, of which
        the first row and column are for missing values. The most promising are first.
    smoothness_ : float
        The smoothness that was used.
    scale_ : ndarray of shape (n_features,), or None
        What features were divided by.
    objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_
        As in :class:`~marginrank.RankSVM`.
    n_rounds_ : int or None
        The same; None if `objective` is "pairs".
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X, or the RankingData, have names that are strings.

    Notes
    -----
    Values are kept in three bytes while it learns: the bin, and a place in it rounded to 2⁻¹⁶ of
    the bin's width. Scores of :meth:`predict` are made of the values as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank import AdditiveRankSVM, RankSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = -np.abs(X[:, 0]) + X[:, 1]  # the nearer to zero the better: no line ranks that
    >>> RankSVM().fit(X, y).score(X, y) < 0.9
    True
    >>> AdditiveRankSVM().fit(X, y).score(X, y) > 0.97
    True
    """

    def __init__(
        self,
        *,
        C: float = 10.0,
        lam: float | None = None,
        objective: str = "pairs",
        loss: str = "squared_hinge",
        max_bins: int = 16,
        smoothness: float | None = None,
        categorical_features: Any = None,
        interactions: int = 0,
        monotonic_cst: Any = None,
        group_l1: float = 0.0,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        pair_selection: str = "all",
        pair_cost: Any = None,
        margin: Any = "unit",
        normalization: str = "query",
        scale: Any = "standard",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.lam = lam
        self.objective = objective
        self.loss = loss
        self.max_bins = max_bins
        self.smoothness = smoothness
        self.categorical_features = categorical_features
        self.interactions = interactions
        self.monotonic_cst = monotonic_cst
        self.group_l1 = group_l1
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
        propensity: ArrayLike | None = None,
        pairs: Any = None,
        pair_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn the curves.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents; NaN is allowed where X is a matrix.
        y, qid, group, sample_weight, query_weight, propensity, pairs, pair_weight
            As in :meth:`RankSVM.fit`. Weights count in the loss alone: knots and scales are those
            of the documents, whatever these weigh.

        Returns
        -------
        AdditiveRankSVM
            The fitted estimator.
        """
        parameters = self._parameters()
        seed = check_seed(self.random_state)
        labels, group = labels_beside(pairs, X, y, qid, group)
        weights = (qid, group, sample_weight, query_weight)
        given = documents_and_features(X, labels, *weights, n_jobs=self.n_jobs)
        data = given.data
        model = fit_additive(
            data,
            given.with_categories(parameters),
            pairs=check_listed(pairs, pair_weight, data.n_documents),
            propensity=check_propensity(propensity, data.n_documents),
            seed=seed,
            callback=print_iteration if self.verbose else None,
        )
        self._take_over(model, given)
        remember_columns(self, y, qid, sample_weight, query_weight)
        warn_of(empty_message(model, parameters))
        return self

    def _parameters(self) -> AdditiveParameters:
        names = [field.name for field in fields(AdditiveParameters)]
        return AdditiveParameters(**{name: getattr(self, name) for name in names})

    def _take_over(self, model: AdditiveModel, given: AdditiveInput) -> None:
        """Set the attributes of a fit; raise what has ended it, or warn of its result."""
        for k, texts in given.texts.items():
            model.curves[k] = model.curves[k]._replace(categories=tuple(texts))
        set_features(self, features_of(model) | queries_of(given.data))
        self._set_model(model)
        finish(report_of(model), self.tol, None)

    def _set_model(self, model: AdditiveModel) -> None:
        self.curves_ = model.curves
        self.interactions_ = list(model.interactions)
        self.scale_ = model.scale
        self._set_report(model.report)
        self.n_rounds_ = None if model.report is None else model.report.n_rounds

    def predict(self, X: Any) -> Floats:
        """Return the scores f(x); a higher score ranks higher.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents; NaN is allowed.

        Returns
        -------
        ndarray of shape (n_documents,)
        """
        self._require_model()
        if not isinstance(X, RankingData):
            texts = {k: c.categories for k, c in enumerate(self.curves_) if c.categories}
            X = with_numbers(without_used_columns(self, X), texts)
        checked = X.X if isinstance(X, RankingData) else check_features(X, missing=True)
        check_features_of_fit(self, X)
        threads = effective_threads(self.n_jobs)
        return additive_model.scores(self.curves_, checked, threads, self.interactions_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, which :func:`marginrank.load_model` reads.

        Parameters
        ----------
        path : str or path
            The file, JSON with the curves and the parameters; it appears only when it is complete.
        """
        write_model(self.to_additive_model(), path)

    def to_additive_model(self) -> AdditiveModel:
        """Return the fitted model as plain data, as model files hold it."""
        self._require_model()
        return AdditiveModel(
            curves=self.curves_,
            parameters=self.get_params(deep=False),
            feature_names=feature_names_of(self),
            report=self._report(),
            interactions=self.interactions_,
            scale=getattr(self, "scale_", None),
        )

    def _plain_model(self) -> AdditiveModel:
        return self.to_additive_model()

    def _require_model(self) -> None:
        """Raise NotFittedError without curves."""
        check_is_fitted(self)

    @classmethod
    def from_additive_model(cls, model: AdditiveModel) -> Self:
        """Return a fitted estimator that predicts what the saved one did."""
        self = cls(**model.parameters)
        set_features(self, features_of(model))
        self._set_model(model)
        return self

    def __sklearn_tags__(self) -> Tags:
        """Describe the estimator to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
