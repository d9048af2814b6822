"""marginrank: large-scale linear RankSVM."""

from marginrank import metrics
from marginrank.data import RankingData, make_ranking
from marginrank.estimators import RankSVM
from marginrank.solvers import Iteration, StopReason

__all__ = ["Iteration", "RankSVM", "RankingData", "StopReason", "make_ranking", "metrics"]
__version__ = "0.1.0"
