"""Fitting with progress, and what to tell of it; shared by the training commands and demo."""

import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from marginrank.cli.support.output import print_table
from marginrank.cli.support.progress import Phases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from marginrank._utils.parameters import Message
    from marginrank.data import RankingData
    from marginrank.data.pair_lists import PairList
    from marginrank.fit.inputs import Opened
    from marginrank.fit.linear import Parameters
    from marginrank.fit.sparse import SparseParameters
    from marginrank.fit.stream_progress import Watch
    from marginrank.models import AdditiveModel, LinearModel
    from marginrank.models.fit_report import FitReport

    AnyParameters = Parameters | SparseParameters

Model = TypeVar("Model", "LinearModel", "AdditiveModel")


def fit(
    data: "RankingData",
    parameters: "AnyParameters",
    phases: Phases,
    *,
    pairs: "PairList | None" = None,
    random_state: int = 0,
    verbose: bool = False,
) -> "LinearModel":
    """Fit to the labels of data in memory, or to a list of pairs, and time it."""
    from marginrank.fit.inputs import Opened

    how: Any = {"pairs": pairs, "random_state": random_state, "verbose": verbose}
    return fit_opened(Opened(data), parameters, phases, **how)


def fit_opened(
    opened: "Opened",
    parameters: "AnyParameters",
    phases: Phases,
    *,
    pairs: "PairList | None" = None,
    random_state: int = 0,
    verbose: bool = False,
) -> "LinearModel":
    """Fit to the labels of data in memory or on disk, or to a list of pairs, and time it."""
    from marginrank.fit.linear import fit_linear, seed_from
    from marginrank.fit.sparse import SparseParameters, fit_sparse

    data, limit, _ = opened
    with phases.phase("solve"), _watching(opened, parameters, phases, verbose) as watch:
        how: Any = {"seed": seed_from(random_state), "memory_limit": limit, **watch._asdict()}
        if isinstance(parameters, SparseParameters):
            model = fit_sparse(data, parameters, **how)
        else:
            model = fit_linear(data, parameters, pairs=pairs, **how)
    warn_of_model(model, parameters)
    return with_seed(model, random_state)


@contextmanager
def _watching(
    opened: "Opened", parameters: "AnyParameters", phases: Phases, verbose: bool
) -> "Iterator[Watch]":
    """Yield what a fit is to call while it goes on."""
    from marginrank.fit.stream_progress import StreamProgress, Watch

    if opened.memory_limit is None:
        with phases.solving(verbose) as callback:
            yield Watch(callback)
        return
    progress = StreamProgress(opened.data.n_documents, parameters.tol)
    with phases.streaming(verbose, progress) as watch:
        yield watch


def warn_of_model(model: "LinearModel", parameters: "AnyParameters") -> None:
    """Warn of what is wrong with a linear model; raise what has ended the fit."""
    from marginrank.fit.sparse import SparseParameters, empty_message
    from marginrank.models.fit_report import report_of

    report = report_of(model)
    warn_of_report(report, parameters.tol, model.feature_names)
    if report.error is None and isinstance(parameters, SparseParameters):
        warn_of(empty_message(model.coef, parameters))


def with_seed(model: "Model", random_state: int) -> "Model":
    """Return a model whose parameters have the random_state that its fit began with."""
    return replace(model, parameters=model.parameters | {"random_state": random_state})


def warn_of_report(report: "FitReport", tol: float, feature_names: list[str] | None) -> None:
    """Warn of what is wrong with a fit; raise what has ended it."""
    from marginrank.fit.scaling import effect_message
    from marginrank.models.fit_report import StopReason, convergence_message

    if report.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if isinstance(report.error, BrokenPipeError):  # nobody reads what --verbose prints
        raise report.error
    if report.error is None:
        warn_of(effect_message(report.without_effect, feature_names))
        warn_of(convergence_message(report, tol))


def warn_of(message: "Message | None") -> None:
    """Emit `message` as a warning, if not None."""
    if message is not None:
        warnings.warn(message, stacklevel=1)


def fit_summary(model: "LinearModel | AdditiveModel", counts: dict[str, int]) -> dict[str, Any]:
    """Return what came out of a fit on data with these counts."""
    from marginrank.models.fit_report import report_of

    report = report_of(model)
    optional = {name: getattr(report, name) for name in ("n_rounds", "C", "smoothness")}
    return {
        "data": counts,
        "parameters": model.parameters,
        "objective": report.objective,
        "gap": report.gap,
        "n_iter": report.n_iter,
        "n_pairs": report.n_pairs,
        **{name: value for name, value in optional.items() if value is not None},
        "stop_reason": report.stop_reason.name.lower(),
        "converged": report.stop_reason.converged,
    }


def stream_summary(opened: "Opened", model: "LinearModel") -> dict[str, Any]:
    """Return what was read of data that were left on disk, if they were."""
    from marginrank.models.fit_report import report_of

    stream = report_of(model).stream
    if stream is None:
        return {}
    return {"stream": {"memory_limit": opened.memory_limit, **stream._asdict()}}


def print_fit(result: "Mapping[str, Any]", stop_reason: str) -> None:
    """Print the summary of a fit, with the seconds by phase and the metrics if there are any."""
    gap = f"{result['gap']:.2e}"
    if result["objective"] > 0:
        gap += f", relative {result['gap'] / result['objective']:.1e}"
    rows = [
        *result["data"].items(),
        *((name, f"{result[name]:.10g}") for name in ("C", "smoothness") if name in result),
        ("objective", f"{result['objective']:.10g}"),
        ("certified gap", gap),
        *([("rounds", result["n_rounds"])] if "n_rounds" in result else []),
        ("iterations", result["n_iter"]),
        ("stopped because", stop_reason),
        ("seconds", ", ".join(f"{name} {s:.2f}" for name, s in result["seconds"].items())),
    ]
    if "stream" in result:
        rows.extend(_stream_rows(result["stream"]))
    if "dask" in result:
        rows.extend(result["dask"].items())
    if "model" in result:
        rows.append(("written to", result["model"]))
    print_table("Training", rows)
    if "valid" in result:
        print_table("Validation", result["valid"].items())


def _stream_rows(stream: "Mapping[str, int]") -> list[tuple[str, Any]]:
    from marginrank._utils.memory import readable

    return [
        ("memory limit", readable(stream["memory_limit"])),
        ("parts", stream["n_parts"]),
        ("read from disk", readable(stream["bytes_read"])),
        ("kept in memory", f"{readable(stream['pinned_bytes'])} of X"),
    ]
