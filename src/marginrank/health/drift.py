"""Drift: find features and labels whose distribution differs between training and test data.

Values are replaced by their ranks among the documents of both data sets. A different mean rank is a
shift; a different mean distance from the middle rank is a change of scale. Standard errors are
computed over queries, because documents of a query resemble each other.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats, Integers
from marginrank.data import RankingData
from marginrank.health.documents import BLOCK_ENTRIES, columns, sample
from marginrank.health.finding import Finding, findings_by_feature

FEWEST_QUERIES = 10  # with fewer queries in a data set, drift is not checked
LEAST_EFFECT = 0.1  # smallest drift to report: |P(test value > training value) − ½|
SIGNIFICANCE = 1e-4  # probability of a false report, for all features together


def check_drift(train: RankingData, test: RankingData) -> list[Finding]:
    """Return findings about labels and features with different distributions in train and test.

    If there are many documents, samples of whole queries are compared.
    """
    if min(train.n_queries, test.n_queries) < FEWEST_QUERIES:
        return []
    first, second = sample(train, seed=2), sample(test, seed=3)
    query = np.append(first.query, second.query + train.n_queries)
    is_test = np.repeat([False, True], [first.query.size, second.query.size])
    labels = [
        data.queries.grouped(data.y)[block.documents].astype(np.float64)
        for data, block in ((train, first), (test, second))
    ]
    found = []
    (effect,), (drifts,) = _compare(np.concatenate(labels)[:, None], query, is_test, 1)
    if drifts:
        found.append(
            Finding(
                "label-drift",
                "warning",
                "test",
                f"Labels are distributed differently in the test data: {_described(effect)}.",
                "Check whether both files were labeled in the same way and sampled from the same "
                "queries.",
            )
        )
    effects = np.zeros((train.n_features, 2))
    drifted = np.zeros(train.n_features, dtype=bool)
    height = max(1, BLOCK_ENTRIES // query.size)
    for start in range(0, train.n_features, height):
        some = np.arange(start, min(start + height, train.n_features))
        values = np.concatenate([columns(first.X, some), columns(second.X, some)])
        effects[some], drifted[some] = _compare(values, query, is_test, train.n_features)
    names = [name_of(j, train.feature_names) for j in np.flatnonzero(drifted).tolist()]
    of_names = effects[drifted]
    return found + findings_by_feature(
        "feature-drift",
        "warning",
        names,
        lambda k: (
            f"{names[k]} is distributed differently in the test data: {_described(of_names[k])}."
        ),
        "Features that are distributed differently in the test data",
        "Check whether the column has the same definition and unit in both files; if it has, "
        "expect other metrics than on training data.",
    )


def _compare(
    values: Floats, query: Integers, is_test: NDArray[np.bool_], n_features: int
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return, for each column, two effects of drift between training and test, and a mask of drift.

    The first effect, a shift, is the probability that a test value is above a training value,
    minus ½. The second, a change of scale, is the same for distances from the middle rank. A column
    drifts if an effect is both large and significant; `n_features` corrects for multiple tests.
    """
    filled = np.where(np.isnan(values), -np.inf, values)  # missing values are the lowest
    ranks = _ranks(filled)
    effects, certain = [], np.zeros(values.shape[1], dtype=bool)
    for statistic in (ranks, _ranks(np.abs(ranks - 0.5))):
        before, error_before, n_before = _mean_and_error(statistic[~is_test], query[~is_test])
        after, error_after, n_after = _mean_and_error(statistic[is_test], query[is_test])
        effect, error = after - before, np.hypot(error_before, error_after)
        limit = stats.t.isf(SIGNIFICANCE / (4 * n_features), min(n_before, n_after) - 1)
        certain |= (np.abs(effect) >= LEAST_EFFECT) & (np.abs(effect) > limit * error)
        effects.append(effect)
    return np.stack(effects, axis=1), certain


def _ranks(values: Floats) -> Floats:
    ranks: Floats = (stats.rankdata(values, axis=0) - 0.5) / len(values)
    return ranks


def _mean_and_error(ranks: Floats, query: Integers) -> tuple[Floats, Floats, int]:
    """Return the mean of each column, its standard error over queries, and the query count."""
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    sizes = np.diff(starts, append=query.size)
    sums = np.add.reduceat(ranks, starts, axis=0)
    mean = sums.sum(axis=0) / query.size
    n = sizes.size
    squares = ((sums - mean * sizes[:, None]) ** 2).sum(axis=0)
    return mean, np.sqrt(squares * n / max(n - 1, 1)) / query.size, n


def _described(effect: Floats) -> str:
    shift, spread = effect.tolist()
    if abs(shift) >= abs(spread):
        return f"a test value is above a training value with probability {0.5 + shift:.2f}"
    return f"its values are {'more' if spread > 0 else 'less'} spread out"
