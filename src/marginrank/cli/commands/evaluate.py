"""marginrank evaluate."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import (
    check_files,
    check_flags_of_data,
    check_stdin_once,
    check_writable,
)
from marginrank.cli.support.data import data_summary, open_data
from marginrank.cli.support.files import read_scores, write_text
from marginrank.cli.support.metrics import find_metrics, measure
from marginrank.cli.support.options import Json, Metrics, Reading
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.ties import decided_by_ties, print_ties

if TYPE_CHECKING:
    from marginrank import RankingData

EXAMPLE = """\
evaluate model.json test.txt --metrics ndcg@10,average_precision
evaluate --scores scores.txt test.txt --per-query by_query.tsv"""


def evaluate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] DATA",
            help="A model and data, or with --scores only data.",
            show_default=False,
        ),
    ],
    reading: Reading,
    judging: Metrics,
    scores: Annotated[
        str | None, typer.Option(help="File with one score a line, instead of a model.")
    ] = None,
    per_query: Annotated[
        str | None, typer.Option(help="File to write the value of each query to, .tsv or .csv.")
    ] = None,
    json: Json = False,
) -> None:
    """Judge a model, or scores from anywhere, on labelled data."""
    if scores is None and len(files) < 2:
        raise ValueError(f"{files[0]}: give a model and data, or scores with --scores and data.")
    check_flags_of_data(reading.given, files if scores is not None else files[1:])
    check_writable(per_query)
    check_stdin_once([*files, scores])
    metrics = judging.metrics
    chosen = find_metrics(metrics, gain=judging.gain, discount=judging.discount)
    check_files([*files, scores, reading.group], [per_query])
    phases = Phases()
    data, predicted = _scored(files, scores, reading, phases)
    with phases.phase("evaluate"):
        values = measure(chosen, data, predicted, skip=metrics is None)
        if not values:
            raise ValueError(f"{files[-1]}: no metric is left to show.")
        by_query = (
            measure({n: chosen[n] for n in values}, data, predicted, skip=False, per_query=True)
            if per_query
            else {}
        )
    if per_query:
        write_text(per_query, _table(data.query_ids, by_query, per_query))
    result = {
        "data": data_summary(data),
        "metrics": values,
        "ties": decided_by_ties(chosen, values, data, predicted),
        "seconds": phases.seconds,
    }
    if json:
        print_json(result)
        return
    print_table("Metrics", values.items())
    print_ties(result["ties"])


def _scored(
    files: Sequence[str], scores: str | None, reading: Reading, phases: Phases
) -> tuple["RankingData", Any]:
    """Return the data, and the scores of the file or of the model."""
    if scores is not None:
        data = open_data(files, reading, phases)
        return data, read_scores(scores, data.n_documents)
    model = _models.load(files[0])
    data = _models.open_data_for(model, files[1:], reading, phases)
    return data, _models.scores(model, data, reading.n_jobs)


def _table(query_ids: Any, columns: Mapping[str, Any], path: str) -> str:
    """Return a line a query, its values exact."""
    import csv
    import io

    text = io.StringIO()
    delimiter = "," if path.endswith(".csv") else "\t"
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["qid", *columns])
    writer.writerows(zip(query_ids.tolist(), *(c.tolist() for c in columns.values()), strict=True))
    return text.getvalue()
