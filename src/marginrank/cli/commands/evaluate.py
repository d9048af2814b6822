"""The command ``marginrank evaluate``."""

import csv
import io
from collections.abc import Mapping
from typing import Any

from marginrank.cli.flags.commands import EvaluateFlags
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags, check_writable
from marginrank.cli.support.data import data_summary, open_data
from marginrank.cli.support.files import read_scores, write_text
from marginrank.cli.support.metrics import (
    INTERVAL,
    effect_of_ties,
    find_metrics,
    measure,
    print_ties,
    with_intervals,
)
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData


def run(flags: EvaluateFlags, phases: Phases) -> None:
    """Evaluate a model or scores on labeled data."""
    files, reading, per_query = flags.files, flags.reading, flags.per_query
    if flags.scores is None and len(files) < 2:
        raise ValueError(f"{files[0]}: pass a model and data, or --scores and data.")
    check_flags(reading.given, files if flags.scores is not None else files[1:])
    check_writable(per_query)
    names = flags.metrics.metrics
    chosen = find_metrics(names, flags.metrics)
    check_files([*files, flags.scores, reading.group], [per_query])
    data, scores = _scored(flags, phases)
    with phases.phase("evaluate"):
        values = measure(chosen, data, scores, skip=names is None)
        if not values:
            raise ValueError(f"{files[-1]}: no metric is defined; check its labels.")
        if per_query is not None:
            own = {name: chosen[name] for name in values}
            by_query = measure(own, data, scores, skip=False, per_query=True)
    if per_query is not None:
        write_text(per_query, _table(data.query_ids, by_query, per_query))
    result = {
        "data": data_summary(data),
        "metrics": values,
        "ties": effect_of_ties(chosen, values, data, scores),
        "seconds": phases.seconds,
    }
    if flags.json:
        print_json(result)
        return
    title = f"Mean over {data.n_queries:,} queries {INTERVAL}"
    print_table(title, with_intervals(chosen, values, data, scores))
    print_ties(result["ties"])


def _scored(flags: EvaluateFlags, phases: Phases) -> tuple[RankingData, Any]:
    if flags.scores is not None:
        data = open_data(flags.files, flags.reading, phases)
        return data, read_scores(flags.scores, data.n_documents)
    model = _models.load(flags.files[0])
    data = _models.open_data_for(model, flags.files[1:], flags.reading, phases)
    return data, _models.scores(model, data, flags.reading.n_jobs)


def _table(query_ids: Any, columns: Mapping[str, Any], path: str) -> str:
    text = io.StringIO()
    delimiter = "," if path.endswith(".csv") else "\t"
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["qid", *columns])
    writer.writerows(zip(query_ids.tolist(), *(c.tolist() for c in columns.values()), strict=True))
    return text.getvalue()
