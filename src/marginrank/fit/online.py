"""Online fits: passes of stochastic gradient descent over the data, with stopping rules."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.threads import effective_threads, serial_blas
from marginrank._utils.types import Booleans, Floats
from marginrank.data.held_out import check_same_features
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.online_learner import (
    Chunks,
    Contents,
    Learner,
    OnlineParameters,
    contents,
    design_of,
    step_problem,
    value_and_gradient,
)
from marginrank.fit.scaling import values_of, without_effect
from marginrank.metrics import get_metric
from marginrank.metrics.names import order_free
from marginrank.metrics.options import exceeds
from marginrank.models.fit_report import FitReport, Pass, StopReason
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import recorded_parameters
from marginrank.solvers.stochastic.sgd import StepProblem

NO_VALUE = (
    "{} is not defined on the validation data; check their labels. The fit stopped by the training "
    "objective instead."
)

# Parameters to increase if a fit did not reach tol.
FIXES = {
    StopReason.STALLED: (
        Mention("n_iter_no_change"),
        " or ",
        Mention("tol"),
        ", or use ",
        Mention("RankSVM"),
        ".",
    ),
    StopReason.MAX_ITER: (Mention("max_iter"), " or ", Mention("tol"), "."),
}


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
    on_learner: Callable[[Learner], None] | None = None,
) -> LinearModel:
    """Fit a linear model by stochastic gradient descent over data that may come in chunks.

    `chunks` is called once per pass and yields the data. With `stream`, chunks are not kept in
    memory: a first pass counts documents and pairs (unless `found` has the counts), the passes of
    the fit only estimate the objective, and a last pass computes it. `pairs` and `propensity`
    require all data in one chunk. `on_learner` is called with the Learner, which can continue the
    fit.
    """
    if stream:
        parameters.check_stream()
    held_out, validator = _hold_out(chunks, parameters, seed, validation, stream, pairs)
    asked, note = parameters, None
    if validator is not None and parameters.early_stopping and not validator.has_value:
        note = NO_VALUE.format(parameters.scoring)
        parameters, held_out, validator = replace(parameters, early_stopping=False), None, None
    given: dict[str, Any] = {"pairs": pairs, "propensity": propensity}
    found = found or contents(chunks, parameters, held_out, **given)
    check_same_features(validation, found.n_features)
    learner = Learner(found.n_features, seed, scale=values_of(found.scale), shown=found.shown)

    def make_problems() -> Iterator[StepProblem]:
        for data in chunks():
            yield step_problem(data, parameters, held_out=held_out, **given)

    kept = [] if stream else list(make_problems())

    def problems() -> Iterable[StepProblem]:
        return kept or make_problems()

    def evaluate(w: Floats) -> _Evaluation:
        value, gradient = value_and_gradient(problems(), parameters, found, w)
        scaled = gradient if found.divisors is None else gradient / found.divisors
        gap = 0.5 * float(scaled @ scaled)
        promised = learner.sgd.promised_gain(gradient) / found.pair_scale(parameters)
        return _Evaluation(value, gap, min(promised, gap))

    fit = _Passes(parameters, learner, found, validator, None if stream else evaluate)
    with serial_blas():
        stop = fit.run(problems, callback)
        w = fit.best()
        unknown = _Evaluation(fit.objective, np.inf, np.inf)
        final = unknown if stop is StopReason.INTERRUPTED else evaluate(w)
    learner.sgd.seen = found.weight
    unsure = stop in (StopReason.STALLED, StopReason.MAX_ITER) and not parameters.early_stopping
    if unsure and final.within(parameters.tol):
        stop = StopReason.ESTIMATED
    facts: Any = {"n_pairs": found.n_pairs, "without_effect": without_effect(found.scale)}
    facts |= {"n_iter": len(fit.history), "history": fit.history, "note": note}
    report = FitReport(**final._asdict(), stop_reason=stop, **facts)
    if on_learner is not None:
        on_learner(learner)
    return _model(w, asked, report, learner)


def _model(
    w: Floats, parameters: OnlineParameters, report: FitReport, learner: Learner
) -> LinearModel:
    coef, effects = learner.separate(w)
    return LinearModel(
        coef=coef,
        parameters=recorded_parameters("SGDRankSVM", parameters),
        report=replace(report, **effects),
        estimator="SGDRankSVM",
        counts={"n_iter": report.n_iter, "n_pairs": report.n_pairs, "t": learner.sgd.steps},
        scale=learner.scale,
    )


def stalled_message(report: FitReport) -> Message | None:
    """Return the warning that an online fit did not reach `tol`, or None."""
    note = fix = Message()
    if report.note is not None:
        note = Message(report.note)
    if report.stop_reason in FIXES:
        distance = report.estimate / report.objective if report.objective > 0 else np.inf
        fix = Message(
            "The fit stopped because ",
            report.stop_reason.value,
            f"; the estimated relative suboptimality is {distance:.1e}. Increase ",
            *FIXES[report.stop_reason],
        )
    between = " " if note and fix else ""
    return Message(note, between, fix) or None


class _Validator:
    """A metric on validation queries, averaged over all orders of tied documents."""

    def __init__(self, data: RankingData, scoring: str, queries: Booleans | None = None) -> None:
        self._metric = order_free(get_metric(scoring))
        self._matrix = design_of(data)
        qid = data.qid
        self._rows = np.arange(qid.size) if queries is None else np.flatnonzero(queries[qid])
        self._y, self._qid = data.y[self._rows], qid[self._rows]

    @property
    def has_value(self) -> bool:
        """Whether the metric is defined for the labels of the validation data."""
        return not np.isnan(self._measure(np.zeros(self._y.size)))

    def measure(self, w: Floats, threads: int) -> float:
        """Return the metric of the scores Xw on the validation data.

        If the data have positions of clicks, their effects are added to the scores; without
        positions in the training data, these effects are zero.
        """
        own = np.zeros(self._matrix.n_columns)
        own[: w.size] = w[: own.size]
        return self._measure(self._matrix.dot(own, self._rows, threads))

    def _measure(self, scores: Floats) -> float:
        return float(self._metric(self._y, scores, qid=self._qid))


def _hold_out(
    chunks: Chunks,
    parameters: OnlineParameters,
    seed: int,
    validation: RankingData | None,
    stream: bool,
    pairs: PairList | None,
) -> tuple[Booleans | None, _Validator | None]:
    """Return a mask of the queries to hold out, and the validator; both may be None."""
    if validation is not None:
        return None, _Validator(validation, parameters.scoring)
    if not parameters.early_stopping:
        return None, None
    if stream or pairs is not None:
        reason = "the data are a stream" if stream else "pairs replace the labels"
        raise ValueError(
            f"early_stopping=True cannot set training queries aside, because {reason}; pass "
            "validation data."
        )
    (data,) = chunks()
    able = np.flatnonzero(data.queries.n_pairs > 0)
    count = max(1, round(parameters.validation_fraction * able.size))
    if count >= able.size:
        raise ValueError(
            "early_stopping=True requires at least two queries with pairs, got "
            f"{able.size}; pass validation data, or use early_stopping=False."
        )
    held_out = np.zeros(data.n_queries, dtype=bool)
    held_out[np.random.default_rng(seed).permutation(able)[:count]] = True
    return held_out, _Validator(data, parameters.scoring, held_out)


class _Evaluation(NamedTuple):
    """Objective of one weight vector, with certified and estimated distance to the optimum."""

    objective: float
    gap: float
    estimate: float

    def within(self, tol: float) -> bool:
        """Return whether the estimated relative distance to the optimum is at most `tol`."""
        return self.estimate <= tol * self.objective


class _Passes:
    """The passes of a fit, with their history, the best weights and the stopping rules."""

    def __init__(
        self,
        parameters: OnlineParameters,
        learner: Learner,
        found: Contents,
        validator: _Validator | None,
        evaluate: Callable[[Floats], _Evaluation] | None,
    ) -> None:
        self.history: list[Pass] = []
        self._parameters = parameters
        self._learner = learner
        self._found = found
        self._validator = validator
        self._evaluate = evaluate
        self._start = time.perf_counter()
        self._before = (0.0, 0.0)
        self._best_score = -np.inf
        self._best: tuple[Floats, float] | None = None
        self._without_progress = 0
        self._lowest: list[float] = []

    def run(
        self, problems: Callable[[], Iterable[StepProblem]], callback: Callable[[Pass], None] | None
    ) -> StopReason:
        """Make passes over the data until a stopping rule applies; return the reason to stop."""
        parameters = self._parameters
        try:
            for _ in range(parameters.max_iter):
                for problem in problems():
                    self._learner.learn(problem, parameters, total=self._found.weight)
                line, reason = self._end_pass()
                if callback:
                    callback(line)
                if reason is not None:
                    return reason
        except KeyboardInterrupt:
            return StopReason.INTERRUPTED
        return StopReason.MAX_ITER

    @property
    def objective(self) -> float:
        """The objective of the best weights so far; nan if passes cannot be compared."""
        return np.nan if self._best is None else self._best[1]

    def best(self) -> Floats:
        """Return the best weights of all passes; the last weights if passes cannot be compared."""
        return self._coef() if self._best is None else self._best[0]

    def _coef(self) -> Floats:
        return self._learner.coef(self._parameters, total=self._found.weight)

    def _end_pass(self) -> tuple[Pass, StopReason | None]:
        """Record a pass and return it, with the stop reason, or None to continue."""
        parameters = self._parameters
        w = self._coef()
        threads = effective_threads(parameters.n_jobs)
        found = (
            self._evaluate(w) if self._evaluate else _Evaluation(self._estimate(), np.inf, np.inf)
        )
        line = Pass(
            iteration=len(self.history) + 1,
            objective=found.objective,
            metric=self._validator.measure(w, threads) if self._validator else np.nan,
            steps=self._learner.sgd.steps,
            seconds=time.perf_counter() - self._start,
        )
        self.history.append(line)
        early = parameters.early_stopping
        score = line.metric if early else -line.objective
        reason = self._by_metric(score) if early else self._by_objective(found)
        # An estimated objective mixes the weights of the whole pass, so it cannot compare passes.
        if (not early and self._evaluate is None) or exceeds(score, self._best_score):
            self._best = (w, line.objective)
        self._best_score = max(self._best_score, score)
        return line, reason

    def _by_metric(self, score: float) -> StopReason | None:
        """Return the stop reason if the metric has not improved by tol for several passes."""
        progress = score > self._best_score + self._parameters.tol
        self._without_progress = 0 if progress else self._without_progress + 1
        enough = self._without_progress >= self._parameters.n_iter_no_change
        return StopReason.VALIDATED if enough else None

    def _by_objective(self, found: _Evaluation) -> StopReason | None:
        """Return the stop reason if w is near the optimum, or if more passes would gain too little.

        The distance to the optimum decreases about like 1 / passes, so it is about the recent gain
        per pass times the number of passes, far more than the gain of a single pass.
        """
        tol, window = self._parameters.tol, self._parameters.n_iter_no_change
        if found.within(tol):
            return StopReason.ESTIMATED
        if self._learner.sgd.steps == 0:  # no step yet: the first batch is not complete
            return None
        self._lowest.append(min([found.objective, *self._lowest[-1:]]))
        passes = len(self._lowest)
        if passes <= window:
            return None
        gain = self._lowest[-1 - window] - self._lowest[-1]
        return StopReason.STALLED if gain * passes / window <= tol * self._lowest[-1] else None

    def _estimate(self) -> float:
        """Return an estimate of the objective, from the values of the batches of this pass."""
        sgd = self._learner.sgd
        value, weight = sgd.value - self._before[0], sgd.weight - self._before[1]
        self._before = sgd.value, sgd.weight
        if weight == 0:  # no step yet: the first batch is not complete
            return np.inf
        return self._found.pair_scale(self._parameters) * value / weight
