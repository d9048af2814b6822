"""Metrics of a reader who stops at a satisfying document."""

from __future__ import annotations

import numpy as np

from marginrank._utils.parameters import check_choice
from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.gains import LARGEST_EXPONENT, gains
from marginrank.metrics.options import TIES, check_cutoff, check_real, from_values_by_query, settle
from marginrank.metrics.ranking import Ranking

LARGE = 500  # documents of a group of ties that are worth a computation of their own
NEGLIGIBLE = 40.0  # readers in a group of ties who go on beyond exp(−40) do not count


@from_values_by_query
def err(
    ranking: Ranking,
    *,
    k: int | None = None,
    max_label: float | None = None,
    ties: str = "order",
    no_relevant: float | str = 0.0,
) -> Floats:
    """Return the expected reciprocal rank of Chapelle et al. (2009).

    ERR@k = Σ_{r ≤ k} (1/r) · R_r · Π_{i < r} (1 − R_i) with R = (2^y − 1) / 2^max_label, the chance
    that a document satisfies a reader who goes down the ranking. As in Yahoo LTRC and, with
    ``max_label=4``, TREC's gdeval.

    Parameters
    ----------
    y, scores, qid, group, per_query, n_jobs
        As in :func:`ndcg`.
    k : int, optional
        Cut-off; all documents by default.
    max_label : float, optional
        The highest grade there is; by default the largest label of `y`, over all queries. Give it
        to compare values over several data sets.
    ties : {"order", "average"}, default="order"
        Tied scores stay in input order, or the expectation over all their orders is taken.
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query in which no label is above 0; its ERR is 0. "skip" makes it nan and leaves
        it out of the mean.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1. A query of one document with the highest grade has 1 − 2^−max_label.

    Examples
    --------
    >>> from marginrank.metrics import err
    >>> err([0, 1], [2.0, 1.0])  # 1/2 · 1/2
    0.25
    >>> err([0, 1], [1.0, 1.0], ties="average")  # 1/1 · 1/2 or 1/2 · 1/2
    0.375
    """
    top = check_cutoff(k)
    check_choice("ties", ties, TIES)
    gain_of = gains(ranking, "exponential")
    satisfied = ranking.best_first(gain_of) / np.exp2(_highest(ranking, max_label))
    within = np.full(satisfied.size, True) if top is None else ranking.rank <= top
    reached = _reached(ranking, satisfied)
    if ties == "average":
        reached = ranking.ties.spread(reached[ranking.ties.starts])
        satisfied = _expected_ends(ranking, satisfied, within)
    values = ranking.total(within * reached * satisfied / ranking.rank)
    return settle(values, ranking.total(gain_of) > 0, no_relevant)


def _reached(ranking: Ranking, satisfied: Floats) -> Floats:
    """Return the chance that the reader comes to each document."""
    read_on = ranking.running(np.multiply, 1.0 - satisfied)
    return np.where(ranking.rank == 1, 1.0, np.roll(read_on, 1))


def _expected_ends(ranking: Ranking, satisfied: Floats, within: Booleans) -> Floats:
    """Return the chance that a reader who comes to a group of ties stops at each of its places.

    With q = 1 − R, he goes on beyond place p with chance m_p, the mean of Π q over all sets of p
    documents of the group. A document that joins n − 1 others changes it to

        m_p ← (1 − p/n) · m_p + (p/n) · q · m_{p−1},

    as it is in a set with chance p/n. Those of R = 0 leave all m_p at 1, so that the others join
    them one by one. As m_p ≤ (m_1)^p, far places need no look. Groups with more documents of R > 0
    than places are computed place by place instead.
    """
    groups = ranking.ties
    group = groups.spread(np.arange(groups.sizes.size))
    able = np.flatnonzero(satisfied > 0)
    n_able = np.bincount(group[able], minlength=groups.sizes.size)
    first_able = np.cumsum(n_able) - n_able
    go_on = 1.0 - satisfied[able]
    place = groups.place + 1.0
    with np.errstate(divide="ignore"):
        depth = NEGLIGIBLE / -np.log1p(-groups.total(satisfied) / groups.sizes)
    in_view = place <= groups.spread(depth)
    beyond = in_view.astype(np.float64)
    at = np.flatnonzero(in_view & within & (groups.spread(n_able) > 0))
    n_places = np.bincount(group[at], minlength=groups.sizes.size)
    is_large = n_able > np.maximum(n_places, LARGE)
    for g in np.flatnonzero(is_large & (n_places > 0)).tolist():
        q = go_on[first_able[g] : first_able[g] + n_able[g]]
        places = slice(groups.starts[g], groups.starts[g] + n_places[g])
        beyond[places] = _beyond_places(q, int(groups.sizes[g]), int(n_places[g]))
    at = at[~is_large[group[at]]]
    joined = 0
    while at.size:
        own = group[at]
        joined += 1
        n = groups.sizes[own] - n_able[own] + joined
        share = np.minimum(place[at] / n, 1.0)  # places that are not there yet do not matter
        above = np.where(place[at] > 1, beyond[at - 1], 1.0)
        q = go_on[first_able[own] + joined - 1]
        beyond[at] = (1.0 - share) * beyond[at] + share * q * above
        at = at[n_able[own] > joined]
    return np.where(place > 1, np.roll(beyond, 1), 1.0) - beyond


def _beyond_places(q: Floats, n: int, n_places: int) -> Floats:
    """Return the chance m_p of going on beyond each of the first places of a group of n documents.

    m_p is e_p / C(n, p), where e_p is the elementary symmetric polynomial of all q, among them the
    n − l ones that `q` of length l leaves out. Of the first j entries it is a running sum of
    positive terms, e_p(j) = e_p(j − 1) + q_j e_{p−1}(j − 1), divided by C(n, p) place by place.
    """
    others = n - q.size  # of q = 1
    nobody = 1.0  # e_p(0) / C(n, p)
    before = np.ones(q.size)  # e_{p-1}(j - 1) / C(n, p - 1)
    chances = np.empty(n_places)
    for p in range(1, n_places + 1):
        nobody *= max(others - p + 1, 0) / (n - p + 1)
        sums = np.multiply(before, q, out=before)
        np.cumsum(sums, out=sums)
        sums *= p / (n - p + 1)
        sums += nobody
        chances[p - 1] = sums[-1]
        before[1:] = sums[:-1]
        before[0] = nobody
    return chances


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
