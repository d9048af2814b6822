"""The command ``marginrank learning-curve``: estimate whether more queries would help."""

from collections.abc import Mapping
from typing import Any

from marginrank.cli.flags.inspection import LearningCurveFlags
from marginrank.cli.support.checks import check_files, check_flags, check_plot
from marginrank.cli.support.data import DataRequest, data_summary, open_data, open_held_out
from marginrank.cli.support.files import save_plot
from marginrank.cli.support.metrics import find_metric
from marginrank.cli.support.output import plus_minus, print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.fit.linear import Parameters
from marginrank.plots import plot_learning_curve
from marginrank.selection.learning_curve import LearningCurve, learning_curve_ranking

NEEDS = (("valid_group", "valid"),)


def run(flags: LearningCurveFlags, phases: Phases) -> None:
    """Train on more and more queries, and evaluate each model on other queries."""
    files, reading, curve = flags.files, flags.reading, flags.curve
    check_flags(reading.given, files, valid=curve.valid, needs=NEEDS, conflicts=[("C", "lam")])
    metric = find_metric(flags.metric)
    sizes = curve.numbers()
    check_plot(curve.plot)
    options = vars(flags.parameters) | {"n_jobs": reading.n_jobs}
    phases.seconds["import"] = phases.import_seconds
    Parameters(**options)  # raises ValueError before data are read
    check_files([*files, curve.valid, reading.group, curve.valid_group], [curve.plot])
    data = open_data(files, reading, phases)
    request = DataRequest(data.n_features, data.feature_names)
    held_out = open_held_out("valid", curve.valid, curve.valid_group, reading, phases, request)
    with phases.phase("curve"), phases.counting("fits") as progress:
        found = learning_curve_ranking(
            data,
            sizes=sizes,
            cv=curve.folds,
            validation=held_out,
            metric=metric,
            random_state=curve.random_state,
            progress=progress,
            **options,
        )
    save_plot(curve.plot, phases, lambda: plot_learning_curve(found))
    result = {"data": data_summary(data), **_describe(found), "seconds": phases.seconds}
    print_json(result) if flags.json else _print(result)


def _describe(curve: LearningCurve) -> dict[str, Any]:
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
    print_line(result["verdict"])
    print_line("")
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
    header = ("queries", "pairs", f"{metric}, training", f"{metric}, held out")
    print_table("Learning curve (queries with pairs; mean ± standard error)", rows, header=header)
