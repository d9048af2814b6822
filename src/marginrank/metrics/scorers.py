"""Scikit-learn scorers that compute ranking metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.user_warnings import warn_caller
from marginrank.data.queries import MANY_DOCUMENTS
from marginrank.metrics.names import Metric, get_metric, metric_name, order_free

NO_QUERIES = (
    "The scorer got no qid, so all documents count as one query. Call "
    "sklearn.set_config(enable_metadata_routing=True) and pass qid=qid to fit of the search, or "
    'params={"qid": qid} to cross_validate. If they are one query, pass qid=np.zeros(n_documents).'
)


@dataclass(frozen=True, repr=False)
class RankingScorer:
    """A scikit-learn scorer that computes a ranking metric of an estimator's predictions.

    See Also
    --------
    make_ranking_scorer : Create a RankingScorer; has an example.
    """

    metric: Metric

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, *, qid: ArrayLike | None = None
    ) -> float:
        """Return the metric of ``estimator.predict(X)``; without qid, all documents are one query.

        A warning is emitted if qid is missing and X has more documents than the fit's largest
        query.
        """
        scores = _predict(estimator, X, qid)
        last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
        if qid is None and len(scores) > getattr(last, "_largest_query", MANY_DOCUMENTS):
            warn_caller(NO_QUERIES)
            qid = np.zeros(len(scores), dtype=np.int64)
        return float(self.metric(y, scores, qid=qid))

    def get_metadata_routing(self) -> Any:
        """Return scikit-learn's metadata request of the scorer, which asks for `qid`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request

    def __repr__(self) -> str:
        """Return the call that makes the scorer."""
        return f"make_ranking_scorer({metric_name(self.metric)})"


def _predict(estimator: Any, X: Any, qid: ArrayLike | None) -> Any:
    from sklearn import config_context
    from sklearn.utils.metadata_routing import get_routing_for_object

    with config_context(enable_metadata_routing=True):
        # A pipeline requests qid for predict if a step, such as QueryScaler, needs it.
        asks = qid is not None and get_routing_for_object(estimator).consumes("predict", ["qid"])
        return estimator.predict(X, qid=qid) if asks else estimator.predict(X)


def metric_of(scoring: str | Metric | RankingScorer) -> Metric:
    """Return the metric of a `scoring` parameter: a name, a function or a RankingScorer."""
    return get_metric(scoring.metric if isinstance(scoring, RankingScorer) else scoring)


def make_ranking_scorer(metric: str | Metric = "ndcg", **options: Any) -> RankingScorer:
    """Make a scikit-learn scorer from a ranking metric such as NDCG.

    With metadata routing enabled, the scorer gets the queries of each fold from
    ``cross_validate(…, params={"qid": qid})`` or ``GridSearchCV(…).fit(X, y, qid=qid)``. Split by
    query, with ``GroupKFold`` and ``groups=qid``.

    Parameters
    ----------
    metric : str or callable, default="ndcg"
        As in :func:`get_metric`: "ndcg@10", or a function. Higher must be better. The default of
        the option ``ties`` is "average" instead of "order", because scorers select models.
    **options
        Options of the metric.

    Returns
    -------
    RankingScorer
        Called as ``scorer(estimator, X, y, qid=…)``, with or without metadata routing.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> from marginrank import RankSVM, make_ranking
    >>> from marginrank.metrics import make_ranking_scorer
    >>> X, y, qid = make_ranking(n_queries=30, docs_per_query=10, random_state=0)
    >>> scorer = make_ranking_scorer("ndcg@5", no_relevant="skip")
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     search = GridSearchCV(RankSVM(), {"C": [1e-3, 1e-2]}, scoring=scorer, cv=GroupKFold(3))
    ...     search = search.fit(X, y, qid=qid, groups=qid)
    >>> bool(search.best_score_ > 0.7)
    True
    """
    return RankingScorer(order_free(get_metric(metric, **options)))
