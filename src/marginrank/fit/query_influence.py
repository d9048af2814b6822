"""Influence of single queries on a fitted linear model: standard errors, leave-one-out scores.

The fitted weights w minimize F(w) = R(w) + Σ_q L_q(w), the regularizer plus the loss L_q of each
query q. If a query had a slightly larger weight in this sum, the minimizer would move by a multiple
of −H⁻¹ψ_q, with the Hessian H = ∇²F(w) and the query's centered gradient

    ψ_q = ∇L_q(w) − m_q Σ_p ∇L_p(w).

Without normalization m_q is one over the number of queries, so the mean is subtracted. With a
normalization, m_q is the query's share of the total weight that the loss is divided by. In both
cases the ψ_q sum to zero.

Without query q the objective is F_q(w) = R(w) + f_q Σ_{p≠q} L_p(w), with f_q = 1 / (1 − m_q) if
there is a normalization, and 1 otherwise. One Newton step from w estimates its minimizer.
"""

from dataclasses import fields
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from marginrank._utils.memory import require_memory
from marginrank._utils.parameters import ParameterError, given
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import objective_on
from marginrank.fit.linear import Parameters, preferences_of, require_pairs
from marginrank.fit.positions import check_no_positions
from marginrank.fit.scaling import Scale, with_scale
from marginrank.models.features import require_features
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import ndcg_cutoff
from marginrank.objective.losses import get_loss
from marginrank.objective.objective import PRECISION, Point
from marginrank.objective.pair_sets import PairSet

NEAR = 0.01  # largest squared distance to the optimum, in squared standard errors
MATRICES = 3  # number of n × n matrices in memory: the Hessian, its factor, a copy


class LeaveOneOut(NamedTuple):
    """Leave-one-query-out estimates: scores and loss of models fitted without one query each.

    Attributes
    ----------
    scores : ndarray of shape (n_documents,)
        The score of each document from the model without its query.
    loss : float
        The sum of the losses of all queries with these scores, in units of the objective.
    """

    scores: Floats
    loss: float


class FittedPoint(NamedTuple):
    """The training objective at the weights of a fitted model, with its gradients and Hessian."""

    point: Point
    scale: Floats  # scale of the features; 1 without a scale
    normalization: str

    @classmethod
    def of(
        cls,
        data: RankingData,
        model: LinearModel,
        pairs: PairList | None,
        propensity: Floats | None,
    ) -> "FittedPoint":
        """Return the training objective at the weights of a fitted linear model.

        Raise ValueError if the objective is not smooth or the model has position effects.
        """
        check_no_positions(data, "The influence of queries")
        if model.report is not None and model.report.position_effect is not None:
            raise ValueError(
                "the influence of queries does not support a fit with position; fit without "
                "position."
            )
        parameters = _parameters_of(model)
        _check_supported(parameters)
        require_features(data.X, model.n_features)
        n = data.n_features
        needed = 8 * (MATRICES * n * n + 2 * data.n_queries * n)
        require_memory(needed, f"the Hessian of {n} features", "drop features")
        chosen = preferences_of(data, parameters, pairs=pairs, propensity=propensity)
        objective = objective_on(  # make_objective may split queries
            data,
            chosen,
            C=parameters.loss_weight,
            normalization=parameters.normalization,
            threads=effective_threads(parameters.n_jobs),
        )
        require_pairs(objective, data)
        scale = np.ones(n) if model.scale is None else model.scale
        scaled = with_scale(objective, Scale(scale, np.empty(0, dtype=np.int64)))
        fitted = cls(scaled.at(model.coef * scale), scale, parameters.normalization)
        n_used = np.count_nonzero(fitted.pairs.weights)
        if n_used < 2:
            raise ValueError(
                "the influence of queries requires at least two queries with pairs (documents of "
                f"different relevance), got {n_used}; pass qid, or data with more such queries."
            )
        return fitted

    @property
    def pairs(self) -> PairSet:
        return cast(PairSet, self.point.objective.pairs)

    @property
    def shares(self) -> Floats:
        """Share of each query in the sum that the loss is divided by (m_q in the module docstring).

        Without normalization all queries with pairs have the same share.
        """
        # With a normalization, the total weight of a query's pairs is its share times C.
        weights = self.pairs.weights
        counted = np.sign(weights) if self.normalization == "none" else weights
        return counted / float(np.sum(counted))


def coef_stderr(
    data: RankingData,
    model: LinearModel,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Floats:
    """Return the standard error of each weight of a fitted RankSVM, clustered by query.

    `data`, `pairs` and `propensity` are the arguments of the fit. The covariance of the weights is
    the sandwich estimate H⁻¹ (Q / (Q − 1) · Σ_q ψ_q ψ_qᵀ) H⁻¹, with the Hessian H of the objective
    and the centered gradients ψ_q of the losses of Q queries with pairs.
    """
    with serial_blas():
        fitted = FittedPoint.of(data, model, pairs, propensity)
        active = fitted.pairs.weights > 0
        gradients = fitted.point.by_group(active.size).gradients[active]
        slopes = gradients - fitted.shares[active, None] * gradients.sum(axis=0)
        hessian, size = _unit_diagonal(fitted.point.hessian())
        factor = cho_factor(hessian)
        slopes, gradient = slopes / size, fitted.point.gradient / size
        changes = cho_solve(factor, slopes.T).T
        _check_near(
            distance=float(gradient @ cho_solve(factor, gradient)),
            expected=float(np.sum(slopes * changes)),
        )
    n_queries = len(changes)
    variance: Floats = n_queries / (n_queries - 1) * np.sum(changes**2, axis=0)
    return np.sqrt(variance) / (size * fitted.scale)


def leave_one_out(
    data: RankingData,
    model: LinearModel,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> LeaveOneOut:
    """Return leave-one-query-out scores and loss, estimated by one Newton step per query.

    `data`, `pairs` and `propensity` are the arguments of the fit. A query without pairs does not
    affect the model, so its documents have the scores of `model`.
    """
    needed = 16 * data.n_documents * data.n_features
    require_memory(needed, "leaving queries out one by one", "use folds")
    with serial_blas():
        fitted = FittedPoint.of(data, model, pairs, propensity)
        objective = fitted.point.objective
        found = _scores_without_query(fitted)
        evaluation = objective.pair_loss.evaluate(objective.space.vector(found), None)
    scores = data.matrix.dot(model.coef, None, effective_threads(model.parameters.get("n_jobs")))
    rows = fitted.pairs.documents.rows
    scores[slice(None) if rows is None else rows] = found
    return LeaveOneOut(scores, evaluation.losses.value)


def _scores_without_query(fitted: FittedPoint) -> Floats:
    """Return the score of each document by a model fitted without the document's query."""
    point = fitted.point
    objective, n = point.objective, point.w.size
    space, design = objective.space, objective.design
    hessian, size = _unit_diagonal(point.hessian())
    columns = [design.column(j) for j in range(n)]
    X = np.stack([space.entries(x) for x in columns], axis=1) / size
    curved = np.stack([space.entries(point.hess_vec_scores(x)) for x in columns], axis=1) / size
    slopes = space.entries(point.score_gradient)
    pull = objective.ridge * point.w / size  # gradient of the regularizer
    gradient = point.gradient / size - pull  # gradient of the loss
    ridge = np.diag(objective.ridge / size**2 + n * PRECISION)
    hessian -= ridge
    shares = np.zeros(fitted.pairs.n_queries) if fitted.normalization == "none" else fitted.shares
    scores = space.entries(point.scores).copy()
    bounds = pairwise(fitted.pairs.documents.offsets.tolist())
    for (first, last), share, weight in zip(bounds, shares, fitted.pairs.weights, strict=True):
        if weight == 0:
            continue
        own = X[first:last]
        differences = own - own[0]  # subtract offsets, which no pair depends on, to keep digits
        rest = 1.0 / (1.0 - share)
        slope = pull + rest * (gradient - differences.T @ slopes[first:last])
        without = ridge + rest * (hessian - differences.T @ curved[first:last])
        scores[first:last] -= own @ cho_solve(cho_factor(without), slope)
    return scores


def _unit_diagonal(hessian: Floats) -> tuple[Floats, Floats]:
    """Return the Hessian rescaled to a diagonal of ones, and the divisors (size) of the features.

    The diagonal is raised by its rounding error: raw features may be collinear to all digits.
    """
    size = np.sqrt(np.diag(hessian))
    scaled = hessian / np.outer(size, size) + size.size * PRECISION * np.eye(size.size)
    return scaled, size


def _parameters_of(model: LinearModel) -> Parameters:
    known = model.parameters
    names = [field.name for field in fields(Parameters)]
    if model.estimator not in ("RankSVM", "DaskRankSVM") or not known:
        raise ValueError(
            f"the influence of queries requires a RankSVM, but this model is a {model.estimator}"
            f"{'' if known else ' of another program, without its parameters'}; fit a RankSVM."
        )
    return Parameters(**{name: known[name] for name in names if name in known})


def _check_supported(parameters: Parameters) -> None:
    """Raise ParameterError for a loss without curvature, or pair weights that depend on ranks."""
    if ndcg_cutoff(parameters.objective) is not None:
        raise ParameterError(
            given("objective", parameters.objective),
            " has no influence of queries or standard errors, because its pair weights depend on "
            "the ranking. Use cross-validation, or a bootstrap over queries.",
        )
    if not get_loss(parameters.loss).smooth:
        raise ParameterError(
            given("loss", parameters.loss),
            " has no influence of queries or standard errors, because it has no second derivative. "
            "Use another loss, cross-validation, or a bootstrap over queries.",
        )


def _check_near(distance: float, expected: float) -> None:
    """Raise ValueError if the weights are not close to the optimum for the data.

    `distance` is gᵀH⁻¹g for g = ∇F(w), and `expected` is its expectation over samples of queries.
    """
    if distance > NEAR * expected:
        ratio = np.sqrt(distance / expected) if expected > 0 else np.inf
        raise ValueError(
            f"coef_ is {ratio:.2g} standard errors from the optimum for these data. Pass the data "
            "and weights of the fit; if you did, fit with a smaller tol."
        )
