"""marginrank train."""

from typing import TYPE_CHECKING, Annotated

import typer

from marginrank.cli.support.cluster import learn_on_cluster
from marginrank.cli.support.data import Wanted, data_summary, open_to_fit
from marginrank.cli.support.options import DATA, DataFiles, Reading, Room, Training, ValidationFlags
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.task import Task
from marginrank.cli.support.training import fit_opened, stream_summary
from marginrank.models.parameters import DeviceDeclaration, LinearDeclaration

if TYPE_CHECKING:
    from marginrank.data.pair_lists import PairList
    from marginrank.fit.inputs import Opened
    from marginrank.fit.linear import Parameters

EXAMPLE = """\
train train.txt --model model.json -C 0.01 --valid valid.txt
train part1.txt.gz part2.txt.gz --model model.json --json
train train.txt --model model.json -C 0.01 --objective ndcg@10
train clicks.txt --pairs clicks.pairs --model model.json
train large.store --memory-limit 2GB --model model.json
train large.txt --device cuda --model model.json
train a.store b.store --dask tcp://scheduler:8786 --model model.json"""

# A flag, and another that leaves nothing for it to say.
CONFLICTS = (
    ("C", "lam"),
    *((name, "pairs") for name in ("objective", "pair_selection", "pair_cost", "margin")),
    *((name, "memory_limit") for name in ("device", "objective")),
    *((name, "dask") for name in ("memory_limit", "pairs", "objective")),
)


def train(
    data: DataFiles,
    reading: Reading,
    room: Room,
    parameters: LinearDeclaration,
    place: DeviceDeclaration,
    validation: ValidationFlags,
    training: Training,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="File of preferred and other row of each pair, counted from 0, and its weight if "
            "it has one, to learn from instead of labels.",
            rich_help_panel=DATA,
        ),
    ] = None,
) -> None:
    """Train a linear model and write it to a file.

    The flags are named as the parameters of marginrank.RankSVM and marginrank.load_letor. For
    sparse models there is train-sparse. Data larger than memory become a store first, by convert;
    train-online learns roughly, from text as it is read.
    """
    task = Task(data, reading, validation, training)
    task.check_flags(conflicts=CONFLICTS)

    def make() -> "Parameters":
        from marginrank.fit.linear import Parameters

        return Parameters(**{**vars(parameters), **vars(place), "n_jobs": reading.n_jobs})

    checked = task.prepare(make, inputs=[pairs])
    if room.dask is not None:
        learn_on_cluster(task, checked, room.dask)
        return
    opened, listed = _open(data, pairs, reading, room, task.phases)
    documents = opened.data
    held_out = task.open_valid(Wanted(documents.n_features, documents.feature_names))
    model = fit_opened(
        opened,
        checked,
        task.phases,
        pairs=listed,
        random_state=training.random_state,
        verbose=training.verbose,
    )
    counts = data_summary(documents)
    if listed is not None:
        counts["pairs"] = len(listed)
    task.keep(model)
    more = stream_summary(opened, model)
    task.tell(task.summary(model, held_out, counts, **more), model)


def _open(
    files: list[str], pairs: str | None, reading: Reading, room: Room, phases: Phases
) -> tuple["Opened", "PairList | None"]:
    """Read the documents, and the list of pairs if there is one."""
    if pairs is None:
        return open_to_fit(files, reading, phases, memory_limit=room.memory_limit), None
    from marginrank.data.pair_lists import check_pairs
    from marginrank.io.pair_text import load_pairs

    with phases.phase("read", pairs):
        listed = load_pairs(pairs)
    wanted = Wanted(labels=False, queries=False)
    opened = open_to_fit(files, reading, phases, wanted=wanted, memory_limit=room.memory_limit)
    return opened, check_pairs(listed, None, opened.data.n_documents)
