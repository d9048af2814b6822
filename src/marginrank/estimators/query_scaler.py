"""QueryScaler: features on a common scale inside each query."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from marginrank._utils.parameters import check_choice
from marginrank._utils.threads import effective_threads
from marginrank.data import RankingData
from marginrank.data.queries import group_rows
from marginrank.data.query_scaling import METHODS, scale_by_query
from marginrank.data.ranking_data import check_beside_data
from marginrank.data.validation import as_matrix, check_features, check_finite
from marginrank.estimators.input import documents_to_score, features_of, set_features


class QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale each feature inside each query.

    Nothing is learned but the number and the names of the features: a document is compared with the
    others of its query, so that queries with large and with small values become alike. The queries
    are needed wherever documents are scaled, and a model of scaled features cannot score a document
    on its own.

    Parameters
    ----------
    method : {"minmax", "standard", "rank"}, default="minmax"
        (x − min) / (max − min) over the documents of the query, as LETOR's QueryLevelNorm;
        (x − mean) / standard deviation; or the rank, from 0 for the least to 1 for the greatest
        value, equal values having the mean of their ranks. Where all values of a query are equal,
        the first two are 0 and ranks are ½.

    Attributes
    ----------
    by_query_ : bool
        Whether the fit was given queries.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the columns of X, or the RankingData, have names that are strings.

    Notes
    -----
    A sparse X stays sparse. Zeros, stored or not, are values as any other, and stay zeros: where a
    query has zeros in a feature, its values are moved by what zero would become. With "minmax" and
    features that are never negative that changes nothing. Else it is a shift inside a query, which
    ranking by a weighted sum does not see, but trees do: give them a dense X.

    Examples
    --------
    >>> from marginrank import QueryScaler
    >>> X = [[1.0], [3.0], [2.0], [100.0], [300.0]]
    >>> QueryScaler().fit_transform(X, qid=[1, 1, 1, 2, 2]).ravel().tolist()
    [0.0, 1.0, 0.5, 0.0, 1.0]

    With metadata routing, queries reach it in a pipeline.

    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from marginrank import RankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = make_pipeline(QueryScaler(), RankSVM()).fit(X, y, qid=qid)
    ...     scores = model.predict(X, qid=qid)
    >>> scores.shape
    (1000,)
    """

    # With metadata routing enabled, queries reach the methods without being asked for.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__transform = {"qid": True}  # noqa: RUF012

    def __init__(self, *, method: str = "minmax") -> None:
        self.method = method

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Look at the features that there are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents.
        y : ignored
            For scikit-learn.
        qid, group : array-like, optional
            Queries, as in :meth:`transform`, which then needs them, too.

        Returns
        -------
        QueryScaler
            The fitted transformer.
        """
        check_choice("method", self.method, METHODS)
        if isinstance(X, RankingData):
            check_beside_data(y=y, qid=qid, group=group)
            set_features(self, features_of(X))
        else:
            features = check_features(X)
            group_rows(features.shape[0], qid, group)
            check_finite(features, as_matrix(features), effective_threads(None))
            validate_data(self, X, skip_check_array=True)
        self.by_query_ = isinstance(X, RankingData) or qid is not None or group is not None
        return self

    def transform(
        self, X: Any, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> Any:
        """Scale the documents inside their queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents, all of each query.
        qid : array-like of shape (n_documents,), optional
            Query of each document, of any type and in any order.
        group : array-like of shape (n_queries,), optional
            Sizes of contiguous queries, instead of `qid`. With neither, all documents are one
            query, if they were so in :meth:`fit`.

        Returns
        -------
        ndarray or sparse matrix of shape (n_documents, n_features)
            float32 where X is that, else float64;
            :meth:`RankingData.with_features` puts the features of a RankingData back.
        """
        check_is_fitted(self)
        check_choice("method", self.method, METHODS)
        if self.by_query_ and qid is None and group is None and not isinstance(X, RankingData):
            raise ValueError(
                "QueryScaler was fitted with queries and needs those of the documents to scale: "
                "give qid; in a pipeline, enable scikit-learn's metadata routing and give qid to "
                "predict."
            )
        features, matrix = documents_to_score(self, X)
        if isinstance(X, RankingData):
            check_beside_data(qid=qid, group=group)
            return scale_by_query(features, X.queries, self.method)
        documents = group_rows(features.shape[0], qid, group).documents
        check_finite(features, matrix, effective_threads(None))
        return scale_by_query(features, documents, self.method)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Any:
        """Scale the documents inside their queries, and remember their features.

        Parameters
        ----------
        X, y, qid, group
            As in :meth:`fit`.

        Returns
        -------
        ndarray or sparse matrix of shape (n_documents, n_features)
            See :meth:`transform`.
        """
        return self.fit(X, y, qid=qid, group=group).transform(X, qid=qid, group=group)

    def __sklearn_tags__(self) -> Tags:
        """Describe the transformer to scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
