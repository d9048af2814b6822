"""Ranking data: validation of X and y, grouping by query, storage on disk, synthetic data."""

from marginrank.data.queries import Queries
from marginrank.data.ranking_data import RankingData
from marginrank.data.synthetic import make_ranking

__all__ = ["Queries", "RankingData", "make_ranking"]
