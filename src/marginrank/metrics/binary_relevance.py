"""Metrics that know only relevant documents and others."""

from __future__ import annotations

import numpy as np

from marginrank._utils.parameters import check_choice
from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.options import TIES, check_cutoff, check_real, from_values_by_query, settle
from marginrank.metrics.ranking import Ranking


@from_values_by_query
def average_precision(
    ranking: Ranking,
    *,
    k: int | None = None,
    threshold: float = 0.0,
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return the average precision; its mean over queries is MAP.

    AP = (1 / R) · Σ over relevant documents of rank r ≤ k of (relevant documents up to r) / r, with
    R the number of relevant documents of the query, above and below k. As in LETOR, trec_eval
    (``map``, ``map_cut``) and ranx. scikit-learn's ``average_precision_score`` is the same for one
    query without ties; it takes tied documents as one step.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k : int, optional
        Cut-off; all documents by default.
    threshold : float, default=0.0
        Documents with a label above it are relevant.
    ties : {"order", "average"}, default="order"
        Tied scores stay in input order, or the expectation over all their orders is taken
        (McSherry and Najork, 2008).
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query without a relevant document, where the metric is 0 / 0. "skip" makes it nan
        and leaves it out of the mean. A query of one relevant document has AP 1.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1.

    Examples
    --------
    >>> from marginrank.metrics import average_precision
    >>> average_precision([2, 0, 0, 1], [4.0, 3.0, 2.0, 1.0])  # (1/1 + 2/4) / 2
    0.75
    """
    relevant, n_relevant = _relevance(ranking, threshold)
    chance, others = _chances(ranking, relevant, ties)
    precision_there = (1.0 + others) / ranking.rank
    values = ranking.total(chance * precision_there * _top(ranking, k)) / np.maximum(n_relevant, 1)
    return settle(values, n_relevant > 0, no_relevant)


@from_values_by_query
def reciprocal_rank(
    ranking: Ranking,
    *,
    k: int | None = None,
    threshold: float = 0.0,
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return 1 / r for the rank r of the first relevant document, 0 if r > k; the mean is MRR.

    As in trec_eval (``recip_rank``), ranx, and MS MARCO's MRR@10 with k = 10.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k, threshold, ties, no_relevant
        As in :func:`average_precision`. The reciprocal rank of a query without a relevant document
        is 0 by definition; `no_relevant` can say otherwise.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1.

    Examples
    --------
    >>> from marginrank.metrics import reciprocal_rank
    >>> reciprocal_rank([0, 1, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.5
    >>> reciprocal_rank([0, 1], [1.0, 1.0], ties="average")  # 1/1 or 1/2
    0.75
    """
    relevant, n_relevant = _relevance(ranking, threshold)
    inverse = _top(ranking, k) / ranking.rank
    check_choice("ties", ties, TIES)
    if ties == "average":
        values = ranking.total(_chance_of_first(ranking, relevant) * inverse)
    else:
        values = np.maximum.reduceat(relevant * inverse, ranking.offsets[:-1])
    return settle(values, n_relevant > 0, no_relevant)


@from_values_by_query
def precision(
    ranking: Ranking,
    *,
    k: int | None = None,
    threshold: float = 0.0,
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return the precision, P@k = (relevant documents of rank ≤ k) / k.

    The divisor is k also where the query has fewer documents, as in LETOR, trec_eval and ranx;
    without k it is the number of documents.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k, threshold, ties, no_relevant
        As in :func:`average_precision`. The precision of a query without a relevant document is 0
        by definition; `no_relevant` can say otherwise.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1.

    Examples
    --------
    >>> from marginrank.metrics import precision
    >>> precision([1, 0, 1], [3.0, 2.0, 1.0], k=2)
    0.5
    >>> precision([1, 0, 1], [3.0, 2.0, 1.0], k=4)
    0.5
    """
    relevant, n_relevant = _relevance(ranking, threshold)
    found = ranking.total(_chances(ranking, relevant, ties)[0] * _top(ranking, k))
    values = found / (ranking.sizes if k is None else k)
    return settle(values, n_relevant > 0, no_relevant)


@from_values_by_query
def recall(
    ranking: Ranking,
    *,
    k: int | None = None,
    threshold: float = 0.0,
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return the recall, R@k = (relevant documents of rank ≤ k) / (relevant documents).

    As in trec_eval and ranx. Without k all documents are found, so that it is 1.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k, threshold, ties, no_relevant
        As in :func:`average_precision`.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1.

    Examples
    --------
    >>> from marginrank.metrics import recall
    >>> recall([1, 0, 1], [3.0, 2.0, 1.0], k=2)
    0.5
    """
    relevant, n_relevant = _relevance(ranking, threshold)
    found = ranking.total(_chances(ranking, relevant, ties)[0] * _top(ranking, k))
    values = found / np.maximum(n_relevant, 1)
    return settle(values, n_relevant > 0, no_relevant)


@from_values_by_query
def auc(
    ranking: Ranking,
    *,
    threshold: float = 0.0,
) -> Floats:
    """Return the area under the ROC curve, a query at a time.

    AUC is the share of pairs of a relevant document and another one that the scores put in order;
    tied scores count half. For one query it is scikit-learn's ``roc_auc_score``.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    threshold
        As in :func:`average_precision`. For all grades at once, see :func:`pairwise_accuracy`.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1. A query of relevant documents only, or of others only, is nan and left out
        of the mean.

    Examples
    --------
    >>> from marginrank.metrics import auc
    >>> auc([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.75
    """
    relevant, n_relevant = _relevance(ranking, threshold)
    n_others = ranking.sizes - n_relevant
    chance, above = _chances(ranking, relevant, "average")
    others_below = ranking.spread(n_others) - (ranking.rank - 1 - above)
    n_pairs = n_relevant * n_others
    in_order = ranking.total(chance * others_below)
    values = np.divide(in_order, n_pairs, out=np.full_like(in_order, np.nan), where=n_pairs > 0)
    return values


def _relevance(ranking: Ranking, threshold: float) -> tuple[Floats, Floats]:
    """Return which documents are relevant (0 or 1, best first), and how many by query."""
    above = ranking.labels > check_real("threshold", threshold)
    relevant = ranking.best_first(above.astype(np.float64))
    return relevant, ranking.total(relevant)


def _top(ranking: Ranking, k: int | None) -> Booleans | int:
    """Return which documents have a rank of at most k."""
    k = check_cutoff(k)
    return 1 if k is None else ranking.rank <= k


def _chances(ranking: Ranking, relevant: Floats, ties: str) -> tuple[Floats, Floats]:
    """Return the chance of relevance at each rank, and the number of relevant ones above if so.

    In a group of n tied documents, r of them relevant, a place is relevant with chance r/n; then
    each of the i places above it in the group is, with chance (r − 1)/(n − 1).
    """
    check_choice("ties", ties, TIES)
    above = _count_above(ranking, relevant)
    if ties == "order" or ranking.ties.starts.size == relevant.size:
        return relevant, above
    groups = ranking.ties
    size = groups.spread(groups.sizes)
    r = groups.spread(groups.total(relevant))
    before = groups.spread(above[groups.starts])
    return r / size, before + groups.place * (r - 1) / np.maximum(size - 1, 1)


def _count_above(ranking: Ranking, relevant: Floats) -> Floats:
    """Return how many relevant documents of the query stand above each document: exact integers."""
    up_to = np.cumsum(relevant)
    above = up_to - relevant
    return above - ranking.spread(above[ranking.offsets[:-1]])


def _chance_of_first(ranking: Ranking, relevant: Floats) -> Floats:
    """Return the chance of each rank to hold the first relevant document, ties in random order.

    In a group of n tied documents, r of them relevant, a place with i others above it in the group
    is relevant with chance r/(n − i) if none of those is.
    """
    groups = ranking.ties
    left = groups.spread(groups.sizes) - groups.place
    hit = np.minimum(groups.spread(groups.total(relevant)) / left, 1.0)
    none_so_far = ranking.running(np.multiply, 1.0 - hit)
    none_above = np.where(ranking.rank == 1, 1.0, np.roll(none_so_far, 1))
    return none_above * hit
