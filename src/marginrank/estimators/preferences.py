"""Checks of what a fit is told about pairs of documents, beside labels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank.data.pair_lists import PairList, check_pairs
from marginrank.data.ranking_data import RankingData
from marginrank.data.validation import check_features
from marginrank.fit.pairs import check_pair_selection
from marginrank.fit.pairs import check_propensity as check_propensity
from marginrank.fit.streams import is_path


def check_listed(
    pairs: Any, pair_weight: ArrayLike | None, pair_selection: str, n_documents: int
) -> PairList | None:
    """Return the pairs that a fit was given; None if labels make them."""
    if pairs is not None:
        check_pair_selection(pair_selection)
        return check_pairs(pairs, pair_weight, n_documents)
    if pair_weight is not None:
        raise ValueError("pair_weight is given, but no pairs; give both or neither.")
    return None


def labels_beside(
    pairs: Any, X: Any, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None
) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Return the labels and group sizes that a fit was given.

    Where pairs stand for labels, the labels are zeros; without queries, all documents are one.
    """
    if pairs is None or isinstance(X, RankingData) or is_path(X) or isinstance(y, str):
        return y, group
    shape: tuple[int, ...] = getattr(X, "shape", ())  # the fit checks X itself
    n = shape[0] if len(shape) == 2 else check_features(X, missing=True).shape[0]
    return np.zeros(n), [n] if qid is None and group is None else group
