"""Metrics on pairs of documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import check_choice
from marginrank._utils.types import Floats
from marginrank.data.queries import Queries
from marginrank.data.validation import check_weights
from marginrank.metrics.options import Value, report
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
    """Return the share of pairs (y_i > y_j, same query) that the scores put in order, s_i > s_j.

    The share is over the pairs of all queries together, as in the papers, so that a query counts by
    its number of pairs. O(l log l).

    Parameters
    ----------
    y, scores : array-like of shape (n_documents,)
        Labels, any real numbers, and the scores to evaluate.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    sample_weight : array-like of shape (n_documents,), optional
        A pair weighs the product of its two weights.
    ties : {"wrong", "half"}, default="wrong"
        A pair with tied scores is not in order, as in the papers, or half in order. (LIBLINEAR
        counts it as in order, so that w = 0 scores 100 %.)
    per_query : bool, default=False
        Return the share by query, in order of first appearance.
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
    good, total = _shares(ranking, sample_weight, ties)
    if not per_query:
        good, total = good.sum(keepdims=True), total.sum(keepdims=True)
    return report(_ratio(good, total), per_query)


def kendall_tau(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    per_query: bool = False,
    n_jobs: int | None = None,
) -> Value:
    """Return Kendall's τ_b between labels and scores, a query at a time.

    τ_b = (P − Q) / √((pairs with different labels) · (pairs with different scores)), where P counts
    the pairs that the scores put in order and Q those that they put out of order. As in
    ``scipy.stats.kendalltau``, but O(l log l) for all queries together. See `Returns` for the one
    exception.

    Parameters
    ----------
    y, scores : array-like of shape (n_documents,)
        Labels, any real numbers, and the scores to evaluate.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    per_query : bool, default=False
        Return values by query, in order of first appearance, instead of their mean.
    n_jobs : int, optional
        Number of threads; all by default.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between −1 and 1. A query with one label only is nan and left out of the mean. Scores that
        are all tied are worth 0 (SciPy: nan), so that no model can drop queries from its mean.

    Examples
    --------
    >>> from marginrank.metrics import kendall_tau
    >>> round(kendall_tau([3, 2, 1, 0], [4.0, 2.0, 3.0, 1.0]), 4)
    0.6667
    """
    ranking = Ranking.of(y, scores, qid, group, n_jobs, ordinal=True)
    pairs = _Pairs.of(ranking)
    apart = ranking.sizes * (ranking.sizes - 1) / 2 - ranking.total(ranking.ties.place)
    surplus = pairs.in_order() + pairs.in_order_or_tied() - pairs.total
    tau = _ratio(surplus, np.sqrt(pairs.total * apart))
    return report(np.where((apart == 0) & (pairs.total > 0), 0.0, tau), per_query)


def pairs_in_order(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    ties: str = "wrong",
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """Return, by query, the weight of the pairs in order and that of all pairs.

    These are what :func:`pairwise_accuracy` is the ratio of, where queries come in parts.
    """
    ranking = Ranking.of(y, scores, qid, None, n_jobs, ordinal=True)
    return _shares(ranking, sample_weight, ties)


def _shares(ranking: Ranking, sample_weight: ArrayLike | None, ties: str) -> tuple[Floats, Floats]:
    pairs = _Pairs.of(ranking, sample_weight)
    good = pairs.in_order()
    if ties == "half":
        good = (good + pairs.in_order_or_tied()) / 2
    return good, pairs.total


@dataclass(frozen=True)
class _Pairs:
    """Pairs of documents of one query with different labels, counted or weighed by query.

    The kernel sees the documents best first, and the number of their tie group in place of their
    score: nothing is left to sort, and scores of very different size are told apart.
    """

    ranking: Ranking
    pair_set: LevelPairs

    @classmethod
    def of(cls, ranking: Ranking, sample_weight: ArrayLike | None = None) -> _Pairs:
        labels = ranking.best_first(ranking.labels)
        factors = None
        if sample_weight is not None:
            meaning = "one weight a document"
            checked = check_weights(sample_weight, "sample_weight", labels.size, meaning)
            weight = ranking.best_first(ranking.documents.grouped(checked))
            factors = document_weights(weight, weight)
        pair_set = LevelPairs(
            n_rows=labels.size,
            query_weight=np.ones(ranking.offsets.size - 1),
            margins=None,
            threads=ranking.threads,
            queries=Queries.from_labels(labels, ranking.offsets, None, ranking.threads),
            adjacent=False,
            factors=factors,
        )
        return cls(ranking, pair_set)

    @property
    def total(self) -> Floats:
        return self.pair_set.weight_by_query

    def in_order(self) -> Floats:
        return self._with_lead(1)

    def in_order_or_tied(self) -> Floats:
        return self._with_lead(0)

    def _with_lead(self, lead: int) -> Floats:
        """Sum the weights of the pairs that are ranked `lead` tie groups or more apart."""
        groups = self.ranking.ties
        number = groups.spread(np.arange(float(groups.sizes.size)))
        apart = Loss("apart", (Piece(1.0, 0.5 - lead, 1),))
        return self.pair_set.active_weights(apart, number)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, nan where the whole is 0."""
    ratio = np.full_like(whole, np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio
