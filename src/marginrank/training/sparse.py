"""From data and parameters to sparse weights: what SparseRankSVM, paths and commands share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from marginrank._base.parameters import check_choice, check_integer, check_number
from marginrank._base.threads import effective_threads, serial_blas
from marginrank._base.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import get_loss
from marginrank.objective.objective import Objective
from marginrank.objective.pair_weights import check_cost
from marginrank.objective.regularizers import ElasticNet, L1Ball, L1Regularizer
from marginrank.solvers import find_solver, solver_names
from marginrank.solvers.result import Callback
from marginrank.solvers.sparse.frank_wolfe import VARIANTS
from marginrank.training.linear import Fit, check_start, require_pairs
from marginrank.training.pairs import NORMALIZATIONS, PAIR_SELECTIONS, choose_pairs, objective_on


@dataclass(frozen=True, kw_only=True)
class SparseParameters:
    """The parameters of a sparse RankSVM; see :class:`~marginrank.SparseRankSVM`."""

    radius: float | None = None
    C: float = 1.0
    l1_ratio: float = 1.0
    positive: bool = False
    loss: str = "squared_hinge"
    solver: str = "proximal_newton"
    variant: str = "plain"
    tol: float = 1e-6
    max_iter: int = 1000
    pair_selection: str = "all"
    pair_cost: Any = None
    normalization: str = "pairs"
    n_jobs: int | None = None

    def check(self) -> None:
        """Refuse a wrong value by its name."""
        check_number("C", self.C)
        check_l1_ratio(self.l1_ratio)
        if self.radius is not None:
            check_number("radius", self.radius)
            if self.l1_ratio != 1:
                raise ValueError(
                    f"l1_ratio={self.l1_ratio!r} mixes penalties, and a radius has none; leave one "
                    "of them out."
                )
        check_flag("positive", self.positive)
        check_number("tol", self.tol)
        check_integer("max_iter", self.max_iter, at_least=1)
        self._check_solver()
        check_choice("variant", self.variant, VARIANTS)
        check_choice("pair_selection", self.pair_selection, PAIR_SELECTIONS)
        check_cost(self.pair_cost)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        effective_threads(self.n_jobs)

    def _check_solver(self) -> None:
        """Refuse a problem that the solver does not take, before any data is looked at."""
        loss, regularizer = get_loss(self.loss), self.regularizer()
        check_choice("solver", self.solver, solver_names(regularized=True))
        find_solver(self.solver, loss, regularizer)

    def regularizer(self) -> L1Regularizer:
        """Return the ball, or the penalty."""
        if self.radius is not None:
            return L1Ball(float(self.radius), bool(self.positive))
        return ElasticNet(float(self.l1_ratio), 1.0 - self.l1_ratio, bool(self.positive))

    def objective(self, data: RankingData) -> Objective:
        """Return the loss on the data, times C where there is a penalty to weigh it against."""
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
            C=self.C if self.radius is None else 1.0,
            normalization=self.normalization,
            ridge=0.0,
            threads=threads,
        )
        require_pairs(objective, data)
        return objective


def check_l1_ratio(l1_ratio: float) -> None:
    """Refuse a share of the l1 norm that is none."""
    check_number("l1_ratio", l1_ratio, allow_equal=True)
    if l1_ratio > 1:
        raise ValueError(f"l1_ratio={l1_ratio!r} must be a number from 0 to 1.")


def check_flag(name: str, value: bool) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} must be True or False.")


def fit_sparse(
    data: RankingData,
    parameters: SparseParameters,
    *,
    seed: int = 0,
    w0: Floats | None = None,
    callback: Callback | None = None,
) -> Fit:
    """Minimise the sparse objective that the parameters name on the data."""
    parameters.check()
    objective = parameters.objective(data)
    check_start(w0)
    solve = find_solver(parameters.solver, objective.loss, parameters.regularizer())
    if parameters.solver == "fenchel":
        solve = partial(solve, variant=parameters.variant)
    with serial_blas():
        result = solve(
            objective,
            w0=w0,
            tol=parameters.tol,
            max_iter=parameters.max_iter,
            seed=seed,
            callback=callback,
        )
    return Fit(result, objective.n_pairs)


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
    >>> from marginrank.training.sparse import SparseParameters, first_C
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
