"""Influence of single queries on the weights of a fitted linear model.

The weights minimize F(w) = R(w) + Σ_q L_q(w). If query q counted slightly more, the minimizer would
move by −H⁻¹ψ_q, where H = ∇²F(w) and ψ_q is the query's share of the gradient,

    ψ_q = ∇L_q(w) − m_q Σ_p ∇L_p(w).

Without normalization the second term subtracts the mean: m_q is one over the number of queries.
With a normalization, m_q is the query's share of the total that the loss is divided by. In both
cases the ψ_q sum to zero.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from marginrank._utils.memory import require_memory
from marginrank._utils.parameters import ParameterError, given
from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import Parameters, make_objective, require_pairs
from marginrank.fit.scaling import Scale, with_scale
from marginrank.models.features import require_features
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import ndcg_cutoff
from marginrank.objective.losses import get_loss
from marginrank.objective.objective import Point
from marginrank.objective.pair_sets import PairSet

NEAR = 0.01  # largest squared distance to the optimum, in squared standard errors
MATRICES = 3  # of n × n numbers: the Hessian, its factor, and a copy in between


class QueryInfluence(NamedTuple):
    """Changes of the weights of scaled features, one row per query with pairs."""

    changes: Floats  # −H⁻¹ψ_q
    distance: float  # gᵀH⁻¹g for g = ∇F(w); twice the decrease that a Newton step predicts
    spread: float  # Σ_q ψ_qᵀH⁻¹ψ_q, what sampling queries makes of the same distance


def coef_stderr(
    data: RankingData,
    model: LinearModel,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Floats:
    """Return the standard error of each weight of a RankSVM, clustered by query.

    `data`, `pairs` and `propensity` are the arguments of the fit. The covariance is the sandwich
    H⁻¹ (Q / (Q − 1) · Σ_q ψ_q ψ_qᵀ) H⁻¹ over Q queries.
    """
    parameters = _parameters_of(model)
    _check_supported(parameters)
    require_features(data.X, model.n_features)
    n = data.n_features
    needed = 8 * (MATRICES * n * n + 2 * data.n_queries * n)
    fix = "drop features, or use a bootstrap over queries"
    require_memory(needed, f"the Hessian of {n} features", fix)
    objective = make_objective(data, parameters, pairs=pairs, propensity=propensity)
    require_pairs(objective, data)
    scale = np.ones(n) if model.scale is None else model.scale
    scaled = with_scale(objective, Scale(scale, np.empty(0, dtype=np.int64)))
    with serial_blas():
        influence = query_influence(scaled.at(model.coef * scale), parameters.normalization)
    _check_near(influence)
    n_queries = len(influence.changes)
    variance = n_queries / (n_queries - 1) * np.sum(influence.changes**2, axis=0)
    return np.sqrt(variance) / scale


def query_influence(point: Point, normalization: str) -> QueryInfluence:
    """Return the influence of each query with pairs on the minimizer near a point."""
    pairs = cast(PairSet, point.objective.pairs)
    active = pairs.weights > 0
    if np.count_nonzero(active) < 2:
        raise ValueError(
            "the influence of queries requires at least two with pairs; pass qid, or other data."
        )
    gradients = point.by_group(pairs.n_queries).gradients[active]
    shares = normalization_shares(pairs, normalization)[active]
    slopes = gradients - shares[:, None] * gradients.sum(axis=0)
    factor = cho_factor(point.hessian())
    changes = -cho_solve(factor, slopes.T).T
    return QueryInfluence(
        changes=changes,
        distance=float(point.gradient @ cho_solve(factor, point.gradient)),
        spread=-float(np.sum(slopes * changes)),
    )


def normalization_shares(pairs: PairSet, normalization: str) -> Floats:
    """Return the share m_q of each query in the total that the loss is divided by.

    Without normalization it is the same for all queries with pairs.
    """
    # With a normalization, the weight of a query is its share times C.
    weights = pairs.weights > 0 if normalization == "none" else pairs.weights
    shares: Floats = weights / np.sum(weights)
    return shares


def _parameters_of(model: LinearModel) -> Parameters:
    known: Mapping[str, Any] = model.parameters
    names = [field.name for field in fields(Parameters)]
    if model.estimator not in ("RankSVM", "DaskRankSVM") or not known:
        raise ValueError(
            f"the influence of queries is for RankSVM, but this model is a {model.estimator}"
            f"{'' if known else ' of another program, without parameters'}."
        )
    return Parameters(**{name: known[name] for name in names if name in known})


def _check_supported(parameters: Parameters) -> None:
    """Raise ParameterError for a loss without curvature, or weights of pairs from ranks."""
    if ndcg_cutoff(parameters.objective) is not None:
        raise ParameterError(
            given("objective", parameters.objective),
            " weights pairs by ranks, which change with the weights, so the influence of a query "
            "is unknown; use folds or a bootstrap over queries.",
        )
    if not get_loss(parameters.loss).smooth:
        raise ParameterError(
            given("loss", parameters.loss),
            " has no curvature, so the influence of a query is unknown; use a smooth loss, folds or "
            "a bootstrap over queries.",
        )


def _check_near(influence: QueryInfluence) -> None:
    """Raise ValueError if the weights are not close to the optimum for the data."""
    if influence.distance > NEAR * influence.spread:
        ratio = np.sqrt(influence.distance / influence.spread) if influence.spread else np.inf
        raise ValueError(
            f"coef_ is {ratio:.2g} standard errors from the optimum for these data. Pass the data "
            "and weights of the fit; if they are, fit with a smaller tol."
        )
