"""From data and parameters to curves: what AdditiveRankSVM and the command line share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginrank._base.threads import effective_threads
from marginrank._base.types import Floats
from marginrank.data.grids import Grid, grid_scores
from marginrank.data.knots import Knots, choose_knots
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.objective.backends.curves import CurveMatrix, HatMatrix
from marginrank.objective.backends.grids import add_grids, grid_values
from marginrank.objective.curve_basis import CurveShapes
from marginrank.objective.losses import get_loss
from marginrank.objective.objective import Objective
from marginrank.solvers.result import Callback, StopReason
from marginrank.training.declarations import AdditiveDeclaration
from marginrank.training.feature_choice import columns_of
from marginrank.training.interactions import Penalty, choose_interactions
from marginrank.training.linear import (
    RidgeParameters,
    make_objective,
    refuse_for_goal,
    require_pairs,
    solve_for_goal,
)
from marginrank.training.minimisation import Fit, minimise
from marginrank.training.scaling import Scale, find_scale, no_scale, values_of

CHOICE_TOL = 1e-3  # closer fits would not change which pairs of features are chosen
SMOOTH_LOSS = "squared_hinge"  # which they are chosen by if the loss is not smooth


@dataclass(frozen=True, kw_only=True)
class AdditiveParameters(AdditiveDeclaration, RidgeParameters):
    """The parameters of an additive RankSVM; see :class:`~marginrank.AdditiveRankSVM`."""


class AdditiveFit(NamedTuple):
    """What came out of a fit.

    Attributes
    ----------
    fit : Fit
        The weights of the basis of curves, and how they were found.
    knots : Knots
        The knots of the curves.
    values : ndarray of shape (n_columns,)
        Their values there; those of a feature have a mean of zero over the documents.
    grids : tuple of Grid
        The grids of pairs of features that were chosen, the most promising first.
    grid_values : list of ndarray
        The values of each at its nodes.
    """

    fit: Fit
    knots: Knots
    values: Floats
    grids: tuple[Grid, ...]
    grid_values: list[Floats]

    def scores(self, X: Any, threads: int) -> Floats:
        """Return the scores of checked features."""
        return scores_of(X, *self[1:], threads=threads)


def scores_of(
    X: Any,
    knots: Knots,
    values: Floats,
    grids: tuple[Grid, ...],
    grid_values: list[Floats],
    *,
    threads: int,
) -> Floats:
    """Return the scores of checked features by curves and functions on grids."""
    of_curves = knots.scores(X, values, threads)
    return of_curves + grid_scores(grids, grid_values, X, threads)


def fit_additive(
    data: RankingData,
    parameters: AdditiveParameters,
    *,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    seed: int = 0,
    callback: Callback | None = None,
) -> AdditiveFit:
    """Minimise the objective that the parameters name, over all curves of the features.

    Parameters
    ----------
    data : RankingData
        Labels, queries and weights; and the features, if there is no X.
    parameters : AdditiveParameters
        What to minimise, and how.
    X : ndarray or CSR matrix, optional
        Checked features, which may have missing values: NaN.
    feature_names : sequence of str, optional
        Their names; those of the data by default.
    pairs, propensity, seed, callback
        As in :func:`~marginrank.training.linear.fit_linear`.
    """
    parameters.check()
    refuse_for_goal(parameters, pairs)
    names = data.feature_names if feature_names is None else feature_names
    problem = prepare(data, parameters, X=X, feature_names=names)
    problem = problem.with_interactions(
        data, parameters, pairs=pairs, propensity=propensity, seed=seed
    )
    objective = problem.objective(data, parameters, pairs=pairs, propensity=propensity)
    fit = solve_for_goal(
        data,
        parameters,
        objective,
        partial(minimise, parameters=parameters, scale=None, seed=seed),
        partial(problem.scores, threads=objective.threads),
        propensity=propensity,
        w0=None,
        callback=callback,
    )
    return problem.outcome(fit)


class Problem(NamedTuple):
    """The features of a fit as a matrix of curves; fits with other C can share it."""

    matrix: CurveMatrix
    scale: Scale | None

    def objective(
        self,
        data: RankingData,
        parameters: AdditiveParameters,
        *,
        pairs: PairList | None = None,
        propensity: Floats | None = None,
    ) -> Objective:
        """Return the objective that the parameters name."""
        objective = make_objective(
            data, parameters, pairs=pairs, propensity=propensity, matrix=self.matrix
        )
        require_pairs(objective, data)
        return objective

    def with_interactions(
        self,
        data: RankingData,
        parameters: AdditiveParameters,
        *,
        pairs: PairList | None = None,
        propensity: Floats | None = None,
        seed: int = 0,
    ) -> "Problem":
        """Return the problem with grids for as many pairs of features as the parameters ask for.

        They are chosen by fits of all pairs of documents with a smooth loss, which need not come
        close to their optimum.
        """
        if not parameters.interactions:
            return self
        easier = replace(parameters, solver="auto", tol=max(parameters.tol, CHOICE_TOL))
        if not get_loss(parameters.loss).smooth:
            easier = replace(easier, loss=SMOOTH_LOSS)
        objective = self.objective(data, easier, pairs=pairs, propensity=propensity)
        penalty = Penalty(parameters.smoothness, values_of(self.scale))
        solve = partial(_weights, parameters=easier, seed=seed)
        chosen = choose_interactions(objective, parameters.interactions, penalty, solve)
        return self._replace(matrix=add_grids(self.matrix, chosen, *penalty, objective.threads))

    def scores(self, weights: Floats, threads: int) -> Floats:
        """Return the scores of the documents, by row, for weights of the basis."""
        values = self.matrix.basis.inner(weights)
        scores: Floats = self.matrix.hats.view.dot(values, None, threads)
        return scores

    def outcome(self, fit: Fit) -> AdditiveFit:
        """Return the curves of a fit."""
        matrix, values = self.matrix, self.matrix.basis.inner(fit.result.w)
        return AdditiveFit(
            fit._replace(scale=self.scale),
            matrix.knots,
            values[: matrix.knots.n_columns],
            matrix.grids,
            grid_values(matrix, values),
        )


def _weights(
    objective: Objective, w0: Floats, *, parameters: AdditiveParameters, seed: int
) -> Floats:
    """Return the weights of a fit on the way, unless it was interrupted."""
    fit = minimise(objective, parameters, scale=None, seed=seed, w0=w0, callback=None)
    if fit.result.stop is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    return fit.result.w


class Layout(NamedTuple):
    """Where the values of features lie among knots; problems of any smoothness share it."""

    hats: HatMatrix
    knots: Knots
    shapes: CurveShapes
    scale: Scale | None

    def problem(self, smoothness: float) -> Problem:
        """Return the features as a matrix of curves."""
        basis = self.shapes.basis(smoothness, values_of(self.scale))
        return Problem(CurveMatrix(self.hats, self.knots, basis), self.scale)

    def sizes(self, smoothness: float) -> Floats:
        """Return the size of each basis function."""
        return self.shapes.sizes(smoothness, values_of(self.scale))


def prepare(
    data: RankingData,
    parameters: AdditiveParameters,
    *,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Problem:
    """Choose knots, put every value in its place between them, and make a basis of curves."""
    layout = lay_out(data, parameters, X=X, feature_names=feature_names)
    return layout.problem(parameters.smoothness)


def lay_out(
    data: RankingData,
    parameters: AdditiveParameters,
    *,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Layout:
    """Choose knots, and put every value in its place between them."""
    X = data.X if X is None else X
    threads = effective_threads(parameters.n_jobs)
    categorical = columns_of("categorical", parameters.categorical, feature_names, X.shape[1])
    knots = choose_knots(X, parameters.max_bins, categorical)
    places = knots.places(X, threads)
    scale = _scale_of(data, X, knots, parameters)
    return Layout(HatMatrix.of(places, knots.starts), knots, CurveShapes.of(knots, places), scale)


def _scale_of(
    data: RankingData, X: Any, knots: Knots, parameters: AdditiveParameters
) -> Scale | None:
    """Return the scale of the features, where missing values count as the feature's median.

    Features without effect are none to warn of: a constant has no curve.
    """
    if no_scale(parameters.scale):
        return None
    if X is not data.X:
        data = data.with_features(_filled(X, knots), n_jobs=parameters.n_jobs)
    scale = find_scale(data, parameters.scale)
    assert scale is not None
    return replace(scale, without_effect=scale.without_effect[:0])


def _filled(X: Any, knots: Knots) -> Any:
    """Return features with the knot in the middle in the place of NaN; a copy if there is any."""
    stored = X.data if sp.issparse(X) else X
    missing = np.isnan(stored)
    if not missing.any():
        return X
    middle = np.array([knots.of(k)[knots.of(k).size // 2] for k in range(knots.n_features)])
    filled = X.copy()
    if sp.issparse(X):
        filled.data[missing] = middle[X.indices[missing]]
    else:
        filled[missing] = np.broadcast_to(middle, X.shape)[missing]
    return filled
