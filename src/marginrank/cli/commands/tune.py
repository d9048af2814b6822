"""marginrank tune."""

import warnings
from typing import TYPE_CHECKING, Any

import typer

from marginrank.cli.commands.train_additive import fit_curves
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_conflicts, check_flags_of_both, check_needs
from marginrank.cli.support.data import Wanted, data_summary, open_data, open_judged
from marginrank.cli.support.errors import INTERRUPTED, complain
from marginrank.cli.support.metrics import DEFAULT, Metric, find_metric, find_metrics, measure
from marginrank.cli.support.options import DataFiles, OneMetric, Reading, Training, ValidationFlags
from marginrank.cli.support.output import print_line, print_table
from marginrank.cli.support.plots import check_plot, save_plot
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.task import Task
from marginrank.cli.support.ties import decided_by_ties
from marginrank.cli.support.training import fit
from marginrank.cli.support.tuned import Reporter, called, describe, print_tuning, train_command
from marginrank.cli.support.tuning import CURVES_ONLY, ScoringOptions, SearchOptions

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.models import AdditiveModel, LinearModel
    from marginrank.selection.results import SearchResult
    from marginrank.selection.space import SearchSpace

EXAMPLE = """\
tune train.txt --model model.json
tune train.txt --model model.json --valid valid.txt --test test.txt
tune train.txt --model model.json --loss squared_hinge,logistic --scale none,query --budget 60
tune train.txt --model model.json --additive --smoothness 0.03,0.3,3 --max-bins 16,32"""

# A flag, and another that it says nothing without.
NEEDS = (
    ("valid_group", "valid"),
    ("test_group", "test"),
    *((name, "additive") for name in CURVES_ONLY),
)
# A flag, and another that leaves nothing for it to say.
CONFLICTS = (("folds", "valid"), ("nested", "valid"), ("points", "C"))


def tune(
    data: DataFiles,
    reading: Reading,
    options: SearchOptions,
    scoring: ScoringOptions,
    metric: OneMetric,
    training: Training,
) -> None:
    """Choose C and other parameters of a model, train it with them and write it to a file.

    Candidates are scored on folds of whole queries, or on --valid. The model is the one that train,
    or with --additive train-additive, makes of the chosen parameters. Ctrl-C ends the search, and
    the best so far is kept.
    """
    check_conflicts(reading.given, CONFLICTS)
    check_needs(reading.given, NEEDS)
    check_flags_of_both(reading.given, data, scoring.valid, scoring.test)
    check_plot(scoring.plot)
    task = Task(data, reading, ValidationFlags(), training)
    with task.phases.importing():
        chosen = find_metric(metric.metric, gain=metric.gain, discount=metric.discount)
    inputs = [scoring.valid, scoring.valid_group, scoring.test, scoring.test_group]
    space = task.prepare(
        lambda: options.space(reading.n_jobs), inputs=inputs, outputs=[scoring.plot]
    )
    documents = open_data(data, reading, task.phases, Wanted(missing=options.additive))
    valid, test = _open_judged(task, scoring, documents, missing=options.additive)
    found = _search(task, space, documents, valid, chosen, options=options, scoring=scoring)
    _warn(found, nested=scoring.nested)
    model = _fit(documents, found.parameters, task.phases, training)
    task.write(model)
    more: dict[str, Any] = {"selection": describe(found)}
    more["repeat"] = train_command(data, reading, found.parameters, training)
    if scoring.plot is not None:
        with task.phases.phase("plot", scoring.plot):
            _plot(found, scoring.plot)
    if test is not None:
        with task.phases.phase("evaluate", scoring.test):
            more |= _evaluate(model, test, metric, reading.n_jobs)
    _tell(task, model, task.summary(model, None, data_summary(documents), **more))
    if found.is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _fit(
    data: "RankingData", parameters: Any, phases: Phases, training: Training
) -> "LinearModel | AdditiveModel":
    """Learn from all data with what was chosen."""
    from marginrank.additive.fit import AdditiveParameters

    if isinstance(parameters, AdditiveParameters):
        return fit_curves(data, parameters, phases, training)
    return fit(
        data,
        parameters,
        phases,
        random_state=training.random_state,
        verbose=training.verbose,
    )


def _open_judged(
    task: Task, scoring: ScoringOptions, data: "RankingData", *, missing: bool
) -> "tuple[RankingData | None, RankingData | None]":
    """Read validation and test data: before the search, so that an error costs nothing."""
    wanted = Wanted(data.n_features, data.feature_names, missing=missing)
    rest = task.reading, task.phases, wanted
    valid = open_judged("valid", scoring.valid, scoring.valid_group, *rest)
    return valid, open_judged("test", scoring.test, scoring.test_group, *rest)


def _search(
    task: Task,
    space: "SearchSpace",
    data: "RankingData",
    valid: "RankingData | None",
    metric: Metric,
    *,
    options: SearchOptions,
    scoring: ScoringOptions,
) -> "SearchResult":
    """Search the candidates, and show progress."""
    from marginrank.fit.linear import seed_from
    from marginrank.selection.search import run_search

    with task.phases.phase("tune"), task.phases.searching() as bar:
        reporter = Reporter(bar, space.varied, verbose=task.training.verbose)
        try:
            found = run_search(
                data,
                space,
                cv=scoring.folds,
                validation=valid,
                metric=metric,
                rule=scoring.rule,
                nested=scoring.nested,
                budget=options.budget,
                seed=seed_from(task.training.random_state),
                on_fit=reporter,
                keep_interrupted=True,
            )
        except KeyboardInterrupt:
            complain("interrupted before a candidate was chosen; no model is written")
            raise typer.Exit(INTERRUPTED) from None
        reporter.end()
    return found


def _warn(found: "SearchResult", *, nested: bool) -> None:
    """Warn of an interrupted search, of unfinished fits, and of a best C at the edge."""
    if found.is_interrupted:
        n = len(found.candidates)
        best = called(found.best_params, found.varied)
        told = f"interrupted; the best of {n} candidates so far is kept: {best}"
        if nested:
            told += "; there is no estimate by nested folds"
        complain(f"{told}; Ctrl-C again to end without a model")
    for message in (found.convergence_message(), found.edge_message()):
        if message is not None:
            warnings.warn(message, stacklevel=1)


def _plot(found: "SearchResult", path: str) -> None:
    from marginrank.plots import plot_search

    save_plot(plot_search(found), path)


def _evaluate(
    model: "LinearModel | AdditiveModel",
    data: "RankingData",
    metric: OneMetric,
    n_jobs: int | None,
) -> dict[str, Any]:
    """Return the usual metrics, and the one that candidates were scored by."""
    names = list(dict.fromkeys([metric.metric, *DEFAULT.split(",")]))
    chosen = find_metrics(",".join(names), gain=metric.gain, discount=metric.discount)
    scores = _models.scores(model, data, n_jobs)
    values = measure(chosen, data, scores, skip=True)
    return {"test": values, "ties": decided_by_ties(chosen, values, data, scores)}


def _tell(task: Task, model: "LinearModel | AdditiveModel", result: dict[str, Any]) -> None:
    """Print candidates, fit and test."""
    if not task.training.json:
        print_tuning(result["selection"])
    task.tell(result, model)
    if task.training.json:
        return
    if "test" in result:
        print_table("Test", result["test"].items())
    print_line(f"to repeat the fit: {result['repeat']}")
