"""marginrank predict."""

from typing import Annotated

import typer

from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags_of_data, check_writable
from marginrank.cli.support.files import write_numbers
from marginrank.cli.support.options import DataFiles, Json, ModelFile, Reading
from marginrank.cli.support.output import print_json
from marginrank.cli.support.progress import Phases

EXAMPLE = """\
predict model.json test.txt --out scores.txt
predict model.json test.txt --ranks
predict - test.txt < model.json"""


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
    check_flags_of_data(reading.given, data)
    check_writable(out)
    check_files([model, *data, reading.group], [out], prints=out is None or json)
    phases = Phases()
    ranker = _models.load(model)
    documents = _models.open_data_for(ranker, data, reading, phases, labels=False, queries=ranks)
    with phases.phase("predict"):
        compute = _models.ranks if ranks else _models.scores
        numbers = compute(ranker, documents, reading.n_jobs).tolist()
    if out is not None or not json:
        write_numbers(out, numbers)
    if json:
        written = {"out": out} if out is not None else {"ranks" if ranks else "scores": numbers}
        print_json({"documents": documents.n_documents, **written, "seconds": phases.seconds})
