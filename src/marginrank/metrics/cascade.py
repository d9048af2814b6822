"""Metrics of a reader who stops at a satisfying document."""

import numpy as np
from numpy.typing import ArrayLike

from marginrank.metrics._gains import LARGEST_EXPONENT, gains
from marginrank.metrics._options import Value, check_cutoff, check_real, report, settle
from marginrank.metrics._ranking import Ranking


def err(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    k: int | None = None,
    max_label: float | None = None,
    no_relevant: float | str = 0.0,
    per_query: bool = False,
    n_jobs: int | None = None,
) -> Value:
    """Return the expected reciprocal rank of Chapelle et al. (2009).

    ERR@k = Σ_{r ≤ k} (1/r) · R_r · Π_{i < r} (1 − R_i) with R = (2^y − 1) / 2^max_label, the chance
    that a document satisfies a reader who goes down the ranking. As in Yahoo LTRC and, with
    ``max_label=4``, TREC's gdeval. Tied scores stay in input order.

    Parameters
    ----------
    y, scores : array-like of shape (n_documents,)
        Labels of zero or more, and the scores to judge.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    k : int, optional
        Cut-off; all documents by default.
    max_label : float, optional
        The highest grade there is; by default the largest label of `y`, over all queries. Give it
        to compare values over several data sets.
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query in which no label is above 0; its ERR is 0. "skip" makes it nan and leaves
        it out of the mean.
    per_query : bool, default=False
        Return values by query, in order of first appearance, instead of their mean.
    n_jobs : int, optional
        Number of threads; all by default.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1. A query of one document with the highest grade has 1 − 2^−max_label.

    Examples
    --------
    >>> from marginrank.metrics import err
    >>> err([0, 1], [2.0, 1.0])  # 1/2 · 1/2
    0.25
    """
    ranking = Ranking.of(y, scores, qid, group, n_jobs)
    top = check_cutoff(k)
    gain_of = gains(ranking, "exponential")
    satisfied = ranking.best_first(gain_of) / np.exp2(_highest(ranking, max_label))
    read_on = ranking.running(np.multiply, 1.0 - satisfied)
    reached = np.where(ranking.rank == 1, 1.0, np.roll(read_on, 1))
    within = 1 if top is None else ranking.rank <= top
    values = ranking.total(within * reached * satisfied / ranking.rank)
    return report(settle(values, ranking.total(gain_of) > 0, no_relevant), per_query)


def _highest(ranking: Ranking, max_label: float | None) -> float:
    largest = float(ranking.labels.max(initial=0.0))
    if max_label is None:
        return largest
    if not largest <= check_real("max_label", max_label) <= LARGEST_EXPONENT:
        raise ValueError(
            f"max_label={max_label!r} must be the highest grade that labels can have, between "
            f"{largest:g}, the largest label of y, and {LARGEST_EXPONENT}."
        )
    return float(max_label)
