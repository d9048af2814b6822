"""Estimators: they validate, choose, fit and store, and contain no numerics."""

from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.sparse_rank_svm import SparseRankSVM

__all__ = ["RankSVM", "SparseRankSVM"]
