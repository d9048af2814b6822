"""Off-policy evaluation: estimate from a click log how many clicks another ranking would get."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import check_choice, check_number
from marginrank._utils.types import Floats
from marginrank._utils.user_warnings import warn_caller
from marginrank.clicks.log import ClickLog
from marginrank.clicks.propensities import Propensities
from marginrank.data.validation import check_vector

METHODS = ("ips", "snips", "dr")
FEW_CLICKS = 100  # with fewer effective clicks, an estimate is unreliable


class ClickEstimate(NamedTuple):
    """Result of :func:`estimate_clicks`: clicks per session for a new ranking, and reliability."""

    value: float  # estimated clicks per session
    standard_error: float
    effective_clicks: float  # effective sample size, (Σ w)² / Σ w² over the clicks
    clipped: float  # share of the documents in the log whose weight was clipped
    logged: float  # clicks per session in the log


def estimate_clicks(
    log: ClickLog,
    scores: ArrayLike,
    propensity: Propensities,
    *,
    method: str = "snips",
    clip: float = 10.0,
    relevance: ArrayLike | None = None,
) -> ClickEstimate:
    """Estimate the clicks per session if documents had been shown in the order of `scores`.

    A click on a document at position k gets the weight w = p_r / p_k, where r is the document's
    position in the new order of the session, and p_k is the probability that position k is
    examined.

    Parameters
    ----------
    log : ClickLog
        Sessions. In each session, only the documents that were shown are reordered.
    scores : array-like of shape (n_shown,)
        Scores of the ranking to evaluate, one per entry of the log. Ties count as in random order.
    propensity : Propensities
        Examination probabilities p, as from :func:`estimate_propensities`.
    method : {"ips", "snips", "dr"}, default="snips"
        "ips" (inverse propensity scoring) is the sum of w · click. "snips" (self-normalized) is
        this sum times Σ p_r / Σ w p_k, which corrects for clipped weights. "dr" (doubly robust) is
        the sum of p_r · g + w · (click − p_k · g), where g is `relevance`; it is unbiased if no
        weight is clipped or if g is right.
    clip : float, default=10.0
        Largest weight w. Smaller values reduce the variance and add bias.
    relevance : array-like of shape (n_shown,), optional
        Predicted probability of a click on an examined document, for "dr".

    Returns
    -------
    ClickEstimate
        `value`, the estimate; `standard_error`, over sessions; `effective_clicks`, the effective
        sample size (Σ w)² / Σ w² over the clicks; `clipped`, the share of clipped weights; and
        `logged`, the clicks per session in the log. Fewer than 100 effective clicks cause a
        warning.

    Notes
    -----
    The position-based model is assumed: a click requires examination, which depends on the position
    alone.

    Examples
    --------
    >>> from marginrank import estimate_clicks, estimate_propensities, make_clicks, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=10, random_state=0)
    >>> log = make_clicks(y, qid=qid, n_sessions=5000, random_state=0)
    >>> found = estimate_clicks(log, y[log.document], estimate_propensities(log))
    >>> found.value > found.logged
    True
    """
    check_choice("method", method, METHODS)
    check_number("clip", clip)
    if (method == "dr") != (relevance is not None):
        raise ValueError('relevance and method="dr" require each other; pass both or neither.')
    values = check_vector(scores, "scores", log.click.size, "one per entry of the log")
    new, old = _examined(log, values, propensity), propensity.of(log.position)
    full = new / old
    weight = np.minimum(full, clip)
    terms = weight * log.click
    if relevance is not None:
        g = check_vector(relevance, "relevance", log.click.size, "one per entry of the log")
        terms = new * g + weight * (log.click - old * g)
    elif method == "snips":
        terms = terms * (np.sum(new) / np.sum(weight * old))
    per_session = np.bincount(log.session, terms, log.n_sessions)
    own = weight[log.click > 0]
    effective = float(np.sum(own) ** 2 / np.sum(own**2)) if own.size else 0.0
    if effective < FEW_CLICKS:
        warn_caller(
            f"The estimate uses {effective:.1f} effective clicks, fewer than {FEW_CLICKS}. "
            "Collect more sessions, or evaluate a ranking that is closer to the logged one."
        )
    return ClickEstimate(
        value=float(per_session.mean()),
        standard_error=float(per_session.std(ddof=1) / np.sqrt(per_session.size)),
        effective_clicks=effective,
        clipped=float(np.mean(full > clip)),
        logged=float(log.click.sum() / log.n_sessions),
    )


def _examined(log: ClickLog, scores: Floats, propensity: Propensities) -> Floats:
    """Return the probability that each document is examined after sessions are sorted by score.

    Documents of a session with equal scores have the mean probability of their positions.
    """
    # The documents of a session are assigned to its positions in the order of their scores.
    by_score: Any = np.lexsort((-scores, log.session))
    by_position = np.lexsort((log.position, log.session))
    session, score = log.session[by_score], scores[by_score]
    starts = (np.diff(session, prepend=-1) != 0) | (np.diff(score, prepend=np.nan) != 0)
    tie = np.cumsum(starts) - 1
    means = np.bincount(tie, propensity.of(log.position[by_position])) / np.bincount(tie)
    examined = np.empty(scores.size)
    examined[by_score] = means[tie]
    return examined
