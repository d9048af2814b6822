"""Online learning: what SGDRankSVM and the command line share.

It does not know scikit-learn, whose import takes longer than many a fit.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from marginrank import _core
from marginrank._base.memory import require_vectors
from marginrank._base.parameters import check_parameters
from marginrank._base.threads import effective_threads, serial_blas
from marginrank._base.types import Booleans, Floats, Integers
from marginrank.data.ranking_data import RankingData
from marginrank.objective.losses import get_loss
from marginrank.solvers.result import Pass, StopReason
from marginrank.solvers.stochastic.sgd import (
    DRAWN_PAIRS,
    LONG_QUERY,
    PairSampler,
    Rate,
    Schedule,
    Sgd,
    StepProblem,
    automatic_rate,
    pair_weights,
)
from marginrank.training.declarations import OnlineDeclaration
from marginrank.training.online_passes import Passes, View
from marginrank.training.online_validation import hold_out

Chunks = Callable[[], Iterable[RankingData]]


@dataclass(frozen=True, kw_only=True)
class OnlineParameters(OnlineDeclaration):
    """The parameters of online learning; see :class:`~marginrank.SGDRankSVM`."""

    def check(self) -> None:
        """Refuse a wrong value by its name."""
        check_parameters(self)

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
        self.sgd = Sgd(n_features)
        if coef is not None:
            self.sgd.w[:] = self.sgd.average[:] = coef
        self._seed = seed
        self._chunks = 0
        self._queries = 0

    def learn(
        self,
        data: RankingData,
        parameters: OnlineParameters,
        *,
        total: float = 0.0,
        held_out: Booleans | None = None,
    ) -> None:
        """Make one pass over the queries of `data`, but for those that are held out.

        `total` is the weight of all pairs that C refers to; 0 stands for those seen so far.
        """
        problem = step_problem(data, parameters)
        chosen = problem.active
        if held_out is not None:
            chosen = chosen[~held_out[chosen]]
        rng = np.random.default_rng([self._seed, self._chunks])
        self._chunks += 1
        is_long = np.diff(data.queries.offsets)[chosen] > LONG_QUERY
        if parameters.method == "query" and is_long.any():
            problem = problem.cut_long_queries(chosen, self._seed, self._queries)
            chosen = problem.active
        self._queries += data.n_queries
        if chosen.size:
            threads = effective_threads(parameters.n_jobs)
            with serial_blas():
                for part, order in _steps(problem, chosen, parameters, rng):
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


def step_problem(data: RankingData, parameters: OnlineParameters) -> StepProblem:
    """Return the queries of `data`, each with what multiplies its loss."""
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    if parameters.normalization == "query":
        inside = pair_weights(data.matrix, data.queries, data.sample_weight)
        weight = np.divide(weight, inside, out=np.zeros(data.n_queries), where=inside > 0)
    loss = get_loss(parameters.loss)
    return StepProblem(data.matrix, data.queries, loss, weight, data.sample_weight)


def _steps(
    problem: StepProblem,
    chosen: Integers,
    parameters: OnlineParameters,
    rng: np.random.Generator,
) -> Iterator[tuple[StepProblem, Integers]]:
    """Yield what to take steps over: queries, or half as many drawn pairs as documents."""
    if parameters.method == "pair":
        sampler = PairSampler(problem, chosen)
        n_pairs = max(1, int(np.diff(problem.queries.offsets)[chosen].sum()) // 2)
        for first in range(0, n_pairs, DRAWN_PAIRS):
            count = min(DRAWN_PAIRS, n_pairs - first)
            yield sampler.problem(count, sampler.total / n_pairs, rng), np.arange(count)
        return
    yield problem, rng.permutation(chosen) if parameters.shuffle else chosen


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
    chunks: Chunks, parameters: OnlineParameters, held_out: Booleans | None = None
) -> Contents:
    """Count features and pairs, and refuse data without any pair to learn from."""
    n_documents, n_queries, n_features, n_pairs, weight = 0, 0, 0, 0, 0.0
    for data in chunks():
        n_documents += data.n_documents
        n_queries += data.n_queries
        n_features = max(n_features, data.n_features)
        n_pairs += data.n_pairs
        keep = np.ones(data.n_queries, dtype=bool) if held_out is None else ~held_out
        weight += float(np.sum(step_problem(data, parameters).weight[keep]))
    if n_pairs == 0:
        raise ValueError(
            "y has no pair to learn from: no query has two documents with different labels "
            f"(n_samples={n_documents}); check y and qid."
        )
    if weight == 0:
        raise ValueError(
            "sample_weight or query_weight is zero for every pair; give a pair a positive weight."
        )
    return Contents(n_documents, n_queries, n_features, n_pairs, weight)


def fit_online(
    chunks: Chunks,
    parameters: OnlineParameters,
    *,
    stream: bool = False,
    found: Contents | None = None,
    seed: int = 0,
    validation: RankingData | None = None,
    callback: Callable[[Pass], None] | None = None,
) -> Outcome:
    """Make passes over the data until it pays no more.

    `chunks` is called once for each reading of the data. A `stream` is read once to count, unless
    it is known what is `found` there, once for each pass, where the objective is only estimated,
    and once more for objective and gap.
    """
    parameters.check()
    if stream and parameters.early_stopping and validation is None:
        raise ValueError(
            "early_stopping=True cannot hold queries out of a stream; give validation data."
        )
    held_out, judge = hold_out(chunks, parameters, seed, validation)
    unjudged = None
    if judge is not None and parameters.early_stopping and not judge.has_value:
        unjudged = f"{parameters.scoring} has no value on the validation data, check its labels"
        parameters, held_out, judge = replace(parameters, early_stopping=False), None, None
    found = found or contents(chunks, parameters, held_out)
    if validation is not None and validation.n_features != found.n_features:
        raise ValueError(
            f"validation has {validation.n_features} features, but X has {found.n_features}."
        )
    learner = Learner(found.n_features, seed)

    def look(w: Floats) -> View:
        value, gradient = _value_and_gradient(chunks, parameters, found, w, held_out)
        gap = 0.5 * float(gradient @ gradient)
        promised = learner.sgd.promised_gain(gradient) / found.pair_scale(parameters)
        return View(value, gap, min(promised, gap))

    fit = Passes(parameters, learner, found, judge, None if stream else look)
    with serial_blas():
        stop = _make_passes(chunks, learner, fit, held_out, callback)
        w = fit.best()
        unknown = View(fit.objective, np.inf, np.inf)
        seen = unknown if stop is StopReason.INTERRUPTED else look(w)
    learner.sgd.seen = found.weight
    unsure = stop in (StopReason.STALLED, StopReason.MAX_ITER) and not parameters.early_stopping
    if unsure and seen.within(parameters.tol):
        stop = StopReason.ESTIMATED
    return Outcome(w, *seen, len(fit.history), found, stop, fit.history, learner, unjudged)


def _make_passes(
    chunks: Chunks,
    learner: Learner,
    fit: Passes,
    held_out: Booleans | None,
    callback: Callable[[Pass], None] | None,
) -> StopReason:
    """Make passes until there is a reason to stop; return it."""
    parameters = fit.parameters
    try:
        for _ in range(parameters.max_iter):
            for data in chunks():
                learner.learn(data, parameters, total=fit.found.weight, held_out=held_out)
            line, reason = fit.end_pass()
            if callback:
                callback(line)
            if reason is not None:
                return reason
    except KeyboardInterrupt:
        return StopReason.INTERRUPTED
    return StopReason.MAX_ITER


def evaluate(
    chunks: Chunks,
    parameters: OnlineParameters,
    found: Contents,
    w: Floats,
    held_out: Booleans | None = None,
) -> tuple[float, float]:
    """Return F(w) and the certificate ½‖∇F(w)‖² ≥ F(w) − F*."""
    value, gradient = _value_and_gradient(chunks, parameters, found, w, held_out)
    return value, 0.5 * float(gradient @ gradient)


def _value_and_gradient(
    chunks: Chunks,
    parameters: OnlineParameters,
    found: Contents,
    w: Floats,
    held_out: Booleans | None,
) -> tuple[float, Floats]:
    value, gradient = 0.0, np.zeros_like(w)
    threads = effective_threads(parameters.n_jobs)
    for data in chunks():
        problem = step_problem(data, parameters)
        if held_out is not None:
            weight = np.where(held_out, 0.0, problem.query_weight)
            problem = StepProblem(
                data.matrix, data.queries, problem.loss, weight, data.sample_weight
            )
        losses, _, slope, _, _ = _core.evaluate(data.matrix, problem.pairs, w, None, threads)
        value += float(np.sum(losses[:, 0]))
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
