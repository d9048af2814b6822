"""Label leaks: find features that contain the label."""

import numpy as np
import scipy.sparse as sp

from marginrank._utils.feature_names import name_of
from marginrank._utils.types import Floats, Integers
from marginrank.data import RankingData
from marginrank.health.documents import sample
from marginrank.health.finding import Finding, findings_by_feature
from marginrank.metrics.feature_ranking import rank_features

NEARLY_PERFECT = 0.99  # pairwise accuracy of one feature alone
# Leaks are checked if at least this many documents, plus one per doubling of the number of
# features, do not have the commonest label of their query. With fewer such documents, one of many
# features may order all pairs by chance.
FEWEST_CHOICES = 20


def check_leaks(data: RankingData) -> list[Finding]:
    """Return findings about features that alone order nearly all pairs like the labels.

    If there are many documents, a sample of whole queries is evaluated.
    """
    block = sample(data, seed=1)
    labels = data.queries.grouped(data.y)[block.documents]
    if _n_choices(data, block.documents, block.query) < FEWEST_CHOICES + np.log2(data.n_features):
        return []
    ranking = rank_features(
        _without_missing(block.X), labels, qid=block.query, metric="pairwise_accuracy"
    )
    leaks = np.flatnonzero(ranking.best >= NEARLY_PERFECT).tolist()
    names = [name_of(j, data.feature_names) for j in leaks]
    return findings_by_feature(
        "label-leak",
        "error",
        names,
        lambda k: (
            f"{names[k]} alone orders {100 * ranking.best[leaks[k]]:.2f} % of the pairs as "
            "the labels do."
        ),
        "Features that alone order nearly all pairs",
        "Check whether the column is computed from the labels, or is unknown when documents are "
        "ranked; if so, drop it.",
    )


def _n_choices(data: RankingData, documents: Integers, query: Integers) -> int:
    """Return how many documents do not have the commonest label of their query."""
    level = data.queries.level[documents].astype(np.int64)
    cell = query * (int(level.max()) + 1) + level
    cells, counts = np.unique(cell, return_counts=True)
    commonest = np.zeros(data.n_queries, dtype=np.int64)
    np.maximum.at(commonest, cells // (int(level.max()) + 1), counts)
    return int(documents.size - commonest.sum())


def _without_missing(X: Floats) -> Floats:
    """Return X with missing values replaced by a value below all others.

    Missing values are not ignored, because whether a value is missing may depend on the label.
    """
    values = X.data if sp.issparse(X) else X
    missing = np.isnan(values)
    if not missing.any():
        return X
    filled = X.copy()
    low = np.min(values[~missing], initial=0.0)
    (filled.data if sp.issparse(X) else filled)[missing] = low - 1 - abs(low) * 1e-3
    return filled
