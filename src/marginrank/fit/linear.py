"""Fits of linear models, for RankSVM and for the command ``marginrank train``.

This package does not import scikit-learn, which would take longer than many fits.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from marginrank._utils.memory import require_vectors
from marginrank._utils.parameters import (
    Mention,
    ParameterError,
    check_integer,
    check_parameters,
    given,
)
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import (
    Preferences,
    check_one_click,
    choose_pairs,
    facts_of,
    matrix_for,
    no_pairs,
    no_weight,
    objective_on,
    with_competing_clicks,
)
from marginrank.fit.positions import PositionTerm
from marginrank.fit.rounds import Problems, Solution, Top, fit_in_rounds
from marginrank.fit.scaling import (
    Scale,
    find_linear_scale,
    to_raw,
    values_of,
    with_scale,
    without_effect,
)
from marginrank.models.fit_report import FitReport
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import (
    DeviceDeclaration,
    LinearDeclaration,
    ndcg_cutoff,
    recorded_parameters,
    takes_two_labels,
)
from marginrank.objective.losses import Loss, exact, get_loss
from marginrank.objective.objective import MANY_FEATURES, Objective
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.pair_weights import PairFactors
from marginrank.objective.protocols import Matrix, Scores
from marginrank.operators.parts.matrix import OnRead
from marginrank.solvers import find_solver
from marginrank.solvers.progress import best_so_far
from marginrank.solvers.registry import state_bytes
from marginrank.solvers.result import Callback, SolverResult

SMALL_WEIGHT = 1e-150  # the product of two smaller weights may underflow to zero


class PairParameters:
    """Base class of parameters that define the training pairs and the objective over them."""

    objective: str
    loss: str
    pair_selection: str
    pair_cost: Any
    margin: Any
    normalization: str
    n_jobs: int | None
    ridge: ClassVar[float]  # weight of ½‖w‖² in the objective

    @property
    def loss_weight(self) -> float:
        """The weight C of the loss in the objective."""
        raise NotImplementedError

    @property
    def cost(self) -> Any:
        """The `pair_cost` of the fit, or of its first problem ("ndcg") if the objective is NDCG."""
        return self.pair_cost if ndcg_cutoff(self.objective) is None else "ndcg"

    def check_objective(self) -> None:
        """Raise ParameterError if a parameter cannot be combined with an NDCG objective."""
        if self.pair_cost is not None:
            check_not_ndcg(self.objective, "pair_cost")
        if self.pair_selection != "all":
            check_not_ndcg(self.objective, "pair_selection")


@dataclass(frozen=True, kw_only=True)
class RidgeParameters(LinearDeclaration, PairParameters):
    """Parameters of linear and additive models with the penalty ½‖w‖², with their checks."""

    ridge = 1.0

    @property
    def loss_weight(self) -> float:
        """The weight C of the loss: the parameter C, or 1 / 2λ if the parameter `lam` is λ."""
        return self.C if self.lam is None else 0.5 / self.lam  # λ‖w‖² + L = 2λ (½‖w‖² + L / 2λ)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ParameterError if a parameter is invalid or the solver cannot minimize the loss."""
        check_parameters(self)
        if not np.isfinite(self.loss_weight):
            raise ParameterError(
                given("lam", self.lam), " is too small: C = 1 / (2 lam) overflows; increase it."
            )
        self.check_objective()
        self.minimizer(get_loss(self.loss))

    def penalty(self, w: Floats) -> float:
        """Return 0: the objective of these fits includes their only penalty, ½‖w‖²."""
        return 0.0

    @property
    def state_bytes(self) -> int:
        """Memory that the solver needs for each document, in bytes."""
        return state_bytes(self.solver, get_loss(self.loss))

    def minimizer(self, loss: Loss) -> Callable[..., SolverResult]:
        """Return the solver for a loss, as a function that minimizes an objective."""
        return find_solver(self.solver, loss)


@dataclass(frozen=True, kw_only=True)
class Parameters(RidgeParameters, DeviceDeclaration):
    """The validated parameters of :class:`~marginrank.RankSVM`."""


def seed_from(random_state: int) -> int:
    """Return the seed that scikit-learn's check_random_state draws for an integer random_state."""
    check_integer("random_state", random_state, at_least=0)
    return int(np.random.RandomState(random_state).randint(2**31))


def fit_linear(
    data: RankingData,
    parameters: Parameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    monotonic_position: bool = False,
    seed: int = 0,
    w0: Floats | None = None,
    callback: Callback | None = None,
    memory_limit: int | None = None,
    on_read: OnRead | None = None,
    tensor: Any = None,
) -> LinearModel:
    """Fit a linear ranking model to labeled data, or to listed pairs of its documents.

    `w0` are initial weights; `callback` is called with each iteration. With a `memory_limit`, the
    bytes that the process may use, X stays on disk, and `on_read` is called with the numbers of
    rows and bytes read. `tensor` is X if the caller passed a PyTorch tensor.
    """
    check_ndcg_inputs(
        parameters.objective, pairs=pairs, memory_limit=memory_limit, position=data.position
    )
    _check_margin_memory(parameters.margin, memory_limit)
    if memory_limit is not None:
        check_one_click(data, propensity, "with memory_limit")
    threads = effective_threads(parameters.n_jobs)
    positions = PositionTerm.of(data, monotonic_position)
    with matrix_for(data, parameters, memory_limit, on_read, tensor) as features:
        matrix = positions.beside(features)
        objective = make_objective(
            data, parameters, pairs=pairs, propensity=propensity, matrix=matrix
        )
        require_pairs(objective, data)
        check_start(w0)
        matrix.survey(objective.pairs, threads)
        scale = find_linear_scale(data, parameters.scale, matrix)
        w, report = solve_in_rounds(
            data,
            parameters,
            objective,
            partial(
                minimize,
                parameters=parameters,
                scale=positions.scaled(scale),
                seed=seed,
                solve=positions.solver(parameters.solver, objective.loss),
            ),
            lambda w: data.matrix.dot(w, None, threads),
            propensity=propensity,
            w0=positions.start(w0),
            callback=callback,
        )
    coef, report = positions.separate(w, report)
    return LinearModel(
        coef=coef,
        parameters=recorded_parameters("RankSVM", parameters),
        feature_names=data.feature_names,
        report=report,
        scale=values_of(scale),
    )


def solve_in_rounds(
    data: RankingData,
    parameters: PairParameters,
    objective: Objective,
    solve: Callable[..., Solution],
    score: Callable[[Floats], Floats],
    *,
    propensity: Floats | None = None,
    w0: Floats | None,
    callback: Callback | None,
) -> Solution:
    """Minimize an objective; for NDCG, a sequence of them (see :mod:`marginrank.fit.rounds`).

    `solve` takes an objective, initial weights and a callback; `score` maps weights to one score
    per row of the data.
    """
    k = ndcg_cutoff(parameters.objective)
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


class SolverParameters(Protocol):
    """Protocol of the parameters that :func:`minimize` reads."""

    @property
    def tol(self) -> float: ...

    @property
    def max_iter(self) -> int: ...

    def penalty(self, w: Floats) -> float: ...

    def minimizer(self, loss: Loss) -> Callable[..., SolverResult]: ...


def minimize(
    objective: Objective,
    parameters: SolverParameters,
    *,
    scale: Scale | None,
    seed: int,
    w0: Floats | None,
    callback: Callback | None,
    solve: Callable[..., SolverResult] | None = None,
) -> Solution:
    """Minimize an objective on scaled features; return the weights of the unscaled features.

    `solve` replaces the solver that `parameters` name.
    """
    error = None
    scaled = with_scale(objective, scale)
    with serial_blas():
        try:
            result = (solve or parameters.minimizer(objective.loss))(
                scaled,
                w0=w0 if w0 is None or scale is None else w0 * scale.values,
                tol=parameters.tol,
                max_iter=parameters.max_iter,
                seed=seed,
                callback=callback,
            )
            result = _evaluated_on_host(scaled, parameters, result)
        except OSError as reason:
            so_far = best_so_far(objective)
            if so_far is None:
                raise
            result = so_far
            error = reason.with_traceback(None)  # its frames would keep all arrays alive
    report = FitReport(
        objective=result.objective,
        gap=result.gap,
        stop_reason=result.stop,
        n_iter=result.n_iter,
        n_pairs=objective.pairs.n_pairs,
        history=result.history,
        estimate=result.estimate,
        without_effect=without_effect(scale),
        stream=facts_of(objective.matrix),
        error=error,
        support_pairs=None if error else _count_support(objective, result.scores),
        loss_error=objective.loss.error,
    )
    return to_raw(result.w, scale), report


def _count_support(objective: Objective, scores: Scores) -> int | None:
    """Return the number of pairs inside their margin; None if the pairs are on a cluster."""
    pairs = objective.pairs
    if not isinstance(pairs, PairSet):
        return None
    return pairs.n_inside(objective.loss, objective.space.entries(scores))


def _evaluated_on_host(
    objective: Objective, parameters: SolverParameters, result: SolverResult
) -> SolverResult:
    """Return `result` with objective and gap from the C++ kernels if X is on another device."""
    matrix = objective.matrix.on_host()
    if matrix is None:
        return result
    point = objective.on(matrix).at(result.w)
    value = point.value + parameters.penalty(result.w)
    if objective.loss.smooth and objective.ridge > 0:
        return replace(result, objective=value, gap=point.gap)
    # This gradient does not give the gap, so keep the solver's lower bound on the optimum.
    bound = result.objective - result.gap
    return replace(result, objective=value, gap=max(value - bound, 0.0) + point.sum_rounding)


def check_ndcg_inputs(objective: str, **inputs: Any) -> None:
    """Raise ParameterError if `objective` is NDCG and any of these arguments of a fit is given."""
    for name, value in inputs.items():
        if value is not None:
            check_not_ndcg(objective, name)


def check_not_ndcg(objective: str, other: str) -> None:
    """Raise ParameterError if `objective` is NDCG, which the parameter `other` does not support."""
    if ndcg_cutoff(objective) is not None:
        raise ParameterError(
            given("objective", objective),
            " cannot be combined with ",
            Mention(other),
            "; drop one of them.",
        )


def _check_margin_memory(margin: Any, memory_limit: int | None) -> None:
    """Raise ParameterError if margins of two labels are combined with a memory limit."""
    if memory_limit is not None and takes_two_labels(margin):
        raise ParameterError(
            Mention("margin"),
            " as a callable or matrix of two labels cannot be combined with ",
            Mention("memory_limit"),
            "; use a preset, or a callable of one label.",
        )


def make_objective(
    data: RankingData,
    parameters: PairParameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    matrix: Matrix | None = None,
) -> Objective:
    """Return the training objective of a fit, for features that are not scaled."""
    chosen = preferences_of(data, parameters, pairs=pairs, propensity=propensity)
    return _objective_of(data, parameters, chosen, matrix)


def _objective_of(
    data: RankingData, parameters: PairParameters, chosen: Preferences, matrix: Matrix | None
) -> Objective:
    objective = objective_on(
        data,
        chosen,
        C=parameters.loss_weight,
        normalization=parameters.normalization,
        ridge=parameters.ridge,
        threads=effective_threads(parameters.n_jobs),
        matrix=matrix,
    )
    return objective.on(pairs=objective.matrix.arranged(objective.pairs))


def preferences_of(
    data: RankingData,
    parameters: PairParameters,
    factors: PairFactors | None = None,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Preferences:
    """Return the training pairs and loss of a fit; `factors` are pair weights, not `pair_cost`."""
    loss = get_loss(parameters.loss)
    chosen = choose_pairs(
        data,
        loss if pairs is None else exact(loss),
        pair_selection=parameters.pair_selection,
        pair_cost=parameters.cost,
        factors=factors,
        margin=parameters.margin,
        pairs=pairs,
        propensity=propensity,
        threads=effective_threads(parameters.n_jobs),
    )
    plain = factors is None and parameters.cost is None and str(parameters.margin) == "unit"
    return with_competing_clicks(chosen, data) if plain and propensity is not None else chosen


def check_start(w0: Floats | None) -> None:
    """Raise ValueError if the weights `w0`, from which a fit starts, are not all finite."""
    if w0 is not None and not np.isfinite(w0).all():
        bad = int(np.argmin(np.isfinite(w0)))
        raise ValueError(
            f"coef_[{bad}] is {w0[bad]}, so the fit cannot start from it; set warm_start=False."
        )


def require_pairs(objective: Objective, data: RankingData) -> None:
    """Raise an error if no training pair has a positive weight, or memory is insufficient."""
    if data.n_features > MANY_FEATURES:
        require_vectors(data.n_features)
    if objective.pairs.n_pairs == 0:
        raise no_pairs(data.n_documents, data.n_queries)
    if not objective.pairs.has_weight:
        for name in ("sample_weight", "query_weight"):
            _check_vanishing(name, getattr(data, name))
        raise no_weight(data.cost)


def _check_vanishing(name: str, weights: Floats | None) -> None:
    """Raise ValueError if weights are positive, but so small that their products are zero."""
    if weights is not None and 0.0 < (largest := float(weights.max())) < SMALL_WEIGHT:
        raise ValueError(
            f"{name} is at most {largest:.3g}, so products of weights underflow to zero. Multiply "
            "all weights by a constant."
        )
