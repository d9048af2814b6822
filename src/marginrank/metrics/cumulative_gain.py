"""Discounted cumulative gain and what is made of it."""

from __future__ import annotations

import numpy as np

from marginrank._utils.parameters import check_choice
from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.gains import discounts, gains
from marginrank.metrics.options import TIES, check_cutoff, from_values_by_query, settle
from marginrank.metrics.ranking import Ranking


@from_values_by_query
def dcg(
    ranking: Ranking,
    *,
    k: int | None = None,
    gain: str = "exponential",
    discount: str = "standard",
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return the discounted cumulative gain, DCG@k = Σ_{r ≤ k} gain(y_r) · discount(r).

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k : int, optional
        Cut-off; all documents by default.
    gain, discount, ties : str
        As in :func:`ndcg`.
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query in which no label is above 0; its DCG is 0. "skip" makes it nan and leaves
        it out of the mean.

    Returns
    -------
    float or ndarray of shape (n_queries,)

    Examples
    --------
    >>> from marginrank.metrics import dcg
    >>> dcg([2, 0, 1], [0.3, 0.2, 0.1])  # 3 / log2(2) + 1 / log2(4)
    3.5
    """
    gain_of = gains(ranking, gain)
    values = ranking.total(
        _ranked(ranking, gain_of, ties) * discounts(ranking, discount, check_cutoff(k))
    )
    return settle(values, _any_gain(ranking, gain_of), no_relevant)


@from_values_by_query
def ndcg(
    ranking: Ranking,
    *,
    k: int | None = None,
    gain: str = "exponential",
    discount: str = "standard",
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return the normalised discounted cumulative gain, NDCG@k = DCG@k / (DCG@k of the best order).

    NDCG is not one metric; these are the options of other tools:

    ======================================  ===========  ========  ===========  =========
    tool                                    gain         discount  no_relevant  ties
    ======================================  ===========  ========  ===========  =========
    LETOR 4.0, MSLR, LIBLINEAR-ranksvm      exponential  letor     0            order
    Yahoo LTRC                              exponential  standard  not stated   order
    LightGBM, XGBoost                       exponential  standard  1            order
    scikit-learn                            linear       standard  0            average
    trec_eval, ranx ndcg                    linear       standard  0            order
    ranx ndcg_burges, ir_measures exp-log2  exponential  standard  0            order
    ======================================  ===========  ========  ===========  =========

    Parameters
    ----------
    y, scores : array-like of shape (n_documents,)
        Labels (zero or more for gains), and the scores to evaluate.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    k : int, optional
        Cut-off; all documents by default.
    gain : {"exponential", "linear"}, default="exponential"
        2^y − 1, or y. Labels too large for the exponential gain are refused.
    discount : {"standard", "letor"}, default="standard"
        1 / log2(r + 1) at rank r; or 1 at ranks 1 and 2, then 1 / log2(r).
    ties : {"order", "average"}, default="order"
        Tied scores stay in input order, or the expectation over all their orders is taken
        (McSherry and Najork, 2008). "order" flatters if the input is sorted by label.
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query in which no label is above 0, where NDCG is 0 / 0. "skip" makes it nan and
        leaves it out of the mean. A query of one relevant document has NDCG 1.
    per_query : bool, default=False
        Return values by query, in order of first appearance, instead of their mean.
    n_jobs : int, optional
        Number of threads; all by default.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1.

    Examples
    --------
    >>> from marginrank.metrics import ndcg
    >>> y, qid = [0, 1, 0, 0], ["a", "a", "b", "b"]
    >>> ndcg(y, [2.0, 1.0, 2.0, 1.0], qid=qid, per_query=True).round(4)
    array([0.6309, 0.    ])
    >>> ndcg(y, [2.0, 1.0, 2.0, 1.0], qid=qid, discount="letor", no_relevant="skip")
    1.0
    """
    gain_of = gains(ranking, gain)
    weight = discounts(ranking, discount, check_cutoff(k))
    actual = ranking.total(_ranked(ranking, gain_of, ties) * weight)
    ideal = ranking.total(ranking.descending(gain_of) * weight)
    values = np.divide(actual, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    return settle(values, ideal > 0, no_relevant)


@from_values_by_query
def letor_mean_ndcg(
    ranking: Ranking,
    *,
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return LETOR's mean NDCG: the mean of NDCG@m over m = 1 … number of documents of the query.

    It is the "MeanNDCG" of LETOR's script and the "mean NDCG" of LIBLINEAR-ranksvm: exponential
    gain, LETOR discount, and by default tied scores in input order; see :func:`ndcg`.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    ties : {"order", "average"}, default="order"
        As in :func:`ndcg`.
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        As in :func:`ndcg`; LETOR and LIBLINEAR-ranksvm take 0.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1.

    Examples
    --------
    >>> from marginrank.metrics import letor_mean_ndcg
    >>> letor_mean_ndcg([0, 1], [2.0, 1.0])  # NDCG@1 = 0, NDCG@2 = 1
    0.5
    """
    gain_of = gains(ranking, "exponential")
    weight = discounts(ranking, "letor", None)
    actual = ranking.running(np.add, _ranked(ranking, gain_of, ties) * weight)
    ideal = ranking.running(np.add, ranking.descending(gain_of) * weight)
    at_each_rank = np.divide(actual, ideal, out=np.zeros_like(ideal), where=ideal > 0)
    values = ranking.total(at_each_rank) / ranking.sizes
    return settle(values, _any_gain(ranking, gain_of), no_relevant)


def _ranked(ranking: Ranking, gain_of: Floats, ties: str) -> Floats:
    """Return gains in the order of the scores, expected ones among ties if they are averaged."""
    check_choice("ties", ties, TIES)
    ranked = ranking.best_first(gain_of)
    return ranking.ties.mean(ranked) if ties == "average" else ranked


def _any_gain(ranking: Ranking, gain_of: Floats) -> Booleans:
    return ranking.total(gain_of) > 0
