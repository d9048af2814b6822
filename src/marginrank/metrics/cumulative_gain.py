"""Discounted cumulative gain (DCG), NDCG, and LETOR's mean NDCG."""

from __future__ import annotations

import numpy as np

from marginrank._utils.parameters import Mention, ParameterError, check_choice
from marginrank._utils.types import Floats
from marginrank.metrics.options import check_cutoff, ranking_metric, ratio
from marginrank.metrics.ranking import Ranking

LARGEST_EXPONENT = 960  # sums of gains of at most 2**960 do not overflow


@ranking_metric()
def dcg(
    ranking: Ranking,
    *,
    k: int | None = None,
    gain: str = "exponential",
    discount: str = "standard",
) -> Floats:
    """Return the discounted cumulative gain, DCG@k = Σ_{r ≤ k} gain(y_r) · discount(r).

    Parameters
    ----------
    y, scores, qid, group, k, gain, discount, ties, per_query, n_jobs
        As in :func:`ndcg`; y_r is the label of the document at rank r.
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query in which no label is above 0; its DCG is 0. "skip" makes it nan and
        excludes it from the mean.

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
    weight = discounts(ranking, discount, check_cutoff(k))
    values = ranking.total(found_gains(ranking, gain_of) * weight)
    return np.where(ranking.total(gain_of) > 0, values, np.nan)


@ranking_metric()
def ndcg(
    ranking: Ranking,
    *,
    k: int | None = None,
    gain: str = "exponential",
    discount: str = "standard",
) -> Floats:
    """Return the normalized discounted cumulative gain, NDCG@k = DCG@k / (DCG@k of the best order).

    Tools define NDCG differently. These options reproduce their values:

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
        Labels, zero or more, and the scores to evaluate.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    k : int, optional
        Cut-off; all documents by default.
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a document with label y: "exponential" is 2^y − 1, for labels of at most 960;
        "linear" is y.
    discount : {"standard", "letor"}, default="standard"
        Discount at rank r: "standard" is 1 / log2(r + 1); "letor" is 1 at ranks 1 and 2, and
        1 / log2(r) from rank 3 on.
    ties : {"order", "average"}, default="order"
        "order" ranks documents with tied scores in input order, which is too optimistic if the
        input is sorted by label; "average" takes the expectation over all their orders (McSherry
        and Najork, 2008).
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query in which no label is above 0, where NDCG is 0 / 0. "skip" makes it nan and
        excludes it from the mean.
    per_query : bool, default=False
        Return one value per query, in order of first appearance, instead of their mean.
    n_jobs : int, optional
        Number of threads; all by default.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1.

    References
    ----------
    K. Järvelin and J. Kekäläinen (2002). Cumulated gain-based evaluation of IR techniques. ACM
    Transactions on Information Systems 20(4).
    F. McSherry and M. Najork (2008). Computing information retrieval performance measures
    efficiently in the presence of tied scores. ECIR.

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
    actual = ranking.total(found_gains(ranking, gain_of) * weight)
    return ratio(actual, ranking.total(ranking.descending(gain_of) * weight))


@ranking_metric()
def letor_mean_ndcg(ranking: Ranking) -> Floats:
    """Return LETOR's mean NDCG: for a query of n documents, the mean of NDCG@m over m = 1 … n.

    It is the "MeanNDCG" of LETOR's script and the "mean NDCG" of LIBLINEAR-ranksvm: exponential
    gain, LETOR discount, and by default tied scores in input order; see :func:`ndcg`.

    Parameters
    ----------
    y, scores, qid, group, ties, per_query, n_jobs
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
    actual = ranking.running(np.add, found_gains(ranking, gain_of) * weight)
    ideal = ranking.running(np.add, ranking.descending(gain_of) * weight)
    return ranking.total(ratio(actual, ideal)) / ranking.sizes


def gains(ranking: Ranking, kind: str) -> Floats:
    """Return the DCG gain of each document: 2^y − 1 (`kind` "exponential") or y ("linear").

    Documents are in the order of ``ranking.labels``, grouped by query. Raise ValueError for labels
    y that are negative or too large.
    """
    check_choice("gain", kind, ("exponential", "linear"))
    is_exponential = kind == "exponential"
    y = ranking.labels
    if y.size and y.min() < 0:
        raise ValueError(
            f"{_name_label(ranking, np.argmin(y))}, and gains require labels of zero or more; map "
            "the labels, for example to y - min(y)."
        )
    if y.size and y.max() > (LARGEST_EXPONENT if is_exponential else 2.0**LARGEST_EXPONENT):
        label = _name_label(ranking, np.argmax(y))
        if is_exponential:
            raise ParameterError(
                f"{label}, and its exponential gain 2**y - 1 is too large; use ndcg with ",
                Mention("gain", '"linear"'),
                ", or map the labels to a few grades such as 0 to 4.",
            )
        raise ValueError(
            f"{label}, and sums of such gains overflow; divide the labels by a constant."
        )
    return np.exp2(y) - 1.0 if is_exponential else y


def found_gains(ranking: Ranking, gain_of: Floats) -> Floats:
    """Return the DCG gain at each rank; 0 if the document at that rank was not retrieved."""
    return ranking.expected(gain_of) * ranking.retrieved


def _name_label(ranking: Ranking, position: np.intp) -> str:
    return f"y[{ranking.documents.row(int(position))}] is {ranking.labels[position]:g}"


def discounts(ranking: Ranking, kind: str, k: int | None) -> Floats:
    """Return the DCG discount of each document by its rank; 0 at ranks beyond the cut-off `k`.

    Documents are in the order of their ranks, query by query.
    """
    check_choice("discount", kind, ("standard", "letor"))
    longest = int(ranking.sizes.max(initial=0))
    top = longest if k is None else min(k, longest)
    rank = np.arange(1.0, top + 1)
    table = np.zeros(longest + 1)
    table[1 : top + 1] = 1.0 / np.log2(rank + 1.0 if kind == "standard" else np.maximum(rank, 2.0))
    return table[ranking.rank]
