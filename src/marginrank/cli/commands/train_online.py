"""marginrank train-online."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from marginrank.cli.support.data import Wanted, kind_of, missing_policy
from marginrank.cli.support.files import is_pipe, name_of
from marginrank.cli.support.options import DATA, Reading, Training, ValidationFlags
from marginrank.cli.support.task import Task
from marginrank.cli.support.training import warn_of, with_seed
from marginrank.models.parameters import OnlineDeclaration

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.fit.online_learner import OnlineParameters
    from marginrank.io.chunks import ChunkSource
    from marginrank.models import LinearModel

EXAMPLE = """\
train-online larger-than-memory.txt --model model.json
train-online train.txt --model model.json --valid valid.txt --early-stopping --metrics ndcg@10"""

# A flag, and another that it says nothing without.
NEEDS = (("early_stopping", "valid"),)
# A flag, and another that leaves nothing for it to say.
CONFLICTS = (("gain", "early_stopping"), ("discount", "early_stopping"))
# A flag, and the values of another that it says something with.
ONLY_WITH = (
    ("eta0", "learning_rate", ("inverse", "constant")),
    ("shuffle", "method", ("query",)),
)


def train_online(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="LETOR text (plain, .gz, .bz2, .xz, .zst; several files are read as one), or the "
            "folder of a store.",
            show_default=False,
        ),
    ],
    reading: Reading,
    parameters: OnlineDeclaration,
    validation: ValidationFlags,
    training: Training,
    chunk_documents: Annotated[
        int | None,
        typer.Option(
            help="Documents of text in memory at a time, 65536 or so by default.",
            rich_help_panel=DATA,
        ),
    ] = None,
) -> None:
    """Train a linear model by stochastic gradients and write it to a file.

    Text is read in chunks, with a qid on every line; a store is mapped into memory. So neither need
    fit in it. With --early-stopping, the first of --metrics on --valid decides. The flags are named
    as the parameters of marginrank.SGDRankSVM and marginrank.iter_letor.
    """
    task = Task(data, reading, validation, training)
    task.check_flags(needs=NEEDS, conflicts=CONFLICTS)

    def make() -> "OnlineParameters":
        from marginrank.fit.online_learner import OnlineParameters

        scoring = next(iter(task.metrics(parameters.scoring)))
        return OnlineParameters(
            **{**vars(parameters), "n_jobs": reading.n_jobs, "scoring": scoring}
        )

    checked = task.prepare(make, only_with=ONLY_WITH)
    model, held_out, counts = _fit(task, checked, chunk_documents)
    task.write(model)
    task.tell(task.summary(model, held_out, counts), model)


def _fit(
    task: Task, parameters: "OnlineParameters", chunk_documents: int | None
) -> tuple["LinearModel", "RankingData | None", dict[str, int]]:
    """Fit on files that need not fit in memory; return the validation data and counts, too."""
    from marginrank.fit.linear import seed_from
    from marginrank.fit.online import fit_online, stalled_message
    from marginrank.fit.online_learner import contents
    from marginrank.fit.scaling import effect_message
    from marginrank.models.fit_report import StopReason, report_of

    phases, training = task.phases, task.training
    source = _source(task.files, task.reading, chunk_documents)
    with phases.phase("count"):
        found = contents(source, parameters)
    held_out = task.open_valid(Wanted(found.n_features, source.feature_names))
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
    names = source.feature_names
    for message in (effect_message(report.without_effect, names), stalled_message(report)):
        warn_of(message)
    model = with_seed(replace(model, feature_names=names), training.random_state)
    counts = {
        "documents": found.n_documents,
        "queries": found.n_queries,
        "features": found.n_features,
        "pairs": found.n_pairs,
    }
    return model, held_out, counts


def _source(files: Sequence[str], reading: Reading, chunk_documents: int | None) -> "ChunkSource":
    from marginrank.io.chunks import CHUNK_DOCUMENTS, ChunkSource

    size = CHUNK_DOCUMENTS if chunk_documents is None else chunk_documents
    kinds = {kind_of(path) for path in files}
    if "table" in kinds or (len(files) > 1 and kinds != {"text"}):
        raise ValueError(
            f"{', '.join(files)}: train-online reads text files or a single store; convert the "
            "rest."
        )
    for path in filter(is_pipe, files):
        raise ValueError(f"{name_of(path)} can be read only once, but train-online reads it again.")
    if kinds == {"store"}:
        return ChunkSource(files[0], chunk_documents=size)
    return ChunkSource(
        list(files),
        chunk_documents=size,
        n_features=reading.n_features,
        zero_based=reading.zero_based,
        missing=missing_policy(reading.missing),
        layout=reading.layout,
        dtype=reading.dtype,
        n_jobs=reading.n_jobs,
    )
