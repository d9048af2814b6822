"""Examination probabilities (propensities) of positions, estimated from a click log.

Method: intervention harvesting (Agarwal et al., 2019). If a document of a query was shown at the
positions k and k', its click rates there differ only by how often the positions are examined. In
the code, B[k, k'] is the number of documents that were shown at both k and k', and A[k, k'] is the
sum of their click rates at k.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.parameters import check_choice, check_integer
from marginrank._utils.types import Floats, Integers
from marginrank.clicks.log import ClickLog

METHODS = ("pivot", "adjacent", "all_pairs")
GROUPS = 20  # number of groups of queries for the jackknife
MOST_POSITIONS = 200


class Propensities(NamedTuple):
    """Probability that each position is examined, relative to position 1, with standard errors.

    The arrays have one entry for each of the positions 1, 2, ….
    """

    propensity: Floats
    standard_error: Floats

    def of(self, position: Any) -> Floats:
        """Return the probability that each position in `position` is examined.

        Positions after the last estimated one get the value of the last one.
        """
        at = np.minimum(np.asarray(position, dtype=np.int64), self.propensity.size) - 1
        found: Floats = np.minimum(self.propensity[at], 1.0)
        return found


def estimate_propensities(
    log: ClickLog, method: str = "all_pairs", *, n_positions: int = 10
) -> Propensities:
    """Estimate from clicks how likely users examine each position, relative to the first.

    Parameters
    ----------
    log : ClickLog
        Sessions. Documents of a query must have been shown at several positions, because of random
        swaps, several rankers, or a ranker that was replaced.
    method : {"pivot", "adjacent", "all_pairs"}, default="all_pairs"
        "pivot" compares the click rates of each position with the first; "adjacent" compares
        adjacent positions and multiplies the ratios; "all_pairs" is the maximum likelihood estimate
        from all pairs of positions, which uses the most data.
    n_positions : int, default=10
        Number of positions to estimate; documents at later positions are ignored.

    Returns
    -------
    Propensities
        `propensity`, and `standard_error` from a jackknife over groups of queries.
        ``of(position)`` returns the value for each document, for :meth:`RankSVM.fit`.

    Notes
    -----
    All methods assume the position-based model: a document is clicked if it is examined, which
    depends only on its position, and relevant, which does not depend on when and where it was
    shown. This does not hold for trust bias or cascading users.

    References
    ----------
    A. Agarwal, I. Zaitsev, X. Wang, C. Li, M. Najork and T. Joachims (2019). Estimating position
    bias without intrusive interventions. WSDM.

    Examples
    --------
    >>> from marginrank import estimate_propensities, make_clicks, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=10, random_state=0)
    >>> log = make_clicks(y, qid=qid, n_sessions=20000, random_state=0)
    >>> found = estimate_propensities(log, n_positions=3)
    >>> bool(abs(found.propensity[1] - 0.5) < 0.05)
    True
    """
    check_choice("method", method, METHODS)
    check_integer("n_positions", n_positions, at_least=2, at_most=MOST_POSITIONS)
    rates, counts = _by_group(log, n_positions)
    estimate = {"pivot": _pivot, "adjacent": _adjacent, "all_pairs": _all_pairs}[method]
    A, B = rates.sum(axis=0), counts.sum(axis=0)
    _check_shown(method, A, B)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = estimate(A, B)
        without = np.array([estimate(A - a, B - b) for a, b in zip(rates, counts, strict=True)])
        n = len(without)
        deviations = without - without.mean(axis=0)
        error = np.sqrt((n - 1) / n * np.sum(deviations**2, axis=0))
    return Propensities(whole, error)


def _by_group(log: ClickLog, n_positions: int) -> tuple[Floats, Floats]:
    """Return A and B (see the module) for each group of queries of the jackknife."""
    shown = np.flatnonzero(log.position <= n_positions)
    _, query = np.unique(log.query[shown], return_inverse=True)
    _, document = np.unique(log.document[shown], return_inverse=True)
    ids, item = np.unique(
        query.ravel() * (np.max(document, initial=0) + 1) + document.ravel(), return_inverse=True
    )
    item = item.ravel()
    cell = item * n_positions + log.position[shown] - 1
    shape = (ids.size, n_positions)
    views = np.bincount(cell, minlength=ids.size * n_positions).reshape(shape)
    clicks = np.bincount(cell, log.click[shown], ids.size * n_positions).reshape(shape)
    was_shown = (views > 0).astype(np.float64)
    rate = np.divide(clicks, views, out=np.zeros(shape), where=views > 0)
    group = np.empty(ids.size, dtype=np.int64)
    group[item] = query.ravel() % min(GROUPS, int(query.max()) + 1)
    parts = [np.flatnonzero(group == g) for g in range(int(group.max()) + 1)]
    return (
        np.array([rate[some].T @ was_shown[some] for some in parts]),
        np.array([was_shown[some].T @ was_shown[some] for some in parts]),
    )


def _check_shown(method: str, A: Floats, B: Floats) -> None:
    """Raise ValueError if two positions to compare have no clicked document in common."""
    n = len(A)
    other = {"pivot": np.zeros(n - 1), "adjacent": np.arange(n - 1)}.get(method)
    for k in range(1, n):
        if other is None:
            first, has_clicks = 0, bool(np.any(A[k, np.arange(n) != k] > 0))
        else:
            first = int(other[k - 1])
            has_clicks = A[first, k] > 0
        if not has_clicks:
            also = (
                f"at position {first + 1} and" if other is not None else "at another position and"
            )
            raise ValueError(
                f"no document with clicks was shown both {also} at position {k + 1} "
                f"({int(B[first, k])} documents without clicks were); use fewer n_positions, or a "
                "log in which documents change their positions."
            )


def _pivot(A: Floats, _: Floats) -> Floats:
    ratios: Floats = A[:, 0] / A[0]
    return ratios


def _adjacent(A: Floats, _: Floats) -> Floats:
    k = np.arange(len(A) - 1)
    return np.concatenate([[1.0], np.cumprod(A[k + 1, k] / A[k, k + 1])])


def _all_pairs(A: Floats, B: Floats) -> Floats:
    """Return the maximum likelihood estimate of the propensities p, relative to the first.

    The click rate at k of documents shown at k and k' is modeled as p_k * r_kk', where r_kk' is
    their mean relevance.
    """
    from scipy.optimize import minimize  # slow to import

    n = len(A)
    i, j = np.triu_indices(n, 1)
    used = B[i, j] > 0
    i, j = i[used], j[used]
    sides: list[tuple[Integers, Integers]] = [(i, j), (j, i)]

    def loss(theta: Floats) -> tuple[float, Floats]:
        log_p, log_r = -np.logaddexp(0.0, -theta[:n]), -np.logaddexp(0.0, -theta[n:])
        value, by_p, by_r = 0.0, np.zeros(n), np.zeros(i.size)
        for k, other in sides:
            log_rate = log_p[k] + log_r
            rate = np.exp(log_rate)
            clicks, others = A[k, other], B[k, other] - A[k, other]
            rest = np.maximum(1.0 - rate, 1e-300)
            value -= float(np.sum(clicks * log_rate + others * np.log(rest)))
            slope = others * rate / rest - clicks  # derivative in the logarithm of the rate
            by_p += np.bincount(k, slope, n)
            by_r += slope
        outer = 1.0 - np.exp(np.concatenate([log_p, log_r]))
        return value, np.concatenate([by_p, by_r]) * outer

    found = minimize(loss, np.zeros(n + i.size), jac=True, method="L-BFGS-B", tol=1e-12)
    p = 1.0 / (1.0 + np.exp(-found.x[:n]))
    ratios: Floats = p / p[0]
    return ratios
