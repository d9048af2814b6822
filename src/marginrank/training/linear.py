"""From data and parameters to weights: what RankSVM and the command line share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from marginrank._base.memory import require_vectors
from marginrank._base.parameters import (
    Mention,
    Message,
    ParameterError,
    check_integer,
    check_parameters,
    given,
)
from marginrank._base.threads import effective_threads, serial_blas
from marginrank._base.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import get_loss
from marginrank.objective.objective import Objective
from marginrank.solvers import find_solver
from marginrank.solvers.result import Callback, SolverResult, StopReason
from marginrank.training.declarations import LinearDeclaration
from marginrank.training.pairs import choose_pairs, no_pairs, objective_on
from marginrank.training.scaling import Scale, find_scale, to_raw, to_scaled, with_scale

SMALL_WEIGHT = 1e-150  # the product of two smaller ones may be zero


@dataclass(frozen=True, kw_only=True)
class Parameters(LinearDeclaration):
    """The parameters of a linear RankSVM; see :class:`~marginrank.RankSVM`."""

    @property
    def loss_weight(self) -> float:
        """C, or what λ stands for: λ‖w‖² + L is 2λ times ½‖w‖² + L / 2λ."""
        return self.C if self.lam is None else 0.5 / self.lam

    def check(self) -> None:
        """Refuse a wrong value by its name, and a solver that cannot minimise the loss."""
        check_parameters(self)
        if not np.isfinite(self.loss_weight):
            raise ParameterError(
                given("lam", self.lam), " is too small: C = 1 / (2 lam) is infinite."
            )
        find_solver(self.solver, get_loss(self.loss))


def seed_from(random_state: int) -> int:
    """Return the seed that an integer random_state stands for in scikit-learn's way."""
    check_integer("random_state", random_state, at_least=0)
    return int(np.random.RandomState(random_state).randint(2**31))


class Fit(NamedTuple):
    """What came out of a fit; the weights are those of the features as they are."""

    result: SolverResult
    n_pairs: int
    scale: Scale | None = None


def fit_linear(
    data: RankingData,
    parameters: Parameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    seed: int = 0,
    w0: Floats | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Minimise the objective that the parameters name on the data, or on a list of its pairs."""
    parameters.check()
    objective = make_objective(data, parameters, pairs=pairs, propensity=propensity)
    require_pairs(objective, data)
    check_start(w0)
    scale = find_scale(data, parameters.scale)
    minimise = find_solver(parameters.solver, objective.loss)
    with serial_blas():
        result = minimise(
            with_scale(objective, scale),
            w0=to_scaled(w0, scale),
            tol=parameters.tol,
            max_iter=parameters.max_iter,
            seed=seed,
            callback=callback,
        )
    return Fit(to_raw(result, scale), objective.n_pairs, scale)


def make_objective(
    data: RankingData,
    parameters: Parameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Objective:
    """Return the objective that the parameters name, on the features as they are: unscaled."""
    threads = effective_threads(parameters.n_jobs)
    preferences = choose_pairs(
        data,
        get_loss(parameters.loss),
        pair_selection=parameters.pair_selection,
        pair_cost=parameters.pair_cost,
        margin=parameters.margin,
        pairs=pairs,
        propensity=propensity,
        threads=threads,
    )
    return objective_on(
        data,
        preferences,
        C=parameters.loss_weight,
        normalization=parameters.normalization,
        threads=threads,
    )


def relative_distance(result: SolverResult) -> float:
    """Return how far above the optimum a result may be, relatively; its objective may be zero."""
    distance = min(result.estimate, result.gap)
    if result.objective > 0.0:
        return distance / result.objective
    return 0.0 if distance == 0.0 else np.inf


def is_close(result: SolverResult, tol: float) -> bool:
    """Tell whether a fit came as close to the optimum as was asked for."""
    at_limit = result.stop is StopReason.PRECISION
    return result.stop.converged or (at_limit and relative_distance(result) <= tol)


def convergence_message(result: SolverResult, tol: float) -> Message | None:
    """Return what to warn of, if a fit did not come as close to the optimum as was asked for."""
    if is_close(result, tol):
        return None
    return Message(
        "The fit stopped because ",
        result.stop.value,
        f", at most about {relative_distance(result):.1e} above the optimum, relatively; increase ",
        Mention("max_iter"),
        " or ",
        Mention("tol"),
        ", or scale the features.",
    )


def unfinished_message(
    n_unfinished: int, n_fits: int, fits: str = "fits", *, has_tol: bool = True
) -> Message | None:
    """Return what to warn of, if some of many fits did not come as close as was asked for.

    Parameters
    ----------
    n_unfinished, n_fits : int
        How many these are, and all.
    fits : str
        What they are called.
    has_tol : bool
        Whether whoever reads it can change `tol`.
    """
    if not n_unfinished:
        return None
    told = (
        f"{n_unfinished} of the {n_fits} {fits} did not come as close to the optimum as they "
        "should; increase "
    )
    or_tol = (" or ", Mention("tol")) if has_tol else ()
    return Message(told, Mention("max_iter"), *or_tol, ", or scale the features.")


def check_start(w0: Floats | None) -> None:
    """Refuse weights to start from that are no numbers."""
    if w0 is not None and not np.isfinite(w0).all():
        bad = int(np.argmin(np.isfinite(w0)))
        raise ValueError(
            f"coef_[{bad}], to start from, is not finite; correct it, or set warm_start=False."
        )


def require_pairs(objective: Objective, data: RankingData) -> None:
    """Refuse data without a pair to learn from, or with more features than there is memory for."""
    require_vectors(data.n_features)
    if objective.n_pairs == 0:
        raise no_pairs(data.n_documents, data.n_queries)
    if not objective.has_weight:
        for name in ("sample_weight", "query_weight"):
            _refuse_vanishing(name, getattr(data, name))
        raise ValueError(
            "pair_cost, sample_weight, query_weight or pair_weight is zero for every pair; give a "
            "pair a positive weight."
        )


def _refuse_vanishing(name: str, weights: Floats | None) -> None:
    """Refuse weights that are positive and of which no product is."""
    if weights is None or not weights.any():
        return
    largest = float(weights.max())
    if largest < SMALL_WEIGHT:
        raise ValueError(
            f"{name} is at most {largest:.3g}, so small that products of weights are zero in "
            "floating point; multiply all by a number."
        )
