"""From data and parameters to sparse weights: what SparseRankSVM, paths and commands share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from marginrank._utils.parameters import (
    Mention,
    Message,
    ParameterError,
    check_parameters,
    given,
)
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import check_start, minimise, require_pairs
from marginrank.fit.matrices import Place, matrix_for
from marginrank.fit.pairs import choose_pairs, objective_on
from marginrank.fit.scaling import (
    Scale,
    blaming_features,
    find_linear_scale,
    values_of,
    with_scale,
)
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import DeviceDeclaration, SparseDeclaration, recorded_parameters
from marginrank.objective.losses import Loss, get_loss
from marginrank.objective.objective import Objective
from marginrank.objective.protocols import Matrix
from marginrank.objective.regularizers import ElasticNet, L1Ball, L1Regularizer
from marginrank.operators.parts.matrix import OnRead
from marginrank.solvers import find_solver
from marginrank.solvers.registry import state_bytes
from marginrank.solvers.result import Callback, SolverResult

DEFAULT_OVER_FIRST = 50.0  # the default C over the one at which the first weight appears


@dataclass(frozen=True, kw_only=True)
class SparseParameters(SparseDeclaration, DeviceDeclaration):
    """The parameters of a sparse RankSVM; see :class:`~marginrank.SparseRankSVM`."""

    def __post_init__(self) -> None:
        """Raise ParameterError for a wrong value, or a solver that cannot minimise the loss."""
        check_parameters(self)
        if self.radius is not None and self.l1_ratio != 1:
            raise ParameterError(
                given("l1_ratio", self.l1_ratio),
                " mixes penalties, and a ",
                Mention("radius"),
                " has none; leave one of them out.",
            )
        self.minimiser(get_loss(self.loss))

    def penalty(self, w: Floats) -> float:
        """Return what is added to the loss."""
        return self.regularizer().value(w)

    @property
    def state_bytes(self) -> int:
        """What the solver keeps of each document."""
        return state_bytes(self.solver, get_loss(self.loss), self.regularizer())

    def minimiser(self, loss: Loss) -> Callable[..., SolverResult]:
        """Return the solver, as a function of an objective."""
        solve = find_solver(self.solver, loss, self.regularizer())
        return partial(solve, variant=self.variant) if self.solver == "fenchel" else solve

    @property
    def leaves_C_open(self) -> bool:
        """Whether C is to be chosen from the data."""
        return self.radius is None and self.C is None

    @property
    def loss_weight(self) -> float:
        """C, or 1 where there is no penalty to weigh it against or C is left to the data."""
        return 1.0 if self.radius is not None or self.C is None else self.C

    def regularizer(self) -> L1Regularizer:
        """Return the ball, or the penalty."""
        if self.radius is not None:
            return L1Ball(float(self.radius), bool(self.positive))
        return ElasticNet(float(self.l1_ratio), 1.0 - self.l1_ratio, bool(self.positive))

    def objective(self, data: RankingData, matrix: Matrix | None = None) -> Objective:
        """Return the loss on the data, times `loss_weight`.

        The features are as they are: unscaled.
        """
        threads = effective_threads(self.n_jobs)
        preferences = choose_pairs(
            data,
            get_loss(self.loss),
            pair_selection=self.pair_selection,
            pair_cost=self.pair_cost,
            threads=threads,
        )
        objective = objective_on(
            data,
            preferences,
            C=self.loss_weight,
            normalization=self.normalization,
            ridge=0.0,
            threads=threads,
            matrix=matrix,
        )
        require_pairs(objective, data)
        return objective


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
    """Minimise the sparse objective that the parameters name on the data.

    See :func:`~marginrank.fit.linear.fit_linear` for data that are left on disk, and tensors.
    """
    threads = effective_threads(parameters.n_jobs)
    place = Place(parameters.device, tensor)
    with matrix_for(data, parameters, threads, memory_limit, on_read, place) as matrix:
        objective = parameters.objective(data, matrix)
        check_start(w0)
        matrix.survey(objective.pairs, threads)
        scale = find_linear_scale(data, parameters.scale, matrix)
        chosen = parameters
        if parameters.leaves_C_open:
            with blaming_features(C=None):
                chosen = with_default_C(parameters, objective, scale)
                objective = chosen.objective(data, matrix)
        w, report = minimise(objective, chosen, scale=scale, seed=seed, w0=w0, callback=callback)
    return LinearModel(
        coef=w,
        parameters=recorded_parameters("SparseRankSVM", parameters),
        feature_names=data.feature_names,
        report=replace(report, C=chosen.C),
        estimator="SparseRankSVM",
        scale=values_of(scale),
    )


def with_default_C(
    parameters: SparseParameters, objective: Objective, scale: Scale | None
) -> SparseParameters:
    """Return the parameters with a C from the data.

    Parameters
    ----------
    parameters : SparseParameters
        Their C is None.
    objective : Objective
        The loss with C = 1 on the features as they are.
    scale : Scale or None
        What features are divided by.

    Returns
    -------
    SparseParameters
        C is a multiple of the value at which the first weight appears, whatever the `l1_ratio`; 1
        if no feature helps.
    """
    with serial_blas():
        first = first_C(with_scale(objective, scale), positive=parameters.positive)
    return replace(parameters, C=DEFAULT_OVER_FIRST * first if np.isfinite(first) else 1.0)


def empty_message(w: Floats, parameters: SparseParameters) -> Message | None:
    """Return the warning that all weights are zero, or None."""
    if w.any():
        return None
    told = "All weights are zero, so all documents have the same score. "
    if parameters.radius is not None or parameters.C is None:
        return Message(told, "No feature helps to rank the documents; check X and the labels.")
    return Message(
        told,
        "Increase ",
        given("C", parameters.C),
        ", or leave it out to choose it from the data.",
    )


def first_C(objective: Objective, *, l1_ratio: float = 1.0, positive: bool = False) -> float:
    """Return the C above which the first weight is not zero: l1_ratio / ‖∇L(0)‖∞.

    Parameters
    ----------
    objective : Objective
        The loss with C = 1, without a ridge.
    l1_ratio : float
        Share of the l1 norm in the penalty.
    positive : bool
        Whether weights must not be negative.

    Returns
    -------
    float
        Infinite if no feature helps.

    Examples
    --------
    >>> from marginrank import RankingData
    >>> from marginrank.fit.sparse import SparseParameters, first_C
    >>> data = RankingData([[0.0], [4.0]], [0, 1])
    >>> first_C(SparseParameters().objective(data))
    0.125
    """
    pull = ElasticNet(l1_ratio, positive=positive).pull(_gradient_at_zero(objective))
    strongest = float(np.max(pull))
    return l1_ratio / strongest if strongest > 0 else np.inf


def first_radius(objective: Objective, *, positive: bool = False) -> float:
    """Return the radius up to which one weight is enough, to second order.

    In a ball that is small enough only the feature j of the strongest pull |∂L/∂w_j| has a weight,
    ± the radius, so that all small balls rank alike. To second order of L at 0 that ends where the
    pull of another feature has become as strong, or where j pulls no more.

    Parameters
    ----------
    objective : Objective
        The loss, without a ridge.
    positive : bool
        Whether weights must not be negative.

    Returns
    -------
    float
        Infinite if no feature helps.
    """
    gradient = _gradient_at_zero(objective)
    pull = L1Ball(1.0, positive).pull(gradient)
    j = int(np.argmax(pull))
    if pull[j] == 0:
        return np.inf
    vertex = np.zeros_like(gradient)
    vertex[j] = -np.sign(gradient[j])
    change, _ = objective.at_zero().hess_vec(vertex)
    decay = float(change @ vertex)  # of the pull of j, by radius
    sides = [-gradient] if positive else [-gradient, gradient]
    changes = [-change] if positive else [-change, change]
    others = np.arange(gradient.size) != j
    radii = [pull[j] / decay] if decay > 0 else []
    for side, rate in zip(sides, changes, strict=True):
        closing = rate + decay
        meets = others & (closing > 0)
        radii.extend((pull[j] - side[meets]) / closing[meets])
    return float(min(radii, default=np.inf))


def _gradient_at_zero(objective: Objective) -> Floats:
    return objective.at_zero().gradient
