"""marginrank features."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginrank._utils.parameters import check_integer
from marginrank.cli.support.checks import check_files, check_flags_of_data
from marginrank.cli.support.data import data_summary, open_data
from marginrank.cli.support.metrics import find_metric
from marginrank.cli.support.options import DataFiles, Json, OneMetric, Reading
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.plots import check_plot, save_plot
from marginrank.cli.support.progress import Phases

if TYPE_CHECKING:
    from marginrank.data import RankingData
    from marginrank.metrics.feature_ranking import FeatureRanking

EXAMPLE = """\
features train.txt
features train.txt --metric average_precision --top 20 --plot features.png"""

DIRECTIONS = {1: "descending", -1: "ascending"}


def features(
    files: DataFiles,
    reading: Reading,
    judging: OneMetric,
    top: Annotated[int, typer.Option(help="How many features to show, the best ones.")] = 10,
    plot: Annotated[
        str | None, typer.Option(help="File to draw them to, such as features.png or .pdf.")
    ] = None,
    json: Json = False,
) -> None:
    """Judge every feature as a ranking of its own, in both directions."""
    check_flags_of_data(reading.given, files)
    check_integer("top", top, at_least=1)
    chosen = find_metric(judging.metric, gain=judging.gain, discount=judging.discount)
    check_plot(plot)
    check_files([*files, reading.group], [plot])
    phases = Phases()
    data = open_data(files, reading, phases)
    with phases.phase("features"):
        ranking = _rank(data, chosen, reading)
    if plot is not None:
        with phases.phase("plot"):
            _plot(ranking, top, plot)
    result = {**_describe(ranking, data, top), "seconds": phases.seconds}
    print_json(result) if json else _print(result)


def _rank(data: "RankingData", metric: Any, reading: Reading) -> "FeatureRanking":
    """Score each feature as a ranking of its own."""
    from marginrank import rank_features

    return rank_features(data, metric=metric, n_jobs=reading.n_jobs)


def _plot(ranking: "FeatureRanking", top: int, path: str) -> None:
    from marginrank.plots import plot_feature_ranking

    save_plot(plot_feature_ranking(ranking, top=top), path)


def _describe(ranking: "FeatureRanking", data: "RankingData", top: int) -> dict[str, Any]:
    shown = [
        {
            "feature": ranking.feature_names[j],
            "direction": DIRECTIONS[ranking.direction[j]],
            "value": ranking.best[j],
            "descending": ranking.descending[j],
            "ascending": ranking.ascending[j],
        }
        for j in ranking.order[:top].tolist()
    ]
    return {
        "data": data_summary(data),
        "metric": ranking.metric,
        "chance": ranking.chance,
        "features": shown,
    }


def _print(result: Mapping[str, Any]) -> None:
    rows = [(one["feature"], one["direction"], one["value"]) for one in result["features"]]
    rows.append(("random order", None, result["chance"]))
    print_table("Features", rows, header=("feature", "direction", result["metric"]))
