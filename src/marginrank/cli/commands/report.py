"""The command ``marginrank report``: write an HTML page about how well a model ranks."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from marginrank._utils.optional import require
from marginrank.cli.flags.commands import ReportFlags
from marginrank.cli.flags.shared import KIND_OF_FLAG, Reading
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags, check_writable
from marginrank.cli.support.files import naming, read_scores
from marginrank.cli.support.metrics import find_metric, find_metrics
from marginrank.cli.support.output import print_json, print_line
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.io.trec_text import load_qrels
from marginrank.models import is_model
from marginrank.reporting import Report
from marginrank.reporting.evaluation import Rankings
from marginrank.reporting.record import ReportRequest, make_report


def run(flags: ReportFlags, phases: Phases) -> None:
    """Write a report as an HTML page, and its numbers as JSON next to it."""
    require("jinja2", "report")
    if not flags.out.endswith((".html", ".htm")):
        raise ValueError(f"--out {flags.out} must end in .html.")
    record = str(Path(flags.out).with_suffix(".json"))
    written = [flags.out] if flags.record is not None else [flags.out, record]
    for path in written:
        check_writable(path)
    report = _read_again(flags) if flags.record is not None else _make(flags, written, phases)
    with phases.phase("write", flags.out):
        for path in written:
            with naming(path):
                report.save(path)
    if flags.json:
        shown = {name: report.record[name] for name in ("verdict", "metrics", "comparison")}
        print_json({"files": written, **shown, "seconds": phases.seconds})
        return
    print_line(report.verdict)
    print_line(f"Wrote {' and '.join(written)}")


def _read_again(flags: ReportFlags) -> Report:
    given = {"baseline", "train", "qrels", "metric", "gain", "discount", *KIND_OF_FLAG}
    for name in sorted(given & flags.reading.given):
        raise ValueError(f"--{name.replace('_', '-')} has no effect with --from; drop it.")
    if flags.files:
        raise ValueError(f"{flags.files[0]}: --from needs no model and no data; drop them.")
    check_files([flags.record], [flags.out])
    return Report.load(str(flags.record))


def _make(flags: ReportFlags, written: list[str], phases: Phases) -> Report:
    files, reading = flags.files or [], flags.reading
    if len(files) < 2:
        raise ValueError(f"got {' '.join(files) or 'no files'}; pass a model and data, or --from.")
    metric = find_metric(flags.metric)  # checked before any data are read
    check_flags(reading.given, [*files[1:], *([flags.train] if flags.train else [])])
    check_files([*files, flags.baseline, flags.train, flags.qrels, reading.group], written)
    model = _models.load(files[0])
    data = _read(model, files[1:], reading, phases)
    train = None
    if flags.train is not None:
        train = _read(model, [flags.train], replace(reading, group=None), phases)
    with phases.phase("report"):
        return make_report(
            ReportRequest(
                rankings=Rankings(
                    data=data,
                    scores=_models.scores(model, data, reading.n_jobs),
                    baseline=_baseline(flags, data, phases),
                    metric=metric,
                    metrics=find_metrics(None, flags.metric),
                    qrels=None if flags.qrels is None else load_qrels(flags.qrels),
                    seed=flags.random_state,
                ),
                model=model,
                names=(files[0], flags.baseline),
                train=train,
                command=_command(flags),
            )
        )


def _read(model: _models.Model, files: list[str], reading: Reading, phases: Phases) -> RankingData:
    return _models.open_data_for(model, files, reading, phases, comments=True)


def _baseline(flags: ReportFlags, data: RankingData, phases: Phases) -> Any:
    """Return the scores of the baseline (a model or a file of scores), or None without one."""
    if flags.baseline is None:
        return None
    if not is_model(flags.baseline):
        return read_scores(flags.baseline, data.n_documents)
    model = _models.load(flags.baseline)
    own = data
    if (model.n_features, model.feature_names) != (data.n_features, data.feature_names):
        own = _models.open_data_for(model, (flags.files or [])[1:], flags.reading, phases)
    return _models.scores(model, own, flags.reading.n_jobs)


def _command(flags: ReportFlags) -> str:
    words = ["marginrank", "report", *(flags.files or [])]
    for name in ("baseline", "train", "qrels"):
        value = getattr(flags, name)
        words += [] if value is None else [f"--{name}", value]
    words += ["--metric", flags.metric.metric, "--out", flags.out]
    return shlex.join(words)
