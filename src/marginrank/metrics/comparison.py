"""Comparison of two rankings by a metric, with confidence interval and significance tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.parameters import check_integer, check_share
from marginrank._utils.tables import ResultTable
from marginrank._utils.types import Floats
from marginrank.data.queries import group_rows
from marginrank.metrics.names import Metric, get_metric, metric_name, order_free

CHUNK = 1 << 22  # number of random signs drawn at a time; each takes a byte


@dataclass(frozen=True, repr=False)
class Comparison(ResultTable):
    """Result of :func:`compare`: the difference of a metric between two rankings, with p-values.

    Attributes
    ----------
    metric : str
        Name of the metric.
    mean_a, mean_b : float
        Means of the metric over the queries, for the first and the second ranking.
    difference : float
        ``mean_a - mean_b``.
    interval : tuple of float
        Confidence interval of the difference, from Student's t over the queries.
    confidence : float
        Level of the interval.
    t_test_p : float
        Two-sided p-value of the paired t-test.
    randomization_p : float
        Two-sided p-value of the paired randomization test.
    n_queries : int
        Number of queries in which the metric is defined for both rankings.

    See Also
    --------
    compare : Compute a Comparison from two score vectors; has an example.
    """

    metric: str
    mean_a: float
    mean_b: float
    difference: float
    interval: tuple[float, float]
    confidence: float
    t_test_p: float
    randomization_p: float
    n_queries: int

    def _columns(self) -> dict[str, list[Any]]:
        values = vars(self) | dict(zip(("low", "high"), self.interval, strict=True))
        return {name: [value] for name, value in values.items() if name != "interval"}

    def _summary(self) -> str:
        low, high = self.interval
        return (
            f"{self.metric} {self.mean_a:.4f} against {self.mean_b:.4f} in {self.n_queries} "
            f"queries, difference {self.difference:+.4f}, {self.confidence:.0%} confidence "
            f"interval {low:+.4f} … {high:+.4f}, p = {self.randomization_p:.2g}"
        )


def compare(
    y: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    metric: str | Metric = "ndcg",
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    random_state: Any = 0,
    **options: Any,
) -> Comparison:
    """Compare two score vectors of the same documents by a metric, query by query.

    The paired t-test assumes that the mean difference over queries is normally distributed. The
    randomization test (Smucker et al., 2007) assumes only that, if both score vectors are equally
    good, their metric values can be swapped in any query. It compares the observed difference with
    the differences after random swaps, or after all possible swaps if there are at most
    `n_resamples` of them.

    Parameters
    ----------
    y, scores_a, scores_b : array-like of shape (n_documents,)
        Labels, and the two score vectors.
    qid, group : array-like, optional
        Queries, as in :class:`~marginrank.RankingData`; at least two.
    metric : str or callable, default="ndcg"
        As in :func:`get_metric`: "ndcg@10", or a function. Means over queries are compared, also
        for :func:`pairwise_accuracy`. The default of the option ``ties`` is "average" instead of
        "order".
    n_resamples : int, default=10_000
        Number of random resamples, in each of which the values of about half the queries are
        swapped.
    confidence : float, default=0.95
        Level of the interval.
    random_state : int, numpy Generator or None, default=0
        Seed of the swaps.
    **options
        Options of the metric.

    Returns
    -------
    Comparison
        Its `difference` is positive if `scores_a` is better.

    References
    ----------
    M. Smucker, J. Allan and B. Carterette (2007). A comparison of statistical significance tests
    for information retrieval evaluation. CIKM.

    Examples
    --------
    >>> from marginrank.metrics import compare
    >>> y, qid = [1, 0, 0] * 6, [q for q in range(6) for _ in range(3)]
    >>> good, bad = [3.0, 2.0, 1.0] * 6, [1.0, 2.0, 3.0] * 5 + [3.0, 2.0, 1.0]
    >>> result = compare(y, good, bad, qid=qid, metric="reciprocal_rank")
    >>> round(result.difference, 4), result.randomization_p, result.n_queries
    (0.5556, 0.0625, 6)
    """
    n_resamples = check_integer("n_resamples", n_resamples, at_least=1)
    confidence = check_share("confidence", confidence, allow_ends=False)
    measure = get_metric(metric, **options)
    if group is not None:
        qid = group_rows(len(np.asarray(scores_a)), qid, group).documents.query_of_document
    a, b = (
        np.asarray(order_free(measure)(y, scores, qid=qid, per_query=True), dtype=np.float64)
        for scores in (scores_a, scores_b)
    )
    defined = ~(np.isnan(a) | np.isnan(b))
    count = int(np.sum(defined))
    if count < 2:
        raise ValueError(
            f"{metric_name(measure)} has a value in {count} of {defined.size} queries; a "
            "comparison needs at least 2. Check qid and y."
        )
    return compare_values(
        metric_name(measure),
        a[defined],
        b[defined],
        n_resamples=n_resamples,
        confidence=confidence,
        random_state=random_state,
    )


def compare_values(
    metric: str,
    a: Floats,
    b: Floats,
    *,
    n_resamples: int = 10_000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Comparison:
    """Return the Comparison of two rankings with metric values `a` and `b`, one per query.

    At least two queries are required; values must not be nan.
    """
    p, interval = _t_test(a - b, confidence)
    return Comparison(
        metric=metric,
        mean_a=float(np.mean(a)),
        mean_b=float(np.mean(b)),
        difference=float(np.mean(a - b)),
        interval=interval,
        confidence=confidence,
        t_test_p=p,
        randomization_p=_randomization_test(a - b, n_resamples, random_state),
        n_queries=a.size,
    )


def _t_test(difference: Floats, confidence: float) -> tuple[float, tuple[float, float]]:
    """Return the p-value for mean 0, and the confidence interval of the mean."""
    from scipy.special import stdtr  # scipy.stats is slow to import

    mean = float(np.mean(difference))
    error, half = standard_error(difference), half_interval(difference, confidence)
    if error <= 1e-14 * abs(mean):
        return (1.0 if mean == 0 else 0.0), (mean, mean)
    return float(2 * stdtr(difference.size - 1, -abs(mean) / error)), (mean - half, mean + half)


def half_interval(values: Floats, confidence: float = 0.95) -> float:
    """Return half the width of Student's t confidence interval of the mean of `values`."""
    from scipy.special import stdtrit

    return float(stdtrit(values.size - 1, (1 + confidence) / 2)) * standard_error(values)


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of `values`, at least two numbers."""
    return float(np.std(values, ddof=1) / np.sqrt(values.size))


def _randomization_test(difference: Floats, n_resamples: int, random_state: Any) -> float:
    """Return the p-value: the share of random signs of `difference` that give as large a sum.

    Sums are compared by magnitude with the observed sum.
    """
    d = difference[difference != 0]  # a swap does not change a difference of 0
    exact = d.size <= np.log2(n_resamples)
    signs: Iterable[NDArray[Any]] = _random_signs(d.size, n_resamples, random_state)
    if exact:
        signs = [(np.arange(2**d.size)[:, None] >> np.arange(d.size)) & 1]
    total, far = abs(d.sum()), 0
    for flipped in signs:
        sums = d.sum() - 2 * (flipped.astype(np.float64) @ d)
        # The tolerance counts sums as equal that differ by rounding errors only.
        far += int(np.sum(np.abs(sums) >= total * (1 - 1e-12)))
    return far / 2**d.size if exact else (far + 1) / (n_resamples + 1)


def _random_signs(n: int, n_resamples: int, random_state: Any) -> Iterator[NDArray[np.uint8]]:
    """Yield random swaps in chunks, one row per resample: 1 flips a sign, 0 keeps it."""
    generator = np.random.default_rng(random_state)
    n_bytes = (n + 7) // 8
    while n_resamples > 0:
        rows = min(n_resamples, max(CHUNK // n, 1))
        bits = np.frombuffer(generator.bytes(rows * n_bytes), dtype=np.uint8)
        yield np.unpackbits(bits.reshape(rows, n_bytes), axis=1, count=n)
        n_resamples -= rows
