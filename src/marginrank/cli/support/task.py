"""What the commands that learn have in common: everything before and after the fit."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import (
    check_conflicts,
    check_files,
    check_flags_of_both,
    check_needs,
    check_only_with,
    check_stdin_once,
    check_stored,
    check_writable,
)
from marginrank.cli.support.data import Wanted, open_judged
from marginrank.cli.support.files import naming
from marginrank.cli.support.metrics import Metric, find_metrics, measure
from marginrank.cli.support.options import Reading, Training, ValidationFlags
from marginrank.cli.support.output import print_json
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.ties import decided_by_ties, print_ties
from marginrank.cli.support.training import fit_summary, print_fit

if TYPE_CHECKING:
    from marginrank import RankingData
    from marginrank.models import AdditiveModel, LinearModel

    Model = LinearModel | AdditiveModel

Flags = Iterable[tuple[str, str]]
Parameters = TypeVar("Parameters")

NEEDS = tuple((name, "valid") for name in ("valid_group", "metrics", "gain", "discount"))


class Task:
    """Files to learn from, what to judge the model by, and where to write it."""

    def __init__(
        self,
        files: Sequence[str],
        reading: Reading,
        validation: ValidationFlags,
        training: Training,
    ) -> None:
        self.files = files
        self.reading = reading
        self.validation = validation
        self.training = training
        self.phases = Phases()

    def check_flags(self, *, needs: Flags = (), conflicts: Flags = ()) -> None:
        """Raise ValueError for flags of other data, or that need or contradict another flag."""
        given = self.reading.given
        check_conflicts(given, conflicts)
        check_needs(given, (*needs, *NEEDS))
        check_flags_of_both(given, self.files, self.validation.valid)
        check_stored(given, self.files)

    def prepare(
        self,
        make: Callable[[], Parameters],
        *,
        inputs: Iterable[str | None] = (),
        outputs: Iterable[str | None] = (),
        only_with: Iterable[tuple[str, str, Sequence[str]]] = (),
    ) -> Parameters:
        """Return checked parameters, when all that can be refused without reading data is checked.

        `make` imports what the help did not wait for; `inputs` and `outputs` are the files that not
        every such command has; `only_with` are flags that mean something with some values of
        another parameter only.
        """
        read = [*self.files, *inputs, self.validation.valid]
        check_writable(self.training.model)
        check_stdin_once(read)
        with self.phases.importing():
            parameters: Any = make()
            check_only_with(self.reading.given, parameters, only_with)
            self.metrics()
        groups = self.reading.group, self.validation.valid_group
        check_files([*read, *groups], [self.training.model, *outputs])
        return parameters  # type: ignore[no-any-return]

    def metrics(self, default: str | None = None) -> dict[str, Metric]:
        """Return the metrics of the validation."""
        options = self.validation
        names = default if options.metrics is None else options.metrics
        return find_metrics(names, gain=options.gain, discount=options.discount)

    def open_valid(self, wanted: Wanted) -> "RankingData | None":
        """Read the validation data: before the fit, so that an error costs nothing."""
        valid, group = self.validation.valid, self.validation.valid_group
        return open_judged("valid", valid, group, self.reading, self.phases, wanted)

    def write(self, model: "Model") -> None:
        """Write the model."""
        from marginrank.models import write_model

        path = self.training.model
        with self.phases.phase("write", path), naming(path):
            write_model(model, path)

    def keep(self, model: "LinearModel") -> None:
        """Write the model, also if the fit could not go on: then fail, and say where it is."""
        self.write(model)
        error = None if model.report is None else model.report.error
        if error is not None:
            sentence = str(error).rstrip(".")
            raise OSError(
                f"{sentence}; the best weights up to then are in {self.training.model}."
            ) from error

    def summary(
        self,
        model: "Model",
        held_out: "RankingData | None",
        counts: dict[str, int],
        **more: Any,
    ) -> dict[str, Any]:
        """Return what to tell of a fit to data with some counts, and of the model on others."""
        result = fit_summary(model, counts) | {"model": self.training.model, **more}
        if held_out is not None:
            with self.phases.phase("evaluate", self.validation.valid):
                result |= self._judge(model, held_out)
        return result | {"seconds": self.phases.seconds}

    def _judge(self, model: "Model", data: "RankingData") -> dict[str, Any]:
        chosen = self.metrics()
        scores = _models.scores(model, data, self.reading.n_jobs)
        values = measure(chosen, data, scores, skip=self.validation.metrics is None)
        return {"valid": values, "ties": decided_by_ties(chosen, values, data, scores)}

    def tell(self, result: dict[str, Any], model: "Model") -> None:
        """Print the summary."""
        from marginrank.models.fit_report import report_of

        if self.training.json:
            print_json(result)
            return
        print_fit(result, report_of(model).stop_reason.value)
        print_ties(result.get("ties", {}))
