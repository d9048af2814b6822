"""The command ``marginrank export``: write a model for another system."""

import json
import math
from dataclasses import asdict
from typing import Any

from marginrank.cli.flags.commands import ExportFlags
from marginrank.cli.flags.shared import KIND_OF_FLAG
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags, check_writable
from marginrank.cli.support.errors import CheckFailed
from marginrank.cli.support.files import naming, regular_file
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.export.engines import EngineRun
from marginrank.export.exporting import (
    check_taken,
    counts_in,
    export_files,
    name_for,
    offset_above_zero,
    paths_of,
    write_files,
)
from marginrank.export.fusion import fusion_files
from marginrank.export.registry import FUSION_TARGETS, find_target
from marginrank.export.verification import VerificationError, run_export, verify
from marginrank.models import FusionModel, read_any_model

OFFSET_HELPS = " Pass --offset {:.6g}, or --offset auto."


def run(flags: ExportFlags, phases: Phases) -> None:
    """Write a model for a search engine, a database or another language."""
    if flags.to not in FUSION_TARGETS:
        find_target(flags.to)
    _check_flags(flags)
    check_writable(flags.out)
    check_files([flags.model, flags.names, flags.verify, flags.reading.group], [flags.out])
    with regular_file(flags.model) as file:
        model = read_any_model(file)
    if isinstance(model, FusionModel):
        result = _export_fusion(model, flags)
    else:
        data = None
        if flags.verify is not None:
            data = _models.open_data_for(model, [flags.verify], flags.reading, phases, labels=False)
        result = _export(model, data, flags, phases)
    if flags.json:
        print_json({**result, "seconds": phases.seconds})
    else:
        checked = "; its scores agree with the model" if "verification" in result else ""
        print_line(f"Wrote {', '.join(result['files'])}{checked}")
        print_line("")
        print_table("Exported", _rows(result))


def _check_flags(flags: ExportFlags) -> None:
    needs = [(name, "verify") for name in KIND_OF_FLAG]
    check_flags(flags.reading.given, [] if flags.verify is None else [flags.verify], needs=needs)
    if flags.offset == "auto" and flags.verify is None:
        raise ValueError("--offset auto needs --verify, which determines the lowest score.")
    if flags.offset != "auto":
        _number(flags.offset)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f'--offset {text} must be a finite number or "auto".')
    return value


def _names(path: str | None) -> Any:
    """Return feature names from a JSON file: a list, or a dict from old to new names."""
    if path is None:
        return None
    with naming(path), regular_file(path) as file, open(file, "rb") as content:
        names = json.load(content)
    entries = names.values() if isinstance(names, dict) else names
    if not isinstance(names, dict | list) or not all(isinstance(e, str) for e in entries):
        raise ValueError(
            f"{path} must contain a JSON list of feature names, or an object "
            "{name in the model: name in the exported file}."
        )
    return names


def _export(
    model: _models.Model, documents: RankingData | None, flags: ExportFlags, phases: Phases
) -> dict[str, Any]:
    to, names = flags.to, _names(flags.names)
    check_taken(model, to)
    scores: Any = None if documents is None else _models.scores(model, documents)
    offset = offset_above_zero(scores) if flags.offset == "auto" else _number(flags.offset)
    name = name_for(flags.out) if flags.name is None else flags.name
    files = export_files(model, to, name=name, names=names, offset=offset)
    inputs = [flags.model, flags.names, flags.verify, flags.reading.group]
    check_files(inputs, paths_of(flags.out, files), prints=False)
    result: dict[str, Any] = {
        "target": to,
        "files": paths_of(flags.out, files),
        "features": model.n_features,
        **counts_in(model),
        "offset": offset,
    }
    if documents is not None:
        with phases.phase("verify"):
            X = documents.X.toarray() if hasattr(documents.X, "toarray") else documents.X
            scored = run_export(model, to, files, X, names)
            result["verification"] = _verified(scored, scores, offset, documents.qid)
    write_files(flags.out, files)
    return result


def _export_fusion(model: FusionModel, flags: ExportFlags) -> dict[str, Any]:
    for flag, given in {
        "--verify": flags.verify is not None,
        "--offset": flags.offset != "0",
    }.items():
        if given:
            raise ValueError(f"{flag} does not apply to fusion models; drop it.")
    name = name_for(flags.out) if flags.name is None else flags.name
    files = fusion_files(model, flags.to, name=name, names=_names(flags.names))
    check_files([flags.model, flags.names], paths_of(flags.out, files), prints=False)
    return {
        "target": flags.to,
        "files": write_files(flags.out, files),
        "normalizer": model.normalizer,
        "signals": dict(zip(model.signals, model.weights.tolist(), strict=True)),
    }


def _verified(scored: EngineRun, scores: Any, offset: float, qid: Any) -> dict[str, Any]:
    """Return the result of verifying an export as a dict; raise CheckFailed if scores differ."""
    try:
        found = verify(scored, scores + offset, qid)
    except VerificationError as error:
        raise CheckFailed(f"verification failed: {error}") from error
    if found.failure is not None:
        advice = OFFSET_HELPS.format(offset_above_zero(scores)) if found.negative_scores else ""
        raise CheckFailed(f"verification failed: {found.failure}{advice}")
    return asdict(found)


def _rows(result: dict[str, Any]) -> list[tuple[str, Any]]:
    apart = ("files", "signals", "verification")
    rows = [(key, value) for key, value in result.items() if key not in apart]
    rows += [(f"weight of {name}", value) for name, value in result.get("signals", {}).items()]
    found = result.get("verification")
    if found is None:
        return rows
    verified = ("verified by", found["engine"])
    if found["is_reference"]:
        engine = found["engine"].removeprefix("reference of ")
        verified = ("checked against", f"a reference implementation of {engine}")
    changed, queries = found["reordered_queries"], found["queries"]
    order = f"changed in {changed:,} of {queries:,} queries" if changed else "unchanged"
    return [
        *rows,
        verified,
        ("documents", found["documents"]),
        ("largest difference", found["largest_difference"]),
        ("range of scores", found["spread"]),
        ("order of documents", order),
    ]
