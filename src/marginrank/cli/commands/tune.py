"""The command ``marginrank tune``: search parameters and train with the best."""

from contextlib import suppress
from typing import Any

import typer

from marginrank._utils.parameters import ParameterError, check_choice, given
from marginrank.additive.fit import AdditiveParameters
from marginrank.additive.selection import AdditiveLearner
from marginrank.cli.commands.train_additive import fit_curves
from marginrank.cli.flags.search import DEFAULTS, NONE, OF_TRAIN, SearchOptions
from marginrank.cli.flags.shared import OneMetric, ValidationFlags
from marginrank.cli.flags.training import TuneFlags
from marginrank.cli.support import metrics as _metrics
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_flags, check_plot
from marginrank.cli.support.data import DataRequest, data_summary, open_data, open_held_out
from marginrank.cli.support.errors import INTERRUPTED, complain, warn_of
from marginrank.cli.support.files import save_plot
from marginrank.cli.support.output import print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.search_results import (
    Reporter,
    describe,
    parameters_text,
    print_tuning,
    train_command,
)
from marginrank.cli.support.training import TrainingTask
from marginrank.data import RankingData
from marginrank.fit.inputs import OpenedData
from marginrank.fit.linear import Parameters, seed_from
from marginrank.metrics.names import COMMON_METRICS
from marginrank.models import AdditiveModel, LinearModel
from marginrank.models.parameters import ADDITIVE_TRIED, LINEAR_TRIED, PAIR_COSTS
from marginrank.plots import plot_search
from marginrank.selection.results import SearchResult
from marginrank.selection.search import run_search
from marginrank.selection.space import SearchSpace

AXES = ("loss", "pair_selection", "pair_cost", "margin", "normalization", "scale")
SHARED = ("solver", "tol", "max_iter")  # parameters that all candidates share
SHARED_BY_ADDITIVE = ("categorical_features", "interactions", "group_l1", "monotonic_cst")
NEEDS = (
    ("valid_group", "valid"),
    ("test_group", "test"),
    *((name, "additive") for name in ("smoothness", "max_bins", *SHARED_BY_ADDITIVE)),
)
CONFLICTS = (("folds", "valid"), ("nested", "valid"), ("points", "C"))


def run(flags: TuneFlags, phases: Phases) -> None:
    """Search parameters, train a model with the best of them and write it to a file."""
    reading, options, scoring = flags.reading, flags.options, flags.scoring
    how: Any = {"valid": scoring.valid, "test": scoring.test}
    check_flags(reading.given, flags.data, **how, needs=NEEDS, conflicts=CONFLICTS)
    check_plot(scoring.plot)
    task = TrainingTask(flags.data, reading, ValidationFlags(), flags.training, phases)
    metric = _metrics.find_metric(flags.metric)
    inputs = [scoring.valid, scoring.valid_group, scoring.test, scoring.test_group]
    space = task.prepare(
        lambda: _search_space(options, reading.n_jobs), inputs=inputs, outputs=[scoring.plot]
    )
    data = open_data(flags.data, reading, phases, DataRequest(missing=options.additive))
    # Read validation and test data before the search, so that errors appear early.
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
        model = task.fit(OpenedData(data), found.parameters)
    task.write(model)
    more: dict[str, Any] = {"selection": describe(found)}
    more["repeat"] = train_command(flags.data, reading, found.parameters, flags.training)
    save_plot(scoring.plot, phases, lambda: plot_search(found))
    if test is not None:
        with phases.phase("evaluate", scoring.test):
            evaluated, rows = _evaluate(model, test, flags.metric, reading.n_jobs)
            more |= evaluated
    if not flags.training.json:
        print_tuning(more["selection"])
        if test is not None:
            print_table(f"Test, mean {_metrics.INTERVAL}", rows)
    task.report(model, None, data_summary(data), **more)
    if not flags.training.json:
        print_line(f"To repeat the fit: {more['repeat']}")
    if found.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _search_space(options: SearchOptions, n_jobs: int | None) -> SearchSpace:
    """Return the space of parameters to search, from the flags of tune.

    Raise ValueError if an entry of a comma-separated list is invalid.
    """
    shared: dict[str, Any] = {"n_jobs": n_jobs, **{n: getattr(options, n) for n in SHARED}}
    if options.additive:
        defaults = {"normalization": ADDITIVE_TRIED, "scale": str(DEFAULTS["scale"])}
    else:
        tried = ",".join(LINEAR_TRIED if options.C is None else LINEAR_TRIED[:1])
        defaults = {"normalization": tried, "scale": tried}
    listed = {name: getattr(options, name) for name in AXES}
    listed = {n: defaults[n] if text is None else text for n, text in listed.items()}
    axes = {name: _values(name, text) for name, text in listed.items()}
    shared |= {name: values[0] for name, values in axes.items()}
    Cs = None if options.C is None else _values("C", options.C)
    if not options.additive:
        return SearchSpace(Parameters(**shared), axes, Cs, options.points)
    own = {name: getattr(options, name) for name in SHARED_BY_ADDITIVE}
    axes["max_bins"] = _values("max_bins", options.max_bins)
    axes["smoothness"] = _values("smoothness", options.smoothness)
    base = AdditiveParameters(**shared, **own)
    return SearchSpace(base, axes, Cs, options.points, AdditiveLearner())


def _values(name: str, listed: str) -> list[Any]:
    """Return the values in a comma-separated list for a parameter, validated like by `train`."""
    kind = {"C": float, "smoothness": float, "max_bins": int}.get(name, str)
    values: list[Any] = []
    for entry in map(str.strip, listed.split(",")):
        value: Any = entry
        with suppress(ValueError):
            value = kind(entry)
        if name == "pair_cost":
            check_choice(name, value, (NONE, *PAIR_COSTS))
        else:
            OF_TRAIN[name].constraint.check(name, value)
        is_none = value == NONE and name in ("pair_cost", "scale")
        if (None if is_none else value) in values:
            raise ParameterError(given(name, value), " is given twice; drop one of them.")
        values.append(None if is_none else value)
    return values


def _search(
    flags: TuneFlags,
    task: TrainingTask,
    space: SearchSpace,
    data: RankingData,
    valid: RankingData | None,
    metric: _metrics.Metric,
) -> SearchResult:
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
    if found.is_interrupted:
        n = len(found.candidates)
        best = parameters_text(found.best_params, found.varied)
        message = f"interrupted; the best of {n} candidates so far is kept: {best}"
        if nested:
            message += "; there is no estimate by nested cross-validation"
        complain(f"{message}; press Ctrl-C again to end without a model")
    warn_of(found.convergence_message())
    warn_of(found.edge_message())


def _evaluate(
    model: LinearModel | AdditiveModel, data: RankingData, metric: OneMetric, n_jobs: int | None
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the metrics of a model on test data, as a dict and as rows of a table."""
    names = ",".join(dict.fromkeys([metric.metric, *COMMON_METRICS]))
    chosen = _metrics.find_metrics(names, metric)
    scores = _models.scores(model, data, n_jobs)
    values = _metrics.measure(chosen, data, scores, skip=True)
    ties = _metrics.effect_of_ties(chosen, values, data, scores)
    rows = _metrics.with_intervals(chosen, values, data, scores)
    return {"test": values, "ties": ties}, rows
