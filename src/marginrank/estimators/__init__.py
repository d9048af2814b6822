"""Estimators: they validate, choose, fit and store, and contain no numerics."""

from marginrank.estimators.kernel_rank_svm import KernelRankSVM
from marginrank.estimators.rank_svm import RankSVM
from marginrank.estimators.select_k_best_ranking import SelectKBestRanking

__all__ = ["KernelRankSVM", "RankSVM", "SelectKBestRanking"]
