"""Fitting with progress, and what to tell of it; shared by the training commands and demo."""

import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from marginrank.cli._output import print_table
from marginrank.cli._progress import Phases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from marginrank.data import RankingData
    from marginrank.data.pair_lists import PairList
    from marginrank.models import LinearModel
    from marginrank.training.linear import Parameters
    from marginrank.training.sparse import SparseParameters


def fit(
    data: "RankingData",
    parameters: "Parameters | SparseParameters",
    phases: Phases,
    *,
    pairs: "PairList | None" = None,
    random_state: int = 0,
    verbose: bool = False,
) -> "LinearModel":
    """Fit to the labels, or to a list of pairs, and time it."""
    from marginrank.models import LinearModel
    from marginrank.solvers import StopReason
    from marginrank.training.linear import convergence_message, fit_linear, seed_from
    from marginrank.training.scaling import effect_message
    from marginrank.training.sparse import SparseParameters, fit_sparse

    seed = seed_from(random_state)
    with phases.phase("solve"), phases.solving(verbose) as callback:
        if isinstance(parameters, SparseParameters):
            outcome = fit_sparse(data, parameters, seed=seed, callback=callback)
        else:
            outcome = fit_linear(data, parameters, pairs=pairs, seed=seed, callback=callback)
    if outcome.result.stop is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    for message in (
        effect_message(outcome.scale, data.feature_names),
        convergence_message(outcome.result, parameters.tol),
    ):
        if message is not None:
            warnings.warn(message, stacklevel=1)
    return LinearModel.from_fit(outcome, parameters, random_state, data.feature_names)


def fit_summary(model: "LinearModel", counts: dict[str, int]) -> dict[str, Any]:
    """Return what came out of a fit on data with these counts."""
    training = asdict(model.training) if model.training else {}
    stop = training.pop("stop_reason")
    return {
        "data": counts,
        "parameters": model.parameters,
        **training,
        "stop_reason": stop.name.lower(),
        "converged": stop.converged,
    }


def print_fit(result: "Mapping[str, Any]", stop_reason: str) -> None:
    """Print the summary of a fit, with the seconds by phase and the metrics if there are any."""
    gap = f"{result['gap']:.2e}"
    if result["objective"] > 0:
        gap += f", relative {result['gap'] / result['objective']:.1e}"
    rows = [
        *result["data"].items(),
        ("objective", f"{result['objective']:.10g}"),
        ("certified gap", gap),
        ("iterations", result["n_iter"]),
        ("stopped because", stop_reason),
        ("seconds", ", ".join(f"{name} {s:.2f}" for name, s in result["seconds"].items())),
    ]
    if "model" in result:
        rows.append(("written to", result["model"]))
    print_table("Training", rows)
    if "valid" in result:
        print_table("Validation", result["valid"].items())
