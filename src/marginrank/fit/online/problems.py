"""Chunks of data as queries to take steps over, and what all of them hold."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Booleans, Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.online.parameters import OnlineParameters
from marginrank.fit.pairs import Preferences, choose_pairs, no_pairs, no_weight
from marginrank.fit.scaling import Scale, ScaleSearch
from marginrank.objective.losses import get_loss
from marginrank.objective.pair_sets import check_C
from marginrank.solvers.stochastic.sgd import StepProblem

Chunks = Callable[[], Iterable[RankingData]]


def step_pairs(
    data: RankingData,
    parameters: OnlineParameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Preferences:
    """Return the pairs of `data`, each query with what multiplies its loss, and the loss."""
    chosen, loss = choose_pairs(
        data,
        get_loss(parameters.loss),
        pair_selection=parameters.pair_selection,
        pair_cost=parameters.pair_cost,
        margin=parameters.margin,
        pairs=pairs,
        propensity=propensity,
        threads=effective_threads(parameters.n_jobs),
    )
    chosen.check_overflow()
    averaged = chosen.averaged() if parameters.normalization == "query" else chosen
    return Preferences(averaged, loss)


def step_problem(
    data: RankingData,
    parameters: OnlineParameters,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    held_out: Booleans | None = None,
) -> StepProblem:
    """Return what to take steps over: the queries of `data`, but for those that are held out."""
    pair_set, loss = step_pairs(data, parameters, pairs=pairs, propensity=propensity)
    if held_out is not None:
        pair_set = pair_set.without(held_out)
    return StepProblem(data.matrix, pair_set, loss)


class Contents(NamedTuple):
    """What a source holds, found in a first reading."""

    n_documents: int
    n_queries: int
    n_features: int
    n_pairs: int
    weight: float  # of the pairs to learn from
    scale: Scale | None = None  # of the features

    def loss_scale(self, parameters: OnlineParameters) -> float:
        """Return what multiplies a sum over pairs in the objective."""
        return parameters.C / (1.0 if parameters.normalization == "none" else self.weight)

    def pair_scale(self, parameters: OnlineParameters) -> float:
        """Return what multiplies a mean over pairs in the objective."""
        return self.loss_scale(parameters) * self.weight


def contents(
    chunks: Chunks,
    parameters: OnlineParameters,
    held_out: Booleans | None = None,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Contents:
    """Count features and pairs, and find the scale.

    Data without any pair is refused, and a C too large or small for it.
    """
    search = ScaleSearch(parameters.scale)
    n_documents, n_queries, n_features, n_pairs, weight = 0, 0, 0, 0, 0.0
    for data in chunks():
        pair_set = step_pairs(data, parameters, pairs=pairs, propensity=propensity).pairs
        search.add(data)
        n_documents += data.n_documents
        n_queries += data.n_queries
        n_features = max(n_features, data.n_features)
        n_pairs += pair_set.n_pairs
        weights = pair_set.weights
        weight += float(np.sum(weights if held_out is None else weights[~held_out]))
    if n_pairs == 0:
        raise no_pairs(n_documents, n_queries)
    if weight == 0:
        raise no_weight()
    found = Contents(n_documents, n_queries, n_features, n_pairs, weight, search.found())
    check_C(parameters.C, weight, found.pair_scale(parameters))
    return found


def value_and_gradient(
    problems: Iterable[StepProblem], parameters: OnlineParameters, found: Contents, w: Floats
) -> tuple[float, Floats]:
    """Return F(w) and its gradient; ½‖∇F(w) / σ‖² is a bound on F(w) − F*."""
    value, gradient = 0.0, np.zeros_like(w)
    threads = effective_threads(parameters.n_jobs)
    for problem in problems:
        loss, slope = problem.value_and_gradient(w, threads)
        value += loss
        gradient += slope
    factor = found.loss_scale(parameters)
    penalised = w if found.scale is None else found.scale.values**2 * w
    return 0.5 * float(w @ penalised) + factor * value, penalised + factor * gradient
