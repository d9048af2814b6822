"""marginrank train."""

from typing import TYPE_CHECKING, Annotated

import typer

from marginrank.cli._data import Wanted, data_summary, open_data
from marginrank.cli._options import DATA, DataFiles, Reading, Training, Validation
from marginrank.cli._progress import Phases
from marginrank.cli._task import Fitted, Task
from marginrank.cli._training import fit
from marginrank.training.declarations import LinearDeclaration

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.data.pair_lists import PairList
    from marginrank.training.linear import Parameters

EXAMPLE = """\
train train.txt --model model.json -C 0.01 --valid valid.txt
train part1.txt.gz part2.txt.gz --model model.json --json
train clicks.txt --pairs clicks.pairs --model model.json"""

# A flag, and another that leaves nothing for it to say.
CONFLICTS = (
    ("C", "lam"),
    *((name, "pairs") for name in ("pair_selection", "pair_cost", "margin")),
)


def train(
    data: DataFiles,
    reading: Reading,
    parameters: LinearDeclaration,
    validation: Validation,
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
    sparse models there is train-sparse, for data larger than memory train-online.
    """
    task = Task(data, reading, validation, training)
    task.refuse_flags(conflicts=CONFLICTS)

    def make() -> "Parameters":
        from marginrank.training.linear import Parameters

        return Parameters(**{**vars(parameters), "n_jobs": reading.n_jobs})

    checked = task.prepare(make, inputs=[pairs])
    documents, listed = _open(data, pairs, reading, task.phases)
    held_out = task.open_valid(Wanted(documents.n_features, documents.feature_names))
    model = fit(
        documents,
        checked,
        task.phases,
        pairs=listed,
        random_state=training.random_state,
        verbose=training.verbose,
    )
    counts = data_summary(documents)
    if listed is not None:
        counts["pairs"] = len(listed)
    fitted = Fitted(model, held_out, counts)
    task.write(model)
    task.tell(task.summary(fitted), fitted)


def _open(
    files: list[str], pairs: str | None, reading: Reading, phases: Phases
) -> tuple["RankingData", "PairList | None"]:
    """Read the documents, and the list of pairs if there is one."""
    if pairs is None:
        return open_data(files, reading, phases), None
    from marginrank.data.formats.pair_text import load_pairs
    from marginrank.data.pair_lists import check_pairs

    with phases.phase("read", pairs):
        listed = load_pairs(pairs)
    documents = open_data(files, reading, phases, Wanted(labels=False, queries=False))
    return documents, check_pairs(listed, None, documents.n_documents)
