"""Expected reciprocal rank (ERR), a metric of a user who reads from the top until satisfied."""

from __future__ import annotations

import numpy as np

from marginrank._utils.types import Booleans, Floats
from marginrank.metrics.cumulative_gain import LARGEST_EXPONENT, gains
from marginrank.metrics.options import check_cutoff, check_real, ranking_metric
from marginrank.metrics.ranking import Ranking

LARGE = 500  # groups of ties with more satisfying documents are computed one by one
# Positions that a reader reaches with a probability below exp(−40) ≈ 4e-18 are ignored, because
# their contribution is below the rounding error of the sum.
NEGLIGIBLE = 40.0


@ranking_metric()
def err(ranking: Ranking, *, k: int | None = None, max_label: float | None = None) -> Floats:
    """Return the expected reciprocal rank, ERR.

    A user reads the ranking from the top and stops at the first satisfying document; ERR is the
    expectation of 1 / rank of that document. The document at rank r, with label y_r, satisfies the
    user with probability R_r = (2^y_r − 1) / 2^max_label, so

        ERR@k = Σ_{r ≤ k} (1/r) · R_r · Π_{i < r} (1 − R_i).

    The Yahoo LTRC challenge and, with ``max_label=4``, TREC's gdeval define it in this way.

    Parameters
    ----------
    y, scores, qid, group, k, ties, per_query, n_jobs
        As in :func:`ndcg`.
    max_label : float, optional
        The highest possible grade; by default the largest label of `y`, over all queries. Pass it
        to compare values over several data sets.
    no_relevant : {0.0, 1.0, "skip"}, default=0.0
        Value of a query in which no label is above 0; its ERR is 0. "skip" makes it nan and
        excludes it from the mean.

    Returns
    -------
    float or ndarray of shape (n_queries,)
        Between 0 and 1. A query of one document with the highest grade has 1 − 2^−max_label.

    References
    ----------
    O. Chapelle, D. Metzler, Y. Zhang and P. Grinspan (2009). Expected reciprocal rank for graded
    relevance. CIKM.

    Examples
    --------
    >>> from marginrank.metrics import err
    >>> err([0, 1], [2.0, 1.0])  # 1/2 · 1/2
    0.25
    >>> err([0, 1], [1.0, 1.0], ties="average")  # 1/1 · 1/2 or 1/2 · 1/2
    0.375
    """
    top = check_cutoff(k)
    gain_of = gains(ranking, "exponential")
    satisfied = ranking.best_first(gain_of) / np.exp2(_highest(ranking, max_label))
    within = ranking.retrieved if top is None else ranking.retrieved & (ranking.rank <= top)
    read_on = ranking.running(np.multiply, 1.0 - satisfied)
    reached = np.where(ranking.rank == 1, 1.0, np.roll(read_on, 1))
    if ranking.average_ties:
        reached = ranking.ties.repeat(reached[ranking.ties.starts])
        satisfied = _expected_stops(ranking, satisfied, within)
    values = ranking.total(within * reached * satisfied / ranking.rank)
    return np.where(ranking.total(gain_of) > 0, values, np.nan)


def _expected_stops(ranking: Ranking, satisfied: Floats, within: Booleans) -> Floats:
    """Return the probability that a reader who reaches a group of ties stops at each position.

    Let q = 1 − R be the probability that a document does not satisfy the reader, who then goes on
    beyond position p of the group with probability m_p: the mean of Π q over all sets of p
    documents of the group. Documents are added to the group one by one. The n-th is in a set with
    probability p/n, so it changes the mean to

        m_p ← (1 − p/n) · m_p + (p/n) · q · m_{p−1}.
    """
    # A group of documents with R = 0 has m_p = 1 for all p, so only documents with R > 0 are added,
    # one by one. Because m_p ≤ (m_1)^p, positions beyond `depth` are negligible. Groups with more
    # documents of R > 0 than positions are computed position by position instead.
    groups = ranking.ties
    group = groups.repeat(np.arange(groups.sizes.size))
    able = np.flatnonzero(satisfied > 0)
    n_able = np.bincount(group[able], minlength=groups.sizes.size)
    first_able = np.cumsum(n_able) - n_able
    go_on = 1.0 - satisfied[able]
    position = groups.position + 1.0
    with np.errstate(divide="ignore"):
        depth = NEGLIGIBLE / -np.log1p(-groups.total(satisfied) / groups.sizes)
    in_view = position <= groups.repeat(depth)
    beyond = in_view.astype(np.float64)
    at = np.flatnonzero(in_view & within & (groups.repeat(n_able) > 0))
    n_positions = np.bincount(group[at], minlength=groups.sizes.size)
    is_large = n_able > np.maximum(n_positions, LARGE)
    for g in np.flatnonzero(is_large & (n_positions > 0)).tolist():
        q = go_on[first_able[g] : first_able[g] + n_able[g]]
        positions = slice(groups.starts[g], groups.starts[g] + n_positions[g])
        beyond[positions] = _beyond_positions(q, int(groups.sizes[g]), int(n_positions[g]))
    at = at[~is_large[group[at]]]
    joined = 0
    while at.size:
        own = group[at]
        joined += 1
        n = groups.sizes[own] - n_able[own] + joined
        share = np.minimum(position[at] / n, 1.0)  # positions beyond n are not used
        above = np.where(position[at] > 1, beyond[at - 1], 1.0)
        q = go_on[first_able[own] + joined - 1]
        beyond[at] = (1.0 - share) * beyond[at] + share * q * above
        at = at[n_able[own] > joined]
    return np.where(position > 1, np.roll(beyond, 1), 1.0) - beyond


def _beyond_positions(q: Floats, n: int, n_positions: int) -> Floats:
    """Return the probabilities m_p that a reader goes beyond position p, for p ≤ `n_positions`.

    In a group of n tied documents m_p = e_p / C(n, p), with the elementary symmetric polynomial e_p
    of all q_j = 1 − R_j; the array `q` omits those equal to 1. For the first j documents,
    e_p(j) = e_p(j − 1) + q_j e_{p−1}(j − 1), a sum of positive terms without cancellation. Each e_p
    is divided by C(n, p) as soon as it is computed, so it does not overflow.
    """
    others = n - q.size  # documents with q = 1
    nobody = 1.0  # e_p / C(n, p) of the documents with q = 1 alone
    before = np.ones(q.size)  # e_{p-1}(j - 1) / C(n, p - 1)
    chances = np.empty(n_positions)
    for p in range(1, n_positions + 1):
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
            f"max_label={max_label!r} must be between {largest:g}, the largest label of y, and "
            f"{LARGEST_EXPONENT}."
        )
    return float(max_label)
