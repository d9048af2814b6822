"""marginrank learning-curve."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marginrank._utils.parameters import (
    TEXT,
    Mention,
    Parameter,
    ParameterError,
    check_integer,
    check_parameters,
    integer,
    or_none,
)
from marginrank.cli.support.checks import (
    check_conflicts,
    check_files,
    check_flags_of_both,
    check_needs,
)
from marginrank.cli.support.data import Wanted, data_summary, open_data, open_judged
from marginrank.cli.support.metrics import find_metric
from marginrank.cli.support.options import EVALUATION, DataFiles, Json, OneMetric, Reading
from marginrank.cli.support.output import plus_minus, print_json, print_line, print_table
from marginrank.cli.support.plots import check_plot, save_plot
from marginrank.cli.support.progress import Phases
from marginrank.models.parameters import RANDOM_STATE, LinearDeclaration

if TYPE_CHECKING:
    from marginrank.selection.learning_curve import LearningCurve

EXAMPLE = """\
learning-curve train.txt
learning-curve train.txt -C 0.01 --valid valid.txt --plot curve.png"""

CURVE = "Curve"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CurveOptions:
    """Sizes and splits of the curve."""

    sizes: str | None = Parameter(
        or_none(TEXT),
        "Numbers of training queries, with commas, or shares of them up to 1; by default they "
        "double up to all, six of them at most.",
        CURVE,
    ).field(None)
    folds: int = Parameter(
        integer(at_least=1),
        "Number of folds of whole queries; with --valid, of random orders of the queries.",
        CURVE,
    ).field(5)
    random_state: int = RANDOM_STATE._replace(panel=CURVE).field(0)
    valid: str | None = Parameter(
        or_none(TEXT), "Data to score the models on, instead of folds.", EVALUATION
    ).field(None)
    valid_group: str | None = Parameter(
        or_none(TEXT), "File of query sizes for --valid, as --group for DATA.", EVALUATION
    ).field(None)
    plot: str | None = Parameter(
        or_none(TEXT), "File to draw the curve to, such as curve.png.", EVALUATION
    ).field(None)

    def __post_init__(self) -> None:
        """Raise ValueError before anything is read."""
        check_parameters(self)
        if self.valid is None:
            check_integer("folds", self.folds, at_least=2)

    def numbers(self) -> list[float] | None:
        """Return the sizes as numbers."""
        if self.sizes is None:
            return None
        try:
            return [float(size) for size in self.sizes.split(",")]
        except ValueError:
            raise ParameterError(
                Mention("sizes", self.sizes), " must be numbers with commas, such as 50,100,200."
            ) from None


def learning_curve(
    files: DataFiles,
    reading: Reading,
    parameters: LinearDeclaration,
    curve: CurveOptions,
    judging: OneMetric,
    json: Json = False,
) -> None:
    """Tell whether more queries would make a linear model better.

    Models are trained on more and more of the queries, and scored on others. C is held per pair:
    it means what it means in a fit of all data.
    """
    check_conflicts(reading.given, [("C", "lam")])
    check_needs(reading.given, [("valid_group", "valid")])
    check_flags_of_both(reading.given, files, curve.valid)
    chosen = find_metric(judging.metric, gain=judging.gain, discount=judging.discount)
    sizes = curve.numbers()
    check_plot(curve.plot)
    options = vars(parameters) | {"n_jobs": reading.n_jobs}
    phases = Phases()
    with phases.importing():
        _check(options)
    check_files([*files, curve.valid, reading.group, curve.valid_group], [curve.plot])
    data = open_data(files, reading, phases)
    wanted = Wanted(data.n_features, data.feature_names)
    held_out = open_judged("valid", curve.valid, curve.valid_group, reading, phases, wanted)
    with phases.phase("curve"), phases.counting("fits") as progress:
        from marginrank.selection.learning_curve import learning_curve_ranking

        found = learning_curve_ranking(
            data,
            sizes=sizes,
            cv=curve.folds,
            validation=held_out,
            metric=chosen,
            random_state=curve.random_state,
            progress=progress,
            **options,
        )
    if curve.plot is not None:
        with phases.phase("plot", curve.plot):
            _plot(found, curve.plot)
    result = {"data": data_summary(data), **_describe(found), "seconds": phases.seconds}
    print_json(result) if json else _print(result)


def _check(options: dict[str, Any]) -> None:
    """Refuse wrong parameters of the models."""
    from marginrank.fit.linear import Parameters

    Parameters(**options)  # checked before data are read


def _plot(curve: "LearningCurve", path: str) -> None:
    from marginrank.plots import plot_learning_curve

    save_plot(plot_learning_curve(curve), path)


def _describe(curve: "LearningCurve") -> dict[str, Any]:
    columns = {
        "queries": curve.sizes,
        "pairs": curve.n_pairs.mean(axis=1),
        "train": curve.train_mean,
        "train_error": curve.train_error,
        "valid": curve.valid_mean,
        "valid_error": curve.valid_error,
        "train_scores": curve.train_scores,
        "valid_scores": curve.valid_scores,
    }
    points = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {
        "metric": curve.metric,
        "points": points,
        "gain": curve.gain._asdict(),
        "verdict": curve.verdict,
    }


def _print(result: Mapping[str, Any]) -> None:
    rows = [
        (
            point["queries"],
            round(float(point["pairs"])),
            plus_minus(point["train"], point["train_error"]),
            plus_minus(point["valid"], point["valid_error"]),
        )
        for point in result["points"]
    ]
    metric = result["metric"]
    header = ("queries", "pairs", f"{metric}, trained on", f"{metric}, held out")
    print_table("Learning curve (over queries with pairs)", rows, header=header)
    print_line(result["verdict"])
