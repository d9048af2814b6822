"""The command ``marginrank evaluate``: compute metrics of a model, of scores or of a run."""

import csv
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from marginrank._utils.parameters import calling
from marginrank.cli.flags.commands import EvaluateFlags
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import (
    check_files,
    check_flags,
    check_run_flags,
    check_writable,
)
from marginrank.cli.support.data import data_summary, open_data
from marginrank.cli.support.files import read_scores, write_text
from marginrank.cli.support.metrics import (
    INTERVAL,
    effect_of_ties,
    find_metrics,
    measure,
    print_ties,
    with_interval,
    with_intervals,
)
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.io.trec_text import load_qrels, load_run
from marginrank.metrics import RunEvaluation, evaluate_run
from marginrank.metrics.runs import DEFAULT_METRICS, run_metrics


def run(flags: EvaluateFlags, phases: Phases) -> None:
    """Evaluate a model or scores on labeled data, or a run with relevance judgments."""
    if flags.run is not None or flags.qrels is not None:
        _evaluate_run(flags, phases)
        return
    files, reading, per_query = flags.files or [], flags.reading, flags.per_query
    if len(files) < (2 if flags.scores is None else 1):
        raise ValueError(
            f"got {' '.join(files) or 'no files'}; pass a model and data, --scores and data, or "
            "--run and --qrels."
        )
    check_flags(reading.given, files if flags.scores is not None else files[1:])
    check_writable(per_query)
    names = flags.metrics.metrics
    chosen = find_metrics(names, flags.metrics)
    check_files([*files, flags.scores, reading.group], [per_query])
    data, scores = _scored(flags, phases)
    with phases.phase("evaluate"):
        values = measure(chosen, data, scores, skip=names is None)
        if not values:
            raise ValueError(
                f"{files[-1]}: no metric is defined for the labels; check the label of each row."
            )
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
    _print_without_relevant(data)
    print_ties(result["ties"])


def _print_without_relevant(data: RankingData) -> None:
    highest = np.maximum.reduceat(data.queries.grouped(data.y), data.queries.offsets[:-1])
    count = int(np.count_nonzero(highest <= 0))
    if count:
        print_line(
            f"{count:,} of {data.n_queries:,} queries have no label above 0, so their NDCG and "
            "other metrics of relevant documents are 0."
        )


def _scored(flags: EvaluateFlags, phases: Phases) -> tuple[RankingData, Any]:
    files = flags.files or []
    if flags.scores is not None:
        data = open_data(files, flags.reading, phases)
        return data, read_scores(flags.scores, data.n_documents)
    model = _models.load(files[0])
    data = _models.open_data_for(model, files[1:], flags.reading, phases)
    return data, _models.scores(model, data, flags.reading.n_jobs)


def _evaluate_run(flags: EvaluateFlags, phases: Phases) -> None:
    check_run_flags(flags.reading.given, flags.files, ("run", "qrels"), ("scores", "discount"))
    check_writable(flags.per_query)
    check_files([flags.run, flags.qrels], [flags.per_query])
    names = flags.metrics.metrics
    chosen = DEFAULT_METRICS if names is None else names.replace(" ", "").split(",")
    gain = flags.metrics.gain or "linear"
    with calling("metric", "metrics"):
        run_metrics(chosen, gain)  # checked before any data are read
    with phases.phase("read"):
        run, qrels = load_run(str(flags.run)), load_qrels(str(flags.qrels))
    with phases.phase("evaluate"):
        result = evaluate_run(run, qrels, chosen, unjudged=flags.unjudged, gain=gain)
    if flags.per_query is not None:
        write_text(flags.per_query, _table(result.queries, result.per_query, flags.per_query))
    if flags.json:
        shown = {"metrics": result.means, "bounds": result.bounds, "gain": gain}
        print_json({**shown, "n_queries": result.queries.size, "seconds": phases.seconds})
        return
    rows = [
        (name, with_interval(result.means[name], values), _bounds_of(result, name))
        for name, values in result.per_query.items()
    ]
    title = f"Mean over {result.queries.size:,} judged queries {INTERVAL}, {gain} gain"
    print_table(title, rows, ("metric", "value", "range over all labels of unjudged documents"))


def _bounds_of(result: RunEvaluation, name: str) -> str:
    if name not in result.bounds:
        return ""
    low, high = result.bounds[name]
    return f"{low:.4f} … {high:.4f}"


def _table(query_ids: Any, columns: Mapping[str, Any], path: str) -> str:
    text = io.StringIO()
    delimiter = "," if path.endswith(".csv") else "\t"
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(["qid", *columns])
    writer.writerows(zip(query_ids.tolist(), *(c.tolist() for c in columns.values()), strict=True))
    return text.getvalue()
