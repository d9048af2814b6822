"""Fits of sparse linear models, for SparseRankSVM, regularization paths and the command line."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from marginrank._utils.parameters import Mention, Message, ParameterError, check_parameters, given
from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import matrix_for
from marginrank.fit.linear import (
    PairParameters,
    check_ndcg_inputs,
    check_start,
    make_objective,
    minimize,
    require_pairs,
    solve_in_rounds,
)
from marginrank.fit.positions import PositionTerm
from marginrank.fit.scaling import Scale, blaming_features, find_linear_scale, values_of, with_scale
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import DeviceDeclaration, SparseDeclaration, recorded_parameters
from marginrank.objective.losses import LOSSES, Loss, get_loss
from marginrank.objective.objective import Objective
from marginrank.objective.regularizers import ElasticNet, L1Ball, L1Regularizer
from marginrank.operators.parts.matrix import OnRead
from marginrank.solvers import find_solver
from marginrank.solvers.registry import state_bytes
from marginrank.solvers.result import Callback, SolverResult

DEFAULT_OVER_FIRST = 50.0  # ratio of the default C to the smallest C with a nonzero weight


@dataclass(frozen=True, kw_only=True)
class SparseParameters(SparseDeclaration, DeviceDeclaration, PairParameters):
    """The validated parameters of :class:`~marginrank.SparseRankSVM`."""

    margin = "unit"
    ridge = 0.0

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.radius is not None and self.l1_ratio != 1:
            raise ParameterError(
                given("l1_ratio", self.l1_ratio),
                " cannot be combined with ",
                Mention("radius"),
                "; drop one of them.",
            )
        self.check_objective()
        self.minimizer(get_loss(self.loss))

    def penalty(self, w: Floats) -> float:
        """Return the value of the penalty (elastic net or l1 ball) at weights `w`."""
        return self.regularizer().value(w)

    @property
    def state_bytes(self) -> int:
        """Memory that the solver needs for each document, in bytes."""
        return state_bytes(self.solver, get_loss(self.loss), self.regularizer())

    def minimizer(self, loss: Loss) -> Callable[..., SolverResult]:
        """Return the solver for a loss and this penalty: a function that minimizes an objective."""
        solve = find_solver(self.solver, loss, self.regularizer())
        return partial(solve, variant=self.variant) if self.solver == "fenchel" else solve

    @property
    def chooses_C(self) -> bool:
        """Whether C is chosen from the data, because neither C nor a radius is given."""
        return self.radius is None and self.C is None

    @property
    def loss_weight(self) -> float:
        """The weight C of the loss; 1 if a radius is given, or until C is chosen from the data."""
        return 1.0 if self.radius is not None or self.C is None else self.C

    def regularizer(self) -> L1Regularizer:
        if self.radius is not None:
            return L1Ball(float(self.radius), bool(self.positive))
        return ElasticNet(float(self.l1_ratio), 1.0 - self.l1_ratio, bool(self.positive))


def fit_sparse(
    data: RankingData,
    parameters: SparseParameters,
    *,
    seed: int = 0,
    w0: Floats | None = None,
    callback: Callback | None = None,
    memory_limit: int | None = None,
    on_read: OnRead | None = None,
    tensor: Any = None,
) -> LinearModel:
    """Fit a linear model with an l1 penalty, which makes most weights zero.

    The arguments are as in :func:`~marginrank.fit.linear.fit_linear`.
    """
    check_ndcg_inputs(parameters.objective, memory_limit=memory_limit, position=data.position)
    positions = PositionTerm.of(data)
    with matrix_for(data, parameters, memory_limit, on_read, tensor) as features:
        matrix = positions.beside(features)
        objective = make_objective(data, parameters, matrix=matrix)
        require_pairs(objective, data)
        check_start(w0)
        matrix.survey(objective.pairs, objective.threads)
        scale = find_linear_scale(data, parameters.scale, matrix)
        chosen = parameters
        if parameters.chooses_C:
            with blaming_features(C=None):
                chosen = with_default_C(parameters, objective.on(features), scale)
                objective = make_objective(data, chosen, matrix=matrix)
        w, report = solve_in_rounds(
            data,
            chosen,
            objective,
            partial(minimize, parameters=chosen, scale=positions.scaled(scale), seed=seed),
            lambda w: data.matrix.dot(w, None, objective.threads),
            w0=positions.start(w0),
            callback=callback,
        )
    coef, report = positions.separate(w, report)
    return LinearModel(
        coef=coef,
        parameters=recorded_parameters("SparseRankSVM", parameters),
        feature_names=data.feature_names,
        report=replace(report, C=chosen.C),
        estimator="SparseRankSVM",
        scale=values_of(scale),
    )


def with_default_C(
    parameters: SparseParameters, objective: Objective, scale: Scale | None
) -> SparseParameters:
    """Return the parameters with a C that is chosen from the data.

    It is 50 times the largest C at which all weights are zero (see :func:`first_C`), or 1 if no
    feature helps to rank the documents. `objective` is the loss with C = 1 on the unscaled
    features.
    """
    with serial_blas():
        first = first_C(with_scale(objective, scale), positive=parameters.positive)
    return replace(parameters, C=DEFAULT_OVER_FIRST * first if np.isfinite(first) else 1.0)


def empty_message(w: Floats, parameters: SparseParameters) -> Message | None:
    """Return the warning that all weights of a sparse model are zero, or None if some are not."""
    if w.any():
        return None
    found = "All weights are zero, so all documents have the same score. "
    if parameters.radius is not None or parameters.C is None:
        return Message(found, "No feature helps to rank the documents; check X and the labels.")
    return Message(
        found, "Increase ", given("C", parameters.C), ", or omit it to choose it from the data."
    )


def first_C(objective: Objective, *, l1_ratio: float = 1.0, positive: bool = False) -> float:
    """Return the largest C at which all weights of a sparse model are zero.

    It is l1_ratio / ‖∇L(0)‖∞ for the loss L, and infinite if no feature helps. `objective` is the
    loss L with C = 1, without a ridge.

    Examples
    --------
    >>> from marginrank import RankingData
    >>> from marginrank.fit.linear import make_objective
    >>> from marginrank.fit.sparse import SparseParameters, first_C
    >>> data = RankingData([[0.0], [4.0]], [0, 1])
    >>> first_C(make_objective(data, SparseParameters()))
    0.125
    """
    pull = ElasticNet(l1_ratio, positive=positive).pull(objective.at_zero().gradient)
    strongest = float(np.max(pull))
    return l1_ratio / strongest if strongest > 0 else np.inf


def first_radius(objective: Objective, *, positive: bool = False) -> float:
    """Return the largest radius of the l1 norm at which the optimal model has only one weight.

    For a small radius, only the feature j with the largest loss derivative |∂L/∂w_j| has a weight,
    plus or minus the radius, so the ranking does not depend on the radius. This changes at the
    radius where the derivative of another feature is as large, or the derivative of j is zero. The
    radius is approximate, from the second-order expansion of the loss L at 0. It is infinite if no
    feature helps. `objective` is the loss, without a ridge.
    """
    if not objective.loss.smooth:  # the hinge has no second derivative: use the squared hinge
        objective = objective.with_loss(LOSSES["squared_hinge"])
    gradient = objective.at_zero().gradient
    pull = L1Ball(1.0, positive).pull(gradient)
    j = int(np.argmax(pull))
    if pull[j] == 0:
        return np.inf
    vertex = np.zeros_like(gradient)
    vertex[j] = -np.sign(gradient[j])
    change, _ = objective.at_zero().hess_vec(vertex)
    decay = float(change @ vertex)  # decrease of the derivative of j per unit of radius
    sides = [-gradient] if positive else [-gradient, gradient]
    changes = [-change] if positive else [-change, change]
    others = np.arange(gradient.size) != j
    radii = [pull[j] / decay] if decay > 0 else []
    for side, rate in zip(sides, changes, strict=True):
        closing = rate + decay
        meets = others & (closing > 0)
        radii.extend((pull[j] - side[meets]) / closing[meets])
    return float(min(radii, default=np.inf))
