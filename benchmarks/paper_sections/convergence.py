"""Paper 1, figures 5 to 7: distance to the optimum against time, solver by solver."""

from typing import Any

import numpy as np
from paper_sections.report import Figures, show, times
from paper_sections.stopping import line_of_rule, slope_at_zero
from paper_sections.study import Study, fit, part

from marginrank import RankingData, RankSVM

# What the paper runs, and what this library has beside it.
SOLVERS = {
    "tron": "squared_hinge",
    "newton": "squared_hinge",
    "bmrm": "hinge",
    "ocas": "hinge",
    "smoothing": "hinge",
}
DISTANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
NOTES = (
    "Times are for tron until rule (38) would stop it, the dotted lines of the paper. Both "
    "losses have an optimum of their own. A dash: not reached within max_iter.",
    "Tree-TRON is tron, TreeRankSVM is bmrm; newton, ocas and smoothing are this library's own.",
    "The paper finds that TreeRankSVM converges more slowly, and Tree-TRON among the fastest at "
    "every C. cadata is here in place of its MQ2008-list, which has labels that all differ, too.",
)


def convergence(study: Study) -> Figures:
    """Figures 5 to 7: seconds to a relative distance, for large, medium and small C."""
    large = study.cadata()
    problems = {
        "MQ2008 fold 1": study.fold("MQ2008").train,
        "cadata": part(large, slice(2000)) if study.quick else large,
    }
    figures: Figures = {}
    for name, data in problems.items():
        slope = slope_at_zero(data)
        for C in (100.0, 1.0, 1e-4):
            figures[f"{name}, C = {C:g}"] = _race(name, data, C, C * slope, study)
    return figures


def _race(name: str, data: RankingData, C: float, slope: float, study: Study) -> Figures:
    optimum = {
        loss: fit(RankSVM(C=C, loss=loss, tol=1e-10), data).objective_
        for loss in set(SOLVERS.values())
    }
    limit = 100 if study.quick else 500
    figures: Figures = {}
    for solver, loss in SOLVERS.items():
        model = RankSVM(C=C, loss=loss, solver=solver, tol=1e-7, max_iter=limit)
        lines = _fastest(model, data, study.repeats)
        distance = np.array([line.objective / optimum[loss] - 1 for line in lines])
        if solver == "tron":
            unit = line_of_rule(lines, slope).seconds
        figures[solver] = {
            "objective": model.objective_,
            "distance": float(distance[-1]),
            "iterations": model.n_iter_,
            "stop": model.stop_reason_.name.lower(),
            "sweeps": lines[-1].sweeps,
            "times": [_time_to(lines, distance <= d, unit) for d in DISTANCES],
        }
    _show(name, data, C, limit, figures)
    return figures


def _fastest(model: RankSVM, data: RankingData, repeats: int) -> list[Any]:
    """Return the lines on the whole data, each with its least time: fits repeat bit by bit."""
    histories = [fit(model, data).history_ for _ in range(repeats)]
    return [
        lines[0]._replace(seconds=min(line.seconds for line in lines))
        for lines in zip(*histories, strict=True)
        if lines[0].fraction == 1.0
    ]


def _time_to(lines: list[Any], reached: np.ndarray, unit: float) -> float | None:
    return lines[int(np.argmax(reached))].seconds / unit if reached.any() else None


def _show(name: str, data: RankingData, C: float, limit: int, figures: Figures) -> None:
    rows = []
    for solver, of in figures.items():
        spent = map(times, of["times"])
        end = (f"{of['distance']:.0e}", of["stop"])
        rows.append([solver, SOLVERS[solver], of["iterations"], of["sweeps"], *spent, *end])
    distances = [f"to {d:g}" for d in DISTANCES]
    header = ["", "loss", "iterations", "sweeps", *distances, "at the end", "stop"]
    title = (
        f"Paper 1, figures 5 to 7: {name}, {data.n_pairs:,} pairs, C = {C:g}, "
        f"tol = 1e-7, max_iter = {limit}"
    )
    show(title, header, rows, NOTES if C == 1e-4 else ())
