"""The command ``marginrank compare``: test whether one ranking is better than another."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from marginrank.cli.flags.commands import CompareFlags
from marginrank.cli.flags.shared import Reading
from marginrank.cli.support import metrics as _metrics
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags, check_run_flags
from marginrank.cli.support.data import open_data
from marginrank.cli.support.files import read_scores, regular_file
from marginrank.cli.support.output import EVIDENCE, print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.io.trec_text import load_qrels, load_run
from marginrank.metrics import compare, compare_runs
from marginrank.metrics.runs import run_metrics


def run(flags: CompareFlags, phases: Phases) -> None:
    """Compare two rankings of the same data, or two runs, with paired tests."""
    if any(value is not None for value in (flags.run_a, flags.run_b, flags.qrels)):
        _compare_runs(flags, phases)
        return
    data, reading, name = flags.data or [], flags.reading, flags.metric.metric
    if not data:
        raise ValueError(
            "there is nothing to compare; pass labeled data, or --run-a, --run-b and --qrels."
        )
    metric = _metrics.find_metric(flags.metric)  # checked before any data are read
    check_flags(reading.given, data)
    sides = (flags.model_a, flags.scores_a), (flags.model_b, flags.scores_b)
    inputs = [*data, *sides[0], *sides[1]]
    for side, sources in zip("ab", sides, strict=True):
        if sources.count(None) != 1:
            what = "both flags" if None not in sources else "neither flag"
            raise ValueError(
                f"ranking {side} needs either --model-{side} or --scores-{side}, got {what}."
            )
    check_files([*inputs, reading.group])
    a, b = (_Side(*sources) for sources in sides)
    own, others = _read(data, reading, phases, a, b)
    with phases.phase("compare"):
        scores = a.scores(own, reading.n_jobs), b.scores(others, reading.n_jobs)
        outcome = compare(own.y, *scores, qid=own.qid, metric=metric)
        ties: _metrics.Ties = {}
        for side, values in zip("ab", scores, strict=True):
            chosen = {f"{name} of {side}": metric}
            means = _metrics.measure(chosen, own, values, skip=False)
            ties |= _metrics.effect_of_ties(chosen, means, own, values)
    result = {**asdict(outcome), "metric": name, "a": a.name, "b": b.name, "ties": ties}
    print_json(result) if flags.json else _print(result)


def _compare_runs(flags: CompareFlags, phases: Phases) -> None:
    sides = "model_a", "scores_a", "model_b", "scores_b", "discount"
    check_run_flags(flags.reading.given, flags.data, ("run_a", "run_b", "qrels"), sides)
    check_files([flags.run_a, flags.run_b, flags.qrels])
    name, gain = flags.metric.metric, flags.metric.gain or "linear"
    run_metrics([name], gain)  # checked before any data are read
    with phases.phase("read"):
        a, b = (load_run(str(path)) for path in (flags.run_a, flags.run_b))
        qrels = load_qrels(str(flags.qrels))
    with phases.phase("compare"):
        outcome = compare_runs(a, b, qrels, name, unjudged=flags.unjudged, gain=gain)
    result = {**asdict(outcome), "a": flags.run_a, "b": flags.run_b, "gain": gain, "ties": {}}
    print_json(result) if flags.json else _print(result)


def _read(
    data: Sequence[str], reading: Reading, phases: Phases, a: "_Side", b: "_Side"
) -> tuple[RankingData, RankingData]:
    """Return the data for ranking a and for ranking b, read once if their features are the same."""
    if b.features is None or b.features == a.features:
        documents = a.read(data, reading, phases)
        return documents, documents
    with ExitStack() as stack:
        files = [stack.enter_context(regular_file(path)) for path in data]
        return a.read(files, reading, phases), b.read(files, reading, phases)


def _print(result: Mapping[str, Any]) -> None:
    low, high = result["interval"]
    difference, p, metric = result["difference"], result["t_test_p"], result["metric"]
    if p < EVIDENCE:
        side, other = ("a", "b") if difference > 0 else ("b", "a")
        verdict = f"{side} is better than {other} by {abs(difference):.4f} {metric}"
    else:
        verdict = f"No evidence of a difference in {metric}"
    print_line(f"{verdict} (p = {p:.2g}, {result['n_queries']:,} queries)")
    print_line("")
    rows = [
        (f"a: {result['a']}", f"{result['mean_a']:.4f}"),
        (f"b: {result['b']}", f"{result['mean_b']:.4f}"),
        ("difference a - b", f"{difference:.4f}"),
        (f"{result['confidence']:.0%} confidence interval", f"{low:.4f} … {high:.4f}"),
        ("p-value, paired t-test", f"{p:.2g}"),
        ("p-value, randomization test", f"{result['randomization_p']:.2g}"),
        ("queries", result["n_queries"]),
    ]
    print_table(f"Comparison by {metric}", rows)
    _metrics.print_ties(result["ties"])


class _Side:
    """One of the two rankings to compare: a model, or a file of scores.

    `features` are the number and the names of the model's features; None for a file of scores.
    """

    def __init__(self, model: str | None, scores: str | None) -> None:
        self.name = model or scores
        self._model = None if model is None else _models.load(model)
        self.features = self._model and (self._model.n_features, self._model.feature_names)

    def read(self, files: Sequence[str], reading: Reading, phases: Phases) -> RankingData:
        """Return the data in some files; raise ValueError if they lack the features of a model."""
        if self._model is None:
            return open_data(files, reading, phases)
        return _models.open_data_for(self._model, files, reading, phases)

    def scores(self, data: RankingData, n_jobs: int | None) -> Any:
        if self._model is None:
            return read_scores(str(self.name), data.n_documents)
        return _models.scores(self._model, data, n_jobs)
