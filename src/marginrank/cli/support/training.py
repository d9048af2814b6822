"""Steps that training commands share: checks, reading, fits with progress, printed summary."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from marginrank._utils.memory import readable
from marginrank.cli.flags.shared import Reading, Training, ValidationFlags
from marginrank.cli.support import metrics as _metrics
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import (
    Pairs,
    check_files,
    check_flags,
    check_only_with,
    check_writable,
)
from marginrank.cli.support.data import DataRequest, kind_of, open_data, open_held_out
from marginrank.cli.support.errors import warn_of
from marginrank.cli.support.files import naming
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.data.pair_lists import PairList
from marginrank.fit.inputs import OpenedData, open_documents
from marginrank.fit.linear import Parameters, fit_linear, seed_from
from marginrank.fit.scaling import effect_message
from marginrank.fit.sparse import SparseParameters, empty_message, fit_sparse
from marginrank.fit.stream_progress import StreamProgress, Watch
from marginrank.models import AdditiveModel, LinearModel, write_model
from marginrank.models.fit_report import FitReport, StopReason, convergence_message, report_of

BatchParameters = Parameters | SparseParameters
Checked = TypeVar("Checked")
Model = TypeVar("Model", LinearModel, AdditiveModel)

SHOWN = 10  # most position effects in the table
NEEDS = tuple((name, "valid") for name in ("valid_group", "metrics", "gain", "discount"))


class TrainingTask(NamedTuple):
    """The inputs of a training command, with the steps that all training commands share.

    The inputs are the data files and the flags for reading, validation and output.
    """

    files: Sequence[str]
    reading: Reading
    validation: ValidationFlags
    training: Training
    phases: Phases

    def check_flags(self, *, needs: Pairs = (), conflicts: Pairs = ()) -> None:
        """Raise ValueError for flags that do not apply to the data or to other flags."""
        valid, needs = self.validation.valid, (*needs, *NEEDS)
        given = self.reading.given
        check_flags(given, self.files, valid=valid, needs=needs, conflicts=conflicts)

    def parameters_of(self, kind: Callable[..., Checked], *flags: Any) -> Checked:
        """Return an object of class `kind` with the parameters of a fit, from groups of flags."""
        values = {name: value for group in flags for name, value in vars(group).items()}
        return kind(**values | {"n_jobs": self.reading.n_jobs})

    def prepare(
        self,
        make: Callable[[], Checked],
        *,
        inputs: Iterable[str | None] = (),
        outputs: Iterable[str | None] = (),
        only_with: Iterable[tuple[str, str, Sequence[str]]] = (),
    ) -> Checked:
        """Return ``make()``, the parameters of a fit; check flags and files before data are read.

        `inputs` and `outputs` are files that only some training commands have. `only_with` has
        flags that require a value of another parameter; see :func:`check_only_with`.
        """
        read = [*self.files, *inputs, self.validation.valid]
        check_writable(self.training.model)
        self.phases.seconds["import"] = self.phases.import_seconds
        parameters = make()
        check_only_with(self.reading.given, parameters, only_with)
        self.metrics()
        groups = self.reading.group, self.validation.valid_group
        check_files([*read, *groups], [self.training.model, *outputs])
        return parameters

    def metrics(self, default: str | None = None) -> dict[str, _metrics.Metric]:
        names = default if self.validation.metrics is None else self.validation.metrics
        return _metrics.find_metrics(names, self.validation)

    def open(
        self, request: DataRequest | None = None, memory_limit: str | None = None
    ) -> OpenedData:
        """Read the training data; if a store is larger than memory, its features stay on disk."""
        if [kind_of(path) for path in self.files] != ["store"]:
            return OpenedData(open_data(self.files, self.reading, self.phases, request))
        with self.phases.reading(self.files[0]):
            opened = open_documents(self.files[0], memory_limit)
        warn_of(opened.message)
        return opened

    def open_valid(
        self, n_features: int, names: Sequence[str] | None, *, missing: bool = False
    ) -> RankingData | None:
        """Return the validation data, or None. Call it before the fit, so errors appear early."""
        valid, group = self.validation.valid, self.validation.valid_group
        request = DataRequest(n_features, names, missing=missing)
        return open_held_out("valid", valid, group, self.reading, self.phases, request)

    def fit(
        self, opened: OpenedData, parameters: BatchParameters, pairs: PairList | None = None
    ) -> LinearModel:
        """Return a linear model fitted to labels, or to a list of pairs, and emit its warnings."""
        random_state = self.training.random_state
        with self.phases.phase("solve"), self._watching(opened, parameters.tol) as watch:
            how: Any = {"seed": seed_from(random_state), "memory_limit": opened.memory_limit}
            how |= watch._asdict()
            if isinstance(parameters, SparseParameters):
                model = fit_sparse(opened.data, parameters, **how)
            else:
                model = fit_linear(opened.data, parameters, pairs=pairs, **how)
        warn_of_model(model, parameters)
        return with_seed(model, random_state)

    @contextmanager
    def _watching(self, opened: OpenedData, tol: float) -> Iterator[Watch]:
        verbose = self.training.verbose
        if opened.memory_limit is None:
            with self.phases.solving(verbose) as callback:
                yield Watch(callback)
            return
        progress = StreamProgress(opened.data.n_documents, tol)
        with self.phases.streaming(verbose, progress) as watch:
            yield watch

    def write(self, model: LinearModel | AdditiveModel) -> None:
        """Write the model to its file; if an error ended the fit, raise it afterwards."""
        path = self.training.model
        with self.phases.phase("write", path), naming(path):
            write_model(model, path)
        error = report_of(model).error
        if error is not None:
            sentence = str(error).rstrip(".")
            raise OSError(f"{sentence}; the best weights so far are in {path}.") from error

    def report(
        self,
        model: LinearModel | AdditiveModel,
        held_out: RankingData | None,
        counts: dict[str, int],
        *,
        memory_limit: int | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Evaluate the model on validation data, if any; print and return a summary of the fit."""
        result = fit_summary(model, counts) | {"model": self.training.model, **more}
        stream = report_of(model).stream
        if stream is not None:
            result["stream"] = {"memory_limit": memory_limit, **stream._asdict()}
        validation: list[tuple[str, str]] = []
        if held_out is not None:
            with self.phases.phase("evaluate", self.validation.valid):
                chosen = self.metrics()
                scores = _models.scores(model, held_out, self.reading.n_jobs)
                values = _metrics.measure(
                    chosen, held_out, scores, skip=self.validation.metrics is None
                )
                result["valid"] = values
                result["ties"] = _metrics.effect_of_ties(chosen, values, held_out, scores)
                validation = _metrics.with_intervals(chosen, values, held_out, scores)
        result["seconds"] = self.phases.seconds
        if self.training.json:
            print_json(result)
        else:
            print_fit(result, report_of(model).stop_reason.value, validation)
            _metrics.print_ties(result.get("ties", {}))
        return result


def warn_of_model(model: LinearModel, parameters: BatchParameters) -> None:
    """Emit the warnings about the fit of a linear model; raise KeyboardInterrupt after Ctrl-C."""
    report = report_of(model)
    warn_of_report(report, parameters.tol, model.feature_names)
    if report.error is None and isinstance(parameters, SparseParameters):
        warn_of(empty_message(model.coef, parameters))


def warn_of_report(report: FitReport, tol: float, feature_names: list[str] | None) -> None:
    """Emit the warnings about a fit; raise KeyboardInterrupt if it was ended by Ctrl-C."""
    if report.stop_reason is StopReason.INTERRUPTED:
        raise KeyboardInterrupt
    # The program that reads the output of --verbose has ended, so end this command, too.
    if isinstance(report.error, BrokenPipeError):
        raise report.error
    if report.error is None:
        warn_of(effect_message(report.without_effect, feature_names))
        warn_of(convergence_message(report, tol))


def with_seed(model: Model, random_state: int) -> Model:
    """Return the model with `random_state` added to its parameters, to be saved with it."""
    return replace(model, parameters=model.parameters | {"random_state": random_state})


def fit_summary(model: LinearModel | AdditiveModel, counts: dict[str, int]) -> dict[str, Any]:
    """Return the results of a fit as a dictionary, for --json."""
    report = report_of(model)
    names = ("n_rounds", "C", "smoothness", "position_effect")
    optional = {name: getattr(report, name) for name in names}
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


def print_fit(
    result: Mapping[str, Any], stop_reason: str, validation: Sequence[tuple[str, str]] = ()
) -> None:
    """Print whether a fit converged, its validation metrics if any, and its details."""
    gap = f"{result['gap']:.2e}"
    if result["objective"] > 0:
        gap += f", relative {result['gap'] / result['objective']:.1e}"
    counts = ", ".join(f"{number:,} {name}" for name, number in result["data"].items())
    done = "Converged" if result["converged"] else f"Not converged ({stop_reason})"
    written = f"; model written to {result['model']}" if "model" in result else ""
    print_line(f"{done} ({sum(result['seconds'].values()):.1f} s in total){written}")
    print_line(f"Trained on {counts}")
    print_line("")
    if validation:
        print_table(f"Validation, mean {_metrics.INTERVAL}", validation)
    stream, disk = result.get("stream"), {}
    if stream is not None:
        disk = {
            "memory limit": readable(stream["memory_limit"]),
            "parts": stream["n_parts"],
            "read from disk": readable(stream["bytes_read"]),
            "kept in memory": f"{readable(stream['pinned_bytes'])} of X",
        }
    effects = ", ".join(f"{b:.3g}" for b in np.ravel(result.get("position_effect", ()))[:SHOWN])
    rows = [
        *((name, f"{result[name]:.10g}") for name in ("C", "smoothness") if name in result),
        *([("effect of each position on clicks", effects)] if effects else []),
        ("objective", f"{result['objective']:.10g}"),
        ("certified gap", gap),
        *([("rounds", result["n_rounds"])] if "n_rounds" in result else []),
        ("iterations", result["n_iter"]),
        ("stopped because", stop_reason),
        ("seconds", ", ".join(f"{name} {s:.2f}" for name, s in result["seconds"].items())),
        *disk.items(),
        *result.get("dask", {}).items(),
    ]
    print_table("Training", rows)
