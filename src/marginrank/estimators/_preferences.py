"""Checks of what a fit is told about pairs of documents, beside labels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._base.types import Floats
from marginrank.data.pair_lists import PairList, check_pairs
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import check_features, check_weights
from marginrank.training.pairs import refuse_selection


def check_listed(
    pairs: Any, pair_weight: ArrayLike | None, pair_selection: str, n_documents: int
) -> PairList | None:
    """Return the pairs that a fit was given; None if labels make them."""
    if pairs is not None:
        refuse_selection(pair_selection)
        return check_pairs(pairs, pair_weight, n_documents)
    if pair_weight is not None:
        raise ValueError("pair_weight is given, but no pairs; give both or neither.")
    return None


def labels_beside(pairs: Any, X: Any, y: ArrayLike | None) -> ArrayLike | None:
    """Return the labels that a fit was given; where pairs stand for them, zeros in their place."""
    if pairs is None or isinstance(X, RankingData):
        return y
    return np.zeros(check_features(X).shape[0])


def check_propensity(propensity: ArrayLike | None, n_documents: int) -> Floats | None:
    """Return the propensities that a fit was given, none of them zero."""
    if propensity is None:
        return None
    values = check_weights(propensity, "propensity", n_documents, "one probability a document")
    zero = np.flatnonzero(values == 0)
    if zero.size:
        raise ValueError(f"propensity[{zero[0]}] is 0; a document needs a chance to be examined.")
    return values
