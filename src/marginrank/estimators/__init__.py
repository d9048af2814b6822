"""Estimators: they validate, choose, fit and store, and contain no numerics."""

from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.sgd_rank_svm import SGDRankSVM

__all__ = ["RankSVM", "SGDRankSVM"]
