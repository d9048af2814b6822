"""Estimators: they validate, choose, fit and store, and contain no numerics."""

from marginrank.estimators.rank_svm import RankSVM

__all__ = ["RankSVM"]
