"""Ranking metrics such as NDCG, computed query by query.

Every metric is a function ``metric(y, scores, qid=…, per_query=False)``. It returns the mean over
queries, or with ``per_query=True`` one value per query, in order of first appearance. If the metric
is not defined for a query, its value is nan, which the mean ignores.
"""

from marginrank.metrics.binary_relevance import (
    auc,
    average_precision,
    precision,
    recall,
    reciprocal_rank,
)
from marginrank.metrics.cascade import err
from marginrank.metrics.comparison import Comparison, compare
from marginrank.metrics.cumulative_gain import dcg, letor_mean_ndcg, ndcg
from marginrank.metrics.names import get_metric
from marginrank.metrics.pairwise import kendall_tau, pairwise_accuracy
from marginrank.metrics.runs import RunEvaluation, compare_runs, evaluate_run
from marginrank.metrics.scorers import RankingScorer, make_ranking_scorer

__all__ = [
    "Comparison",
    "RankingScorer",
    "RunEvaluation",
    "auc",
    "average_precision",
    "compare",
    "compare_runs",
    "dcg",
    "err",
    "evaluate_run",
    "get_metric",
    "kendall_tau",
    "letor_mean_ndcg",
    "make_ranking_scorer",
    "ndcg",
    "pairwise_accuracy",
    "precision",
    "recall",
    "reciprocal_rank",
]
