"""marginrank train-additive."""

from typing import TYPE_CHECKING

from marginrank.cli.support.data import Wanted, data_summary, open_data
from marginrank.cli.support.options import DataFiles, Reading, Training, ValidationFlags
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.task import Task
from marginrank.cli.support.training import warn_of, warn_of_report, with_seed
from marginrank.models.parameters import AdditiveDeclaration

if TYPE_CHECKING:
    from marginrank.additive.fit import AdditiveParameters
    from marginrank.data import RankingData
    from marginrank.models import AdditiveModel

EXAMPLE = """\
train-additive train.txt --model model.json -C 0.01 --valid valid.txt
train-additive train.txt --model model.json --smoothness 10 --max-bins 16
train-additive train.csv --model model.json --categorical-features country_id,device_id
train-additive train.csv --model model.json --monotonic-cst bm25:+1,age:-1
train-additive train.txt --model model.json --normalization pairs --group-l1 0.1"""

# A flag, and another that leaves nothing for it to say.
CONFLICTS = (("C", "lam"),)


def train_additive(
    data: DataFiles,
    reading: Reading,
    parameters: AdditiveDeclaration,
    validation: ValidationFlags,
    training: Training,
) -> None:
    """Train an additive model, a curve a feature, and write it to a file.

    The flags are named as the parameters of marginrank.AdditiveRankSVM and marginrank.load_letor.
    """
    task = Task(data, reading, validation, training)
    task.check_flags(conflicts=CONFLICTS)

    def make() -> "AdditiveParameters":
        from marginrank.additive.fit import AdditiveParameters

        return AdditiveParameters(**{**vars(parameters), "n_jobs": reading.n_jobs})

    checked = task.prepare(make)
    documents = open_data(data, reading, task.phases, Wanted(missing=True))
    held_out = task.open_valid(Wanted(documents.n_features, documents.feature_names, missing=True))
    model = fit_curves(documents, checked, task.phases, training)
    task.write(model)
    task.tell(task.summary(model, held_out, data_summary(documents)), model)


def fit_curves(
    data: "RankingData", parameters: "AdditiveParameters", phases: Phases, training: Training
) -> "AdditiveModel":
    """Fit to the labels of the data, and time it."""
    from marginrank.additive.fit import empty_message, fit_additive
    from marginrank.fit.linear import seed_from
    from marginrank.models.fit_report import report_of

    with phases.phase("solve"), phases.solving(training.verbose) as callback:
        model = fit_additive(
            data, parameters, seed=seed_from(training.random_state), callback=callback
        )
    warn_of_report(report_of(model), parameters.tol, data.feature_names)
    warn_of(empty_message(model, parameters))
    return with_seed(model, training.random_state)
