"""marginrank tune."""

from typing import Any

import typer

from marginrank._utils.parameters import ParameterError, check_choice, given
from marginrank.additive.fit import AdditiveParameters
from marginrank.additive.selection import AdditiveLearner
from marginrank.cli.commands.train_additive import fit_curves
from marginrank.cli.flags.search import DEFAULTS, NONE, OF_TRAIN, SearchOptions
from marginrank.cli.flags.shared import OneMetric, ValidationFlags
from marginrank.cli.flags.training import TuneFlags
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import (
    check_conflicts,
    check_flags_of_both,
    check_needs,
    check_plot,
)
from marginrank.cli.support.data import DataRequest, data_summary, open_data, open_held_out
from marginrank.cli.support.errors import INTERRUPTED, complain
from marginrank.cli.support.files import save_plot
from marginrank.cli.support.metrics import (
    DEFAULT,
    Metric,
    effect_of_ties,
    find_metric,
    find_metrics,
    measure,
)
from marginrank.cli.support.output import print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.search_results import (
    Reporter,
    describe,
    parameters_text,
    print_tuning,
    train_command,
)
from marginrank.cli.support.training import TrainingTask, warn_of
from marginrank.data import RankingData
from marginrank.fit.linear import Parameters, seed_from
from marginrank.fit.matrices import Opened
from marginrank.models import AdditiveModel, LinearModel
from marginrank.models.parameters import CURVES_TRIED, LINES_TRIED, PAIR_COSTS
from marginrank.plots import plot_search
from marginrank.selection.results import SearchResult
from marginrank.selection.search import run_search
from marginrank.selection.space import SearchSpace

AXES = ("loss", "pair_selection", "pair_cost", "margin")
AXES_BY_LEARNER = ("normalization", "scale")  # their default depends on the learner
SHARED = ("solver", "tol", "max_iter")  # by all candidates
SHARED_BY_CURVES = ("categorical_features", "interactions", "group_l1", "monotonic_cst")
NEEDS = (
    ("valid_group", "valid"),
    ("test_group", "test"),
    *((name, "additive") for name in ("smoothness", "max_bins", *SHARED_BY_CURVES)),
)
CONFLICTS = (("folds", "valid"), ("nested", "valid"), ("points", "C"))


def run(flags: TuneFlags, phases: Phases) -> None:
    """Search parameters, train a model with the best of them and write it to a file."""
    reading, options, scoring = flags.reading, flags.options, flags.scoring
    check_conflicts(reading.given, CONFLICTS)
    check_needs(reading.given, NEEDS)
    check_flags_of_both(reading.given, flags.data, scoring.valid, scoring.test)
    check_plot(scoring.plot)
    task = TrainingTask(flags.data, reading, ValidationFlags(), flags.training, phases)
    metric = find_metric(flags.metric)
    inputs = [scoring.valid, scoring.valid_group, scoring.test, scoring.test_group]
    space = task.prepare(
        lambda: _search_space(options, reading.n_jobs), inputs=inputs, outputs=[scoring.plot]
    )
    data = open_data(flags.data, reading, phases, DataRequest(missing=options.additive))
    # Validation and test data are read before the search, so that an error costs no time.
    request = DataRequest(data.n_features, data.feature_names, missing=options.additive)
    rest = reading, phases, request
    valid = open_held_out("valid", scoring.valid, scoring.valid_group, *rest)
    test = open_held_out("test", scoring.test, scoring.test_group, *rest)
    found = _search(flags, task, space, data, valid, metric)
    _warn(found, nested=scoring.nested)
    model: LinearModel | AdditiveModel
    if options.additive:
        model = fit_curves(data, found.parameters, task)
    else:
        model = task.fit(Opened(data), found.parameters)
    task.write(model)
    more: dict[str, Any] = {"selection": describe(found)}
    more["repeat"] = train_command(flags.data, reading, found.parameters, flags.training)
    save_plot(scoring.plot, phases, lambda: plot_search(found))
    if test is not None:
        with phases.phase("evaluate", scoring.test):
            more |= _evaluate(model, test, flags.metric, reading.n_jobs)
    if not flags.training.json:
        print_tuning(more["selection"])
        if test is not None:
            print_table(f"Test: {scoring.test}", more["test"].items())
    task.report(model, None, data_summary(data), **more)
    if not flags.training.json:
        print_line(f"to repeat the fit: {more['repeat']}")
    if found.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _search_space(options: SearchOptions, n_jobs: int | None) -> SearchSpace:
    """Return the candidates; raise ValueError for an invalid entry of a list."""
    shared: dict[str, Any] = {"n_jobs": n_jobs, **{n: getattr(options, n) for n in SHARED}}
    axes = {name: _entries(name, getattr(options, name)) for name in AXES}
    for name in AXES_BY_LEARNER:
        listed = getattr(options, name)
        axes[name] = _entries(name, _default(options, name) if listed is None else listed)
    shared |= {name: values[0] for name, values in axes.items()}
    Cs = None if options.C is None else _numbers("C", options.C)
    if not options.additive:
        return SearchSpace(Parameters(**shared), axes, Cs, options.points)
    own = {name: getattr(options, name) for name in SHARED_BY_CURVES}
    axes["max_bins"] = _numbers("max_bins", options.max_bins)
    axes["smoothness"] = _numbers("smoothness", options.smoothness)
    base = AdditiveParameters(**shared, **own)
    return SearchSpace(base, axes, Cs, options.points, AdditiveLearner())


def _default(options: SearchOptions, name: str) -> str:
    """Return the values to try if none are listed."""
    if options.additive:
        return CURVES_TRIED if name == "normalization" else str(DEFAULTS[name])
    return ",".join(LINES_TRIED if options.C is None else LINES_TRIED[:1])


def _entries(name: str, listed: str) -> list[Any]:
    """Return the values of a list, each checked as train does."""
    values: list[Any] = []
    for entry in map(str.strip, listed.split(",")):
        if name == "pair_cost":
            check_choice(name, entry, (NONE, *PAIR_COSTS))
        else:
            OF_TRAIN[name].constraint.check(name, entry)
        is_none = entry == NONE and name in ("pair_cost", "scale")
        values.append(None if is_none else entry)
    return _distinct(name, values)


def _numbers(name: str, listed: str) -> list[float]:
    """Return the values of a list of numbers, each checked as train does."""
    values: list[Any] = []
    for entry in map(str.strip, listed.split(",")):
        try:
            values.append((int if name == "max_bins" else float)(entry))
        except ValueError:
            values.append(entry)
        OF_TRAIN[name].constraint.check(name, values[-1])
    return _distinct(name, values)


def _distinct(name: str, values: list[Any]) -> list[Any]:
    for k, value in enumerate(values):
        if value in values[:k]:
            shown = given(name, NONE if value is None else value)
            raise ParameterError(shown, " is given twice; drop one of them.")
    return values


def _search(
    flags: TuneFlags,
    task: TrainingTask,
    space: SearchSpace,
    data: RankingData,
    valid: RankingData | None,
    metric: Metric,
) -> SearchResult:
    """Search the candidates, and show progress."""
    training, scoring = flags.training, flags.scoring
    with task.phases.phase("tune"), task.phases.searching() as bar:
        reporter = Reporter(bar, space.varied, verbose=training.verbose)
        try:
            found = run_search(
                data,
                space,
                cv=scoring.folds,
                validation=valid,
                metric=metric,
                rule=scoring.rule,
                nested=scoring.nested,
                budget=flags.options.budget,
                seed=seed_from(training.random_state),
                on_fit=reporter,
                keep_interrupted=True,
            )
        except KeyboardInterrupt:
            complain("interrupted before a candidate was selected; no model is written")
            raise typer.Exit(INTERRUPTED) from None
        reporter.end()
    return found


def _warn(found: SearchResult, *, nested: bool) -> None:
    """Warn of an interrupted search, of fits that did not converge, and of a best C at the edge."""
    if found.is_interrupted:
        n = len(found.candidates)
        best = parameters_text(found.best_params, found.varied)
        message = f"interrupted; the best of {n} candidates so far is kept: {best}"
        if nested:
            message += "; there is no estimate by nested folds"
        complain(f"{message}; press Ctrl-C again to end without a model")
    warn_of(found.convergence_message())
    warn_of(found.edge_message())


def _evaluate(
    model: LinearModel | AdditiveModel, data: RankingData, metric: OneMetric, n_jobs: int | None
) -> dict[str, Any]:
    """Return the default metrics, and the one that candidates were scored by."""
    names = ",".join(dict.fromkeys([metric.metric, *DEFAULT.split(",")]))
    chosen = find_metrics(names, metric)
    scores = _models.scores(model, data, n_jobs)
    values = measure(chosen, data, scores, skip=True)
    return {"test": values, "ties": effect_of_ties(chosen, values, data, scores)}
