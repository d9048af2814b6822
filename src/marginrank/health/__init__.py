"""Checks of ranking data: defects of features, labels, queries and of a train/test split."""

from marginrank.health.check import check_data
from marginrank.health.finding import Finding

__all__ = ["Finding", "check_data"]
