"""How much each feature of an additive model matters, and each pair of them."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginrank._base.types import Floats
from marginrank.data.grouping import group_rows
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


def importance(
    model: AdditiveModel, X: Any, qid: ArrayLike | None = None, *, seed: int = 0
) -> Importance:
    """Return how much each feature, and then each pair, matters among some documents.

    Parameters
    ----------
    model : AdditiveModel
        The curves.
    X : array-like or sparse matrix of shape (n_documents, n_features)
        The documents; NaN is allowed.
    qid : array-like of shape (n_documents,), optional
        Their queries; without them, all are one.
    seed : int
        Of the queries that are drawn.
    """
    X = check_features(X, missing=True)
    require_features(X, model.n_features)
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
