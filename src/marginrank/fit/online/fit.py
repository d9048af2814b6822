"""Passes over the data until it pays no more."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from marginrank._utils.parameters import Mention, Message
from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Floats
from marginrank.data.held_out import check_same_features
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.fit.online.learner import Learner
from marginrank.fit.online.parameters import OnlineParameters
from marginrank.fit.online.passes import Passes, View
from marginrank.fit.online.problems import (
    Chunks,
    Contents,
    contents,
    step_problem,
    value_and_gradient,
)
from marginrank.fit.online.validation import hold_out
from marginrank.fit.scaling import values_of, without_effect
from marginrank.models.fit_report import FitReport, Pass, StopReason
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import recorded_parameters
from marginrank.solvers.stochastic.sgd import StepProblem

Problems = Callable[[], Iterable[StepProblem]]

NO_VALUE = (
    "{} has no value on the validation data, check its labels; the fit stopped by its objective "
    "instead."
)

# What to increase where a fit did not come as close to the optimum as was asked for.
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
) -> tuple[LinearModel, Learner]:
    """Make passes over the data until it pays no more; return the model and what goes on learning.

    `chunks` is called once for each reading of the data. A `stream` is read once to count, unless
    it is known what is `found` there, once for each pass, where the objective is only estimated,
    and once more for objective and gap. A list of `pairs`, and a `propensity` by row, belong to
    data that comes in one chunk.
    """
    if stream:
        parameters.check_stream()
    if parameters.early_stopping and validation is None:
        _check_hold_out(stream, pairs)
    held_out, judge = hold_out(chunks, parameters, seed, validation)
    asked, note = parameters, None
    if judge is not None and parameters.early_stopping and not judge.has_value:
        note = NO_VALUE.format(parameters.scoring)
        parameters, held_out, judge = replace(parameters, early_stopping=False), None, None
    given: dict[str, Any] = {"pairs": pairs, "propensity": propensity}
    found = found or contents(chunks, parameters, held_out, **given)
    check_same_features(validation, found.n_features)
    learner = Learner(found.n_features, seed, scale=values_of(found.scale))

    def make_problems() -> Iterator[StepProblem]:
        for data in chunks():
            yield step_problem(data, parameters, held_out=held_out, **given)

    kept = [] if stream else list(make_problems())

    def problems() -> Iterable[StepProblem]:
        return kept or make_problems()

    def look(w: Floats) -> View:
        value, gradient = value_and_gradient(problems(), parameters, found, w)
        scaled = gradient if found.scale is None else gradient / found.scale.values
        gap = 0.5 * float(scaled @ scaled)
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
    facts: Any = {"n_pairs": found.n_pairs, "without_effect": without_effect(found.scale)}
    facts |= {"n_iter": len(fit.history), "history": fit.history, "note": note}
    report = FitReport(**seen._asdict(), stop_reason=stop, **facts)
    return _model(w, asked, report, learner), learner


def _model(
    w: Floats, parameters: OnlineParameters, report: FitReport, learner: Learner
) -> LinearModel:
    counts = {"n_iter": report.n_iter, "n_pairs": report.n_pairs, "t": learner.sgd.steps}
    return LinearModel(
        coef=w,
        parameters=recorded_parameters("SGDRankSVM", parameters),
        report=report,
        estimator="SGDRankSVM",
        counts=counts,
        scale=learner.scale,
    )


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


def stalled_message(report: FitReport) -> Message | None:
    """Return the warning that a fit did not come as close to the optimum as asked for, or None."""
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
