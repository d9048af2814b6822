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
from marginrank.cli.support.tuning import CURVES_ONLY, Judging, Tried

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.models import AdditiveModel, LinearModel
    from marginrank.selection.exploration import Space
    from marginrank.selection.tuning import Tuning

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
    tried: Tried,
    judging: Judging,
    metric: OneMetric,
    training: Training,
) -> None:
    """Choose C and other parameters of a model, train it with them and write it to a file.

    Candidates are judged on folds of whole queries, or on --valid. The model is the one that train,
    or with --additive train-additive, makes of the chosen parameters. Ctrl-C ends the search, and
    the best so far is kept.
    """
    check_conflicts(reading.given, CONFLICTS)
    check_needs(reading.given, NEEDS)
    check_flags_of_both(reading.given, data, judging.valid, judging.test)
    check_plot(judging.plot)
    task = Task(data, reading, ValidationFlags(), training)
    with task.phases.importing():
        chosen = find_metric(metric.metric, gain=metric.gain, discount=metric.discount)
    inputs = [judging.valid, judging.valid_group, judging.test, judging.test_group]
    space = task.prepare(lambda: tried.space(reading.n_jobs), inputs=inputs, outputs=[judging.plot])
    documents = open_data(data, reading, task.phases, Wanted(missing=tried.additive))
    valid, test = _open_judged(task, judging, documents, missing=tried.additive)
    tuning = _search(task, space, documents, valid, chosen, tried=tried, judging=judging)
    _warn(tuning, nested=judging.nested)
    model = _fit(documents, tuning.parameters, task.phases, training)
    task.write(model)
    more: dict[str, Any] = {"selection": describe(tuning)}
    more["repeat"] = train_command(data, reading, tuning.parameters, training)
    if judging.plot is not None:
        with task.phases.phase("plot", judging.plot):
            _plot(tuning, judging.plot)
    if test is not None:
        with task.phases.phase("evaluate", judging.test):
            more |= _evaluate(model, test, metric, reading.n_jobs)
    _tell(task, model, task.summary(model, None, data_summary(documents), **more))
    if tuning.is_interrupted:
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
    task: Task, judging: Judging, data: "RankingData", *, missing: bool
) -> "tuple[RankingData | None, RankingData | None]":
    """Read validation and test data: before the search, so that an error costs nothing."""
    wanted = Wanted(data.n_features, data.feature_names, missing=missing)
    rest = task.reading, task.phases, wanted
    valid = open_judged("valid", judging.valid, judging.valid_group, *rest)
    return valid, open_judged("test", judging.test, judging.test_group, *rest)


def _search(
    task: Task,
    space: "Space",
    data: "RankingData",
    valid: "RankingData | None",
    metric: Metric,
    *,
    tried: Tried,
    judging: Judging,
) -> "Tuning":
    """Choose among the candidates, and show how far that has come."""
    from marginrank.metrics.names import metric_name
    from marginrank.selection.tuning import tune

    with task.phases.phase("tune"), task.phases.searching() as bar:
        reporter = Reporter(bar, metric_name(metric), space.varied, verbose=task.training.verbose)
        try:
            tuning = tune(
                data,
                space,
                validation=valid,
                n_folds=judging.folds,
                metric=metric,
                rule=judging.rule,
                nested=judging.nested,
                budget=tried.budget,
                random_state=task.training.random_state,
                on_trial=reporter,
            )
        except KeyboardInterrupt:
            complain("interrupted before a candidate was chosen; no model is written")
            raise typer.Exit(INTERRUPTED) from None
        reporter.end()
    return tuning


def _warn(tuning: "Tuning", *, nested: bool) -> None:
    """Tell of a choice among less than was asked for, or without the estimate that was."""
    if tuning.is_interrupted:
        n = len(tuning.selection.candidates)
        best = called(vars(tuning.parameters), tuning.selection.varied)
        told = f"interrupted; the best of {n} candidates so far is kept: {best}"
        if nested:
            told += "; there is no estimate by nested folds"
        complain(f"{told}; Ctrl-C again to end without a model")
    for message in (tuning.convergence_message(), tuning.edge_message()):
        if message is not None:
            warnings.warn(message, stacklevel=1)


def _plot(tuning: "Tuning", path: str) -> None:
    from marginrank.plots import plot_selection

    save_plot(plot_selection(tuning.selection), path)


def _evaluate(
    model: "LinearModel | AdditiveModel",
    data: "RankingData",
    metric: OneMetric,
    n_jobs: int | None,
) -> dict[str, Any]:
    """Return the usual metrics, and the one that was used for the choice."""
    names = list(dict.fromkeys([metric.metric, *DEFAULT.split(",")]))
    chosen = find_metrics(",".join(names), gain=metric.gain, discount=metric.discount)
    scores = _models.scores(model, data, n_jobs)
    values = measure(chosen, data, scores, skip=True)
    return {"test": values, "ties": decided_by_ties(chosen, values, data, scores)}


def _tell(task: Task, model: "LinearModel | AdditiveModel", result: dict[str, Any]) -> None:
    """Print candidates, choice, fit and test."""
    if not task.training.json:
        print_tuning(result["selection"])
    task.tell(result, model)
    if task.training.json:
        return
    if "test" in result:
        print_table("Test", result["test"].items())
    print_line(f"to repeat the fit: {result['repeat']}")
