"""Pair weights δ(y_i, y_j) as sums of products: δ_ij = Σ_r P_ir · Q_jr.

The kernels take any δ of this form in O(rank · l log k). A weight that depends on the two labels
has it: a matrix over few labels has rank at most their number less one, a difference of gains has
rank two for any number of labels.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class PairFactors(NamedTuple):
    """The factors P and Q, one row a document, in the order of the rows of X."""

    preferred: Floats
    other: Floats


def document_weights(preferred: ArrayLike, other: ArrayLike | None = None) -> PairFactors:
    """Return δ_ij = preferred_i · other_j, with other = 1 by default, as for propensities.

    Examples
    --------
    >>> from marginrank.pair_weights import document_weights
    >>> P, Q = document_weights([2.0, 3.0])
    >>> float(P[0] @ Q[1])
    2.0
    """
    a = np.asarray(preferred, dtype=np.float64)
    b = np.ones_like(a) if other is None else np.asarray(other, dtype=np.float64)
    return PairFactors(a[:, None], b[:, None])


def gain_difference(y: ArrayLike, gain: Callable[[Floats], Floats] | None = None) -> PairFactors:
    """Return δ_ij = g(y_i) − g(y_j) for a non-decreasing gain g (the label itself by default).

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        Labels.
    gain : callable, optional
        The gain of an array of labels, such as ``lambda y: 2**y - 1``.

    Examples
    --------
    >>> from marginrank.pair_weights import gain_difference
    >>> P, Q = gain_difference([2.0, 0.0])
    >>> float(P[0] @ Q[1])
    2.0
    """
    labels = np.asarray(y, dtype=np.float64)
    g = labels if gain is None else np.asarray(gain(labels), dtype=np.float64)
    ones = np.ones_like(g)
    return PairFactors(np.column_stack([g, -ones]), np.column_stack([ones, g]))


def weight_matrix(y: ArrayLike, matrix: ArrayLike) -> PairFactors:
    """Return δ_ij = matrix[a, b], where y_i is the a-th and y_j the b-th smallest distinct label.

    Only the entries with a > b are used, as these are the pairs there are.

    Examples
    --------
    >>> from marginrank.pair_weights import weight_matrix
    >>> P, Q = weight_matrix([0.0, 5.0, 1.0], [[0, 0, 0], [1, 0, 0], [4, 2, 0]])
    >>> float(P[1] @ Q[2])
    2.0
    """
    distinct, code = np.unique(np.asarray(y, dtype=np.float64), return_inverse=True)
    delta = np.asarray(matrix, dtype=np.float64)
    if delta.shape != (distinct.size, distinct.size):
        raise ValueError(
            f"matrix has shape {delta.shape} and needs a row and a column for each of the "
            f"{distinct.size} distinct labels."
        )
    below = np.tril(np.ones_like(delta, dtype=bool), -1)
    bad = np.argwhere(below & ~((delta >= 0) & np.isfinite(delta)))
    if bad.size:
        a, b = bad[0]
        raise ValueError(
            f"matrix[{a}, {b}] is {delta[a, b]:g}; pair weights must be finite and not negative."
        )
    delta = np.where(below, delta, 0.0)
    rank = max(distinct.size - 1, 1)  # the highest label is never the other side of a pair
    return PairFactors(
        np.ascontiguousarray(delta[code][:, :rank]), np.eye(distinct.size)[code][:, :rank]
    )
