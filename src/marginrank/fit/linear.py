"""From data and parameters to weights: what RankSVM and the command line share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from marginrank._utils.memory import require_vectors
from marginrank._utils.parameters import (
    Mention,
    Message,
    ParameterError,
    check_integer,
    check_parameters,
    given,
)
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.declarations import DeviceDeclaration, LinearDeclaration
from marginrank.fit.devices import Place
from marginrank.fit.goals import cutoff_of, refuse_beside_goal, refuse_goal
from marginrank.fit.minimisation import Fit, minimise
from marginrank.fit.pairs import Preferences, choose_pairs, no_pairs, no_weight, objective_on
from marginrank.fit.rounds import Problems, Top, fit_in_rounds
from marginrank.fit.scaling import find_linear_scale
from marginrank.fit.streams import OnRead, matrix_for
from marginrank.models.fit_report import StopReason
from marginrank.objective.backends.interface import Matrix
from marginrank.objective.losses import Loss, get_loss
from marginrank.objective.objective import Objective
from marginrank.objective.pair_weights import PairFactors
from marginrank.solvers import find_solver
from marginrank.solvers.registry import state_bytes
from marginrank.solvers.result import Callback, SolverResult

SMALL_WEIGHT = 1e-150  # the product of two smaller ones may be zero


@dataclass(frozen=True, kw_only=True)
class RidgeParameters(LinearDeclaration):
    """What all fits with a ridge have in common: of weights, and of the weights of curves."""

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
        refuse_beside_goal(self.objective, self.pair_cost, self.pair_selection)
        self.minimiser(get_loss(self.loss))

    def penalty(self, w: Floats) -> float:
        """Return what is added to the objective: nothing."""
        return 0.0

    @property
    def cost(self) -> Any:
        """What multiplies the loss of a pair, at first if the goal is NDCG."""
        return self.pair_cost if cutoff_of(self.objective) is None else "ndcg"

    @property
    def state_bytes(self) -> int:
        """What the solver keeps of each document."""
        return state_bytes(self.solver, get_loss(self.loss))

    def minimiser(self, loss: Loss) -> Callable[..., SolverResult]:
        """Return the solver, as a function of an objective."""
        return find_solver(self.solver, loss)


@dataclass(frozen=True, kw_only=True)
class Parameters(RidgeParameters, DeviceDeclaration):
    """The parameters of a linear RankSVM; see :class:`~marginrank.RankSVM`."""


def seed_from(random_state: int) -> int:
    """Return the seed that an integer random_state stands for in scikit-learn's way."""
    check_integer("random_state", random_state, at_least=0)
    return int(np.random.RandomState(random_state).randint(2**31))


def fit_linear(
    data: RankingData,
    parameters: Parameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    seed: int = 0,
    w0: Floats | None = None,
    callback: Callback | None = None,
    memory_limit: int | None = None,
    on_read: OnRead | None = None,
    tensor: Any = None,
) -> Fit:
    """Minimise the objective that the parameters name on the data, or on a list of its pairs.

    X of the data is left on disk where there is a `memory_limit`, the bytes that the process may
    have; `on_read` is then told of rows and bytes. `tensor` is X, where that was given as one.
    """
    parameters.check()
    refuse_for_goal(parameters, pairs, memory_limit)
    threads = effective_threads(parameters.n_jobs)
    place = Place.of(parameters.device, tensor)
    with matrix_for(data, parameters, threads, memory_limit, on_read, place) as matrix:
        objective = make_objective(
            data, parameters, pairs=pairs, propensity=propensity, matrix=matrix
        )
        require_pairs(objective, data)
        check_start(w0)
        matrix.survey(objective.pairs, threads)
        scale = find_linear_scale(data, parameters.scale, matrix)
        return solve_for_goal(
            data,
            parameters,
            objective,
            partial(minimise, parameters=parameters, scale=scale, seed=seed),
            lambda w: data.matrix.dot(w, None, threads),
            propensity=propensity,
            w0=w0,
            callback=callback,
        )


def solve_for_goal(
    data: RankingData,
    parameters: RidgeParameters,
    objective: Objective,
    solve: Callable[..., Fit],
    score: Callable[[Floats], Floats],
    *,
    propensity: Floats | None,
    w0: Floats | None,
    callback: Callback | None,
) -> Fit:
    """Minimise an objective, and then others on the same matrix if the goal is NDCG.

    `solve` takes an objective, a start and a callback; `score` returns scores by row of the data.
    """
    k = cutoff_of(parameters.objective)
    if k is None:
        return solve(objective, w0=w0, callback=callback)
    problems = Problems(
        choose=partial(preferences_of, data, parameters, propensity=propensity),
        solve=lambda chosen, w0, callback: solve(
            _objective_of(data, parameters, chosen, objective.matrix), w0=w0, callback=callback
        ),
        score=score,
    )
    return fit_in_rounds(problems, Top(data, k, objective.threads), w0=w0, callback=callback)


def refuse_for_goal(
    parameters: RidgeParameters, pairs: PairList | None, memory_limit: int | None = None
) -> None:
    """Refuse what a goal cannot have: pairs without labels, and documents that stay on disk."""
    if pairs is not None:
        refuse_goal(parameters.objective, "pairs", "which have no labels")
    if memory_limit is not None:
        refuse_goal(
            parameters.objective, "memory_limit", "as it ranks documents that are in memory"
        )


def make_objective(
    data: RankingData,
    parameters: RidgeParameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    matrix: Matrix | None = None,
) -> Objective:
    """Return the objective that the parameters name, on the features as they are: unscaled."""
    chosen = preferences_of(data, parameters, pairs=pairs, propensity=propensity)
    return _objective_of(data, parameters, chosen, matrix)


def _objective_of(
    data: RankingData, parameters: RidgeParameters, chosen: Preferences, matrix: Matrix | None
) -> Objective:
    return objective_on(
        data,
        chosen,
        C=parameters.loss_weight,
        normalization=parameters.normalization,
        threads=effective_threads(parameters.n_jobs),
        matrix=matrix,
    )


def preferences_of(
    data: RankingData,
    parameters: RidgeParameters,
    factors: PairFactors | None = None,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Preferences:
    """Return the pairs that the parameters name, and the loss on them.

    `factors` are weights of the pairs, in the place of those that the parameters name.
    """
    return choose_pairs(
        data,
        get_loss(parameters.loss),
        pair_selection=parameters.pair_selection,
        pair_cost=parameters.cost,
        factors=factors,
        margin=parameters.margin,
        pairs=pairs,
        propensity=propensity,
        threads=effective_threads(parameters.n_jobs),
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
        raise no_weight(data.cost)


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
