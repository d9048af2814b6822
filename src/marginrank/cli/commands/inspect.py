"""The command ``marginrank inspect``: summarize data or a model."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from marginrank._utils.feature_names import name_of as feature_name
from marginrank._utils.types import Floats
from marginrank.cli.flags.declaration import flag
from marginrank.cli.flags.inspection import InspectFlags
from marginrank.cli.flags.shared import KIND_OF_FLAG
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags
from marginrank.cli.support.curves import describe_curves, print_curves
from marginrank.cli.support.data import data_summary, kind_of, open_any_size
from marginrank.cli.support.files import name_of, regular_file
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import whole_queries
from marginrank.fit.feature_scales import QueryScale
from marginrank.fit.query_influence import coef_stderr
from marginrank.io.chunks import CHUNK_DOCUMENTS
from marginrank.models import AdditiveModel, LinearModel, is_model

MAX_LABELS = 20  # number of distinct labels above which the histogram has bins
N_BINS = 10
BAR = 30  # length of the longest bar, in characters
SHOWN = 10  # most names in a list
PER_QUERY = {
    "documents_per_query": "documents per query",
    "levels_per_query": "distinct labels per query",
    "pairs_per_query": "pairs per query",
}
MANY_FEATURES = 1 << 20  # number of features above which constant ones are not counted
NEGLIGIBLE = 1e-9  # weights below this share of the largest scaled weight are rounding errors


def run(flags: InspectFlags, phases: Phases) -> None:
    """Print a summary of data or of a model."""
    files, reading = flags.files, flags.reading
    check_files([*files, reading.group])
    with ExitStack() as stack:
        paths = [stack.enter_context(regular_file(path)) for path in files]
        both = zip(files, paths, strict=True)
        models = [name for name, path in both if kind_of(path) == "text" and is_model(path)]
        if models and models != files[:1]:
            raise ValueError(
                f"{models[-1]} is a model, but only the first file can be one; pass one model, "
                "then optionally its training data."
            )
        if models:
            described = _describe_model(*_open_model(flags, paths, phases), flags.top)
        else:
            check_flags(reading.given, files)
            if "top" in reading.given:
                raise ValueError(f"--top is for models, but {files[0]} is data; drop --top.")
            data = open_any_size(paths, reading, phases, name=name_of(files[0]))
            described = describe_data(data)
    show = print_json if flags.json else _print_model if models else _print_data
    show(described)


def _open_model(
    flags: InspectFlags, paths: list[str], phases: Phases
) -> tuple[_models.Model, Floats | None]:
    """Return a model and, if training data are given too, the standard errors of its weights."""
    reading, model = flags.reading, _models.load(paths[0])
    if len(paths) == 1:
        for name in KIND_OF_FLAG:
            if name in reading.given:
                raise ValueError(
                    f"{flag(name)} is for data, but {paths[0]} is a model; drop {flag(name)}."
                )
        return model, None
    if not isinstance(model, LinearModel):
        raise ValueError(
            f"{flags.files[0]} is not a linear model, so its weights have no standard errors; "
            "inspect it without training data."
        )
    check_flags(reading.given, flags.files[1:])
    data = _models.open_data_for(model, paths[1:], reading, phases)
    with phases.phase("standard errors"):
        return model, coef_stderr(data, model)


def describe_data(data: RankingData) -> dict[str, Any]:
    """Return counts, statistics over queries, label histogram and constant features of data."""
    queries, X = data.queries, data.X
    matrix: dict[str, Any] = {"layout": "dense", "dtype": str(X.dtype)}
    if hasattr(X, "nnz"):
        density = X.nnz / max(X.shape[0] * X.shape[1], 1)
        matrix = {"layout": "csr", "dtype": str(X.dtype), "density": density}
    return {
        **data_summary(data),
        "matrix": matrix,
        "stored": None if data.stored is None else _describe_stored(data.stored),
        "queries_without_pair": int(np.count_nonzero(queries.n_pairs == 0)),
        "documents_per_query": _summary(np.diff(queries.offsets)),
        "levels_per_query": _summary(queries.n_levels),
        "pairs_per_query": _summary(queries.n_pairs),
        "labels": _histogram(data.y),
        "constant_in_queries": _describe_constant(data),
    }


def _describe_constant(data: RankingData) -> dict[str, Any] | None:
    """Return the number of features that are constant within every query, and ten names.

    Return None if there are more than MANY_FEATURES features.
    """
    if data.n_features > MANY_FEATURES:
        return None
    inside = QueryScale()
    chunks = [data] if data.stored is not data.X else whole_queries(data, CHUNK_DOCUMENTS)
    for chunk in chunks:
        inside.add(chunk)
    constant = np.flatnonzero(inside.values() == 0).tolist()
    first = [feature_name(k, data.feature_names) for k in constant[:SHOWN]]
    return {"features": len(constant), "first": first}


def _describe_stored(stored: StoredFeatures) -> dict[str, Any]:
    columns = {} if stored.packed is None else stored.packed.columns
    return {
        "layout": stored.layout,
        "bytes_on_disk": stored.n_bytes(0, stored.shape[0]),
        "bytes_in_memory": stored.n_bytes_in_memory(0, stored.shape[0]),
        "columns": {name: at.size for name, at in columns.items() if at.size} or None,
    }


def _summary(counts: Any) -> dict[str, float]:
    return {
        "min": int(counts.min()),
        "median": float(np.median(counts)),
        "mean": float(counts.mean()),
        "max": int(counts.max()),
    }


def _histogram(labels: Any) -> list[dict[str, Any]]:
    values, counts = np.unique(labels, return_counts=True)
    if values.size <= MAX_LABELS:
        pairs = zip(values.tolist(), counts.tolist(), strict=True)
        return [{"label": v, "documents": n} for v, n in pairs]
    counts, edges = np.histogram(labels, bins=N_BINS)
    bins = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    return [{"from": low, "to": high, "documents": n} for low, high, n in bins]


def _print_data(data: Mapping[str, Any]) -> None:
    counts = {n: data[n] for n in ("documents", "queries", "features", "pairs")}
    counts["queries without a pair"] = data["queries_without_pair"]
    matrix = " ".join(f"{v:.3g}" if n == "density" else v for n, v in data["matrix"].items())
    constant = data["constant_in_queries"]
    if constant is not None:
        counts["features constant in queries"] = _listed(constant["first"], constant["features"])
    print_table("Data", [*counts.items(), ("matrix", matrix), *_stored_rows(data["stored"])])
    rows = [(title, *data[name].values()) for name, title in PER_QUERY.items()]
    print_table("Queries", rows, header=("", "min", "median", "mean", "max"))
    most = max(one["documents"] for one in data["labels"])
    rows = [
        (_label(one), one["documents"], "█" * round(BAR * (one["documents"] / most)))
        for one in data["labels"]
    ]
    print_table("Labels", rows, header=("label", "documents", ""))


def _stored_rows(stored: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    if stored is None:
        return []
    columns = stored["columns"] or {}
    types = ", ".join(f"{n} {name}" for name, n in columns.items())
    return [
        ("stored", f"{stored['layout']}, columns: {types}" if types else stored["layout"]),
        ("bytes on disk", stored["bytes_on_disk"]),
        ("bytes in memory", stored["bytes_in_memory"]),
    ]


def _listed(first: Sequence[Any], total: int) -> str:
    shown = ", ".join(map(str, first)) or "none"
    return f"{shown} and {total - len(first)} more" if total > len(first) else shown


def _label(one: Mapping[str, Any]) -> str:
    return f"{one['label']:g}" if "label" in one else f"{one['from']:.4g} … {one['to']:.4g}"


def _describe_model(model: Any, stderr: Floats | None, top: int) -> dict[str, Any]:
    """Return the parameters and the largest weights of a model, with standard errors if given.

    If features were scaled, weights are sorted by |weight × scale|, and weights with a negligible
    product count as zero. For a model without feature weights, such as a kernel model, return its
    kind, number of features and scale.
    """
    names = model.feature_names
    if isinstance(model, AdditiveModel):
        return describe_curves(model, top)
    if not isinstance(model, LinearModel):
        return {
            "kind": model.kind,
            "features": model.n_features,
            "feature_names": names,
            "scale": getattr(model, "scale", None),
        }
    scale = model.scale
    effects = model.coef if scale is None else model.coef * scale
    sizes = np.abs(effects)
    least = 0.0 if scale is None else NEGLIGIBLE * sizes.max(initial=0.0)
    largest = np.argsort(-sizes, kind="stable")[:top].tolist()
    weights = [
        {
            "feature": feature_name(i, names),
            "weight": float(model.coef[i]),
            **({} if stderr is None else {"stderr": float(stderr[i])}),
            "scale": None if scale is None else float(scale[i]),
            "effect": None if scale is None else float(effects[i]),
        }
        for i in largest
    ]
    return {
        "kind": model.estimator,
        "features": model.coef.size,
        "nonzero_weights": int(np.count_nonzero(model.coef)),
        "effective_weights": int(np.count_nonzero(sizes > least)),
        "parameters": model.parameters,
        "top_weights": weights,
    }


def _print_model(model: Mapping[str, Any]) -> None:
    if "top_curves" in model:
        print_curves(model)
        return
    if "top_weights" not in model:
        names = ", ".join(model["feature_names"] or ()) or None
        rows = [("kind", model["kind"]), ("features", model["features"]), ("names", names)]
        if model["scale"] is not None:
            numbers = [f"{number:g}" for number in model["scale"][:SHOWN]]
            rows.append(("scale", _listed(numbers, len(model["scale"]))))
        print_table("Model without feature weights", rows)
        return
    nonzero, effective = model["nonzero_weights"], model["effective_weights"]
    known = effective
    if nonzero > effective:
        known = f"{effective:,}, and {nonzero - effective:,} that are zero up to rounding"
    rows = [("features", model["features"]), ("non-zero weights", known)]
    print_table(model["kind"], [*rows, *model["parameters"].items()])
    shown = {"feature": "feature", "weight": "weight"}
    if any("stderr" in one for one in model["top_weights"]):
        shown["stderr"] = "standard error"
    title = "Largest weights"
    if any(one["scale"] is not None for one in model["top_weights"]):
        shown |= {"scale": "scale", "effect": "weight × scale"}
        title += " by weight × scale"
    weights = [tuple(one[column] for column in shown) for one in model["top_weights"]]
    print_table(title, weights, header=tuple(shown.values()))
