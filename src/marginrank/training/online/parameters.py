"""The parameters of online learning."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginrank._base.parameters import check_choice, check_integer, check_number
from marginrank._base.threads import effective_threads
from marginrank.metrics import get_metric
from marginrank.objective.losses import get_loss
from marginrank.objective.margins import check_margin
from marginrank.objective.pair_weights import check_cost
from marginrank.solvers.stochastic.sgd import Rate, automatic_rate
from marginrank.training.pairs import NORMALIZATIONS, PAIR_SELECTIONS

METHODS = ("query", "pair")
LEARNING_RATES = ("auto", "inverse", "constant")


@dataclass(frozen=True, kw_only=True)
class OnlineParameters:
    """The parameters of online learning; see :class:`~marginrank.SGDRankSVM`."""

    method: str = "query"
    C: float = 1.0
    loss: str = "squared_hinge"
    pair_selection: str = "all"
    pair_cost: Any = None
    margin: Any = "unit"
    normalization: str = "none"
    learning_rate: str = "auto"
    eta0: float = 1.0
    average: bool = True
    max_iter: int = 100
    tol: float = 1e-3
    shuffle: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    scoring: str = "ndcg@10"
    n_jobs: int | None = None

    def check(self) -> None:
        """Refuse a wrong value by its name."""
        check_choice("method", self.method, METHODS)
        if np.isinf(1.0 / check_number("C", self.C)):
            raise ValueError(f"C={self.C!r} is too small: 1 / C is infinite.")
        get_loss(self.loss)
        check_choice("pair_selection", self.pair_selection, PAIR_SELECTIONS)
        check_cost(self.pair_cost)
        check_margin(self.margin)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("learning_rate", self.learning_rate, LEARNING_RATES)
        check_number("eta0", self.eta0)
        check_integer("max_iter", self.max_iter, at_least=1)
        check_number("tol", self.tol, allow_equal=True)
        for name in ("average", "shuffle", "early_stopping"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        if not check_number("validation_fraction", self.validation_fraction) < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction} must be below 1.")
        check_integer("n_iter_no_change", self.n_iter_no_change, at_least=1)
        get_metric(self.scoring)
        effective_threads(self.n_jobs)

    def check_stream(self) -> None:
        """Refuse what can only be said of all data at once."""
        cost = self.pair_cost
        if not (cost is None or isinstance(cost, str) or callable(cost)):
            raise ValueError(
                "pair_cost is a matrix over all labels of the data, and a stream shows a part of "
                "them at a time; give a callable of two labels."
            )

    def rate(self, n_features: int) -> Rate:
        """Return the steps' rate."""
        if self.learning_rate == "auto":
            return automatic_rate(n_features)
        return Rate(self.eta0, 0.0, 1.0 if self.learning_rate == "inverse" else 0.0)
