"""Metrics of a ranking, computed query by query."""

from marginrank.metrics.pairwise import pairwise_accuracy

__all__ = ["pairwise_accuracy"]
