"""The command ``marginrank features``: evaluate how well single features rank."""

from collections.abc import Mapping
from typing import Any

from marginrank.cli.flags.inspection import FeaturesFlags
from marginrank.cli.support.checks import check_files, check_flags, check_plot
from marginrank.cli.support.data import data_summary, open_data
from marginrank.cli.support.files import save_plot
from marginrank.cli.support.metrics import find_metric
from marginrank.cli.support.output import print_json, print_table
from marginrank.cli.support.progress import Phases
from marginrank.metrics.feature_ranking import FeatureRanking, rank_features
from marginrank.plots import plot_feature_ranking

DIRECTIONS = {1: "descending", -1: "ascending"}


def run(flags: FeaturesFlags, phases: Phases) -> None:
    """Evaluate how well each feature alone ranks the documents."""
    reading = flags.reading
    check_flags(reading.given, flags.files)
    metric = find_metric(flags.metric)
    check_plot(flags.plot)
    check_files([*flags.files, reading.group], [flags.plot])
    data = open_data(flags.files, reading, phases)
    with phases.phase("features"):
        ranking = rank_features(data, metric=metric, n_jobs=reading.n_jobs)
    save_plot(flags.plot, phases, lambda: plot_feature_ranking(ranking, top=flags.top))
    result = {
        "data": data_summary(data),
        **_describe(ranking, flags.top),
        "seconds": phases.seconds,
    }
    print_json(result) if flags.json else _print(result)


def _describe(ranking: FeatureRanking, top: int) -> dict[str, Any]:
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
    return {"metric": ranking.metric, "chance": ranking.chance, "features": shown}


def _print(result: Mapping[str, Any]) -> None:
    rows = [(one["feature"], one["direction"], f"{one['value']:.4f}") for one in result["features"]]
    rows.append(("random order", None, f"{result['chance']:.4f}"))
    print_table(
        f"Best of {result['data']['features']:,} features",
        rows,
        header=("feature", "direction", result["metric"]),
    )
