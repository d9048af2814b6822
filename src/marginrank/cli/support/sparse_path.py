"""A path of sparse models, for train-sparse --path."""

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from marginrank.cli.support.metrics import Metric
from marginrank.cli.support.output import print_table
from marginrank.cli.support.plots import save_plot
from marginrank.cli.support.progress import Phases

if TYPE_CHECKING:
    from collections.abc import Mapping

    from marginrank.data import RankingData
    from marginrank.fit.sparse import SparseParameters
    from marginrank.selection.paths import SparsePath


def walk_path(
    data: "RankingData",
    held_out: "RankingData",
    parameters: "SparseParameters",
    metric: Metric,
    phases: Phases,
    *,
    n_points: int,
    parameter: str,
    random_state: int,
    verbose: bool,
) -> "SparsePath":
    """Fit the path, and score it on the data held out."""
    from marginrank.fit.linear import seed_from
    from marginrank.selection.paths import SparsePath, fit_path
    from marginrank.selection.sparse_paths import PATH_TOL, SparseLearner

    parameters = replace(
        parameters, C=None, tol=PATH_TOL, radius=1.0 if parameter == "radius" else None
    )
    with phases.phase("path"), phases.solving(verbose) as callback:
        # The last fit, which follows, warns of features without effect.
        path, _ = fit_path(
            SparsePath,
            SparseLearner(parameter, callback),
            data,
            parameters,
            held_out,
            metric,
            grid=None,
            n_points=n_points,
            seed=seed_from(random_state),
        )
    _warn(path)
    return path


def _warn(path: "SparsePath") -> None:
    """Warn of models that did not reach tol, and of scores that are all equal."""
    message = path.convergence_message(has_tol=False)
    if message is not None:
        warnings.warn(message, stacklevel=2)
    if path.scores is not None and len(path.scores) > 1 and path.scores.max() == path.scores.min():
        warnings.warn(
            f"{path.metric} is the same for all models, so the sparsest is kept; check the "
            "validation data.",
            stacklevel=2,
        )


def best_parameters(path: "SparsePath", parameters: "SparseParameters") -> "SparseParameters":
    """Return the parameters with the best C or radius of the path."""
    best: Any = {path.parameter: float(path.values[path.best_index])}
    return replace(parameters, **best)


def plot(path: "SparsePath", file: str) -> None:
    """Draw the path to a file."""
    from marginrank.plots import plot_path

    save_plot(plot_path(path), file)


def describe_path(path: "SparsePath") -> dict[str, Any]:
    """Return the path for --json."""
    import numpy as np

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


def print_path(described: "Mapping[str, Any]") -> None:
    """Print one line per model."""
    parameter, best = described["parameter"], described["best"]
    rows = [
        (
            point[parameter],
            point["nonzero"],
            f"{point['gap'] / point['objective']:.1e}" if point["objective"] else None,
            point["score"],
            "best" if k == best else "",
        )
        for k, point in enumerate(described["points"])
    ]
    header = (parameter, "non-zero", "relative gap", described["metric"], "")
    print_table("Path", rows, header=header)
