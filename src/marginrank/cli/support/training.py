"""Fitting with progress, and what to tell of it; shared by the training commands and demo."""

import warnings
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from marginrank.cli.support.output import print_table
from marginrank.cli.support.progress import Phases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from marginrank._utils.parameters import Message
    from marginrank.data import RankingData
    from marginrank.data.pair_lists import PairList
    from marginrank.fit.linear import Parameters
    from marginrank.fit.minimisation import Fit
    from marginrank.fit.sparse import SparseParameters
    from marginrank.fit.stream_progress import Watch
    from marginrank.fit.streams import Opened
    from marginrank.models import AdditiveModel, LinearModel
    from marginrank.models.fit_report import StreamFacts

    AnyParameters = Parameters | SparseParameters


class Learned(NamedTuple):
    """A model, what was read to learn it, and why that could not go on, if it could not."""

    model: "LinearModel"
    stream: "StreamFacts | None" = None
    error: OSError | None = None


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
    from marginrank.fit.streams import Opened

    how: Any = {"pairs": pairs, "random_state": random_state, "verbose": verbose}
    return fit_opened(Opened(data), parameters, phases, **how).model


def fit_opened(
    opened: "Opened",
    parameters: "AnyParameters",
    phases: Phases,
    *,
    pairs: "PairList | None" = None,
    random_state: int = 0,
    verbose: bool = False,
) -> Learned:
    """Fit to the labels of data in memory or on disk, or to a list of pairs, and time it."""
    from marginrank.fit.linear import fit_linear, seed_from
    from marginrank.fit.sparse import SparseParameters, fit_sparse

    data, limit, _ = opened
    with phases.phase("solve"), _watching(opened, parameters, phases, verbose) as watch:
        how: Any = {"seed": seed_from(random_state), "memory_limit": limit, **watch._asdict()}
        if isinstance(parameters, SparseParameters):
            outcome = fit_sparse(data, parameters, **how)
        else:
            outcome = fit_linear(data, parameters, pairs=pairs, **how)
    return learned_from(outcome, parameters, random_state, data.feature_names)


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


def learned_from(
    outcome: "Fit",
    parameters: "AnyParameters",
    random_state: int,
    feature_names: list[str] | None,
) -> Learned:
    """Return what a fit has learned, and warn of what is wrong with it."""
    from marginrank.fit.sparse import SparseParameters, empty_message
    from marginrank.models import LinearModel

    warn_of_outcome(outcome, parameters.tol, feature_names)
    if outcome.error is None and isinstance(parameters, SparseParameters):
        warn_of(empty_message(outcome.result.w, parameters))
    model = LinearModel.from_fit(outcome, parameters, random_state, feature_names)
    return Learned(model, outcome.stream, outcome.error)


def warn_of_outcome(outcome: "Fit", tol: float, feature_names: list[str] | None) -> None:
    """Warn of what is wrong with a fit; raise what has ended it."""
    from marginrank.fit.linear import convergence_message
    from marginrank.fit.scaling import effect_message
    from marginrank.models.fit_report import StopReason

    if outcome.result.stop is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    if isinstance(outcome.error, BrokenPipeError):  # nobody reads what --verbose prints
        raise outcome.error
    if outcome.error is None:
        for message in (
            effect_message(outcome.scale, feature_names),
            convergence_message(outcome.result, tol),
        ):
            warn_of(message)


def warn_of(message: "Message | None") -> None:
    """Emit `message` as a warning, if not None."""
    if message is not None:
        warnings.warn(message, stacklevel=1)


def fit_summary(model: "LinearModel | AdditiveModel", counts: dict[str, int]) -> dict[str, Any]:
    """Return what came out of a fit on data with these counts."""
    training = asdict(model.training) if model.training else {}
    stop = training.pop("stop_reason")
    for name in ("n_rounds", "C", "smoothness"):
        if training[name] is None:
            del training[name]
    return {
        "data": counts,
        "parameters": model.parameters,
        **training,
        "stop_reason": stop.name.lower(),
        "converged": stop.converged,
    }


def stream_summary(opened: "Opened", learned: Learned) -> dict[str, Any]:
    """Return what was read of data that were left on disk, if they were."""
    if learned.stream is None:
        return {}
    return {"stream": {"memory_limit": opened.memory_limit, **learned.stream._asdict()}}


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
