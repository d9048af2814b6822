"""SelectKBestRanking, a selector of the features that individually rank documents best."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from marginrank._utils.parameters import check_integer
from marginrank._utils.types import Booleans
from marginrank.data import RankingData
from marginrank.estimators.input import (
    check_features_of_fit,
    features_of,
    set_features,
    training_data,
)
from marginrank.metrics.feature_ranking import best_first, rank_features


class SelectKBestRanking(SelectorMixin, BaseEstimator):
    """Select the k features that individually rank the training documents best.

    The score of feature j is max(metric(y, x_j), metric(y, −x_j)), see
    :func:`~marginrank.rank_features`. In a pipeline before :class:`~marginrank.RankSVM` this is
    FS-Rank of Lai et al. (2013, section 8.5.2), which uses x_j only, with NDCG@10.

    Parameters
    ----------
    k : int or "all", default=10
        Number of features to select. If X has fewer, all are selected, with a warning.
    metric : str or callable, default="ndcg@10"
        As in :func:`~marginrank.rank_features`.
    n_jobs : int, default=None
        Number of threads; None and −1 mean all. The result does not depend on it.

    Attributes
    ----------
    scores_ : ndarray of shape (`n_features_in_`,)
        The score of each feature.
    directions_ : ndarray of int64, shape (`n_features_in_`,)
        1 if documents with high values of the feature should be preferred, −1 for low values.
        `transform` does not negate features, because a linear model learns the sign.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the columns of X, or the RankingData, have string names.

    Notes
    -----
    Features are scored one by one: copies of a good feature are all selected, and two features that
    are only useful together are not. :class:`~marginrank.SparseRankSVM` selects features jointly.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from marginrank import RankSVM, SelectKBestRanking, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, n_features=30, random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = make_pipeline(SelectKBestRanking(k=5), RankSVM()).fit(X, y, qid=qid)
    >>> model[-1].coef_.size
    5
    """

    # With metadata routing enabled, fit gets `qid` without a request by the user.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012

    def __init__(
        self, *, k: int | str = 10, metric: Any = "ndcg@10", n_jobs: int | None = None
    ) -> None:
        self.k = k
        self.metric = metric
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Compute the score of each feature and select the best k features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents. A RankingData brings labels and queries; its weights are ignored.
        y, qid, group
            Labels and queries, as in :meth:`RankSVM.fit`.

        Returns
        -------
        SelectKBestRanking
            The fitted selector.
        """
        k = 0 if self.k == "all" else check_integer("k", self.k, at_least=1)
        data = training_data(X, y, qid=qid, group=group, n_jobs=self.n_jobs)
        if k > data.n_features:
            warnings.warn(
                f"k={k} is more than the {data.n_features} features of X; all are selected.",
                stacklevel=2,
            )
        ranking = rank_features(data, metric=self.metric, n_jobs=self.n_jobs)
        if np.isnan(ranking.best).all():
            raise ValueError(
                f"{ranking.metric} is undefined on every query, so features cannot be compared; "
                "check y and qid."
            )
        set_features(self, features_of(data))
        self.scores_ = ranking.best
        self.directions_ = ranking.direction
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of the selected features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents.

        Returns
        -------
        ndarray or sparse matrix of shape (n_documents, k)
            The selected columns. For a RankingData, see :meth:`RankingData.with_features`.
        """
        if not isinstance(X, RankingData):
            return super().transform(X)
        kept = self.get_support(indices=True)
        check_features_of_fit(self, X)
        return X.X[:, kept]

    def _get_support_mask(self) -> Booleans:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[best_first(self.scores_)[: None if self.k == "all" else self.k]] = True
        return mask

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags
