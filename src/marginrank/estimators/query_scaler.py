"""QueryScaler, a transformer that scales features within each query."""

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
    """Scale each feature within each query, for example to the range 0 … 1.

    A value is scaled relative to the other documents of the same query, so queries with large and
    with small values become comparable. The fit stores only the number and names of the features.
    Queries are needed for prediction, too, and a single document cannot be scored on its own.

    Parameters
    ----------
    method : {"minmax", "standard", "rank"}, default="minmax"
        Formula for a value x of a feature, with statistics over the documents of the query.
        "minmax" is (x − min) / (max − min), LETOR's QueryLevelNorm; "standard" is
        (x − mean) / standard deviation; "rank" is the rank, from 0 for the smallest to 1 for the
        largest value, with mean ranks for ties. If all values of a query are equal, "minmax" and
        "standard" return 0 and "rank" returns ½.

    Attributes
    ----------
    by_query_ : bool
        Whether queries were passed to :meth:`fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the columns of X, or the RankingData, have string names.

    Notes
    -----
    A sparse X stays sparse, and zeros stay zeros: if a feature has zeros in a query, its scaled
    values are shifted by the scaled value of zero. With "minmax" and non-negative features the
    shift is 0. Otherwise it is constant within a query, which does not change the ranking of a
    linear model but may change trees; pass them a dense X.

    Examples
    --------
    >>> from marginrank import QueryScaler
    >>> X = [[1.0], [3.0], [2.0], [100.0], [300.0]]
    >>> QueryScaler().fit_transform(X, qid=[1, 1, 1, 2, 2]).ravel().tolist()
    [0.0, 1.0, 0.5, 0.0, 1.0]

    In a pipeline, queries are passed by metadata routing:

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

    # With metadata routing enabled, these methods get `qid` without a request by the user.
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
        """Validate the documents and store the number and names of the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents.
        y : ignored
            Not used.
        qid, group : array-like, optional
            Queries, as in :meth:`transform`, which then requires them.

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
        """Scale each feature of the documents within their queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
            The documents, with all documents of each query.
        qid : array-like of shape (n_documents,), optional
            Query of each document, of any type and in any order.
        group : array-like of shape (n_queries,), optional
            Sizes of contiguous queries, instead of `qid`. If neither is given, neither here nor in
            :meth:`fit`, all documents are one query.

        Returns
        -------
        ndarray or sparse matrix of shape (n_documents, n_features)
            The scaled features, float32 if X is float32, else float64. For a RankingData, see
            :meth:`RankingData.with_features`.
        """
        check_is_fitted(self)
        check_choice("method", self.method, METHODS)
        if self.by_query_ and qid is None and group is None and not isinstance(X, RankingData):
            raise ValueError(
                "qid is None, but QueryScaler was fitted with queries. Pass qid; in a pipeline, "
                "enable scikit-learn's metadata routing and pass qid to predict."
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
        """Fit to the documents, then scale each feature within their queries.

        Parameters
        ----------
        X, y, qid, group
            As in :meth:`fit`.

        Returns
        -------
        ndarray or sparse matrix of shape (n_documents, n_features)
            The scaled features; see :meth:`transform`.
        """
        return self.fit(X, y, qid=qid, group=group).transform(X, qid=qid, group=group)

    def __sklearn_tags__(self) -> Tags:
        """Return the tags for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
