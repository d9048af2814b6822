"""Checks of single features: constant features, and scales that differ widely."""

import numpy as np

from marginrank._utils.feature_names import name_of
from marginrank.data import RankingData
from marginrank.health.finding import Finding, findings_by_feature
from marginrank.health.summary import FeatureSummary

# Above this ratio of standard deviations, a regularizer suppresses the features of small scale.
SCALE_RATIO = 1000.0


def check_features(data: RankingData, summary: FeatureSummary) -> list[Finding]:
    """Return findings about constant features, and about features of very different scales."""
    return [
        *_check_constant(data, summary),
        *_check_constant_in_queries(data, summary),
        *_check_scales(data, summary),
    ]


def _check_constant(data: RankingData, summary: FeatureSummary) -> list[Finding]:
    constant = np.flatnonzero(~summary.varies).tolist()

    def message(k: int) -> str:
        j = constant[k]
        name = name_of(j, data.feature_names)
        if summary.missing[j]:
            return f"{name} is missing in all {data.n_documents:,} documents."
        return f"{name} is {summary.low[j] + 0.0:g} in all {data.n_documents:,} documents."

    return findings_by_feature(
        "constant-feature",
        "warning",
        [name_of(j, data.feature_names) for j in constant],
        message,
        "Constant features",
        "Drop the column, or check how it was computed: it cannot change any ranking.",
    )


def _check_constant_in_queries(data: RankingData, summary: FeatureSummary) -> list[Finding]:
    if data.n_queries == data.n_documents:  # every feature is constant; check_queries reports it
        return []
    constant = np.flatnonzero(summary.varies & ~summary.varies_within).tolist()
    names = [name_of(j, data.feature_names) for j in constant]
    return findings_by_feature(
        "query-constant-feature",
        "note",
        names,
        lambda k: f"{names[k]} has the same value in all documents of each query.",
        "Features that are constant within each query",
        "Drop the column for linear and additive models, whose rankings it cannot change; it only "
        "has an effect in interactions and trees.",
    )


def _check_scales(data: RankingData, summary: FeatureSummary) -> list[Finding]:
    used = np.flatnonzero(summary.varies & (summary.deviation > 0))
    if used.size == 0:
        return []
    by_size = used[np.argsort(summary.deviation[used], kind="stable")]
    low, high = int(by_size[0]), int(by_size[-1])
    ratio = summary.deviation[high] / summary.deviation[low]
    if ratio <= SCALE_RATIO:
        return []
    small, large = (name_of(j, data.feature_names) for j in (low, high))
    return [
        Finding(
            "feature-scales",
            "warning",
            large,
            f"{large} has the standard deviation {summary.deviation[high]:.3g}, and {small} only "
            f"{summary.deviation[low]:.3g}, a ratio of {ratio:.2g}: a regularizer then suppresses "
            "features of small scale.",
            'Train with scale="query" or "standard" (--scale query), or take the logarithm of '
            "features with very large values.",
        )
    ]
