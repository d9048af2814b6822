"""The command ``marginrank fuse``: learn the weights of hybrid search."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from marginrank.cli.flags.commands import FuseFlags
from marginrank.cli.support.checks import check_files, check_writable
from marginrank.cli.support.output import plus_minus, print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.export.exporting import name_for, paths_of, write_files
from marginrank.export.fusion import fusion_files
from marginrank.export.registry import find_fusion_target
from marginrank.fit.fusion import FusionParameters, JudgedSignals
from marginrank.fit.linear import seed_from
from marginrank.io.trec_text import load_qrels, load_run
from marginrank.models import FusionModel, write_model
from marginrank.models.fusion_model import QueryFeatures
from marginrank.selection.fusion import LEARNED, FusionEvaluation, select_fusion


def run(flags: FuseFlags, phases: Phases) -> None:
    """Learn weights to combine the scores of several searches; save or export them if requested."""
    given = {f.name: getattr(flags.parameters, f.name) for f in fields(flags.parameters)}
    parameters = FusionParameters(**given)
    files = _by_signal(flags.runs)
    if (flags.to is None) != (flags.out is None):
        there, absent = ("--out", "--to") if flags.to is None else ("--to", "--out")
        raise ValueError(f"{there} needs {absent}; pass both or neither.")
    if flags.to is not None:
        find_fusion_target(flags.to)
    inputs = [*files.values(), flags.qrels, flags.query_features]
    check_files(inputs, [flags.model, flags.out])
    for path in (flags.model, flags.out):
        check_writable(path)
    with phases.phase("read"):
        runs = {name: load_run(path) for name, path in files.items()}
        judged = JudgedSignals.of(runs, load_qrels(flags.qrels), parameters.depth)
        features = _read_features(flags.query_features)
    with phases.phase("fit"):
        model, evaluation = select_fusion(
            judged, parameters, query_features=features, seed=seed_from(flags.random_state)
        )
    if flags.model is not None:
        write_model(model, flags.model)
    result = {**_describe(model, evaluation), "model": flags.model, "files": []}
    if flags.to is not None and flags.out is not None:
        exported = fusion_files(model, flags.to, name=name_for(flags.out))
        check_files([*inputs, flags.model], paths_of(flags.out, exported), prints=False)
        result["files"] = write_files(flags.out, exported)
    result["seconds"] = phases.seconds
    print_json(result) if flags.json else _print(result)


def _by_signal(words: Sequence[str]) -> dict[str, str]:
    """Return a dict from the name of each search to its run file."""
    files: dict[str, str] = {}
    for word in words:
        name, is_named, path = word.partition("=")
        if not is_named:
            name, path = Path(word).name.partition(".")[0], word
        if not name or name in files:
            raise ValueError(
                f"{word}: the name {name!r} is empty or names two runs; name runs as in "
                f"bm25={path}."
            )
        files[name] = path
    return files


def _read_features(path: str | None) -> QueryFeatures | None:
    if path is None:
        return None
    try:
        content = json.loads(Path(path).read_bytes())
        features = {
            str(query): {str(name): float(value) for name, value in own.items()}
            for query, own in content.items()
        }
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a JSON object {{query: {{feature: number}}}} ({error})."
        ) from error
    return features


def _describe(model: FusionModel, evaluation: FusionEvaluation | None) -> dict[str, Any]:
    weights = dict(zip(model.signals, model.weights.tolist(), strict=True))
    changes = {
        one.name: {
            "low": one.low,
            "high": one.high,
            "changes": dict(zip(model.signals, one.changes, strict=True)),
        }
        for one in model.query_features
    }
    described = {
        "normalizer": model.normalizer,
        "weights": weights,
        "query_features": changes,
        "depth": model.depth,
        "verdict": None,
    }
    if evaluation is None:
        return described
    methods = {
        name: {"mean": mean, "interval": half}
        for (name, mean), half in zip(
            evaluation.means.items(), evaluation.half_intervals.values(), strict=True
        )
    }
    for name, (difference, half) in evaluation.gains.items():
        methods[name] |= {"learned_minus": difference, "learned_minus_interval": half}
    return described | {
        "verdict": evaluation.verdict,
        "metric": evaluation.metric,
        "queries": evaluation.n_queries,
        "methods": methods,
        "normalizers": evaluation.normalizers,
    }


def _print(result: Mapping[str, Any]) -> None:
    if result["verdict"] is not None:
        print_line(result["verdict"])
        print_line("")
    rows = [(name, f"{weight:.4f}") for name, weight in result["weights"].items()]
    print_table(f"Weights, with normalizer {result['normalizer']}", rows)
    for name, feature in result["query_features"].items():
        changes = [(signal, f"{change:+.4f}") for signal, change in feature["changes"].items()]
        print_table(
            f"Change of weights if {name} rises from {feature['low']:g} to {feature['high']:g}",
            changes,
        )
    if result["verdict"] is not None:
        table = [
            (
                name,
                plus_minus(one["mean"], one["interval"]),
                None
                if name == LEARNED
                else f"{one['learned_minus']:+.4f} ± {one['learned_minus_interval']:.4f}",
            )
            for name, one in result["methods"].items()
        ]
        title = f"Cross-validated {result['metric']} ± 95% interval, {result['queries']:,} queries"
        print_table(title, table, header=("method", "mean", "learned better by"))
    if result["model"] is not None:
        print_line(f"Wrote {result['model']} (model)")
    if result["files"]:
        print_line(f"Wrote {', '.join(result['files'])}")
