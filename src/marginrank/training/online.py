"""Online learning: what SGDRankSVM and the command line share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from marginrank._base.memory import require_vectors
from marginrank._base.parameters import check_choice, check_integer, check_number
from marginrank._base.threads import effective_threads, serial_blas
from marginrank._base.types import Booleans, Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.metrics import get_metric
from marginrank.objective.losses import get_loss
from marginrank.objective.margins import check_margin
from marginrank.objective.pair_weights import check_cost
from marginrank.solvers.result import Pass, StopReason
from marginrank.solvers.stochastic.sgd import Rate, Schedule, Sgd, StepProblem, automatic_rate
from marginrank.training.online_passes import Passes, View
from marginrank.training.online_validation import hold_out
from marginrank.training.pairs import (
    NORMALIZATIONS,
    PAIR_SELECTIONS,
    Preferences,
    choose_pairs,
)

Chunks = Callable[[], Iterable[RankingData]]
Problems = Callable[[], Iterable[StepProblem]]

METHODS = ("query", "pair")
LEARNING_RATES = ("auto", "inverse", "constant")


@dataclass(frozen=True, kw_only=True)
class OnlineParameters:
    """The parameters of online learning; see :class:`~marginrank.SGDRankSVM`."""

    method: str = "query"
    C: float = 1.0
    loss: str = "squared_hinge"
    pair_selection: str = "all"
    pair_cost: Any = None
    margin: Any = "unit"
    normalization: str = "none"
    learning_rate: str = "auto"
    eta0: float = 1.0
    average: bool = True
    max_iter: int = 100
    tol: float = 1e-3
    shuffle: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    scoring: str = "ndcg@10"
    n_jobs: int | None = None

    def check(self) -> None:
        """Refuse a wrong value by its name."""
        check_choice("method", self.method, METHODS)
        if np.isinf(1.0 / check_number("C", self.C)):
            raise ValueError(f"C={self.C!r} is too small: 1 / C is infinite.")
        get_loss(self.loss)
        check_choice("pair_selection", self.pair_selection, PAIR_SELECTIONS)
        check_cost(self.pair_cost)
        check_margin(self.margin)
        check_choice("normalization", self.normalization, NORMALIZATIONS)
        check_choice("learning_rate", self.learning_rate, LEARNING_RATES)
        check_number("eta0", self.eta0)
        check_integer("max_iter", self.max_iter, at_least=1)
        check_number("tol", self.tol, allow_equal=True)
        for name in ("average", "shuffle", "early_stopping"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name}={getattr(self, name)!r} must be True or False.")
        if not check_number("validation_fraction", self.validation_fraction) < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction} must be below 1.")
        check_integer("n_iter_no_change", self.n_iter_no_change, at_least=1)
        get_metric(self.scoring)
        effective_threads(self.n_jobs)

    def check_stream(self) -> None:
        """Refuse what can only be said of all data at once."""
        cost = self.pair_cost
        if not (cost is None or isinstance(cost, str) or callable(cost)):
            raise ValueError(
                "pair_cost is a matrix over all labels of the data, and a stream shows a part of "
                "them at a time; give a callable of two labels."
            )

    def rate(self, n_features: int) -> Rate:
        """Return the steps' rate."""
        if self.learning_rate == "auto":
            return automatic_rate(n_features)
        return Rate(self.eta0, 0.0, 1.0 if self.learning_rate == "inverse" else 0.0)


class Learner:
    """Weights that go on learning, chunk by chunk.

    Parameters
    ----------
    n_features : int
        Number of features.
    seed : int
        Seed of the order of the queries.
    coef : ndarray of shape (n_features,), optional
        Weights to start from.
    """

    def __init__(self, n_features: int, seed: int, coef: Floats | None = None) -> None:
        require_vectors(n_features)
        self.n_features = n_features
        self.sgd = Sgd(n_features, coef)
        self._seed = seed
        self._chunks = 0
        self._queries = 0

    def learn(
        self, problem: StepProblem, parameters: OnlineParameters, *, total: float = 0.0
    ) -> None:
        """Make one pass over the queries of a problem.

        `total` is the weight of all pairs that C refers to; 0 stands for those seen so far.
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
        """Return the weights learned so far, with a step over what waits for one."""
        with serial_blas():
            sgd = self.sgd.flushed(self._schedule(parameters, total))
        return sgd.average if parameters.average else sgd.w

    def _schedule(self, parameters: OnlineParameters, total: float) -> Schedule:
        mean = parameters.normalization != "none"
        rate = parameters.rate(self.n_features)
        return Schedule(1.0 / parameters.C, 1.0 if mean else total, rate)


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
    chosen.refuse_overflow()
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


class Outcome(NamedTuple):
    """What came out of an online fit.

    `gap` is a certified bound on F − F*, `estimate` what the learned metric says of it; `unjudged`
    tells why early stopping was not possible, if so.
    """

    w: Floats
    objective: float
    gap: float
    estimate: float
    n_iter: int
    found: "Contents"
    stop: StopReason
    history: list[Pass]
    learner: Learner
    unjudged: str | None = None


class Contents(NamedTuple):
    """What a source holds, found in a first reading."""

    n_documents: int
    n_queries: int
    n_features: int
    n_pairs: int
    weight: float  # of the pairs to learn from

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
    """Count features and pairs, and refuse data without any pair to learn from."""
    n_documents, n_queries, n_features, n_pairs, weight = 0, 0, 0, 0, 0.0
    for data in chunks():
        pair_set = step_pairs(data, parameters, pairs=pairs, propensity=propensity).pairs
        n_documents += data.n_documents
        n_queries += data.n_queries
        n_features = max(n_features, data.n_features)
        n_pairs += pair_set.n_pairs
        weights = pair_set.weights
        weight += float(np.sum(weights if held_out is None else weights[~held_out]))
    if n_pairs == 0:
        raise ValueError(
            "y has no pair to learn from: no query has two documents with different labels "
            f"(n_samples={n_documents}); check y and qid."
        )
    if weight == 0:
        raise ValueError(
            "pair_cost, sample_weight, query_weight or pair_weight is zero for every pair; give a "
            "pair a positive weight."
        )
    return Contents(n_documents, n_queries, n_features, n_pairs, weight)


def fit_online(
    chunks: Chunks,
    parameters: OnlineParameters,
    *,
    stream: bool = False,
    found: Contents | None = None,
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    seed: int = 0,
    validation: RankingData | None = None,
    callback: Callable[[Pass], None] | None = None,
) -> Outcome:
    """Make passes over the data until it pays no more.

    `chunks` is called once for each reading of the data. A `stream` is read once to count, unless
    it is known what is `found` there, once for each pass, where the objective is only estimated,
    and once more for objective and gap. A list of `pairs`, and a `propensity` by row, belong to
    data that comes in one chunk.
    """
    parameters.check()
    if stream:
        parameters.check_stream()
    if parameters.early_stopping and validation is None:
        _check_hold_out(stream, pairs)
    held_out, judge = hold_out(chunks, parameters, seed, validation)
    unjudged = None
    if judge is not None and parameters.early_stopping and not judge.has_value:
        unjudged = f"{parameters.scoring} has no value on the validation data, check its labels"
        parameters, held_out, judge = replace(parameters, early_stopping=False), None, None
    given: dict[str, Any] = {"pairs": pairs, "propensity": propensity}
    found = found or contents(chunks, parameters, held_out, **given)
    if validation is not None and validation.n_features != found.n_features:
        raise ValueError(
            f"validation has {validation.n_features} features, but X has {found.n_features}."
        )
    learner = Learner(found.n_features, seed)

    def make_problems() -> Iterator[StepProblem]:
        for data in chunks():
            yield step_problem(data, parameters, held_out=held_out, **given)

    kept = [] if stream else list(make_problems())

    def problems() -> Iterable[StepProblem]:
        return kept or make_problems()

    def look(w: Floats) -> View:
        value, gradient = value_and_gradient(problems(), parameters, found, w)
        gap = 0.5 * float(gradient @ gradient)
        promised = learner.sgd.promised_gain(gradient) / found.pair_scale(parameters)
        return View(value, gap, min(promised, gap))

    fit = Passes(parameters, learner, found, judge, None if stream else look)
    with serial_blas():
        stop = _make_passes(problems, learner, fit, callback)
        w = fit.best()
        unknown = View(fit.objective, np.inf, np.inf)
        seen = unknown if stop is StopReason.INTERRUPTED else look(w)
    learner.sgd.seen = found.weight
    unsure = stop in (StopReason.STALLED, StopReason.MAX_ITER) and not parameters.early_stopping
    if unsure and seen.within(parameters.tol):
        stop = StopReason.ESTIMATED
    return Outcome(w, *seen, len(fit.history), found, stop, fit.history, learner, unjudged)


def _check_hold_out(stream: bool, pairs: PairList | None) -> None:
    """Refuse to hold out what cannot be told apart, or has no labels to judge by."""
    if stream:
        raise ValueError(
            "early_stopping=True cannot hold queries out of a stream; give validation data."
        )
    if pairs is not None:
        raise ValueError(
            "early_stopping=True holds queries out and needs their labels, which pairs do not "
            "have; give validation data."
        )


def _make_passes(
    problems: Problems, learner: Learner, fit: Passes, callback: Callable[[Pass], None] | None
) -> StopReason:
    """Make passes until there is a reason to stop; return it."""
    parameters = fit.parameters
    try:
        for _ in range(parameters.max_iter):
            for problem in problems():
                learner.learn(problem, parameters, total=fit.found.weight)
            line, reason = fit.end_pass()
            if callback:
                callback(line)
            if reason is not None:
                return reason
    except KeyboardInterrupt:
        return StopReason.INTERRUPTED
    return StopReason.MAX_ITER


def value_and_gradient(
    problems: Iterable[StepProblem], parameters: OnlineParameters, found: Contents, w: Floats
) -> tuple[float, Floats]:
    """Return F(w) and its gradient; ½‖∇F(w)‖² is a bound on F(w) − F*."""
    value, gradient = 0.0, np.zeros_like(w)
    threads = effective_threads(parameters.n_jobs)
    for problem in problems:
        loss, slope = problem.value_and_gradient(w, threads)
        value += loss
        gradient += slope
    scale = found.loss_scale(parameters)
    return 0.5 * float(w @ w) + scale * value, w + scale * gradient


def stalled_message(outcome: Outcome) -> str | None:
    """Return what to warn of, if a fit did not come as close to the optimum as was asked for."""
    remarks = []
    if outcome.unjudged is not None:
        remarks.append(f"{outcome.unjudged}; the fit stopped by its objective instead.")
    fix = {
        StopReason.STALLED: "increase n_iter_no_change or tol, or use RankSVM",
        StopReason.MAX_ITER: "increase max_iter or tol",
    }.get(outcome.stop)
    if fix is not None:
        distance = outcome.estimate / outcome.objective if outcome.objective > 0 else np.inf
        remarks.append(
            f"The fit stopped because {outcome.stop.value}, by estimate {distance:.1e} above the "
            f"optimum, relatively; {fix}."
        )
    return " ".join(remarks) or None
