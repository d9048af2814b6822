"""Metrics on pairs of documents."""

import numpy as np
from numpy.typing import ArrayLike

from marginrank import _core
from marginrank._threads import effective_threads
from marginrank.data._grouping import group_rows
from marginrank.data._validation import check_labels, check_vector, check_weights
from marginrank.data.ranking_data import Queries


def pairwise_accuracy(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> float:
    """Return the share of pairs (y_i > y_j, same query) that the scores put in order, s_i > s_j.

    Tied scores do not count as in order, as in the papers. O(l log l).

    Parameters
    ----------
    y, scores : array-like of shape (n_documents,)
        Labels, and the scores to judge.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`.
    sample_weight : array-like of shape (n_documents,), optional
        A pair weighs the product of its two weights.
    n_jobs : int, optional
        Number of threads; all by default.

    Returns
    -------
    float
        Between 0 and 1; nan if there is no pair.

    Examples
    --------
    >>> from marginrank.metrics import pairwise_accuracy
    >>> pairwise_accuracy([2, 1, 0], [0.3, 0.1, 0.2])
    0.6666666666666666
    """
    threads = effective_threads(n_jobs)
    n = len(np.asarray(scores))
    s = check_vector(scores, "scores", n, "one score a document")
    labels = check_labels(y, n)
    offsets, rows, _ = group_rows(n, qid, group)
    order = slice(None) if rows is None else rows
    queries = Queries.from_labels(labels[order], offsets, None, threads)
    weight = None
    if sample_weight is not None:
        weight = check_weights(sample_weight, "sample_weight", n, "one weight a document")
        weight = np.ascontiguousarray(weight[order, None])

    def active(theta: float, at: np.ndarray) -> float:
        pairs = _core.Pairs(
            n, offsets, None, queries.level, queries.n_levels, np.ones(queries.n_queries),
            weight, weight, None, False, np.array([[1.0, theta, 1.0]]),
        )  # fmt: skip
        return float(np.sum(_core.active_weights(pairs, at, threads)))

    # A pair is active where s_i < s_j + theta: with negated scores, where it is in order.
    total = active(1.0, np.zeros(n))
    return active(0.0, np.ascontiguousarray(-s[order])) / total if total > 0 else float("nan")
