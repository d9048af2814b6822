"""Online learning by stochastic gradient descent: parameters, chunks of data and the learner."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from marginrank import _core
from marginrank._utils.memory import require_vectors
from marginrank._utils.parameters import Mention, ParameterError, calling, check_parameters, given
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Booleans, Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.inputs import Preferences, choose_pairs, no_pairs, no_weight
from marginrank.fit.positions import POSITION_RIDGE, PositionTerm
from marginrank.fit.scaling import Scale, ScaleSearch, values_of
from marginrank.metrics import get_metric
from marginrank.models.online_parameters import OnlineDeclaration
from marginrank.objective.losses import get_loss
from marginrank.objective.pair_sets import check_C
from marginrank.operators.native import NativeMatrix, native_matrix
from marginrank.solvers.stochastic.sgd import Rate, Schedule, Sgd, StepProblem, automatic_rate

Chunks = Callable[[], Iterable[RankingData]]


@dataclass(frozen=True, kw_only=True)
class OnlineParameters(OnlineDeclaration):
    """The validated parameters of :class:`~marginrank.SGDRankSVM`."""

    def __post_init__(self) -> None:
        check_parameters(self)
        get_loss(self.loss)
        with calling("metric", "scoring"):
            get_metric(self.scoring)
        if np.isinf(1.0 / self.C):
            raise ParameterError(given("C", self.C), " is too small: 1 / C overflows; increase it.")

    def check_stream(self) -> None:
        """Raise ParameterError if a parameter requires all labels at once, which a stream lacks."""
        for name in ("pair_cost", "margin"):
            value = getattr(self, name)
            if value is None or isinstance(value, str) or callable(value):
                continue
            raise ParameterError(
                Mention(name),
                " is a matrix over all labels, but a stream has only a part of them at a time; "
                "pass a callable of two labels.",
            )

    def rate(self, n_features: int) -> Rate:
        if self.learning_rate == "auto":
            return automatic_rate(n_features)
        return Rate(self.eta0, 0.0, 1.0 if self.learning_rate == "inverse" else 0.0)


def _step_pairs(
    data: RankingData,
    parameters: OnlineParameters,
    pairs: PairList | None,
    propensity: Floats | None,
) -> Preferences:
    """Return the pairs of `data`, with the weight of each query, and the loss."""
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
    """Return the documents and pairs of a chunk as a StepProblem for stochastic gradient descent.

    Queries in the mask `held_out` are left out.
    """
    pair_set, loss = _step_pairs(data, parameters, pairs, propensity)
    if held_out is not None:
        pair_set = pair_set.without(held_out)
    return StepProblem(design_of(data), pair_set, loss)


def design_of(data: RankingData) -> _core.Matrix:
    """Return X, followed by one indicator column per display position if the data have any."""
    term = PositionTerm.of_part(data)
    if term.codes is None:
        return data.matrix
    return cast(NativeMatrix, term.beside(native_matrix(data))).view


def shown_positions(data: RankingData, earlier: Booleans | None = None) -> Booleans | None:
    """Return a mask of the display positions that occur in `data` or in the mask `earlier`.

    A display position is the rank at which a clicked or skipped document was shown. The result is
    None if neither has positions.
    """
    codes = PositionTerm.of_part(data).codes
    if codes is None:
        return earlier
    shown = np.bincount(codes.codes, minlength=codes.width) > 0
    return shown if earlier is None else shown | earlier


def divisors_of(scale: Floats | None, n_features: int, shown: Booleans | None) -> Floats | None:
    """Return the divisors of the feature weights and of the effects of display positions.

    Without positions (`shown` is None), they are the divisors of the features alone, or None.
    """
    if shown is None:
        return scale
    features = np.ones(n_features) if scale is None else scale
    return np.concatenate([features, np.full(shown.size, POSITION_RIDGE**0.5)])


class Contents(NamedTuple):
    """Counts of documents, queries and pairs in the training data, and the feature scale."""

    n_documents: int
    n_queries: int
    n_features: int
    n_pairs: int
    weight: float  # total weight of the training pairs
    scale: Scale | None = None  # scale of the features
    shown: Booleans | None = None  # positions that occur, if the data have positions

    @property
    def divisors(self) -> Floats | None:
        """Divisors of the features, then of the effects of display positions; None if all are 1."""
        return divisors_of(values_of(self.scale), self.n_features, self.shown)

    def loss_scale(self, parameters: OnlineParameters) -> float:
        """Return the factor a in the training objective, ½‖w‖² + a · Σ loss over the pairs."""
        return parameters.C / (1.0 if parameters.normalization == "none" else self.weight)

    def pair_scale(self, parameters: OnlineParameters) -> float:
        """Return the factor a in the training objective, ½‖w‖² + a · mean loss over the pairs."""
        return self.loss_scale(parameters) * self.weight


def contents(
    chunks: Chunks,
    parameters: OnlineParameters,
    held_out: Booleans | None = None,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Contents:
    """Return the counts of documents, queries and pairs in the data, and the feature scale.

    Raise ValueError if no pair has a positive weight, or if C is too large or too small.
    """
    search = ScaleSearch(parameters.scale)
    n_documents, n_queries, n_features, n_pairs, weight = 0, 0, 0, 0, 0.0
    shown: Booleans | None = None
    for data in chunks():
        pair_set = _step_pairs(data, parameters, pairs, propensity).pairs
        search.add(data)
        shown = shown_positions(data, shown)
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
    found = Contents(n_documents, n_queries, n_features, n_pairs, weight, search.found(), shown)
    check_C(parameters.C, weight, found.pair_scale(parameters))
    return found


def value_and_gradient(
    problems: Iterable[StepProblem], parameters: OnlineParameters, found: Contents, w: Floats
) -> tuple[float, Floats]:
    """Return the objective F(w) of an online fit and its gradient, summed over all chunks.

    With the divisors σ of the features, ½‖∇F(w) / σ‖² is an upper bound on F(w) minus its minimum.
    """
    value, gradient = 0.0, np.zeros_like(w)
    threads = effective_threads(parameters.n_jobs)
    for problem in problems:
        loss, slope = problem.value_and_gradient(w, threads)
        value += loss
        gradient += slope
    factor = found.loss_scale(parameters)
    divisors = found.divisors
    penalized = w if divisors is None else divisors**2 * w
    return 0.5 * float(w @ penalized) + factor * value, penalized + factor * gradient


class Learner:
    """Weights of a linear model that are updated by SGD, one chunk of data after the other.

    The seed determines the order of queries. `coef` are the weights to start from, for features
    that are not scaled. In click data, `shown` is a mask of the display positions that occur; the
    effects of these positions on clicks are learned beside the weights and start at 0.
    """

    def __init__(
        self,
        n_features: int,
        seed: int,
        coef: Floats | None = None,
        scale: Floats | None = None,
        shown: Booleans | None = None,
    ) -> None:
        require_vectors(n_features)
        self.n_features = n_features
        self.scale = scale
        self._shown = shown
        n_positions = 0 if shown is None else shown.size
        start = None if coef is None else np.concatenate([coef, np.zeros(n_positions)])
        divisors = divisors_of(scale, n_features, shown)
        self.sgd = Sgd(n_features + n_positions, start, divisors)
        self._seed = seed
        self._chunks = 0
        self._queries = 0

    def expect(self, data: RankingData) -> None:
        """Record the display positions in new data before the learner is trained on them.

        Raise ValueError if only one of the earlier and the new data have positions.
        """
        if (data.position is None) != (self._shown is None):
            earlier, now = ("had", "have none") if data.position is None else ("had no", "have")
            raise ValueError(
                f"earlier data {earlier} positions, but these data {now}; fit a new model."
            )
        self._shown = shown_positions(data, self._shown)

    def separate(self, w: Floats) -> tuple[Floats, dict[str, Any]]:
        """Return the weights of features and the effects of positions from the learned vector.

        The effects are returned as fields of a FitReport.
        """
        if self._shown is None:
            return w, {}
        last = int(np.flatnonzero(self._shown)[-1]) + 1
        effects = np.where(self._shown, w[self.n_features :], np.nan)[:last]
        return w[: self.n_features], {"position_effect": effects}

    def learn(
        self, problem: StepProblem, parameters: OnlineParameters, *, total: float = 0.0
    ) -> None:
        """Update the weights by one pass over the queries of a chunk.

        `total` is the weight of all training pairs, which scales the loss; 0 stands for the weight
        of the pairs seen so far.
        """
        rng = np.random.default_rng([self._seed, self._chunks])
        first = self._queries
        self._chunks += 1
        self._queries += problem.sizes.size
        if not problem.active.size:
            return
        if parameters.method == "pair":
            parts: Iterable[StepProblem] = problem.draw(rng)
        else:
            parts = [problem.cut_long_queries(self._seed, first)]
        threads = effective_threads(parameters.n_jobs)
        with serial_blas():
            for part in parts:
                shuffled = parameters.shuffle and parameters.method == "query"
                order = rng.permutation(part.active) if shuffled else part.active
                self.sgd.run(part, order, self._schedule(parameters, total), threads)

    def coef(self, parameters: OnlineParameters, *, total: float = 0.0) -> Floats:
        """Return the current weights, including a last step for an incomplete batch of queries."""
        with serial_blas():
            sgd = self.sgd.flushed(self._schedule(parameters, total))
        return sgd.average if parameters.average else sgd.w

    def _schedule(self, parameters: OnlineParameters, total: float) -> Schedule:
        mean = parameters.normalization != "none"
        rate = parameters.rate(self.n_features)
        return Schedule(1.0 / parameters.C, 1.0 if mean else total, rate)
