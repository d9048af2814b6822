"""Pair weights δ(y_i, y_j) as sums of products: δ_ij = Σ_r P_ir · Q_jr.

The kernels take any δ of this form in O(rank · l log k). A weight that depends on the two labels
has it: a matrix over few labels has rank at most their number less one, a difference of gains has
rank two for any number of labels, the DCG that a swap costs has rank four.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.types import Booleans, Floats, Integers

LARGEST_GAIN_LABEL = 500  # differences and products of gains up to 2**500 are finite
LEAST_PROPENSITY = 1e-300
MOST_LABELS = 64  # of a matrix or a callable, as the work grows with their number


class PairFactors(NamedTuple):
    """The factors P and Q, one row a document, in the order of the rows of X."""

    preferred: Floats
    other: Floats


def document_weights(preferred: ArrayLike, other: ArrayLike | None = None) -> PairFactors:
    """Return δ_ij = preferred_i · other_j, with other = 1 by default, as for propensities.

    Examples
    --------
    >>> from marginrank.objective.pair_weights import document_weights
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
    >>> from marginrank.objective.pair_weights import gain_difference
    >>> P, Q = gain_difference([2.0, 0.0])
    >>> float(P[0] @ Q[1])
    2.0
    """
    labels = np.asarray(y, dtype=np.float64)
    g = labels if gain is None else np.asarray(gain(labels), dtype=np.float64)
    ones = np.ones_like(g)
    return PairFactors(np.column_stack([g, -ones]), np.column_stack([ones, g]))


def weight_matrix(
    y: ArrayLike, matrix: ArrayLike, labels: NDArray[Any] | None = None
) -> PairFactors:
    """Return δ_ij = matrix[a, b], where y_i is the a-th and y_j the b-th smallest distinct label.

    Only the entries with a > b are used, as these are the pairs there are. Where y is a part of
    the data, `labels` are the distinct labels of all.

    Examples
    --------
    >>> from marginrank.objective.pair_weights import weight_matrix
    >>> P, Q = weight_matrix([0.0, 5.0, 1.0], [[0, 0, 0], [1, 0, 0], [4, 2, 0]])
    >>> float(P[1] @ Q[2])
    2.0
    """
    distinct = np.unique(np.asarray(y)) if labels is None else labels
    code = np.searchsorted(distinct, np.asarray(y))
    try:
        delta = np.asarray(matrix, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"matrix must hold real numbers: {error}.") from error
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


def ndcg_difference(y: ArrayLike, qid: ArrayLike) -> PairFactors:
    """Return the share of its query's ideal DCG that swapping two documents costs.

    δ_ij = (g_i − g_j) (D_i − D_j) / IDCG with the gain g = 2^y and the discount
    D = 1 / log₂(1 + rank) in the ideal ranking, averaged over the ranks that the documents of one
    label share. It is the δ of Burges et al. (2007) with ideal positions instead of current ones
    (paper 2, section 6.2), so that it depends on labels alone.

    Parameters
    ----------
    y, qid : array-like of shape (n_documents,)
        Labels and numbers of the queries.

    Examples
    --------
    >>> from marginrank.objective.pair_weights import ndcg_difference
    >>> P, Q = ndcg_difference([1.0, 0.0], [7, 7])
    >>> round(float(P[0] @ Q[1]), 4)
    0.3691
    """
    labels, query = _labels_of_dcg(y), np.asarray(qid)
    gain = exponential_gain(labels)
    ranking = _ideal_ranking(labels, query)
    order, by_rank = ranking.order, 1.0 / np.log2(1.0 + ranking.rank)
    discount = np.empty_like(gain)
    discount[order] = _mean_by_run(by_rank, _changes(query[order]) | _changes(labels[order]))
    return _gains_times(gain, discount, -discount, ranking.dcg(gain, by_rank))


def top_difference(y: ArrayLike, qid: ArrayLike, discount: ArrayLike, k: int) -> PairFactors:
    """Return the share of its query's ideal DCG@k that is at stake between two documents.

    δ_ij = (g_i − g_j) (D_i + D_j) / IDCG@k with the gain g = 2^y and the discounts D that the
    documents have in some ranking, 0 beyond rank k. Where one of the two is among the first k, that
    is what swapping them changes in NDCG@k; where both are, it is more, as D_i + D_j stands for
    abs(D_i − D_j), which is no sum of products. Without any of the first k, it is zero.

    Parameters
    ----------
    y, qid : array-like of shape (n_documents,)
        Labels and numbers of the queries.
    discount : array-like of shape (n_documents,)
        The discounts D, zero or more.
    k : int
        The cut-off.

    Examples
    --------
    >>> from marginrank.objective.pair_weights import top_difference
    >>> P, Q = top_difference([0.0, 1.0], [7, 7], [1.0, 0.0], k=1)
    >>> float(P[1] @ Q[0])
    1.0
    """
    labels, query = _labels_of_dcg(y), np.asarray(qid)
    gain, at_rank = exponential_gain(labels), np.asarray(discount, dtype=np.float64)
    ranking = _ideal_ranking(labels, query)
    by_rank = np.where(ranking.rank <= k, 1.0 / np.log2(1.0 + ranking.rank), 0.0)
    return _gains_times(gain, at_rank, at_rank, ranking.dcg(gain, by_rank))


def _labels_of_dcg(y: ArrayLike) -> Floats:
    """Return labels, none of them below zero."""
    labels = np.asarray(y, dtype=np.float64)
    if labels.size and labels.min() < 0:
        at = int(labels.argmin())
        raise ValueError(
            f"y[{at}] is {labels[at]:g}, and DCG has no place for gains below zero: for NDCG, "
            "labels are zero or more; add a number to all."
        )
    return labels


class _IdealRanking(NamedTuple):
    """Documents by query and label, their ranks, and where queries of which size begin."""

    order: Integers
    rank: Floats
    first: Integers
    sizes: Integers

    def dcg(self, gain: Floats, discount: Floats) -> Floats:
        """Return the ideal DCG of each document's query; discounts are in the order of ranks."""
        ideal = np.empty_like(gain)
        gained = (gain[self.order] - 1.0) * discount
        ideal[self.order] = np.repeat(np.add.reduceat(gained, self.first), self.sizes)
        return ideal


def _ideal_ranking(labels: Floats, query: NDArray[Any]) -> _IdealRanking:
    order = np.lexsort((-labels, query))
    first = np.flatnonzero(_changes(query[order]))
    sizes = np.diff(first, append=order.size)
    rank = np.arange(1.0, order.size + 1.0) - np.repeat(first, sizes)
    return _IdealRanking(order, rank, first, sizes)


def _gains_times(gain: Floats, preferred: Floats, other: Floats, ideal: Floats) -> PairFactors:
    """Return δ_ij = (g_i − g_j) (preferred_i + other_j) / ideal, zero where `ideal` is."""
    scale = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    ones = np.ones_like(gain)
    return PairFactors(
        np.column_stack([gain * preferred, gain, -preferred, -ones]) * scale[:, None],
        np.column_stack([ones, other, gain, gain * other]),
    )


def _changes(values: NDArray[Any]) -> Booleans:
    """Tell where a run of equal values begins."""
    return np.concatenate([[True], values[1:] != values[:-1]])


def _mean_by_run(values: Floats, begins: Booleans) -> Floats:
    first = np.flatnonzero(begins)
    sizes = np.diff(first, append=values.size)
    means: Floats = np.repeat(np.add.reduceat(values, first) / sizes, sizes)
    return means


def exponential_gain(labels: NDArray[Any]) -> Floats:
    """Return 2^y, refusing labels for which products of gains overflow or vanish."""
    values = labels.astype(np.float64)
    if values.size and np.abs(values).max() > LARGEST_GAIN_LABEL:
        at = int(np.argmax(np.abs(values)))
        what = "large" if values[at] > 0 else "far below zero"
        raise ValueError(
            f"y[{at}] is {labels[at]:g}, too {what} for the gain 2**y; map the labels to a few "
            "grades such as 0 to 4."
        )
    gains: Floats = np.exp2(values)
    return gains


def pair_cost(
    cost: Any, y: NDArray[Any], qid: Integers, labels: NDArray[Any] | None = None
) -> PairFactors | None:
    """Return what RankSVM's parameter `pair_cost` stands for.

    Parameters
    ----------
    cost : None, "gain", "ndcg", callable or array-like
        As for :class:`~marginrank.RankSVM`.
    y, qid : ndarray of shape (n_documents,)
        Labels and numbers of the queries.
    labels : ndarray, optional
        The distinct labels of all the data, of which y may be a part.
    """
    if cost is None:
        return None
    if isinstance(cost, str):
        return gain_difference(y, exponential_gain) if cost == "gain" else ndcg_difference(y, qid)
    labels = np.unique(y) if labels is None else labels
    if labels.size > MOST_LABELS:
        raise ValueError(
            f"y has {labels.size} distinct labels, and pair_cost as a matrix or a callable takes "
            f"at most {MOST_LABELS}; use a preset, or explicit pairs with pair_weight."
        )
    if callable(cost):
        cost = [[float(cost(a, b)) if a > b else 0.0 for b in labels] for a in labels]
    return weight_matrix(y, cost, labels)


def with_propensity(factors: PairFactors | None, propensity: Floats) -> PairFactors:
    """Divide the weight of a pair by the propensity of its preferred document."""
    high = np.flatnonzero(propensity > 1)
    if high.size:
        raise ValueError(
            f"propensity[{high[0]}] is {propensity[high[0]]:g}; a probability is at most 1."
        )
    low = np.flatnonzero(propensity < LEAST_PROPENSITY)
    if low.size:
        raise ValueError(
            f"propensity[{low[0]}] is {propensity[low[0]]:g}, so small that its inverse overflows; "
            "clip propensities from below, to 0.01 for example."
        )
    return with_preferred(factors, 1.0 / propensity)


def with_preferred(factors: PairFactors | None, weight: Floats) -> PairFactors:
    """Multiply the weight of a pair by that of its preferred document."""
    if factors is None:
        return document_weights(weight)
    return PairFactors(factors.preferred * weight[:, None], factors.other)
