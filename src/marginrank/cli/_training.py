"""Fitting with progress, and what to tell of it; shared by train and demo."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marginrank.cli._data import data_summary
from marginrank.cli._output import print_table
from marginrank.cli._progress import Phases

if TYPE_CHECKING:
    from marginrank import RankingData, RankSVM


def make_ranker(**parameters: Any) -> "RankSVM":
    """Return an unfitted RankSVM; wrong parameters are refused before any data is read."""
    from marginrank import RankSVM

    ranker = RankSVM(**parameters)
    ranker._check_parameters()
    return ranker


def fit(ranker: "RankSVM", data: "RankingData", phases: Phases, *, verbose: bool) -> None:
    """Fit and time it; the solver's own clock tells its share from that of grouping."""
    import numpy as np

    start = time.perf_counter()
    with phases.solving(verbose) as wanted:
        ranker.set_params(verbose=int(wanted))
        ranker.fit(data.X, data.y, qid=data.qid, **_weights(data))
        ranker.set_params(verbose=0)
    if data.feature_names:
        ranker.feature_names_in_ = np.array(data.feature_names, dtype=object)
    total = time.perf_counter() - start
    solve = ranker.history_[-1].seconds if ranker.history_ else 0.0
    phases.add("group", total - solve)
    phases.add("solve", solve)


def _weights(data: "RankingData") -> dict[str, Any]:
    """Return the weights of data that has them, documents in the order of the rows."""
    weight = data.sample_weight
    if weight is not None and data.queries.rows is not None:
        by_document = weight
        weight = by_document.copy()
        weight[data.queries.rows] = by_document
    return {"sample_weight": weight, "query_weight": data.query_weight}


def fit_summary(ranker: "RankSVM", data: "RankingData") -> dict[str, Any]:
    """Return what came out of a fit."""
    return {
        "data": data_summary(data),
        "parameters": ranker.get_params(),
        "objective": ranker.objective_,
        "gap": ranker.gap_,
        "n_iter": ranker.n_iter_,
        "stop_reason": ranker.stop_reason_.name.lower(),
        "converged": ranker.stop_reason_.converged,
    }


def print_fit(result: Mapping[str, Any], stop_reason: str) -> None:
    """Print the summary of a fit, with the seconds by phase and the metrics if there are any."""
    relative = result["gap"] / result["objective"]
    rows = [
        *result["data"].items(),
        ("objective", f"{result['objective']:.10g}"),
        ("certified gap", f"{result['gap']:.2e}, relative {relative:.1e}"),
        ("iterations", result["n_iter"]),
        ("stopped because", stop_reason),
        ("seconds", ", ".join(f"{name} {s:.2f}" for name, s in result["seconds"].items())),
    ]
    if "model" in result:
        rows.append(("written to", result["model"]))
    print_table("Training", rows)
    if "valid" in result:
        print_table("Validation", result["valid"].items())
