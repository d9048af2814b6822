"""Descriptions of data and of models."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from marginrank._utils.feature_names import name_of
from marginrank.cli.support.curves import describe_curves, print_curves
from marginrank.cli.support.data import data_summary
from marginrank.cli.support.output import print_table

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.data.store.stored_features import StoredFeatures

MAX_LABELS = 20  # more distinct labels than this are shown in bins
N_BINS = 10
BAR = 30  # characters
SHOWN = 10  # features that are constant inside queries
MANY_FEATURES = 1 << 20  # more are not looked at one by one
NEGLIGIBLE = 1e-9  # of the largest weight of a scaled feature: what rounding leaves of a zero


def describe_data(data: "RankingData") -> dict[str, Any]:
    """Return counts, levels, pairs, the labels' histogram and the documents a query."""
    import numpy as np

    queries = data.queries
    return {
        **data_summary(data),
        "matrix": _describe_matrix(data.X),
        "stored": None if data.stored is None else _describe_stored(data.stored),
        "queries_without_pair": int(np.count_nonzero(queries.n_pairs == 0)),
        "documents_a_query": _spread(np.diff(queries.offsets)),
        "levels_a_query": _spread(queries.n_levels),
        "pairs_a_query": _spread(queries.n_pairs),
        "labels": _histogram(data.y),
        "constant_in_queries": _describe_constant(data),
    }


def _describe_constant(data: "RankingData") -> dict[str, Any] | None:
    """Return the features that no pair sees: how many there are, and the first ones."""
    import numpy as np

    from marginrank.data.stored_data import whole_queries
    from marginrank.fit.feature_scales import QueryScale
    from marginrank.io.chunks import CHUNK_DOCUMENTS

    if data.n_features > MANY_FEATURES:
        return None
    inside = QueryScale()
    chunks = [data] if data.stored is not data.X else whole_queries(data, CHUNK_DOCUMENTS)
    for chunk in chunks:
        inside.add(chunk)
    constant = np.flatnonzero(inside.values() == 0).tolist()
    first = [name_of(k, data.feature_names) for k in constant[:SHOWN]]
    return {"features": len(constant), "first": first}


def _describe_matrix(X: Any) -> dict[str, Any]:
    n_cells = X.shape[0] * X.shape[1]
    if hasattr(X, "nnz"):
        return {"layout": "csr", "dtype": str(X.dtype), "density": X.nnz / max(n_cells, 1)}
    return {"layout": "dense", "dtype": str(X.dtype)}


def _describe_stored(stored: "StoredFeatures") -> dict[str, Any]:
    """Return how X is on disk, and how much that is."""
    columns = {} if stored.packed is None else stored.packed.columns
    return {
        "layout": stored.layout,
        "bytes_on_disk": stored.n_bytes(0, stored.shape[0]),
        "bytes_in_memory": stored.n_bytes_in_memory(0, stored.shape[0]),
        "columns": {name: at.size for name, at in columns.items() if at.size} or None,
    }


def _spread(counts: Any) -> dict[str, float]:
    import numpy as np

    return {
        "min": int(counts.min()),
        "median": float(np.median(counts)),
        "mean": float(counts.mean()),
        "max": int(counts.max()),
    }


def _histogram(labels: Any) -> list[dict[str, Any]]:
    """Return documents by label, or by range of labels if there are many."""
    import numpy as np

    values, counts = np.unique(labels, return_counts=True)
    if values.size <= MAX_LABELS:
        pairs = zip(values.tolist(), counts.tolist(), strict=True)
        return [{"label": v, "documents": n} for v, n in pairs]
    counts, edges = np.histogram(labels, bins=N_BINS)
    bins = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)
    return [{"from": low, "to": high, "documents": n} for low, high, n in bins]


def print_data(data: Mapping[str, Any]) -> None:
    """Print the description of data as tables."""
    counts = {n: data[n] for n in ("documents", "queries", "features", "pairs")}
    counts["queries without a pair"] = data["queries_without_pair"]
    matrix = " ".join(f"{v:.3g}" if n == "density" else v for n, v in data["matrix"].items())
    constant = data["constant_in_queries"]
    if constant is not None:
        counts["constant in queries"] = _listed(constant["first"], constant["features"])
    print_table("Data", [*counts.items(), ("matrix", matrix), *_stored_rows(data["stored"])])
    spreads = ("documents_a_query", "levels_a_query", "pairs_a_query")
    rows = [(name.replace("_", " "), *data[name].values()) for name in spreads]
    print_table("Queries", rows, header=("", "min", "median", "mean", "max"))
    most = max(one["documents"] for one in data["labels"])
    rows = [
        (_label(one), one["documents"], _bar(one["documents"] / most)) for one in data["labels"]
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
    """Name the first of some things, and say how many more there are."""
    shown = ", ".join(map(str, first)) or "none"
    return f"{shown} and {total - len(first)} more" if total > len(first) else shown


def _label(one: Mapping[str, Any]) -> str:
    return f"{one['label']:g}" if "label" in one else f"{one['from']:.4g} … {one['to']:.4g}"


def _bar(share: float) -> str:
    return "█" * round(BAR * share)


def describe_model(model: Any, top: int) -> dict[str, Any]:
    """Return the parameters of a model and its largest weights by magnitude.

    If features were scaled, that of the weights of scaled features counts: weight times scale. It
    also tells weights that matter from those that are zero but for rounding. Of a model that has no
    weights of features, only its kind, its features and their scale.
    """
    import numpy as np

    from marginrank.models import AdditiveModel, LinearModel

    names = model.feature_names
    if isinstance(model, AdditiveModel):
        return describe_curves(model, top)
    if not isinstance(model, LinearModel):
        return {
            "kind": model.kind,
            "features": model.n_features,
            "feature_names": names,
            "scale": getattr(model, "scale", None),  # models of other libraries have none
        }
    scale = model.scale
    effects = model.coef if scale is None else model.coef * scale
    sizes = np.abs(effects)
    least = 0.0 if scale is None else NEGLIGIBLE * sizes.max(initial=0.0)
    largest = np.argsort(-sizes, kind="stable")[:top].tolist()
    weights = [
        {
            "feature": name_of(i, names),
            "weight": float(model.coef[i]),
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


def print_model(model: Mapping[str, Any]) -> None:
    """Print the description of a model as tables."""
    if "top_curves" in model:
        print_curves(model)
        return
    if "top_weights" not in model:
        names = ", ".join(model["feature_names"] or ()) or None
        rows = [("kind", model["kind"]), ("features", model["features"]), ("names", names)]
        if model["scale"] is not None:
            numbers = [f"{number:g}" for number in model["scale"][:SHOWN]]
            rows.append(("scale", _listed(numbers, len(model["scale"]))))
        print_table("Model without weights of features", rows)
        return
    nonzero, effective = model["nonzero_weights"], model["effective_weights"]
    known = effective
    if nonzero > effective:
        known = f"{effective:,}, and {nonzero - effective:,} that are zero but for rounding"
    rows = [("features", model["features"]), ("non-zero weights", known)]
    print_table(model["kind"], [*rows, *model["parameters"].items()])
    shown = {"feature": "feature", "weight": "weight"}
    title = "Largest weights"
    if any(one["scale"] is not None for one in model["top_weights"]):
        shown |= {"scale": "scale", "effect": "weight × scale"}
        title += " by weight × scale"
    weights = [tuple(one[column] for column in shown) for one in model["top_weights"]]
    print_table(title, weights, header=tuple(shown.values()))
