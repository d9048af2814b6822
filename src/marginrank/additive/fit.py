"""Fits of additive models, for AdditiveRankSVM and the command ``marginrank train-additive``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self, cast

import numpy as np

from marginrank._utils.parameters import Mention, Message, ParameterError, given
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats, Integers
from marginrank.additive.curve_basis import CurveBasis, CurveShapes
from marginrank.additive.curve_matrix import CurveMatrix, HatMatrix
from marginrank.additive.grid_basis import add_grids, interactions_of
from marginrank.additive.interactions import RoughnessPenalty, choose_interactions
from marginrank.additive.knots import choose_knots, encode, with_category, with_filled
from marginrank.data.feature_choice import chosen_columns, directions, signs_of
from marginrank.data.knots import Knots
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import (
    RidgeParameters,
    check_ndcg_inputs,
    make_objective,
    minimize,
    preferences_of,
    require_pairs,
    solve_in_rounds,
)
from marginrank.fit.positions import POSITION_RIDGE, PositionTerm
from marginrank.fit.rounds import Solution
from marginrank.fit.scaling import Scale, find_scale, values_of
from marginrank.models.additive_model import AdditiveModel, curves_of
from marginrank.models.fit_report import FitReport, StopReason, report_of
from marginrank.models.parameters import AdditiveDeclaration, no_scale, recorded_parameters
from marginrank.objective.cones import Cone, ConeBlock
from marginrank.objective.groups import Groups
from marginrank.objective.losses import Loss, get_loss
from marginrank.objective.objective import Objective
from marginrank.solvers.registry import find_solver
from marginrank.solvers.result import Callback, SolverResult

CHOICE_TOL = 1e-3  # tol of intermediate fits: closer fits would not change the chosen interactions
DOCUMENTS_AT_ONE = 5  # number of documents per feature for which the default C is 1
SMOOTH_LOSS = "squared_hinge"  # chooses interactions if the loss of the fit is not smooth
EXACT_GRID = 2.0**-50  # step size relative to the largest value: differences of multiples are exact
NO_GROUPS: Integers = np.zeros(1, dtype=np.int64)  # when only the kind of penalty matters


@dataclass(frozen=True, kw_only=True)
class AdditiveParameters(AdditiveDeclaration, RidgeParameters):
    """The validated parameters of :class:`~marginrank.AdditiveRankSVM`."""

    def check(self) -> None:
        super().check()
        signs = directions(self.monotonic_cst)
        if self.group_l1 > 0 and signs:
            raise ParameterError(
                given("group_l1", self.group_l1),
                " cannot be combined with ",
                Mention("monotonic_cst"),
                "; drop one of them.",
            )
        structure = self.structure(NO_GROUPS, Cone(()) if signs else None)
        find_solver(self.solver, get_loss(self.loss), structure)

    def structure(self, starts: Integers, cone: Cone | None) -> Cone | Groups | None:
        """Return the monotonicity constraint `cone`, the group-lasso penalty, or None.

        `starts` has the first weight of each group.
        """
        return Groups(self.group_l1, starts) if self.group_l1 > 0 else cone

    @property
    def loss_weight(self) -> float:
        """The weight C of the loss; 1 until C is chosen from the data."""
        return 1.0 if self.C is None and self.lam is None else super().loss_weight

    @property
    def roughness_weight(self) -> float:
        """The weight of the roughness of curves; 1 until the smoothness is chosen."""
        return 1.0 if self.smoothness is None else self.smoothness

    def chosen_for(
        self,
        data: RankingData,
        *,
        pairs: PairList | None = None,
        propensity: Floats | None = None,
    ) -> Self:
        """Return these parameters with C and smoothness chosen from the data if they are None.

        C is proportional to the number of documents per feature, and divided by the weight of all
        pairs. The smoothness is one divided by the cube root of the number of documents. Documents
        in no pair do not count.
        """
        chooses_C = self.C is None and self.lam is None
        if self.smoothness is not None and not chooses_C:
            return self
        found = preferences_of(data, self, pairs=pairs, propensity=propensity).pairs
        n_documents = max(min(found.n_active_documents, 2 * found.n_pairs), 1)
        chosen = self
        if self.smoothness is None:
            chosen = replace(chosen, smoothness=n_documents ** (-1 / 3))
        if chooses_C:
            C = n_documents / (DOCUMENTS_AT_ONE * data.n_features)
            if self.normalization == "none" and found.has_weight:
                found.check_overflow()
                C /= float(np.sum(found.weights))
            chosen = replace(chosen, C=C)
        return chosen


def empty_message(model: AdditiveModel, parameters: AdditiveParameters) -> Message | None:
    """Return the warning that `group_l1` has made all curves of a model zero, or None."""
    if parameters.group_l1 == 0 or not model.is_zero:
        return None
    return Message(
        "All curves are zero, so all documents have the same score: the penalty is too strong. "
        "Decrease ",
        given("group_l1", parameters.group_l1),
        " or increase ",
        given("C", report_of(model).C),
        ".",
    )


def fit_additive(
    data: RankingData,
    parameters: AdditiveParameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    monotonic_position: bool = False,
    seed: int = 0,
    callback: Callback | None = None,
) -> AdditiveModel:
    """Fit an additive model: one curve per feature, and joint functions of pairs of features.

    The number of pairs is the parameter `interactions`. Features may have missing values (NaN). The
    other arguments are as in :func:`~marginrank.fit.linear.fit_linear`.
    """
    check_ndcg_inputs(parameters.objective, pairs=pairs, position=data.position)
    chosen = parameters.chosen_for(data, pairs=pairs, propensity=propensity)
    problem = prepare(data, chosen, monotonic_position)
    problem = problem.with_interactions(data, chosen, pairs=pairs, propensity=propensity, seed=seed)
    objective = problem.objective(data, chosen, pairs=pairs, propensity=propensity)
    w, report = solve_in_rounds(
        data,
        chosen,
        objective,
        partial(problem.minimize, parameters=chosen, seed=seed),
        lambda w: problem.matrix.hats.view.dot(
            problem.matrix.basis.inner(w), None, objective.threads
        ),
        propensity=propensity,
        w0=None,
        callback=callback,
    )
    report = replace(report, C=chosen.loss_weight, smoothness=chosen.roughness_weight)
    return problem.model(w, report, parameters, data.feature_names)


class AdditiveProblem(NamedTuple):
    """Design matrix and constraints of an additive fit; they do not depend on C."""

    matrix: CurveMatrix
    scale: Scale | None
    signs: Mapping[int, int]  # feature → 1 if its curve is increasing, −1 if decreasing
    positions: PositionTerm  # position effects are the categories of an additional feature

    def objective(
        self,
        data: RankingData,
        parameters: AdditiveParameters,
        *,
        pairs: PairList | None = None,
        propensity: Floats | None = None,
    ) -> Objective:
        objective = make_objective(
            data, parameters, pairs=pairs, propensity=propensity, matrix=self.matrix
        )
        require_pairs(objective, data)
        return objective

    def minimize(
        self,
        objective: Objective,
        parameters: AdditiveParameters,
        *,
        seed: int,
        w0: Floats | None = None,
        callback: Callback | None = None,
        solve: Callable[..., SolverResult] | None = None,
    ) -> Solution:
        """Minimize the objective of an additive fit; return weights and report.

        The solver is `solve`, by default the one that `parameters` name.
        """
        solve = solve or self.solver(parameters, objective.loss)
        return minimize(
            objective, parameters, scale=None, seed=seed, w0=w0, callback=callback, solve=solve
        )

    def solver(self, parameters: AdditiveParameters, loss: Loss) -> Callable[..., SolverResult]:
        """Return the solver that `parameters` name, as a function that minimizes an objective."""
        basis = self.matrix.basis
        cone = monotone_cone(basis, self.signs)
        structure = parameters.structure(basis.starts, cone if cone.blocks else None)
        return find_solver(parameters.solver, loss, structure)

    def with_interactions(
        self,
        data: RankingData,
        parameters: AdditiveParameters,
        *,
        pairs: PairList | None = None,
        propensity: Floats | None = None,
        seed: int = 0,
    ) -> "AdditiveProblem":
        """Return this fitting problem with joint functions of the best pairs of features added.

        Their number is the parameter `interactions`. Pairs are selected by fits with a smooth loss
        and a loose tol. Monotone features have no interactions, because the score would not be
        monotone.
        """
        if not parameters.interactions:
            return self
        easier = replace(parameters, solver="auto", tol=max(parameters.tol, CHOICE_TOL))
        if not get_loss(parameters.loss).smooth:
            easier = replace(easier, loss=SMOOTH_LOSS)
        objective = self.objective(data, easier, pairs=pairs, propensity=propensity)
        penalty = RoughnessPenalty(parameters.roughness_weight, values_of(self.scale))
        solve = partial(self._weights, parameters=easier, seed=seed)
        alone = {*self.signs, *range(data.n_features, self.matrix.knots.n_features)}
        chosen = choose_interactions(
            objective, parameters.interactions, penalty, solve, alone=alone
        )
        return self._replace(matrix=add_grids(self.matrix, chosen, *penalty, objective.threads))

    def _weights(
        self, objective: Objective, w0: Floats, *, parameters: AdditiveParameters, seed: int
    ) -> Floats:
        """Return the weights of an intermediate fit; raise KeyboardInterrupt if interrupted."""
        there = self._replace(matrix=cast(CurveMatrix, objective.matrix))
        w, report = there.minimize(objective, parameters, seed=seed, w0=w0)
        if report.stop_reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        return w

    def model(
        self,
        w: Floats,
        report: FitReport,
        parameters: AdditiveParameters,
        feature_names: Sequence[str] | None = None,
    ) -> AdditiveModel:
        """Return the AdditiveModel for weights w of the basis functions."""
        matrix, values = self.matrix, self.matrix.basis.inner(w)
        knots = matrix.knots
        for k, sign in self.signs.items():
            at = slice(knots.columns(k).start + 1, knots.columns(k).stop)
            values[at] = exactly_monotone(values[at], sign)
        n, curves = self.positions.n_features, curves_of(knots, values[: knots.n_columns])
        if self.positions.codes is not None:
            effects = self.positions.at_cells(knots.of(n), values[knots.columns(n)][1:])
            report = replace(report, **effects)
        return AdditiveModel(
            curves=curves[:n],
            parameters=recorded_parameters("AdditiveRankSVM", parameters),
            feature_names=None if feature_names is None else list(feature_names),
            report=report,
            interactions=interactions_of(matrix, values),
            scale=None if self.scale is None else self.scale.values[:n],
        )


def monotone_cone(basis: CurveBasis, signs: Mapping[int, int]) -> Cone:
    """Return the constraint on the weights that some curves are increasing or decreasing.

    `signs` maps a feature to 1 (increasing) or −1 (decreasing). The values of a curve at its knots
    are Tu, with weights u and basis functions T. The curve is increasing if DTu ≥ 0, where D takes
    differences between adjacent knots. A curve with one knot has no constraint.
    """
    return Cone(
        [
            ConeBlock.of(
                k,
                slice(int(basis.starts[k]), int(basis.starts[k + 1])),
                sign * np.diff(basis.blocks[k][1:], axis=0),
            )
            for k, sign in sorted(signs.items())
            if len(basis.blocks[k]) > 2
        ]
    )


def exactly_monotone(values: Floats, sign: int) -> Floats:
    """Return the values of a curve at its knots, corrected for rounding errors to be monotone.

    The values become multiples of one number. Their differences are then exact, so interpolated
    values are monotone, too.
    """
    raised: Floats = sign * np.maximum.accumulate(sign * values)
    _, exponent = np.frexp(np.abs(raised).max())
    step = np.ldexp(EXACT_GRID, exponent)
    return np.round(raised / step) * step if step > 0.0 else raised


class Layout(NamedTuple):
    """Knots, encoded feature values and basis functions of an additive fit, before scaling.

    Fits with different smoothness and C share them.
    """

    hats: HatMatrix
    knots: Knots
    shapes: CurveShapes
    scale: Scale | None
    signs: Mapping[int, int]
    positions: PositionTerm

    def problem(self, smoothness: float) -> AdditiveProblem:
        basis = self.shapes.basis(smoothness, values_of(self.scale))
        matrix = CurveMatrix(self.hats, self.knots, basis)
        return AdditiveProblem(matrix, self.scale, self.signs, self.positions)

    def sizes(self, smoothness: float) -> Floats:
        return self.shapes.sizes(smoothness, values_of(self.scale))


def prepare(
    data: RankingData, parameters: AdditiveParameters, monotonic_position: bool = False
) -> AdditiveProblem:
    """Return the problem of an additive fit, with knots, encoded values and basis functions."""
    layout = lay_out(data, parameters, monotonic_position)
    return layout.problem(parameters.roughness_weight)


def lay_out(
    data: RankingData, parameters: AdditiveParameters, monotonic_position: bool = False
) -> Layout:
    """Return the knots, encoded feature values and unscaled basis functions of an additive fit."""
    names, n_features = data.feature_names, data.n_features
    categorical = chosen_columns(
        "categorical_features", parameters.categorical_features, names, n_features
    )
    signs = signs_of(parameters.monotonic_cst, names, n_features, categorical)
    knots = choose_knots(data.X, parameters.max_bins, categorical)
    codes = encode(knots, data.X, effective_threads(parameters.n_jobs))
    scale = _scale_of(data, knots, parameters)
    positions = PositionTerm.of(data, monotonic_position)
    if monotonic_position:
        if data.context is not None:
            raise ValueError(
                "AdditiveRankSVM does not support context with monotonic_position; drop either."
            )
        signs = {**signs, positions.n_features: -1}
    if positions.codes is not None:
        knots, codes = with_category(knots, codes, positions.codes.codes, "position")
    hats, shapes = HatMatrix.of(codes, knots.starts), CurveShapes.of(knots, codes)
    if positions.codes is not None:
        shapes = shapes.with_ridge(positions.n_features, POSITION_RIDGE)
    return Layout(hats, knots, shapes, positions.scaled_features(scale), signs, positions)


def _scale_of(data: RankingData, knots: Knots, parameters: AdditiveParameters) -> Scale | None:
    """Return the scale of each feature, or None for no scale.

    Missing values count as the middle knot.
    """
    if no_scale(parameters.scale):
        return None
    if data.has_nan:
        data = with_filled(data, knots)
    scale = find_scale(data, parameters.scale)
    assert scale is not None
    # No warning about constant features, which have no curve.
    return replace(scale, without_effect=scale.without_effect[:0])
