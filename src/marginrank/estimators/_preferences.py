"""Checks of what a fit is told about pairs of documents, beside labels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank.data.pair_lists import PairList, check_pairs
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import check_features
from marginrank.training.pairs import check_propensity as check_propensity
from marginrank.training.pairs import refuse_selection
from marginrank.training.streams import is_path


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
    if pairs is None or isinstance(X, RankingData) or is_path(X) or isinstance(y, str):
        return y
    shape = getattr(X, "shape", ())  # the fit checks X itself
    return np.zeros(shape[0] if len(shape) == 2 else check_features(X, missing=True).shape[0])


def one_query_beside(
    pairs: Any, X: Any, labels: Any, qid: ArrayLike | None, group: ArrayLike | None
) -> ArrayLike | None:
    """Return `group`; where pairs say what is compared, and nothing else, all is one query."""
    if pairs is None or qid is not None or group is not None or isinstance(X, RankingData):
        return group
    return None if is_path(X) or isinstance(labels, str) else [len(labels)]
