"""Slices in a report: the main metric for groups of queries, such as queries of three words.

There are also slices of pairs of documents, by the difference between their labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Booleans, Floats
from marginrank.metrics import pairwise_accuracy
from marginrank.reporting.evaluation import Rankings
from marginrank.reporting.resampling import bootstrap_ratios, interval_of

MOST_LABELS = 8  # with more distinct labels, pairs are not grouped by difference of labels
MOST_BINS = 6
FEWEST = 5  # slices with fewer queries have no confidence interval


def slices_of(rankings: Rankings) -> list[dict[str, Any]]:
    """Return the main metric for groups of queries, and pairwise accuracy for groups of pairs.

    Queries are grouped by their numbers of words, of documents and of relevant documents, and pairs
    by the difference of their labels. Each grouping is a dict with a title and one row of values
    per group.
    """
    queries, y = rankings.data.queries, rankings.data.queries.grouped(rankings.data.y)
    values = [
        rankings.by_query(rankings.metric, scores)
        for scores in (rankings.scores, rankings.baseline)
        if scores is not None
    ]
    relevant = np.add.reduceat((y > 0).astype(np.int64), queries.offsets[:-1])
    counts = {"Relevant documents": relevant, "Documents": queries.sizes}
    words = _words(rankings.data.query_ids)
    if words is not None:
        counts = {"Number of words in the query": words, **counts}
    groups = [
        {"title": title, "unit": "queries", "rows": list(_rows(numbers, values, rankings.seed))}
        for title, numbers in counts.items()
    ]
    groups = [group for group in groups if len(group["rows"]) > 1]
    gaps = _gaps(rankings)
    if gaps:
        groups.append(
            {"title": "Difference of the two labels of a pair", "unit": "pairs", "rows": gaps}
        )
    return groups


def _words(query_ids: NDArray[Any]) -> NDArray[np.int64] | None:
    """Return the number of words of each query, or None if query ids are not texts of queries."""
    ids = query_ids.tolist()
    if not all(isinstance(one, str) for one in ids) or not any(" " in one for one in ids):
        return None
    return np.array([len(one.split()) for one in ids])


def _rows(numbers: NDArray[Any], values: Sequence[Floats], seed: int) -> Iterator[dict[str, Any]]:
    for label, chosen in _bins(numbers):
        found = [_mean(one[chosen], seed) for one in values]
        if found[0] is not None:
            yield {
                "label": label,
                "count": int(chosen.sum()),
                "value": found[0],
                "baseline": found[1] if len(found) > 1 else None,
            }


def _mean(values: Floats, seed: int) -> dict[str, float | None] | None:
    defined = values[~np.isnan(values)]
    if defined.size == 0:
        return None
    if defined.size < FEWEST:
        return {"value": float(defined.mean()), "low": None, "high": None}
    low, high = interval_of(bootstrap_ratios(defined, np.ones_like(defined), seed))
    return {"value": float(defined.mean()), "low": low, "high": high}


def _bins(numbers: NDArray[Any]) -> Iterator[tuple[str, Booleans]]:
    """Yield (label, mask) for each bin of some numbers.

    A bin is a single number if there are few distinct numbers, else a range between quantiles.
    """
    distinct = np.unique(numbers)
    if distinct.size <= MOST_BINS:
        for number in distinct.tolist():
            yield f"{number:,}", numbers == number
        return
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, MOST_BINS + 1)[1:-1], method="lower"))
    firsts = [distinct[0], *(distinct[distinct > edge][0] for edge in edges if edge < distinct[-1])]
    for first, after in zip(firsts, [*firsts[1:], np.inf], strict=True):
        members = (numbers >= first) & (numbers < after)
        last = numbers[members].max()
        yield (f"{first:,}" if first == last else f"{first:,} … {last:,}"), members


def _gaps(rankings: Rankings) -> list[dict[str, Any]]:
    """Return the pairwise accuracy for each difference between the labels of a pair."""
    labels = np.unique(rankings.data.y)
    if not 1 < labels.size <= MOST_LABELS:
        return []
    # Keys are differences as text, because 0.3 − 0.2 is not exactly 0.1.
    by_gap: dict[str, list[tuple[int, list[float]]]] = {}
    for low, high in combinations(labels.tolist(), 2):
        n_pairs, right = _pairs_of(rankings, low, high)
        if n_pairs:
            by_gap.setdefault(f"{high - low:g}", []).append((n_pairs, right))
    rows = []
    for gap, found in sorted(by_gap.items(), key=lambda item: float(item[0])):
        total = sum(n for n, _ in found)
        shares = [
            {"value": sum(right[side] for _, right in found) / total, "low": None, "high": None}
            for side in range(len(found[0][1]))
        ]
        baseline = shares[1] if len(shares) > 1 else None
        rows.append({"label": gap, "count": total, "value": shares[0], "baseline": baseline})
    return rows


def _pairs_of(rankings: Rankings, low: float, high: float) -> tuple[int, list[float]]:
    """Return the number of pairs with labels `low` and `high`, and how many each ranking orders.

    The second result has one number per ranking: the pairs that it puts in the right order.
    """
    y, qid = rankings.data.y, rankings.data.qid
    kept = (y == low) | (y == high)
    y, qid = y[kept], qid[kept]
    size = rankings.data.n_queries
    counts = (np.bincount(qid[y == label], minlength=size) for label in (low, high))
    n_pairs = int(np.sum(np.multiply(*counts)))
    if n_pairs == 0:
        return 0, []
    both = [rankings.scores] if rankings.baseline is None else [rankings.scores, rankings.baseline]
    return n_pairs, [
        n_pairs * float(pairwise_accuracy(y, scores[kept], qid=qid)) for scores in both
    ]
