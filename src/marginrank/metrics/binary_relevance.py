"""Metrics of binary relevance, such as average precision: a document is relevant or it is not."""

from __future__ import annotations

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.options import check_cutoff, check_real, ranking_metric, ratio
from marginrank.metrics.ranking import Ranking


@ranking_metric()
def average_precision(ranking: Ranking, *, k: int | None = None, threshold: float = 0.0) -> Floats:
    """Return the average precision; its mean over queries is MAP.

    AP@k is the sum of the precision P@r over the ranks r ≤ k of relevant documents, divided by the
    number of all relevant documents of the query, at any rank. LETOR, trec_eval (``map``,
    ``map_cut``) and ranx define it in this way. scikit-learn's ``average_precision_score`` is the
    same for one query without ties; it treats tied documents as one step.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k : int, optional
        Cut-off; all documents by default.
    threshold : float, default=0.0
        Documents with a label above it are relevant.
    ties : {"order", "average"}, default="order"
        "order" ranks documents with tied scores in input order; "average" takes the expectation
        over all their orders (McSherry and Najork, 2008).
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query without a relevant document, where the metric is 0 / 0. "skip" makes it nan
        and excludes it from the mean.

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
    chance, others = _chances(ranking, relevant, average_ties=ranking.average_ties)
    precision_there = (1.0 + others) / ranking.rank
    return ratio(ranking.total(chance * precision_there * _top(ranking, k)), n_relevant)


@ranking_metric()
def reciprocal_rank(ranking: Ranking, *, k: int | None = None, threshold: float = 0.0) -> Floats:
    """Return 1 / r for the rank r of the first relevant document, 0 if r > k; the mean is MRR.

    trec_eval (``recip_rank``) and ranx define it in this way; with k = 10 it is MS MARCO's MRR@10.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k, threshold, ties, no_relevant
        As in :func:`average_precision`. The reciprocal rank of a query without a relevant document
        is 0 by definition; `no_relevant` overrides it.

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
    if ranking.average_ties:
        values = ranking.total(_chance_of_first(ranking, relevant) * inverse)
    else:
        values = np.maximum.reduceat(relevant * inverse, ranking.offsets[:-1])
    return np.where(n_relevant > 0, values, np.nan)


@ranking_metric()
def precision(ranking: Ranking, *, k: int | None = None, threshold: float = 0.0) -> Floats:
    """Return the precision at rank k, P@k = (relevant documents of rank ≤ k) / k.

    The divisor is k even if the query has fewer documents, as in LETOR, trec_eval and ranx; without
    k it is the number of retrieved documents.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k, threshold, ties, no_relevant
        As in :func:`average_precision`. The precision of a query without a relevant document is 0
        by definition; `no_relevant` overrides it.

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
    found, n_relevant = _count_found(ranking, k, threshold)
    n_found = np.maximum(ranking.total(ranking.retrieved.astype(np.float64)), 1.0)
    return np.where(n_relevant > 0, found / (n_found if k is None else k), np.nan)


@ranking_metric()
def recall(ranking: Ranking, *, k: int | None = None, threshold: float = 0.0) -> Floats:
    """Return the recall at rank k, R@k = (relevant documents of rank ≤ k) / (relevant documents).

    trec_eval and ranx define it in this way. Without k, all relevant documents count, unless a
    run (:func:`evaluate_run`) did not retrieve them.

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
    return ratio(*_count_found(ranking, k, threshold))


@ranking_metric(conventions=False)
def auc(ranking: Ranking, *, threshold: float = 0.0) -> Floats:
    """Return the area under the ROC curve (AUC): one value per query, or their mean.

    AUC is the share of pairs (relevant document, irrelevant document) in which the relevant one has
    the higher score; tied scores count half. For one query it is scikit-learn's ``roc_auc_score``.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    threshold
        As in :func:`average_precision`. For all grades at once, see :func:`pairwise_accuracy`.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1. A query whose documents are all relevant, or all not, is nan and excluded
        from the mean.

    Examples
    --------
    >>> from marginrank.metrics import auc
    >>> auc([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.75
    """
    relevant, n_relevant = _relevance(ranking, threshold)
    n_others = ranking.sizes - n_relevant
    chance, above = _chances(ranking, relevant, average_ties=True)
    others_below = ranking.repeat(n_others) - (ranking.rank - 1 - above)
    return ratio(ranking.total(chance * others_below), n_relevant * n_others)


def _relevance(ranking: Ranking, threshold: float) -> tuple[Floats, Floats]:
    """Return the relevance of each document (0 or 1, best first), and its sum per query."""
    above = ranking.labels > check_real("threshold", threshold)
    relevant = ranking.best_first(above.astype(np.float64))
    return relevant, ranking.total(relevant)


def _count_found(ranking: Ranking, k: int | None, threshold: float) -> tuple[Floats, Floats]:
    """Return two counts per query: relevant documents up to rank k, and all relevant documents."""
    relevant, n_relevant = _relevance(ranking, threshold)
    chance, _ = _chances(ranking, relevant, average_ties=ranking.average_ties)
    return ranking.total(chance * _top(ranking, k)), n_relevant


def _top(ranking: Ranking, k: int | None) -> Booleans:
    k = check_cutoff(k)
    return ranking.retrieved if k is None else ranking.retrieved & (ranking.rank <= k)


def _chances(ranking: Ranking, relevant: Floats, *, average_ties: bool) -> tuple[Floats, Floats]:
    """Return, for each rank, the probability of a relevant document there, and a number above.

    The second array is the expected number of relevant documents above the rank, given that the
    document at the rank is relevant. With `average_ties`, both are averages over the orders of tied
    documents; otherwise the probability is 0 or 1.
    """
    before_each = np.cumsum(relevant) - relevant  # exact integer arithmetic
    above = before_each - ranking.repeat(before_each[ranking.offsets[:-1]])
    if not average_ties or ranking.ties.starts.size == relevant.size:
        return relevant, above
    groups = ranking.ties
    # In a group of n tied documents, r of them relevant, a position is relevant with chance r/n.
    # Then each of the i positions above it in the group is relevant with chance (r − 1)/(n − 1).
    size = groups.repeat(groups.sizes)
    r = groups.repeat(groups.total(relevant))
    before = groups.repeat(above[groups.starts])
    return r / size, before + groups.position * (r - 1) / np.maximum(size - 1, 1)


def _chance_of_first(ranking: Ranking, relevant: Floats) -> Floats:
    """Return, for each rank, the probability that the first relevant document is there.

    The probability is over random orders of tied documents.
    """
    # In a group of n tied documents, r of them relevant, a position with i others above it in the
    # group is relevant with chance r/(n − i) if these i documents are all irrelevant.
    groups = ranking.ties
    left = groups.repeat(groups.sizes) - groups.position
    hit = np.minimum(groups.repeat(groups.total(relevant)) / left, 1.0)
    none_so_far = ranking.running(np.multiply, 1.0 - hit)
    none_above = np.where(ranking.rank == 1, 1.0, np.roll(none_so_far, 1))
    return none_above * hit
