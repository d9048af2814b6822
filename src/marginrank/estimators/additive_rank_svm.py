"""AdditiveRankSVM, the estimator of additive models: one curve per feature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

from numpy.typing import ArrayLike
from sklearn.utils import Tags

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.additive.fit import AdditiveParameters, empty_message, fit_additive
from marginrank.data import RankingData
from marginrank.data.categories import categorical_columns, text_categories, with_numbers
from marginrank.data.feature_choice import chosen_columns
from marginrank.data.validation import check_features
from marginrank.estimators.base import BaseRanker, check_seed, warn_of
from marginrank.estimators.input import (
    check_features_of_fit,
    feature_names_of,
    features_of,
    labels_or_zeros,
    pair_options,
    remember_columns,
    take_columns,
    training_data,
    without_used_columns,
)
from marginrank.models import AdditiveModel, additive_model
from marginrank.models.fit_report import print_iteration


class AdditiveInput(NamedTuple):
    """Validated arguments of ``AdditiveRankSVM.fit``, and categorical columns of a data frame."""

    data: RankingData
    categorical: list[int]
    texts: dict[int, list[str]]

    def with_categories(self, parameters: AdditiveParameters) -> AdditiveParameters:
        """Return fit parameters that include the categorical columns of the data frame."""
        if not self.categorical:
            return parameters
        listed = chosen_columns(
            "categorical_features",
            parameters.categorical_features,
            self.data.feature_names,
            self.data.n_features,
        )
        return replace(parameters, categorical_features=sorted({*listed, *self.categorical}))


def additive_input(X: Any, *, n_jobs: int | None, **given: Any) -> AdditiveInput:
    """Return the validated arguments of ``AdditiveRankSVM.fit``, and categories of a data frame."""
    X, values = take_columns(X, **given)
    categorical, texts = list(categorical_columns(X)), text_categories(X)
    data = training_data(with_numbers(X, texts), **values, allow_nan=True, n_jobs=n_jobs)
    return AdditiveInput(data, categorical, texts)


class AdditiveRankSVM(BaseRanker):
    """Additive ranking SVM: learns one curve per feature instead of one weight.

    The score of a document x is f(x) = Σ_k f_k(x_k), a sum of one curve f_k per feature x_k, plus
    joint functions of pairs of features if `interactions` is positive. A curve is piecewise linear
    between its knots, which are quantiles of the feature. The objective is the penalty of all
    curves plus C times the loss ℓ of all pairs (i, j), in which document i has the higher label:

        Σ_k P(f_k) + C · Σ ℓ(f(x_i) − f(x_j))

    The penalty P of a straight line of slope w is ½ (σ w)², with the divisor σ of `scale`, as in
    :class:`~marginrank.RankSVM`; other curves add `smoothness` times their roughness. So curves
    deviate from lines only if this reduces the loss. With two knots per feature, or a huge
    `smoothness`, the model is RankSVM.

    Missing values (NaN, None, pandas.NA and masked entries) are allowed: their contribution to the
    score is learned.

    Parameters
    ----------
    C : float, optional
        Weight of the loss, as in :class:`~marginrank.RankSVM`. The default is n_documents /
        (5 · n_features), divided by the weight of all pairs, which is 1 unless `normalization` is
        "none". Documents in queries without pairs do not count.
    normalization : {"none", "pairs", "query"}, default="query"
        As in :class:`~marginrank.RankSVM`.
    lam, objective, loss, solver, tol, max_iter, pair_selection, pair_cost, margin
        As in :class:`~marginrank.RankSVM`.
    max_bins : int, default=16
        Maximum number of bins between the knots of a feature, up to 254. A feature with fewer
        distinct values has a knot at each.
    smoothness : float, optional
        Weight of the roughness of curves, relative to the penalty of a line. The default is one
        divided by the cube root of n_documents, which counts documents as for C.
    categorical_features : array-like of str, int or bool, or "from_dtype", optional
        Categorical features: their names, their columns, or a boolean mask. Each value gets its
        own weight, as with one-hot encoding. Values that were not in the training data are treated
        as missing. Values are compared exactly, so use integers. Columns of a pandas frame with
        dtype "category" are always categorical and may hold text; with "from_dtype" or None, they
        are the only ones.
    interactions : int, default=0
        Number of pairs of features with a joint function (an interaction), which models what a sum
        of two curves cannot. The pairs with the largest estimated effect on the objective are
        selected.
    monotonic_cst : dict or array-like of int of shape (n_features,), optional
        Features whose curves must increase (1) or decrease (-1), by name or column, as in
        ``{"bm25": 1, 3: -1}``; or 1, -1 or 0 for each feature. The contribution of missing values
        is not constrained. With the hinge loss, the solver is "smoothing".
    group_l1 : float, default=0.0
        Weight of the group-lasso penalty Σ_k √(2 P(f_k)), which drops whole features. The term of a
        straight line of slope w is σ · abs(w). The penalty cannot be combined with `monotonic_cst`.
        The solver is "newton", or "smoothing" for the hinge loss.
    scale : None, {"standard", "range", "query"} or array-like, default="standard"
        Divisors of the features, as in :class:`~marginrank.RankSVM`. They are computed with missing
        values replaced by the middle knot.
    n_jobs, verbose, random_state
        As in :class:`~marginrank.RankSVM`.

    Attributes
    ----------
    curves_ : list of Curve
        For each feature the `knots`, the `values` at the knots, the contribution of `missing`
        values, and whether it is `categorical`.
    interactions_ : list of Interaction
        For each selected pair of `features` the `knots` and the `values` at each combination of
        knots; the first row and column of `values` are for missing values. Pairs are in the order
        of their selection.
    C_, smoothness_ : float
        The weight of the loss and the smoothness that were used.
    scale_ : ndarray of shape (n_features,), or None
        Divisors of the features.
    objective_, gap_, stop_reason_, n_iter_, history_, n_pairs_, support_pairs_, \
n_features_in_, feature_names_in_
        As in :class:`~marginrank.RankSVM`.
    n_rounds_ : int or None
        As in :class:`~marginrank.RankSVM`; None if `objective` is "pairs".

    See Also
    --------
    AdditiveRankSVMCV : Selects C, smoothness and bins by cross-validation.
    marginrank.plots.plot_additive : Draws the curves.

    Notes
    -----
    During the fit, each feature value is stored in three bytes: its bin, and its position in the
    bin, rounded to 2⁻¹⁶ of the bin's width. :meth:`predict` uses the exact values.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank import AdditiveRankSVM, RankSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = -np.abs(X[:, 0]) + X[:, 1]  # not monotone in the first feature
    >>> RankSVM().fit(X, y).score(X, y) < 0.9
    True
    >>> AdditiveRankSVM().fit(X, y).score(X, y) > 0.94
    True
    """

    _parameters_type = AdditiveParameters

    def __init__(
        self,
        *,
        C: float | None = None,
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
    ) -> Self:
        """Fit the curves, and joint functions of pairs of features if `interactions` is positive.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents; NaN is allowed in a matrix or data frame.
        y, qid, group, sample_weight, query_weight, propensity, position, context, \
monotonic_position, pairs, pair_weight, pair_margin
            As in :meth:`RankSVM.fit`, but not `monotonic_position` together with `context`. Knots
            and scales ignore weights.

        Returns
        -------
        AdditiveRankSVM
            The fitted estimator.
        """
        parameters = self._parameters()
        seed = check_seed(self.random_state)
        labels, group = labels_or_zeros(pairs, X, y, qid, group)
        weights = {"sample_weight": sample_weight, "query_weight": query_weight}
        weights |= {"position": position, "context": context}
        given = additive_input(X, y=labels, qid=qid, group=group, **weights, n_jobs=self.n_jobs)
        model = fit_additive(
            given.data,
            given.with_categories(parameters),
            **pair_options(
                given.data, pairs, pair_weight, pair_margin, propensity, monotonic_position
            ),
            seed=seed,
            callback=print_iteration if self.verbose else None,
        )
        for k, texts in given.texts.items():
            model.curves[k] = model.curves[k]._replace(categories=tuple(texts))
        self._take_over(model, features_of(given.data))
        remember_columns(self, y, qid, *weights.values())
        warn_of(empty_message(model, parameters))
        return self

    def _set_model(self, model: AdditiveModel) -> None:
        self.curves_ = model.curves
        self.interactions_ = list(model.interactions)
        self.scale_ = model.scale
        self._set_report(model.report)
        self.n_rounds_ = None if model.report is None else model.report.n_rounds

    def _scores(self, X: Any) -> Floats:
        if not isinstance(X, RankingData):
            texts = {k: c.categories for k, c in enumerate(self.curves_) if c.categories}
            X = with_numbers(without_used_columns(self, X), texts)
        checked = X.X if isinstance(X, RankingData) else check_features(X, missing=True)
        check_features_of_fit(self, X)
        threads = effective_threads(self.n_jobs)
        return additive_model.scores(self.curves_, checked, threads, self.interactions_)

    def to_additive_model(self) -> AdditiveModel:
        """Return the fitted model as plain data, as stored in model files."""
        self._require_model()
        fitted: Any = getattr(self, "best_estimator_", self)  # the fitted estimator of a search
        return AdditiveModel(
            curves=fitted.curves_,
            parameters=fitted.get_params(deep=False),
            feature_names=feature_names_of(fitted),
            report=fitted._report(),
            interactions=fitted.interactions_,
            scale=getattr(fitted, "scale_", None),
        )

    def _plain_model(self) -> AdditiveModel:
        return self.to_additive_model()

    @classmethod
    def from_additive_model(cls, model: AdditiveModel) -> Self:
        """Return a fitted estimator that predicts the same scores as `model`."""
        return cls._from_model(model)

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
