"""How much each feature of an additive model matters, and each pair of them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginrank._utils.types import Floats
from marginrank.data.held_out import check_same_names
from marginrank.data.queries import group_rows
from marginrank.data.ranking_data import RankingData, check_beside_data, columns_of
from marginrank.data.validation import check_features
from marginrank.models._features import require_features
from marginrank.models.additive_model import AdditiveModel, contributions

DRAWS = 200  # of queries, for standard errors


class Importance(NamedTuple):
    """How far documents of one query are apart by a feature, or a pair of features.

    Attributes
    ----------
    spread : ndarray of shape (n_features + n_interactions,)
        For each feature, and then for each pair that acts together, the root of the mean squared
        deviation of f_k from its mean in the query: features that are constant inside queries have
        none, as no ranking depends on them.
    error : ndarray of shape (n_features + n_interactions,)
        Its standard error, by drawing queries with replacement.
    """

    spread: Floats
    error: Floats


def documents_of(
    model: AdditiveModel, X: Any, qid: ArrayLike | None = None
) -> tuple[Any, ArrayLike | None]:
    """Return checked features of documents and their queries; a RankingData brings its own.

    Other features than those of the model are refused, by number and by name.
    """
    names, checked = columns_of(X), X
    if isinstance(X, RankingData):
        check_beside_data(qid=qid)
        names, checked, qid = X.feature_names, X.X, X.qid
    checked = check_features(checked, missing=True)
    require_features(checked, model.n_features)
    if names is not None and model.feature_names is not None:
        check_same_names(names, model.feature_names, "the data", "the model")
    return checked, qid


def importance(
    model: AdditiveModel, X: Any, qid: ArrayLike | None = None, *, seed: int = 0
) -> Importance:
    """Return how much each feature, and then each pair, matters among some documents.

    Parameters
    ----------
    model : AdditiveModel
        The curves.
    X : array-like or sparse matrix of shape (n_documents, n_features), or RankingData
        The documents; NaN is allowed.
    qid : array-like of shape (n_documents,), optional
        Their queries; without them, all are one.
    seed : int
        Of the queries that are drawn.
    """
    X, qid = documents_of(model, X, qid)
    X = X.toarray() if sp.issparse(X) else X
    documents, _ = group_rows(X.shape[0], qid, None)
    rows = X if documents.rows is None else X[documents.rows]
    added = contributions(model.curves, rows, model.interactions)
    starts, sizes = documents.offsets[:-1], documents.sizes
    mean = np.add.reduceat(added, starts) / sizes[:, None]
    squares = np.add.reduceat((added - np.repeat(mean, sizes, axis=0)) ** 2, starts)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(sizes.size, np.full(sizes.size, 1.0 / sizes.size), size=DRAWS)
    draws = np.sqrt((drawn @ squares) / (drawn @ sizes)[:, None])
    return Importance(np.sqrt(squares.sum(axis=0) / sizes.sum()), draws.std(axis=0, ddof=1))
