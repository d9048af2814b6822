"""Pair weights δ_ij, which multiply the loss of each pair (i, j), as products of factors.

This is the slack rescaling of Chapelle and Keerthi (2010, section 6.2). Weights are sums of
products, δ_ij = Σ_r P_ir · Q_jr, with one row of P and of Q per document; P and Q are called the
*factors*. If these have r columns, a pass over l documents with k labels takes O(r · l log k) time,
although there may be l² pairs. A matrix over k labels has rank at most k − 1. A difference of gains
has rank two for any number of labels, and the change of DCG by a swap has rank four.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.types import Booleans, Floats, Integers

LARGEST_GAIN_LABEL = 500  # differences and products of gains up to 2**500 are finite
LEAST_PROPENSITY = 1e-300  # below, the inverse or its product with other weights may overflow
MOST_LABELS = 64  # most labels for a matrix or a callable: the time grows with the number


class PairFactors(NamedTuple):
    """Pair weights as products of factors per document, P (`preferred`) and Q (`other`).

    The weight of the loss of the pair (i, j), whose preferred document is i, is Σ_r P_ir · Q_jr.
    """

    preferred: Floats
    other: Floats


def document_weights(preferred: ArrayLike, other: ArrayLike | None = None) -> PairFactors:
    """Return pair weights as factors: preferred_i · other_j for the pair (i, j).

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
    """Return pair weights as factors: the difference of gains g(y_i) − g(y_j) for the pair (i, j).

    The function g, given as `gain`, must be non-decreasing.

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
    """Return pair weights as factors, from a matrix with one row and one column per label.

    δ_ij = matrix[a, b] for y_i = labels[a] and y_j = labels[b]. `labels` are all distinct labels,
    ascending; by default the labels in y. Only entries with a > b are used, because the preferred
    document has the higher label.

    Examples
    --------
    >>> from marginrank.objective.pair_weights import weight_matrix
    >>> P, Q = weight_matrix([0.0, 5.0, 1.0], [[0, 0, 0], [1, 0, 0], [4, 2, 0]])
    >>> float(P[1] @ Q[2])
    2.0
    """
    distinct = np.unique(np.asarray(y)) if labels is None else labels
    code = np.searchsorted(distinct, np.asarray(y))
    delta = label_matrix("pair_cost", matrix, distinct, most=MOST_LABELS)
    rank = max(distinct.size - 1, 1)  # no document is preferred to one with the highest label
    return PairFactors(
        np.ascontiguousarray(delta[code][:, :rank]), np.eye(distinct.size)[code][:, :rank]
    )


def label_matrix(name: str, value: Any, labels: NDArray[Any], *, most: int) -> Floats:
    """Return a parameter that depends on two labels (a matrix or a callable) as a matrix.

    Row and column are the indices of both labels; entries with row ≤ column are set to zero. Raise
    ValueError unless the values are finite and non-negative, the shape fits the number of labels,
    and there are at most `most` labels. `name` is the name of the parameter in messages.
    """
    if labels.size > most:
        raise ValueError(
            f"y has {labels.size} distinct labels; {name} as a matrix or callable of two labels "
            f"supports at most {most}. Use a preset, or explicit pairs."
        )
    if callable(value):
        value = [[float(value(a, b)) if a > b else 0.0 for b in labels] for a in labels]
    try:
        matrix = np.asarray(value, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} must hold real numbers: {error}.") from error
    if matrix.shape != (labels.size, labels.size):
        raise ValueError(
            f"{name} has shape {matrix.shape}; it needs one row and one column for each of the "
            f"{labels.size} distinct labels."
        )
    below = np.tril(np.ones_like(matrix, dtype=bool), -1)
    bad = np.argwhere(below & ~((matrix >= 0) & np.isfinite(matrix)))
    if bad.size:
        a, b = bad[0]
        raise ValueError(
            f"{name} is {matrix[a, b]:g} for the labels {labels[a]:g} and {labels[b]:g}; it must "
            "be finite and non-negative."
        )
    return np.where(below, matrix, 0.0)


def ndcg_difference(y: ArrayLike, qid: ArrayLike) -> PairFactors:
    """Return pair weights as factors: the NDCG lost if both documents swap in an ideal ranking.

    δ_ij = (g_i − g_j) (D_i − D_j) / IDCG with the gain g = 2^y and the discount D = 1 / log₂(1 +
    rank) in the ideal ranking, averaged over the ranks that the documents of one label share. It is
    the δ of Burges et al. (2007) with ideal positions instead of current ones (Chapelle and
    Keerthi, 2010, section 6.2), so it depends on labels only. `qid` are integers.

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
    """Return pair weights as factors: about the change of NDCG@k if both documents swap places.

    δ_ij = (g_i − g_j) (D_i + D_j) / IDCG@k with the gain g = 2^y and the discounts D ≥ 0 that the
    documents have in some ranking, 0 beyond rank k. It is the change of NDCG@k if one of the two is
    among the first k, zero if neither is, and larger than the change if both are, because
    D_i + D_j replaces abs(D_i − D_j), which is not a sum of products.

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
    labels = np.asarray(y, dtype=np.float64)
    if labels.size and labels.min() < 0:
        at = int(labels.argmin())
        raise ValueError(
            f"y[{at}] is {labels[at]:g}; NDCG requires non-negative labels. Add a constant to y."
        )
    return labels


class _IdealRanking(NamedTuple):
    order: Integers  # documents by query and falling label
    rank: Floats  # rank of each document in `order`
    first: Integers  # position of the first document of each query
    sizes: Integers  # number of documents of each query

    def dcg(self, gain: Floats, discount: Floats) -> Floats:
        # Return the ideal DCG of each document's query; discounts are in the order of ranks.
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
    # δ_ij = (g_i − g_j) (preferred_i + other_j) / ideal, or zero if `ideal` is zero.
    scale = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    ones = np.ones_like(gain)
    return PairFactors(
        np.column_stack([gain * preferred, gain, -preferred, -ones]) * scale[:, None],
        np.column_stack([ones, other, gain, gain * other]),
    )


def _changes(values: NDArray[Any]) -> Booleans:
    # Return a mask of the first entry of each run of equal values.
    return np.concatenate([[True], values[1:] != values[:-1]])


def _mean_by_run(values: Floats, begins: Booleans) -> Floats:
    first = np.flatnonzero(begins)
    sizes = np.diff(first, append=values.size)
    means: Floats = np.repeat(np.add.reduceat(values, first) / sizes, sizes)
    return means


def exponential_gain(labels: NDArray[Any]) -> Floats:
    """Return the gain 2^y of each label y; raise ValueError if products of gains could overflow."""
    values = labels.astype(np.float64)
    if values.size and np.abs(values).max() > LARGEST_GAIN_LABEL:
        at = int(np.argmax(np.abs(values)))
        raise ValueError(
            f"y[{at}] is {labels[at]:g}; the gain 2**y requires |y| <= {LARGEST_GAIN_LABEL}. Map "
            "the labels to a few grades such as 0 to 4."
        )
    gains: Floats = np.exp2(values)
    return gains


def pair_cost(
    cost: Any, y: NDArray[Any], qid: Integers, labels: NDArray[Any] | None = None
) -> PairFactors | None:
    """Return pair weights as factors, for the parameter `pair_cost` of RankSVM.

    Return None if `cost` is None: all weights are one. `labels` are the distinct labels of all data
    if y is only a part; by default the labels in y.
    """
    if cost is None:
        return None
    if isinstance(cost, str):
        return gain_difference(y, exponential_gain) if cost == "gain" else ndcg_difference(y, qid)
    return weight_matrix(y, cost, labels)


def with_propensity(factors: PairFactors | None, propensity: Floats) -> PairFactors:
    """Return pair weights divided by the propensity of the preferred document.

    Old weights (`factors`) and new weights are factors; None stands for weights of one.
    """
    high = np.flatnonzero(propensity > 1)
    if high.size:
        raise ValueError(
            f"propensity[{high[0]}] is {propensity[high[0]]:g}; propensities must be at most 1."
        )
    low = np.flatnonzero(propensity < LEAST_PROPENSITY)
    if low.size:
        raise ValueError(
            f"propensity[{low[0]}] is {propensity[low[0]]:g}, so its inverse overflows; clip "
            "propensities from below, for example to 0.01."
        )
    return with_preferred(factors, 1.0 / propensity)


def with_preferred(factors: PairFactors | None, weight: Floats) -> PairFactors:
    """Return pair weights multiplied by the `weight` of the preferred document.

    Old weights (`factors`) and new weights are factors; None stands for weights of one.
    """
    if factors is None:
        return document_weights(weight)
    return PairFactors(factors.preferred * weight[:, None], factors.other)
