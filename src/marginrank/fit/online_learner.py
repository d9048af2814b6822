"""Online learning: parameters, the queries of each chunk as a StepProblem, and the learner."""

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
from marginrank.models.parameters import OnlineDeclaration
from marginrank.objective.losses import get_loss
from marginrank.objective.pair_sets import check_C
from marginrank.operators.native import NativeMatrix, native_matrix
from marginrank.solvers.stochastic.sgd import Rate, Schedule, Sgd, StepProblem, automatic_rate

Chunks = Callable[[], Iterable[RankingData]]


@dataclass(frozen=True, kw_only=True)
class OnlineParameters(OnlineDeclaration):
    """Parameters of :class:`~marginrank.SGDRankSVM`."""

    def __post_init__(self) -> None:
        check_parameters(self)
        get_loss(self.loss)
        with calling("metric", "scoring"):
            get_metric(self.scoring)
        if np.isinf(1.0 / self.C):
            raise ParameterError(given("C", self.C), " is too small: 1 / C overflows; increase it.")

    def check_stream(self) -> None:
        """Raise ParameterError if a parameter requires all data at once."""
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
    """Return the queries of `data` as a StepProblem, without held-out queries."""
    pair_set, loss = _step_pairs(data, parameters, pairs, propensity)
    if held_out is not None:
        pair_set = pair_set.without(held_out)
    return StepProblem(design_of(data), pair_set, loss)


def design_of(data: RankingData) -> _core.Matrix:
    """Return X, with one more column per position if the data have positions."""
    term = PositionTerm.of_part(data)
    if term.codes is None:
        return data.matrix
    return cast(NativeMatrix, term.beside(native_matrix(data))).view


def shown_positions(data: RankingData, earlier: Booleans | None = None) -> Booleans | None:
    """Return a mask of the positions that occur so far; None without positions."""
    codes = PositionTerm.of_part(data).codes
    if codes is None:
        return earlier
    shown = np.bincount(codes.codes, minlength=codes.width) > 0
    return shown if earlier is None else shown | earlier


def divisors_of(scale: Floats | None, n_features: int, shown: Booleans | None) -> Floats | None:
    """Return the divisors of the features, followed by the divisors of positions, if any."""
    if shown is None:
        return scale
    features = np.ones(n_features) if scale is None else scale
    return np.concatenate([features, np.full(shown.size, POSITION_RIDGE**0.5)])


class Contents(NamedTuple):
    """Counts and scales of the data of a fit, from a first pass."""

    n_documents: int
    n_queries: int
    n_features: int
    n_pairs: int
    weight: float  # total weight of the training pairs
    scale: Scale | None = None  # scale of the features
    shown: Booleans | None = None  # positions that occur, if the data have positions

    @property
    def divisors(self) -> Floats | None:
        """The divisors σ of features and positions, or None."""
        return divisors_of(values_of(self.scale), self.n_features, self.shown)

    def loss_scale(self, parameters: OnlineParameters) -> float:
        """Return the factor by which the objective multiplies the loss summed over pairs."""
        return parameters.C / (1.0 if parameters.normalization == "none" else self.weight)

    def pair_scale(self, parameters: OnlineParameters) -> float:
        """Return the factor by which the objective multiplies the mean loss over pairs."""
        return self.loss_scale(parameters) * self.weight


def contents(
    chunks: Chunks,
    parameters: OnlineParameters,
    held_out: Booleans | None = None,
    *,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
) -> Contents:
    """Count features and pairs, and compute the scale.

    Raise ValueError if there is no pair of positive weight, or C is too large or small.
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
    """Return F(w) and its gradient; ½‖∇F(w) / σ‖² is a bound on F(w) − F*."""
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
    """Weights that are updated chunk by chunk.

    The seed determines the order of queries; `coef` are weights of the unscaled features to start
    from. If the data have positions, `shown` has the ones that occur, and effects of positions are
    behind the weights, 0 at the start.
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
        """Add positions of new data; raise ValueError unless all data have them or none do."""
        if (data.position is None) != (self._shown is None):
            earlier, now = ("had", "have none") if data.position is None else ("had no", "have")
            raise ValueError(
                f"earlier data {earlier} positions, but these data {now}; fit a new model."
            )
        self._shown = shown_positions(data, self._shown)

    def separate(self, w: Floats) -> tuple[Floats, dict[str, Any]]:
        """Split the weights into weights of features and report fields about positions."""
        if self._shown is None:
            return w, {}
        last = int(np.flatnonzero(self._shown)[-1]) + 1
        effects = np.where(self._shown, w[self.n_features :], np.nan)[:last]
        return w[: self.n_features], {"position_effect": effects}

    def learn(
        self, problem: StepProblem, parameters: OnlineParameters, *, total: float = 0.0
    ) -> None:
        """Make one pass over the queries of a problem.

        `total` is the weight of all pairs of the objective; 0 for the pairs so far.
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
        """Return the current weights, after a step over the last, incomplete batch."""
        with serial_blas():
            sgd = self.sgd.flushed(self._schedule(parameters, total))
        return sgd.average if parameters.average else sgd.w

    def _schedule(self, parameters: OnlineParameters, total: float) -> Schedule:
        mean = parameters.normalization != "none"
        rate = parameters.rate(self.n_features)
        return Schedule(1.0 / parameters.C, 1.0 if mean else total, rate)
