"""Margins of pairs of the form d_i − d_j: margin rescaling with the cost (d_i − d_j)².

Paper 2, section 6.2: a violated pair of the squared hinge then costs at least (d_i − d_j)², and the
kernels need no more than s − d instead of s.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Floats, Integers
from marginrank.objective.pair_weights import exponential_gain


def margin_offsets(margin: Any, y: NDArray[Any], qid: Integers) -> Floats:
    """Return the d_i of RankSVM's parameter `margin`.

    Only their differences inside a query count, so one of them is subtracted there from all: beside
    scores, large numbers would lose the digits in which they differ.
    """
    if callable(margin):
        offsets = np.asarray(margin(y), dtype=np.float64)
        if offsets.shape != y.shape or not np.isfinite(offsets).all():
            raise ValueError("margin(y) must return one finite number for each label.")
    else:
        offsets = exponential_gain(y) if margin == "gain" else y
    if offsets.dtype != np.float64:
        offsets = offsets.astype(object)  # integers of Python, whose differences are exact
    one_of_query = np.empty(qid.max() + 1, dtype=offsets.dtype)
    one_of_query[qid] = offsets
    differences: Floats = (offsets - one_of_query[qid]).astype(np.float64)
    return differences
