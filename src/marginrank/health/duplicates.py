"""Duplicates: find pairs of features that are equal or have a correlation close to 1 or −1.

Comparing all pairs would take quadratic time. So each feature is projected to a few random numbers,
and only features whose projections are close are compared in all documents.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats, Integers
from marginrank.data import RankingData
from marginrank.health.documents import BLOCK_ENTRIES, blocks, columns, differences
from marginrank.health.finding import Finding, findings_by_feature
from marginrank.health.summary import FeatureSummary

CORRELATED = 0.999
# Largest distance of the projections of two features that are compared. The squared distance for
# correlation r is 2 (1 − r) times a χ² variable with 8 degrees of freedom, which exceeds 45 with
# probability 4e-7.
RADIUS = float(np.sqrt(2 * (1 - CORRELATED) * 45))
NEIGHBORS = 4  # number of nearest features with which each feature is compared
MOST_PAIRS = 4096  # most candidate pairs that are compared, the closest first
# A feature is compared if at least this many of its values are neither zero nor missing, and if two
# values differ. With fewer values, features may agree by chance.
FEWEST_VALUES = 10


class Resemblance(NamedTuple):
    """A feature, and an earlier feature that it equals or is highly correlated with."""

    feature: int
    other: int
    correlation: float
    equal: bool


def check_duplicates(data: RankingData, summary: FeatureSummary) -> list[Finding]:
    """Return findings about features that equal an earlier feature or are correlated with it."""
    found = find_resemblances(data, summary)
    names = {j: name_of(j, data.feature_names) for one in found for j in one[:2]}
    equal = [one for one in found if one.equal]
    correlated = [one for one in found if not one.equal]
    return [
        *findings_by_feature(
            "duplicate-feature",
            "warning",
            [names[one.feature] for one in equal],
            lambda k: (
                f"{names[equal[k].feature]} equals {names[equal[k].other]} in all "
                f"{data.n_documents:,} documents."
            ),
            "Features that are copies of an earlier feature",
            "Drop one of the two columns: a model divides one weight between them.",
        ),
        *findings_by_feature(
            "correlated-feature",
            "note",
            [names[one.feature] for one in correlated],
            lambda k: (
                f"{names[correlated[k].feature]} and {names[correlated[k].other]} have the "
                f"correlation {correlated[k].correlation:.6f}."
            ),
            f"Features with a correlation of at least ±{CORRELATED} with an earlier feature",
            "Drop one of the two columns, unless their small difference matters; their weights "
            "cannot be interpreted one by one.",
        ),
    ]


def find_resemblances(data: RankingData, summary: FeatureSummary) -> list[Resemblance]:
    """Return the features that equal an earlier feature, or have a correlation close to ±1 with it.

    Each feature is listed once, with the first feature that it resembles.
    """
    pairs = _candidates(summary)
    if pairs.size == 0:
        return []
    equal, correlation = _compare(data, summary, pairs)
    similar = equal | (np.abs(correlation) > CORRELATED)
    found: dict[int, Resemblance] = {}
    same = pairs[equal & similar]
    adjacency = sp.coo_array((np.ones(len(same)), same.T), shape=(summary.low.size,) * 2)
    _, group = connected_components(adjacency, directed=False)
    first = np.full(summary.low.size, summary.low.size)
    np.minimum.at(first, group, np.arange(summary.low.size))
    for j in np.unique(same):
        if first[group[j]] < j:
            found[int(j)] = Resemblance(int(j), int(first[group[j]]), 1.0, True)
    for (other, feature), r in sorted(
        zip(pairs[similar & ~equal].tolist(), correlation[similar & ~equal].tolist(), strict=True)
    ):
        found.setdefault(feature, Resemblance(feature, other, r, False))
    return [found[j] for j in sorted(found)]


def _candidates(summary: FeatureSummary) -> Integers:
    """Return pairs (earlier, later) of columns whose random projections are close.

    Pairs are sorted by distance, the closest first.
    """
    usable = summary.varies & (summary.deviation > 0) & (summary.filled >= FEWEST_VALUES)
    used = np.flatnonzero(usable)
    if used.size < 2:
        return np.zeros((0, 2), dtype=np.int64)
    places = summary.projections[:, used].T
    tree = cKDTree(places)
    found = []
    for sign in (1.0, -1.0):
        distance, near = tree.query(
            sign * places, k=min(NEIGHBORS + 1, used.size), distance_upper_bound=RADIUS
        )
        here = np.broadcast_to(np.arange(used.size)[:, None], near.shape)
        close = np.isfinite(distance)
        found.append((here[close], near[close], distance[close]))
    # Equal features have the same projection, so sorting puts them next to each other. Pairs of
    # neighbors in this order also connect groups of more equal features than NEIGHBORS.
    chain = np.argsort(places[:, 0], kind="stable")
    links = np.linalg.norm(places[chain[1:]] - places[chain[:-1]], axis=1)
    close = links < RADIUS
    found.append((chain[:-1][close], chain[1:][close], links[close]))
    a, b, distance = (np.concatenate(parts) for parts in zip(*found, strict=True))
    pairs = np.sort(np.stack([used[a], used[b]], axis=1), axis=1)
    pairs = pairs[np.argsort(distance, kind="stable")]
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    _, at = np.unique(pairs, axis=0, return_index=True)
    return pairs[np.sort(at)[:MOST_PAIRS]]


def _compare(
    data: RankingData, summary: FeatureSummary, pairs: Integers
) -> tuple[NDArray[np.bool_], Floats]:
    """Return, for each pair of features, whether it is equal in all documents, and its correlation.

    If one of the features has the same value in nearly all documents, the pair counts as not equal
    and not correlated.
    """
    used, codes = np.unique(pairs, return_inverse=True)
    first, second = codes.reshape(pairs.shape).T
    equal = np.ones(len(pairs), dtype=bool)
    sums, squares, products = np.zeros(used.size), np.zeros(used.size), np.zeros(len(pairs))
    at_low, at_high = np.zeros(used.size), np.zeros(used.size)
    middle = 0.5 * summary.low[used] + 0.5 * summary.high[used]
    for values in _dense_columns(data, used):
        missing = np.isnan(values)
        at_low += np.count_nonzero(values == summary.low[used], axis=0)
        at_high += np.count_nonzero(values == summary.high[used], axis=0)
        apart = differences(values, middle)
        sums += apart.sum(axis=0)
        squares += np.einsum("ij,ij->j", apart, apart)
        products += np.einsum("ij,ij->j", apart[:, first], apart[:, second])
        equal &= np.all(
            (values[:, first] == values[:, second]) | (missing[:, first] & missing[:, second]),
            axis=0,
        )
    n = data.n_documents
    informed = (n - np.maximum(at_low, at_high)) >= FEWEST_VALUES
    variance = np.maximum(squares / n - (sums / n) ** 2, 0.0)
    covariance = products / n - (sums[first] / n) * (sums[second] / n)
    scale = np.sqrt(variance[first]) * np.sqrt(variance[second])
    correlation = np.divide(covariance, scale, out=np.zeros(len(pairs)), where=scale > 0)
    both = informed[first] & informed[second]
    return equal & both, np.where(both, np.clip(correlation, -1.0, 1.0), 0.0)


def _dense_columns(data: RankingData, used: Integers) -> Iterator[Floats]:
    height = max(1, BLOCK_ENTRIES // used.size)
    for block in blocks(data):
        for start in range(0, block.query.size, height):
            yield columns(block.X[start : start + height], used)
