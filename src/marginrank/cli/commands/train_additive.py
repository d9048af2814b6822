"""The command ``marginrank train-additive``: train an additive model, one curve per feature."""

from marginrank.additive.fit import AdditiveParameters, empty_message, fit_additive
from marginrank.cli.flags.training import TrainAdditiveFlags
from marginrank.cli.support.data import DataRequest, data_summary, open_data
from marginrank.cli.support.errors import warn_of
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.training import TrainingTask, warn_of_report, with_seed
from marginrank.data import RankingData
from marginrank.fit.linear import seed_from
from marginrank.models import AdditiveModel
from marginrank.models.fit_report import report_of


def run(flags: TrainAdditiveFlags, phases: Phases) -> None:
    """Train an additive model and write it to a file."""
    reading = flags.reading
    task = TrainingTask(flags.data, reading, flags.validation, flags.training, phases)
    task.check_flags(conflicts=[("C", "lam")])
    parameters = task.prepare(lambda: task.parameters_of(AdditiveParameters, flags.parameters))
    data = open_data(flags.data, reading, phases, DataRequest(missing=True))
    held_out = task.open_valid(data.n_features, data.feature_names, missing=True)
    model = fit_curves(data, parameters, task)
    task.write(model)
    task.report(model, held_out, data_summary(data))


def fit_curves(
    data: RankingData, parameters: AdditiveParameters, task: TrainingTask
) -> AdditiveModel:
    """Return an additive model fitted to labels; emit its warnings and record the time."""
    seed, verbose = task.training.random_state, task.training.verbose
    with task.phases.phase("solve"), task.phases.solving(verbose) as callback:
        model = fit_additive(data, parameters, seed=seed_from(seed), callback=callback)
    warn_of_report(report_of(model), parameters.tol, data.feature_names)
    warn_of(empty_message(model, parameters))
    return with_seed(model, seed)
