"""The parameters of online learning."""

from dataclasses import dataclass

import numpy as np

from marginrank._utils.parameters import (
    Mention,
    ParameterError,
    calling,
    check_parameters,
    given,
)
from marginrank.metrics import get_metric
from marginrank.models.parameters import OnlineDeclaration
from marginrank.objective.losses import get_loss
from marginrank.solvers.stochastic.sgd import Rate, automatic_rate


@dataclass(frozen=True, kw_only=True)
class OnlineParameters(OnlineDeclaration):
    """The parameters of online learning; see :class:`~marginrank.SGDRankSVM`."""

    def __post_init__(self) -> None:
        """Raise ParameterError for a wrong value."""
        check_parameters(self)
        get_loss(self.loss)
        with calling("metric", "scoring"):
            get_metric(self.scoring)
        if np.isinf(1.0 / self.C):
            raise ParameterError(given("C", self.C), " is too small: 1 / C is infinite.")

    def check_stream(self) -> None:
        """Raise ValueError for what can only be said of all data at once."""
        cost = self.pair_cost
        if not (cost is None or isinstance(cost, str) or callable(cost)):
            raise ParameterError(
                Mention("pair_cost"),
                " is a matrix over all labels of the data, and a stream shows a part of them at a "
                "time; give a callable of two labels.",
            )

    def rate(self, n_features: int) -> Rate:
        """Return the steps' rate."""
        if self.learning_rate == "auto":
            return automatic_rate(n_features)
        return Rate(self.eta0, 0.0, 1.0 if self.learning_rate == "inverse" else 0.0)
