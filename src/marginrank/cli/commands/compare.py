"""marginrank compare."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags_of_data, check_stdin_once
from marginrank.cli.support.data import open_data
from marginrank.cli.support.files import read_scores, regular_file
from marginrank.cli.support.metrics import Metric, find_metric, measure
from marginrank.cli.support.options import DataFiles, Json, OneMetric, Reading
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.ties import Ties, decided_by_ties, print_ties

if TYPE_CHECKING:
    from marginrank import RankingData

EXAMPLE = """\
compare test.txt --model-a old.json --model-b new.json --metric ndcg@10
compare test.txt --scores-a old.txt --scores-b new.txt"""


def compare(
    data: DataFiles,
    reading: Reading,
    judging: OneMetric,
    model_a: Annotated[str | None, typer.Option(help="The first model, or")] = None,
    scores_a: Annotated[str | None, typer.Option(help="its scores, one a line.")] = None,
    model_b: Annotated[str | None, typer.Option(help="The second model, or")] = None,
    scores_b: Annotated[str | None, typer.Option(help="its scores, one a line.")] = None,
    json: Json = False,
) -> None:
    """Test whether one ranking is better than another, over the queries."""
    from marginrank import metrics

    # A wrong metric is refused before any data is read.
    metric = judging.metric
    chosen = find_metric(metric, gain=judging.gain, discount=judging.discount)
    check_flags_of_data(reading.given, data)
    inputs = [*data, model_a, scores_a, model_b, scores_b]
    check_stdin_once(inputs)
    for side, sources in (("a", (model_a, scores_a)), ("b", (model_b, scores_b))):
        if sources.count(None) != 1:
            raise ValueError(f"give either --model-{side} or --scores-{side}.")
    check_files([*inputs, reading.group])
    phases = Phases()
    a, b = _Side(model_a, scores_a), _Side(model_b, scores_b)
    documents, others = _read(data, reading, phases, a, b)
    with phases.phase("compare"):
        scores = a.scores(documents, reading.n_jobs), b.scores(others, reading.n_jobs)
        outcome = metrics.compare(documents.y, *scores, qid=documents.qid, metric=chosen)
        ties = _ties({f"{metric} of {side}": chosen for side in "ab"}, documents, scores)
    result = {**asdict(outcome), "metric": metric, "a": a.name, "b": b.name, "ties": ties}
    print_json(result) if json else _print(result)


def _read(
    data: Sequence[str], reading: Reading, phases: Phases, a: "_Side", b: "_Side"
) -> tuple["RankingData", "RankingData"]:
    """Read the data for both sides: once, if they want the same features."""
    if b.fits(a):
        documents = a.read(data, reading, phases)
        return documents, documents
    with ExitStack() as stack:
        files = [stack.enter_context(regular_file(path)) for path in data]
        return a.read(files, reading, phases), b.read(files, reading, phases)


def _ties(sides: Mapping[str, Metric], data: "RankingData", scores: tuple[Any, Any]) -> Ties:
    """Return what equal scores decide, for the sides where that is noticeable."""
    decided: Ties = {}
    for (side, metric), own in zip(sides.items(), scores, strict=True):
        values = measure({side: metric}, data, own, skip=False)
        decided |= decided_by_ties({side: metric}, values, data, own)
    return decided


def _print(result: Mapping[str, Any]) -> None:
    low, high = result["interval"]
    rows = [
        (f"a: {result['a']}", result["mean_a"]),
        (f"b: {result['b']}", result["mean_b"]),
        ("a - b", result["difference"]),
        (f"{result['confidence']:.0%} confidence interval", f"{low:.6g} … {high:.6g}"),
        ("p, paired t-test", result["t_test_p"]),
        ("p, randomisation test", result["randomization_p"]),
        ("queries", result["n_queries"]),
    ]
    print_table(f"Comparison by {result['metric']}", rows)
    print_ties(result["ties"])


class _Side:
    """A model or a file of scores."""

    def __init__(self, model: str | None, scores: str | None) -> None:
        self.name = model or scores
        self._path = scores
        self._model: Any = None if model is None else _models.load(model)

    def read(self, files: Sequence[str], reading: Reading, phases: Phases) -> "RankingData":
        """Read data with the features of the model, if it is one."""
        if self._model is None:
            return open_data(files, reading, phases)
        return _models.open_data_for(self._model, files, reading, phases)

    def fits(self, other: "_Side") -> bool:
        """Whether the other's data serve this side, too."""
        return self._model is None or self._features() == other._features()

    def _features(self) -> Any:
        if self._model is None:
            return None
        return self._model.n_features, self._model.feature_names

    def scores(self, data: "RankingData", n_jobs: int | None) -> Any:
        """Return a score a document."""
        if self._path is not None:
            return read_scores(self._path, data.n_documents)
        return _models.scores(self._model, data, n_jobs)
