"""Metrics on pairs of documents: pairwise accuracy and Kendall's tau."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import check_choice
from marginrank._utils.types import Floats
from marginrank.data.validation import check_weights
from marginrank.metrics.options import Value, average, ranking_metric, ratio
from marginrank.metrics.ranking import Ranking
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.losses import Loss, Piece
from marginrank.objective.pair_weights import document_weights


def pairwise_accuracy(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    ties: str = "wrong",
    per_query: bool = False,
    n_jobs: int | None = None,
) -> Value:
    """Return the share of pairs of documents that the scores put in the order of the labels.

    A pair (i, j) consists of documents of one query with labels y_i > y_j; it is in order if the
    scores have s_i > s_j. The share is over the pairs of all queries together, as in the papers on
    RankSVM, so each query counts by its number of pairs. The time is O(l log l) for l documents.

    Parameters
    ----------
    y, scores : array-like of shape (n_documents,)
        Labels, any real numbers, and the scores to evaluate.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    sample_weight : array-like of shape (n_documents,), optional
        Weights of the documents; a pair has the product of its two weights.
    ties : {"wrong", "half"}, default="wrong"
        "wrong" counts a pair with tied scores as out of order, "half" as half in order. (LIBLINEAR
        counts it as in order, so a model with w = 0 has an accuracy of 100 %.)
    per_query : bool, default=False
        Return one share per query, in order of first appearance.
    n_jobs : int, optional
        Number of threads; all by default.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1; nan if there is no pair, as in a query of one document.

    Examples
    --------
    >>> from marginrank.metrics import pairwise_accuracy
    >>> pairwise_accuracy([2, 1, 0], [0.3, 0.1, 0.2])
    0.6666666666666666
    >>> pairwise_accuracy([1, 0, 1, 0], [1.0, 0.0, 1.0, 1.0], qid=[1, 1, 2, 2], per_query=True)
    array([1., 0.])
    """
    check_choice("ties", ties, ("wrong", "half"))
    ranking = Ranking.of(y, scores, qid, group, n_jobs, ordinal=True)
    good, total = _weigh_pairs(ranking, sample_weight, ties)
    if not per_query:
        good, total = good.sum(keepdims=True), total.sum(keepdims=True)
    return average(ratio(good, total), per_query)


@ranking_metric(conventions=False, ordinal=True)
def kendall_tau(ranking: Ranking) -> Floats:
    """Return Kendall's τ_b between labels and scores: one value per query, or their mean.

    τ_b = (P − Q) / √((pairs with different labels) · (pairs with different scores)), where P counts
    the pairs that the scores put in order and Q the pairs that they put out of order. Equals
    ``scipy.stats.kendalltau``, except if all scores are tied (see Returns). All queries together
    take O(l log l) time for l documents.

    Parameters
    ----------
    y, scores : array-like of shape (n_documents,)
        Labels, any real numbers, and the scores to evaluate.
    qid, group, per_query, n_jobs
        As in :func:`ndcg`.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between −1 and 1. A query with one distinct label is nan and excluded from the mean. If all
        scores are tied, it is 0 (SciPy: nan), so a model cannot drop queries from its mean.

    Examples
    --------
    >>> from marginrank.metrics import kendall_tau
    >>> round(kendall_tau([3, 2, 1, 0], [4.0, 2.0, 3.0, 1.0]), 4)
    0.6667
    """
    pairs = _Pairs(ranking)
    apart = ranking.sizes * (ranking.sizes - 1) / 2 - ranking.total(ranking.ties.position)
    surplus = pairs.weight_apart(1) + pairs.weight_apart(0) - pairs.total
    tau = ratio(surplus, np.sqrt(pairs.total * apart))
    return np.where((apart == 0) & (pairs.total > 0), 0.0, tau)


def pairs_in_order(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    ties: str = "wrong",
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """Return two arrays per query: the weight of pairs in the right order, and of all pairs.

    Pairs are of documents with different labels. The sum of the first array over the sum of the
    second is :func:`pairwise_accuracy`.
    """
    ranking = Ranking.of(y, scores, qid, None, n_jobs, ordinal=True)
    return _weigh_pairs(ranking, sample_weight, ties)


def _weigh_pairs(
    ranking: Ranking, sample_weight: ArrayLike | None, ties: str
) -> tuple[Floats, Floats]:
    pairs = _Pairs(ranking, sample_weight)
    good = pairs.weight_apart(1)
    if ties == "half":
        good = (good + pairs.weight_apart(0)) / 2
    return good, pairs.total


class _Pairs:
    """Sums per query of the weights of pairs of documents with different labels."""

    def __init__(self, ranking: Ranking, sample_weight: ArrayLike | None = None) -> None:
        queries, size = ranking.judgments.queries, ranking.labels.size
        factors = None
        if sample_weight is not None:
            meaning = "one weight per document"
            checked = check_weights(sample_weight, "sample_weight", size, meaning)
            weight = ranking.best_first(ranking.documents.grouped(checked))
            factors = document_weights(weight, weight)
        self._ties = ranking.ties
        self._pair_set = LevelPairs(
            n_rows=size,
            query_weight=np.ones(ranking.offsets.size - 1),
            margins=None,
            threads=ranking.threads,
            queries=replace(queries, level=ranking.best_first(queries.level)),
            factors=factors,
        )
        self.total = self._pair_set.weight_by_query

    def weight_apart(self, n_groups: int) -> Floats:
        """Return, per query, the weight of the pairs that the scores put in the right order.

        With `n_groups` 1, the scores of a pair must differ; with 0, pairs with equal scores count
        too. In general, the better document must be at least `n_groups` groups of tied documents
        above the other one.
        """
        # The kernel gets the index of the tie group instead of the score of a document: documents
        # are sorted by it already, and scores of very different magnitude stay distinct.
        number = self._ties.repeat(np.arange(float(self._ties.sizes.size)))
        apart = Loss("apart", (Piece(1.0, 0.5 - n_groups, 1),))
        return self._pair_set.active_weights(apart, number)
