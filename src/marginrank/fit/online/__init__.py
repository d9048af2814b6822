"""Online learning: what SGDRankSVM and the command line share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from marginrank.fit.online.fit import fit_online, stalled_message
from marginrank.fit.online.learner import Learner
from marginrank.fit.online.parameters import OnlineParameters
from marginrank.fit.online.problems import (
    Chunks,
    Contents,
    contents,
    step_problem,
    value_and_gradient,
)

__all__ = [
    "Chunks",
    "Contents",
    "Learner",
    "OnlineParameters",
    "contents",
    "fit_online",
    "stalled_message",
    "step_problem",
    "value_and_gradient",
]
