"""The command ``marginrank predict``: score documents with a model."""

from marginrank.cli.flags.commands import PredictFlags
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags, check_writable
from marginrank.cli.support.files import write_text
from marginrank.cli.support.output import print_json
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.streams import write_out
from marginrank.metrics.ranking import ranks


def run(flags: PredictFlags, phases: Phases) -> None:
    """Write the score or rank of each document, one per line."""
    reading, out = flags.reading, flags.out
    check_flags(reading.given, flags.data)
    check_writable(out)
    inputs = [flags.model, *flags.data, reading.group]
    check_files(inputs, [out], prints=out is None or flags.json)
    model = _models.load(flags.model)
    data = _models.open_data_for(
        model, flags.data, reading, phases, labels=False, queries=flags.ranks
    )
    with phases.phase("predict"):
        values = _models.scores(model, data, reading.n_jobs)
        numbers = (ranks(values, qid=data.qid) if flags.ranks else values).tolist()
    if out is not None or not flags.json:
        text = "".join(f"{number!r}\n" for number in numbers)
        write_out(text) if out is None else write_text(out, text)
    if flags.json:
        written = {"ranks" if flags.ranks else "scores": numbers} if out is None else {"out": out}
        print_json({"documents": data.n_documents, **written, "seconds": phases.seconds})
