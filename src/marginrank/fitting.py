"""From data and parameters to weights: what RankSVM and the command line share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginrank._parameters import check_choice, check_integer, check_number
from marginrank._threads import effective_threads, serial_blas
from marginrank.data.ranking_data import RankingData
from marginrank.losses import LOSSES
from marginrank.objective import NORMALIZATIONS, PAIR_SELECTIONS, Objective
from marginrank.solvers import SOLVERS
from marginrank.solvers.result import Callback, SolverResult, StopReason

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters of a linear RankSVM; see :class:`~marginrank.RankSVM`."""

    C: float = 1.0
    loss: str = "squared_hinge"
    solver: str = "newton"
    tol: float = 1e-6
    max_iter: int = 1000
    pair_selection: str = "all"
    normalization: str = "none"
    n_jobs: int | None = None

    def check(self) -> None:
        """Refuse a wrong value by its name."""
        check_number("C", self.C)
        check_number("tol", self.tol)
        check_integer("max_iter", self.max_iter, at_least=1)
        check_choice("loss", self.loss, LOSSES)
        check_choice("solver", self.solver, SOLVERS)
        check_choice("pair_selection", self.pair_selection, PAIR_SELECTIONS)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        effective_threads(self.n_jobs)


def seed_from(random_state: int) -> int:
    """Return the seed that an integer random_state stands for in scikit-learn's way."""
    check_integer("random_state", random_state, at_least=0)
    return int(np.random.RandomState(random_state).randint(2**31))


class Fit(NamedTuple):
    """What came out of a fit."""

    result: SolverResult
    n_pairs: int


def fit_linear(
    data: RankingData,
    parameters: Parameters,
    *,
    seed: int = 0,
    w0: Floats | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Minimise the objective that the parameters name on the data."""
    parameters.check()
    objective = Objective(
        data,
        LOSSES[parameters.loss],
        C=parameters.C,
        pair_selection=parameters.pair_selection,
        normalization=parameters.normalization,
        threads=effective_threads(parameters.n_jobs),
    )
    check_pairs(objective, data)
    with serial_blas():
        result = SOLVERS[parameters.solver](
            objective,
            w0=w0,
            tol=parameters.tol,
            max_iter=parameters.max_iter,
            seed=seed,
            callback=callback,
        )
    return Fit(result, objective.n_pairs)


def convergence_message(result: SolverResult, tol: float) -> str | None:
    """Return what to warn of, if a fit did not come as close to the optimum as was asked for."""
    if result.stop.converged:
        return None
    distance = min(result.estimate, result.gap) / result.objective
    if result.stop is StopReason.PRECISION and distance <= tol:
        return None
    return (
        f"The fit stopped because {result.stop.value}, at most about {distance:.1e} above the "
        "optimum, relatively; increase max_iter or tol, or scale the features."
    )


def check_pairs(objective: Objective, data: RankingData) -> None:
    """Refuse data without a pair to learn from."""
    if objective.n_pairs == 0:
        raise ValueError(
            f"y has no pair to learn from: no query has two documents with different labels "
            f"(n_samples={data.n_documents}, {data.n_queries} queries); check y and qid."
        )
    if not objective.has_weight:
        raise ValueError(
            "sample_weight or query_weight is zero for every pair; give a pair a positive weight."
        )
