"""marginrank predict."""

from typing import Annotated

import typer

from marginrank.cli import _models
from marginrank.cli._files import check_writable, write_numbers
from marginrank.cli._options import DataFiles, Json, ModelFile, Reading, reads_data
from marginrank.cli._output import print_json
from marginrank.cli._progress import Phases

EXAMPLE = """\
predict model.json test.txt --out scores.txt
predict model.json test.txt --ranks"""


@reads_data
def predict(
    model: ModelFile,
    data: DataFiles,
    reading: Reading,
    out: Annotated[str | None, typer.Option(help="File to write to; stdout by default.")] = None,
    ranks: Annotated[
        bool, typer.Option("--ranks", help="Ranks inside the query, 1 for the best, not scores.")
    ] = False,
    json: Json = False,
) -> None:
    """Write one score a line, in the order of the documents."""
    check_writable(out)
    phases = Phases()
    ranker = _models.load(model)
    wanted = {"labels": False, "queries": ranks}
    documents = _models.open_data_for(ranker, data, reading, phases, **wanted)
    with phases.phase("predict"):
        compute = _models.ranks if ranks else _models.scores
        numbers = compute(ranker, documents).tolist()
    if out is not None or not json:
        write_numbers(out, numbers)
    if json:
        written = {"out": out} if out is not None else {"ranks" if ranks else "scores": numbers}
        print_json({"documents": documents.n_documents, **written, "seconds": phases.seconds})
