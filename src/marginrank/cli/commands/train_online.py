"""The command ``marginrank train-online``: train by stochastic gradient descent."""

from collections.abc import Sequence
from dataclasses import replace

from marginrank.cli.flags.shared import Reading
from marginrank.cli.flags.training import TrainOnlineFlags
from marginrank.cli.support.data import kind_of, missing_policy
from marginrank.cli.support.errors import warn_of
from marginrank.cli.support.files import is_pipe, name_of
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.training import TrainingTask, with_seed
from marginrank.fit.linear import seed_from
from marginrank.fit.online import fit_online, stalled_message
from marginrank.fit.online_learner import OnlineParameters, contents
from marginrank.fit.scaling import effect_message
from marginrank.io.chunks import CHUNK_DOCUMENTS, ChunkSource
from marginrank.models.fit_report import StopReason, report_of

NEEDS = (("early_stopping", "valid"),)
CONFLICTS = (("gain", "early_stopping"), ("discount", "early_stopping"))
# A flag, another parameter, and the values of that parameter with which the flag has an effect.
ONLY_WITH = (("eta0", "learning_rate", ("inverse", "constant")), ("shuffle", "method", ("query",)))


def run(flags: TrainOnlineFlags, phases: Phases) -> None:
    """Train a linear model by stochastic gradient descent and write it to a file."""
    reading, training = flags.reading, flags.training
    task = TrainingTask(flags.data, reading, flags.validation, training, phases)
    task.check_flags(needs=NEEDS, conflicts=CONFLICTS)

    def make() -> OnlineParameters:
        scoring = next(iter(task.metrics(flags.parameters.scoring)))
        own = {**vars(flags.parameters), "n_jobs": reading.n_jobs, "scoring": scoring}
        return OnlineParameters(**own)

    parameters = task.prepare(make, only_with=ONLY_WITH)
    source = _source(flags.data, reading, flags.chunk_documents or CHUNK_DOCUMENTS)
    with phases.phase("count", "documents and queries"):
        found = contents(source, parameters)
    held_out = task.open_valid(found.n_features, source.feature_names)
    with phases.phase("solve"), phases.solving(training.verbose) as callback:
        model = fit_online(
            source,
            parameters,
            stream=source.is_text,
            found=found,
            seed=seed_from(training.random_state),
            validation=held_out if parameters.early_stopping else None,
            callback=callback,
        )
    report = report_of(model)
    if report.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    warn_of(effect_message(report.without_effect, source.feature_names))
    warn_of(stalled_message(report))
    model = with_seed(replace(model, feature_names=source.feature_names), training.random_state)
    task.write(model)
    counts = {
        "documents": found.n_documents,
        "queries": found.n_queries,
        "features": found.n_features,
        "pairs": found.n_pairs,
    }
    task.report(model, held_out, counts)


def _source(files: Sequence[str], reading: Reading, chunk_documents: int) -> ChunkSource:
    kinds = {kind_of(path) for path in files}
    if "table" in kinds or (len(files) > 1 and kinds != {"text"}):
        raise ValueError(
            f"{', '.join(files)}: train-online reads text files or a single store; convert the "
            "others with marginrank convert."
        )
    for path in filter(is_pipe, files):
        raise ValueError(
            f"{name_of(path)} can be read only once, but train-online reads data several times; "
            "pass a file."
        )
    if kinds == {"store"}:
        return ChunkSource(files[0], chunk_documents=chunk_documents)
    return ChunkSource(
        list(files),
        chunk_documents=chunk_documents,
        n_features=reading.n_features,
        zero_based=reading.zero_based,
        missing=missing_policy(reading.missing),
        layout=reading.layout,
        dtype=reading.dtype,
        n_jobs=reading.n_jobs,
    )
