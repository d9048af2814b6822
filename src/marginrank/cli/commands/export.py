"""marginrank export."""

import json as json_module
import math
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import (
    check_files,
    check_flags_of_data,
    check_needs,
    check_writable,
)
from marginrank.cli.support.errors import CheckFailed
from marginrank.cli.support.files import naming, regular_file
from marginrank.cli.support.options import KIND_OF_FLAG, Json, ModelFile, Reading
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.progress import Phases
from marginrank.export.registry import TARGETS, find_target

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.export.engines import EngineRun
    from marginrank.export.sums import Model

EXAMPLE = """\
export model.json --to elasticsearch --out ranker.json
export model.json --to sqlite --out ranker.sql --verify test.txt
export model.json --to lucene --out ranker.txt --offset auto --verify test.txt"""

OFFSET_HELPS = " Pass --offset {:.6g}, or --offset auto."
TARGET_HELP = f"Target: {', '.join(TARGETS)} (with a dialect, as sql:mysql)."


def export(
    model: ModelFile,
    reading: Reading,
    to: Annotated[str, typer.Option(help=TARGET_HELP, show_default=False)],
    out: Annotated[
        str, typer.Option(help="File to write to; a target's other files go beside it.")
    ],
    name: Annotated[
        str | None, typer.Option(help="What to call the model there; as OUT by default.")
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            help="JSON file of the features' names there: a list, or an object from the model's "
            "names to others; by default the model's, or f1, f2 and so on."
        ),
    ] = None,
    offset: Annotated[
        str,
        typer.Option(
            help='Number to add to every score, or "auto": what keeps scores of the documents of '
            "--verify above 0, for engines that refuse negative ones."
        ),
    ] = "0",
    verify: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Data to score with the export, in the engine or a reference of it, and to "
            "compare with the model.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write a model for a search engine, a database or another language."""
    find_target(to)
    _check_flags(reading, verify, offset)
    check_writable(out)
    inputs = [model, names, verify, reading.group]
    check_files(inputs, [out])
    phases = Phases()
    ranker = _models.load(model)
    documents = _documents(ranker, verify, reading, phases)
    options = _Options(to, out, name, _names(names), offset, inputs)
    result = _export(ranker, documents, options, phases)
    if json:
        print_json({**result, "seconds": phases.seconds})
    else:
        print_table("Exported", _rows(result))


class _Options(NamedTuple):
    """What to write, and where; what to call model and features; what to add to scores."""

    to: str
    out: str
    name: str | None
    names: Any
    offset: str
    inputs: list[str | None]  # files that must not be overwritten


def _check_flags(reading: Reading, verify: str | None, offset: str) -> None:
    if verify is None:
        check_needs(reading.given, [(name, "verify") for name in KIND_OF_FLAG])
        if offset == "auto":
            raise ValueError(
                "--offset auto needs --verify: only documents tell how low scores come."
            )
    else:
        check_flags_of_data(reading.given, [verify])
    if offset != "auto":
        _number(offset)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f'--offset {text} must be a finite number or "auto".')
    return value


def _names(path: str | None) -> Any:
    """Return a list of names, or an object from names to names."""
    if path is None:
        return None
    with naming(path), regular_file(path) as file, open(file, "rb") as content:
        names = json_module.load(content)
    entries = names.values() if isinstance(names, dict) else names
    if not isinstance(names, dict | list) or not all(isinstance(e, str) for e in entries):
        raise ValueError(f"{path} must hold a list of names, or an object from names to names.")
    return names


def _documents(
    model: "_models.Model", path: str | None, reading: Reading, phases: Phases
) -> "RankingData | None":
    if path is None:
        return None
    return _models.open_data_for(model, [path], reading, phases, labels=False)


def _export(
    model: "_models.Model", documents: "RankingData | None", options: _Options, phases: Phases
) -> dict[str, Any]:
    from marginrank.export.exporting import (
        check_taken,
        counts_in,
        export_files,
        name_for,
        paths_of,
        write_files,
    )

    to, names = options.to, options.names
    check_taken(model, to)
    scores: Any = None if documents is None else _models.scores(model, documents)
    offset = _offset(options.offset, scores)
    name = name_for(options.out) if options.name is None else options.name
    files = export_files(model, to, name=name, names=names, offset=offset)
    check_files(options.inputs, paths_of(options.out, files), prints=False)
    result: dict[str, Any] = {
        "target": to,
        "files": paths_of(options.out, files),
        "features": model.n_features,
        **counts_in(model),
        "offset": offset,
    }
    if documents is not None:
        with phases.phase("verify"):
            run = _run(model, to, files, documents, names)
            result["verification"] = _verified(run, scores, offset, documents.qid)
    write_files(options.out, files)
    return result


def _offset(wanted: str, scores: Any) -> float:
    from marginrank.export.exporting import offset_above_zero

    return offset_above_zero(scores) if wanted == "auto" else _number(wanted)


def _run(
    model: "Model", to: str, files: dict[str, bytes], documents: "RankingData", names: Any
) -> "EngineRun":
    """Return the scores that the export gives to the documents."""
    from marginrank.export.verification import run_export

    X = documents.X.toarray() if hasattr(documents.X, "toarray") else documents.X
    return run_export(model, to, files, X, names)


def _verified(run: "EngineRun", scores: Any, offset: float, qid: Any) -> dict[str, Any]:
    """Return the figures of a verification; raise CheckFailed if it fails."""
    from dataclasses import asdict

    from marginrank.export.verification import VerificationError, verify

    try:
        found = verify(run, scores + offset, qid)
    except VerificationError as error:
        raise CheckFailed(f"verification failed: {error}") from error
    if found.failure is not None:
        advice = OFFSET_HELPS.format(_offset("auto", scores)) if found.negative_scores else ""
        raise CheckFailed(f"verification failed: {found.failure}{advice}")
    return asdict(found)


def _rows(result: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return lines for people."""
    rows = [(key, value) for key, value in result.items() if key not in ("files", "verification")]
    rows[1:1] = [("file", path) for path in result["files"]]
    found = result.get("verification")
    if found is None:
        return rows
    verified = ("verified by", found["engine"])
    if found["is_reference"]:
        engine = found["engine"].removeprefix("reference of ")
        verified = ("checked against", f"a reference of the arithmetic of {engine}")
    changed, queries = found["reordered_queries"], found["queries"]
    order = f"changed in {changed:,} of {queries:,} queries" if changed else "unchanged"
    return [
        *rows,
        verified,
        ("documents", found["documents"]),
        ("largest difference", found["largest_difference"]),
        ("spread of scores", found["spread"]),
        ("order", order),
    ]
