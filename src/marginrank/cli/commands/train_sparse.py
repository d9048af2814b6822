"""The command ``marginrank train-sparse``: train a sparse linear model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from marginrank.cli.flags.training import TrainSparseFlags
from marginrank.cli.support.checks import check_plot
from marginrank.cli.support.data import data_summary, open_data
from marginrank.cli.support.errors import warn_of
from marginrank.cli.support.files import save_plot
from marginrank.cli.support.output import print_table
from marginrank.cli.support.progress import Phases
from marginrank.cli.support.training import TrainingTask
from marginrank.data import RankingData
from marginrank.fit.inputs import OpenedData
from marginrank.fit.linear import seed_from
from marginrank.fit.sparse import SparseParameters
from marginrank.plots import plot_path
from marginrank.selection.paths import SparsePath, fit_path
from marginrank.selection.sparse_paths import PATH_TOL, SparseLearner

NEEDS = (("parameter", "path"), ("plot", "path"), ("path", "valid"))
RESOURCES = ("memory_limit", "dask")
# Pairs of flags that exclude each other.
CONFLICTS = (
    *(
        (name, "path")
        for name in ("C", "radius", "objective", "solver", "variant", "device", *RESOURCES)
    ),
    RESOURCES,
    ("device", "memory_limit"),
    ("C", "radius"),
)
# A flag, another parameter, and the values of that parameter with which the flag has an effect.
ONLY_WITH = (("variant", "solver", ("fenchel",)),)


def run(flags: TrainSparseFlags, phases: Phases) -> None:
    """Train a sparse linear model and write it to a file."""
    options = flags.path
    task = TrainingTask(flags.data, flags.reading, flags.validation, flags.training, phases)
    task.check_flags(needs=NEEDS, conflicts=CONFLICTS)
    options.check_penalty(flags.parameters.l1_ratio)
    check_plot(options.plot)
    parameters = task.prepare(
        lambda: task.parameters_of(SparseParameters, flags.parameters, flags.device),
        outputs=[options.plot],
        only_with=ONLY_WITH,
    )
    if flags.resources.dask is not None:
        from marginrank.cli.support.cluster import train_on_cluster

        train_on_cluster(task, parameters, flags.resources.dask)
        return
    if options.path is None:
        opened = task.open(memory_limit=flags.resources.memory_limit)
    else:  # X is always in memory, because the fits of a path share it
        opened = OpenedData(open_data(flags.data, flags.reading, phases))
    data = opened.data
    held_out = task.open_valid(data.n_features, data.feature_names)
    path = None
    if options.path is not None and held_out is not None:
        path = _fit_path(task, flags, options.path, data, held_out, parameters)
        best: Any = {path.parameter: float(path.values[path.best_index])}
        parameters = replace(parameters, **best)
    model = task.fit(opened, parameters)
    task.write(model)
    counts = data_summary(data)
    if path is None:
        task.report(model, held_out, counts, memory_limit=opened.memory_limit)
        return
    save_plot(options.plot, phases, lambda: plot_path(path))
    result = task.report(model, held_out, counts, path=_describe(path))
    if not flags.training.json:
        _print(result["path"])


def _fit_path(
    task: TrainingTask,
    flags: TrainSparseFlags,
    n_points: int,
    data: RankingData,
    held_out: RankingData,
    parameters: SparseParameters,
) -> SparsePath:
    name, phases = flags.path.parameter, task.phases
    parameters = replace(parameters, C=None, tol=PATH_TOL, radius=1.0 if name == "radius" else None)
    with phases.phase("path"), phases.solving(task.training.verbose) as callback:
        # The last fit warns about features without effect.
        path, _ = fit_path(
            SparsePath,
            SparseLearner(name, callback),
            data,
            parameters,
            held_out,
            next(iter(task.metrics("ndcg@10").values())),
            grid=None,
            n_points=n_points,
            seed=seed_from(task.training.random_state),
        )
    warn_of(path.convergence_message(has_tol=False))
    if path.scores is not None and len(path.scores) > 1 and path.scores.max() == path.scores.min():
        warn_of(
            f"{path.metric} is the same for all models of the path; the sparsest is kept. Check "
            "that the validation data have the same features and queries with distinct labels."
        )
    return path


def _describe(path: SparsePath) -> dict[str, Any]:
    columns = {
        path.parameter: path.values,
        "nonzero": np.diff(path.coefs.indptr),
        "objective": path.objectives,
        "gap": path.gaps,
        "score": path.scores,
        "converged": [stop.converged for stop in path.stop_reasons],
    }
    points = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {
        "parameter": path.parameter,
        "metric": path.metric,
        "best": path.best_index,
        "points": points,
    }


def _print(described: Mapping[str, Any]) -> None:
    parameter, best = described["parameter"], described["best"]
    rows = [
        (
            f"{point[parameter]:.4g}",
            point["nonzero"],
            f"{point['gap'] / point['objective']:.1e}" if point["objective"] else None,
            f"{point['score']:.4f}",
            "best" if k == best else "",
        )
        for k, point in enumerate(described["points"])
    ]
    header = (parameter, "non-zero", "relative gap", described["metric"], "")
    print_table("Path", rows, header=header)
